/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/error.h"
#include "gpushare/limit/pod_tree.h"
#include "gpushare/limit/region.h"
#include "gpushare/model/enforced.h"
#include "gpushare/port/memory_limits.h"

/*
 * Limits pods to their request of a GPU's memory by the kernel's dmem cgroup controller (Linux 6.14
 * or newer, CONFIG_CGROUP_DMEM, cgroup v2): one line, "<region> <bytes>", in the pod's dmem.max.
 * The GPU's driver charges what a process takes to the process's cgroup; above the pod's limit it
 * is refused. The limit binds the sum over all processes and containers of the pod.
 *
 * It knows pods by UID, GPUs by region, sizes in bytes, and nothing of Kubernetes'
 * API, of units or of a vendor: any front end can call it. Whether a write took effect is found out
 * by reading, because before 7.3 a limit below what is in use is accepted and ignored. It has no
 * thread, no timer and no log of its own. Used by one thread.
 *
 *   gs_limiter_new(&(struct gs_limiter_options){.mount = "/sys/fs/cgroup"}, &limiter, &err);
 *   gs_limiter_look(limiter, addresses, gpu_count, regions);     at start, after driver events
 *   if (regions[0].state == GS_ENFORCED_DMEM) ...
 *   struct gs_limit limit = {regions[0].region.name, 8ULL << 30};
 *   switch (gs_limiter_hold(limiter, uid, &limit, 1, &result)) ...   as soon as its cgroup appears
 *   gs_limiter_verify(limiter, uid, &limit, 1, &result);              before a container starts
 *   gs_limiter_hold(...)                                              every some seconds: repairs
 *
 * A limit is lost, silently, when the pod's cgroup is made again, when "dmem" is switched off and
 * on above it, and when the driver registers its region anew: hence the repeated calls.
 */
struct gs_limiter;
struct gs_limit_host; /* how files are written; the default is the kernel's way */

struct gs_limiter_options {
    const char *mount; /* of cgroup v2; copied. At most 256 bytes, no "/" at its end */
    const struct gs_limit_host *host; /* borrowed; NULL: gs_limit_host_kernel */
    bool
        writes; /* gs_limiter_look() tries a write, which changes nothing, to know whether it may */
    struct gs_memory_limits driver; /* zeroed: none */
};

/* *caller frees*. GS_EINVAL: the mount's name; GS_ENOMEM. Whether there is such a mount is what
 * gs_limiter_look() says. */
int gs_limiter_new(const struct gs_limiter_options *options, struct gs_limiter **ret,
                   struct gs_error *err);
void gs_limiter_free(struct gs_limiter *limiter);

/* ---- what this host can do ---- */

/* Looks anew at the host, at the regions of all GPUs of the node, and for the pods' folders.
 * addresses: PCI, as the driver writes them; NULL for a GPU that has none. ret has room for count:
 * ABSENT while the host has no controller. GS_ENFORCED_DMEM: limits can be written here; else why
 * not. */
enum gs_enforced gs_limiter_look(struct gs_limiter *limiter, const char *const *addresses,
                                 size_t count, struct gs_region *ret);

/*
 * The same of the driver's own limits, which the functions below set and read from then on when it
 * says GS_ENFORCED_DRIVER, until gs_limiter_look(): regions are UUIDs then. uuids: NULL for a GPU
 * that takes no part. ret: as the last look left it, since what has been tried is not tried again:
 * a limit is set and read back in a cgroup that is made for that.
 *
 * Below such a limit a container's own (NVIDIA_GPU_MEMORY_LIMIT) counts alone: one above the pod's
 * is lowered to it, and the pod is GS_LIMIT_CONTAINER in that look.
 */
enum gs_enforced gs_limiter_look_at_driver(struct gs_limiter *limiter, const char *const *uuids,
                                           size_t count, struct gs_region *ret);

/* Where pods' cgroups are. *Borrowed* from the limiter; changed by gs_limiter_look(), and by any
 * call while no folder of pods was found yet. */
