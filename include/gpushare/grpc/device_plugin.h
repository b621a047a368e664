/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/arena.h"
#include "gpushare/base/error.h"
#include "gpushare/grpc/loop.h"

/*
 * The kubelet's device plugin API v1beta1, service DevicePlugin, in plain C
 * (Kubernetes: staging/src/k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1/api.proto). Loop thread
 * only. Registration is a client call: kubelet_link.h does both and keeps doing so.
 *
 *   static void allocate(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *wanted,
 *                        size_t count)
 *   {
 *       ... decide; or keep `call`, return, and answer later
 *       gs_dp_allocate_reply(call, answers, count);
 *   }
 *   static const struct gs_dp_ops ops = {.allocate = allocate, .pre_start = pre_start};
 *
 *   gs_dp_new(loop, &ops, me, &dp, &err);
 *   gs_dp_set_devices(dp, devices, count, &err);
 *   gs_dp_listen(dp, "/var/lib/kubelet/device-plugins/aliyungpushare.sock", &err);
 *
 * GetPreferredAllocation is not offered and answers UNIMPLEMENTED: while it runs, a poller of
 * PodResources makes older kubelets panic (kubernetes issue 119560).
 */
struct gs_dp;

/*
 * An Allocate or PreStartContainer that waits for its answer. It belongs to the service from the
 * callback until one of the three answers below, which must come exactly once, in the callback or
 * later, also when the kubelet no longer waits (then it is dropped) and even after gs_dp_free().
 */
struct gs_dp_call;

struct gs_dp_ids {
    const char *const *ids; /* in no order: the kubelet draws them at random */
    size_t count;
};

struct gs_dp_ops {
    /* One entry per container asked for; kubelets send one. wanted is *borrowed until the call is
     * answered*. No deadline, but the node admits no pod meanwhile; an error fails the pod for
     * good. */
    void (*allocate)(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *wanted,
                     size_t count);

    /* Before every start of a container; the kubelet waits 30 s, and on error tries again after
     * about 10 s. */
    void (*pre_start)(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *ids);
};

struct gs_dp_pair {
    const char *key;
    const char *value;
};

/* Of the host, and where the container finds it. */
struct gs_dp_path {
    const char *host;
    const char *container;
    bool read_only; /* of mounts */
};

/* The answer for one container. Text must be UTF-8. */
struct gs_dp_container {
    const struct gs_dp_pair *envs;
    size_t env_count;
    const struct gs_dp_path *mounts;
    size_t mount_count;
    const struct gs_dp_path *devices; /* nodes it may read and write, and not make ("rw") */
    size_t device_count;
    const struct gs_dp_pair *annotations; /* for the container runtime, not the pod's */
    size_t annotation_count;
    const char *const *cdi_devices; /* fully qualified, "nvidia.com/gpu=0" */
    size_t cdi_device_count;
};

/* Largest ListAndWatchResponse a kubelet takes: its gRPC library's default, 4 MiB, the five bytes
 * of framing not counted. */
#define GS_DP_LIST_MAX_BYTES ((size_t)4194304)

/* ops is *copied*. */
int gs_dp_new(struct gs_loop *loop, const struct gs_dp_ops *ops, void *ctx, struct gs_dp **ret,
              struct gs_error *err);

/* Serves the unix socket `path`; call again after the kubelet deleted it. One owner per path and
 * errors as gs_grpc_server_listen(): GS_EEXIST when another copy of the plugin runs. */
int gs_dp_listen(struct gs_dp *dp, const char *path, struct gs_error *err);

/* Serves a connected socket; fd is *taken*. For tests and fuzzing. */
int gs_dp_adopt(struct gs_dp *dp, int fd, struct gs_error *err);

/* Closes the socket and every connection. */
void gs_dp_free(struct gs_dp *dp);

/* Replaces the list of ids, *copied*, of at most 63 bytes each, and sends it on every ListAndWatch
 * stream. All are Healthy: an unhealthy one takes the unit away from the node and endangers its
 * pods at the next kubelet restart. No topology is sent: the kubelet draws ids by it, and a unit's
 * id says nothing about where the GPU is that the extender chose. A slow reader gets the
 * newest list, not every one; a list equal to the old one is not sent. Until the first call,
 * streams wait. GS_ETOOBIG above GS_DP_LIST_MAX_BYTES, GS_EINVAL (empty or overlong id), GS_ENOMEM:
 * the old list stays. */
int gs_dp_set_devices(struct gs_dp *dp, const char *const *ids, size_t count, struct gs_error *err);

/* Exact encoded size in bytes of the ListAndWatchResponse for these devices. */
size_t gs_dp_list_bytes(const char *const *ids, size_t count);

/* ListAndWatch streams open now: 0 means that no kubelet listens to us. */
size_t gs_dp_streams(const struct gs_dp *dp);

/* ---- answers; each takes the call ---- */

/* containers are *copied*; count must be the request's, else the kubelet gets INTERNAL (so it does
 * for text that is not UTF-8, or when memory is out). */
void gs_dp_allocate_reply(struct gs_dp_call *call, const struct gs_dp_container *containers,
                          size_t count);
void gs_dp_pre_start_reply(struct gs_dp_call *call);

/* An error for either: why->code chooses the gRPC status, why->msg is the text, which the kubelet
 * puts into the pod's status or event. */
void gs_dp_call_fail(struct gs_dp_call *call, const struct gs_error *why);

/* ---- old answers ---- */

/* The environment variable of that name in an encoded ContainerAllocateResponse, as kubelets keep
 * them; NULL when it has none. *ret lies in the arena, untouched on failure: GS_EPROTO, GS_ETOOBIG,
 * GS_ENOMEM. */
int gs_dp_answer_env(struct gs_arena *arena, const void *bytes, size_t len, const char *name,
                     const char **ret, struct gs_error *err);
