/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Limits of a GPU's memory that its driver keeps by itself, for a cgroup (v2) and all below it that
 * have none of their own, on any kernel: nvml/limits.h. The nearest limit above a process counts,
 * and that alone; the driver counts what is taken from the first limit on. One thread calls.
 */
struct gs_memory_limits {
    void *ctx;
    /* gpu: its UUID; cgroup: path of its folder, as opened here; bytes: UINT64_MAX takes the limit
     * off. 0 or an errno. EOPNOTSUPP: this driver or GPU has none; EPERM: CAP_SYS_ADMIN is missing;
     * ENOENT: no such cgroup, or the kernel's controller is off in it; EINVAL: more is in use;
     * ETIMEDOUT: no answer within two seconds, or to an earlier call, or calls took more than a
     * second of the last ten; EIO. */
    int (*set)(void *ctx, const char *gpu, const char *cgroup, uint64_t bytes);
    /* Likewise; EOPNOTSUPP or ENOENT also where no limit was ever set. */
    int (*get)(void *ctx, const char *gpu, const char *cgroup, uint64_t *ret_bytes,
               uint64_t *ret_used);
};
