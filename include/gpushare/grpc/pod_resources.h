/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_GRPC_POD_RESOURCES_H
#define GPUSHARE_GRPC_POD_RESOURCES_H

#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/arena.h"
#include "gpushare/base/error.h"
#include "gpushare/grpc/loop.h"

/*
 * v1.PodResourcesLister/List of the kubelet: which pod and container own which device ids
 * (Kubernetes: staging/src/k8s.io/kubelet/pkg/apis/podresources/v1/api.proto). Loop thread only.
 *
 * What to expect: inside PreStartContainer the ids of that container are listed. Inside Allocate
 * the pod is listed, with its containers, without devices. Init containers are missing in 1.20.
 * Terminal pods are listed by 1.20, not by newer ones. Order is random. One resource may have
 * several entries in a container, one per NUMA node or even one per device.
 */
struct gs_podres_devices {
    const char *resource_name;
    const char *const *ids;
    size_t id_count;
};

struct gs_podres_container {
    const char *name;
    const struct gs_podres_devices *devices;
    size_t device_count;
};

struct gs_podres_pod {
    const char *ns;
    const char *name;
    const struct gs_podres_container *containers;
    size_t container_count;
};

struct gs_podres_list {
    const struct gs_podres_pod *pods;
    size_t pod_count;
};

/* Largest answer taken, in bytes. 8,125 ids of 20 characters are 179 kB. */
#define GS_PODRES_MAX_BYTES ((size_t)16 << 20)

struct gs_podres_call;

/* One of list and failure is NULL; both are *borrowed until done() returns*. GS_EIO: no kubelet;
 * GS_ETIMEOUT; GS_EBUSY: newer kubelets limit the rate, ask again later; GS_EPROTO, GS_ETOOBIG. */
typedef void gs_podres_fn(void *ctx, const struct gs_podres_list *list,
                          const struct gs_error *failure);

/* socket_path is *copied*. done() is called once, from the loop, never from within. *ret (may be
 * NULL) is valid until done(). */
int gs_podres_list_start(struct gs_loop *loop, const char *socket_path, int64_t timeout_ns,
                         gs_podres_fn *done, void *ctx, struct gs_podres_call **ret,
                         struct gs_error *err);

/* Gives up and frees; done() is not called. */
void gs_podres_cancel(struct gs_podres_call *call);

/* Decodes a ListPodResourcesResponse; *ret lives in the arena. Pure. Memory is bounded: at most 32
 * bytes per byte of input and 1 MiB. GS_EPROTO, GS_ETOOBIG, GS_ENOMEM. */
int gs_podres_decode(struct gs_arena *arena, const void *message, size_t len,
                     struct gs_podres_list *ret, struct gs_error *err);

#endif
