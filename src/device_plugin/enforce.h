/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/allocate/allocator.h"
#include "gpushare/grpc/loop.h"
#include "gpushare/limit/cgroup_watch.h"
#include "gpushare/limit/keeper.h"
#include "gpushare/nvml/limits.h"

struct plugin;

/*
 * Pods and their shares, brought to the limiter (limit/keeper.h), and what it says, brought to the
 * node's object, to Events and to the pages. A limit is written as soon as the kubelet has made the
 * pod's cgroup: PreStartContainer, which is called only for containers that name the resource,
 * verifies it by reading. Nothing is read or written with --enforce=off. Loop thread.
 */
struct enforce {
    struct gs_nvml_limits *driver; /* NULL: not asked for */
    struct gs_limiter *limiter;
    struct gs_keeper *keeper; /* NULL: off */
    struct gs_cgroup_watch *watch;
    struct gs_loop_fd fd;
    struct gs_region gpus[GS_GPUS_MAX]; /* by index, as looked at last */
    size_t gpu_count;
    bool look_due;    /* the GPUs changed */
    bool pass_due;    /* all pods are looked at */
    int64_t look_ns;  /* the next look at the host */
    int64_t again_ns; /* containers that start are looked at once more */
};

/* GS_EINVAL: the mount's name; GS_ENOMEM. Whether the host can limit is found out later. */
int enforce_start(struct plugin *plugin, struct gs_error *err);
void enforce_release(struct plugin *plugin);

void enforce_round(struct plugin *plugin);

/* An Allocate was answered: the keeper has the pod's share before its cgroup is made. */
void enforce_allocated(struct plugin *plugin);

/* What the kernel does for a GPU. */
enum gs_enforced enforce_word(const struct plugin *plugin, const struct gs_gpu *gpu, uint32_t pods);

/* Before a container starts. False: it has to wait, see err. */
bool enforce_may_start(struct plugin *plugin, const struct gs_start_request *request,
                       const struct gs_placed *pod, struct gs_error *err);