const struct gs_pod_tree *gs_limiter_tree(const struct gs_limiter *limiter);

/* ---- a pod's limits; uid of a static pod: its config hash ---- */

struct gs_limit {
    const char *region;
    uint64_t bytes; /* GS_DMEM_NO_LIMIT takes a limit off */
};

/* From best to worst. */
enum gs_limit_outcome {
    GS_LIMIT_HELD,      /* read back: the kernel has this limit, to the byte */
    GS_LIMIT_CONTAINER, /* a container had a limit of its own above it */
    GS_LIMIT_NO_POD,    /* the pod has no cgroup: not yet, or not any more */
    GS_LIMIT_TWICE,     /* it has several, in two trees or under two classes. Each is given the
                           limit, but together they are not held */
    GS_LIMIT_OTHER,     /* the kernel has another limit. After a write: what is in use is above
                           the new one, and this kernel (before 7.3) keeps the old one then */
    GS_LIMIT_NO_REGION, /* the driver has let go of the GPU, or never had it */
    GS_LIMIT_NO_FILES,  /* no dmem.max: "dmem" is not passed on to the pods and could not be */
    GS_LIMIT_READ_ONLY, /* the file system is mounted read-only here */
    GS_LIMIT_DENIED,    /* not permitted: not root, or a security module */
    GS_LIMIT_FAILED,    /* anything else; also a file that is none of the kernel's */
    GS_LIMIT_OUTCOME_COUNT,
};

/* A clause for people, "" when held. */
const char *gs_limit_outcome_reason(enum gs_limit_outcome outcome);

struct gs_limit_result {
    enum gs_limit_outcome outcome;
    uint64_t found_bytes; /* the limit that the kernel has now; valid for HELD and OTHER */
    bool written;         /* it said something else before: newly set, or repaired */
    uint64_t
        apart_bytes; /* used under its containers' own limits, where the driver's do not nest */
};

enum { GS_LIMITS_MAX = 64 }; /* of one pod */

/* Makes these limits the pod's: reads, writes those that differ, one at a time, and reads again.
 * Where the pod lacks dmem.max, "+dmem" is written on the way down to it first. Lines of other
 * regions are left alone. results has room for count; returns the worst of them. A pod above its
 * new limit is not fought: GS_LIMIT_OTHER, or, since 7.3, HELD with use above it. */
enum gs_limit_outcome gs_limiter_hold(struct gs_limiter *limiter, const char *uid,
                                      const struct gs_limit *limits, size_t count,
                                      struct gs_limit_result *results);

/* The same question without a write. */
enum gs_limit_outcome gs_limiter_verify(struct gs_limiter *limiter, const char *uid,
                                        const struct gs_limit *limits, size_t count,
                                        struct gs_limit_result *results);

/* Writes the same limits into the cgroups of the pod's containers that there are now, and "+dmem"
 * into the pod's cgroup.subtree_control where they lack the file: a process is told the limit of
 * its own cgroup as the GPU's size (cudaMemGetInfo), not that of one above. Likewise into a cgroup
 * "container" in one of these, which crun makes; while crun's first process is still above it, that
 * is refused. Nothing is held by it, so nothing is said of it. For pods with one container that
 * uses GPUs. */
void gs_limiter_show(struct gs_limiter *limiter, const char *uid, const struct gs_limit *limits,
                     size_t count);

/* What the pod uses of each region (dmem.current), limit or not; a region that is not there: 0.
 * GS_LIMIT_HELD when it could be read; otherwise ret_bytes is untouched. */
enum gs_limit_outcome gs_limiter_use(struct gs_limiter *limiter, const char *uid,
                                     const char *const *regions, size_t count, uint64_t *ret_bytes);

/* The most that it ever used (dmem.peak, since 7.3), likewise. GS_LIMIT_NO_FILES: an older kernel.
 */
enum gs_limit_outcome gs_limiter_peak(struct gs_limiter *limiter, const char *uid,
                                      const char *const *regions, size_t count,
                                      uint64_t *ret_bytes);
