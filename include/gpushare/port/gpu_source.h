/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "gpushare/base/error.h"
#include "gpushare/model/gpu.h"
#include "gpushare/model/vendor.h"

/*
 * Where the device plugin learns which GPUs there are: the NVIDIA driver (nvml/driver.h), or a flag
 * or a file for machines without (nvml/listed.h). One thread calls; calls may block for as long as
 * the driver does.
 */
struct gs_gpu_set {
    struct gs_gpu gpus[GS_GPUS_MAX]; /* ascending idx, as the source counts today; mem_mib is set,
                                        mem_units is 0: the caller divides by its unit;
                                        max_pods is how many MPS would serve, 0: not known */
    uint32_t count;
    uint32_t vendor;                  /* of all of them, in gs_vendors */
    gs_gpu_mask measured;             /* of these, as the source counts, used_bytes is known */
    uint64_t used_bytes[GS_GPUS_MAX]; /* what all processes, and the driver, hold of it */
    char refused[256]; /* why some cards are left out ("GPU 2 does not answer…"), "" otherwise */
    bool deaf;         /* events of some cards are not heard: sickness shows late or never */
    bool fresh; /* what was known of their sickness from before is void: the driver was reloaded, or
                   the source knows all */
    /* A source leaves these alone; the caller's, once it has given out indices of its own: */
    uint32_t reserved_mib;            /* of every GPU, that is no pod's to ask for */
    gs_gpu_mask gone;                 /* of these, by idx: known from before, not there any more */
    uint32_t source_idx[GS_GPUS_MAX]; /* by idx: as the source counts; GS_GPUS_MAX: gone */
};

/* What pods can ask for of the GPU at that place, in whole units. */
static inline uint32_t gs_gpu_set_units(const struct gs_gpu_set *set, uint32_t at,
                                        enum gs_unit unit)
{
    uint32_t mib = set->gpus[at].mem_mib;
    return mib > set->reserved_mib ? (mib - set->reserved_mib) / gs_unit_mib(unit) : 0;
}

/* A process of this host, or of what the caller sees of it, and what it holds of one GPU. */
struct gs_gpu_process {
    uint32_t pid;
    uint64_t bytes; /* GS_GPU_BYTES_UNKNOWN: the driver does not say */
};
#define GS_GPU_BYTES_UNKNOWN UINT64_MAX
enum { GS_GPU_PROCESSES_MAX = 1024 };

struct gs_gpu_source_ops {
    /* What there is now. Errors name what is wrong: GS_ENOENT (no library, no file), GS_EIO (the
     * driver says), GS_ECONFLICT (the library in this process is not the driver's: for a new
     * process only), GS_EPROTO (file not understood). Nothing is lost: call again. */
    int (*read)(void *ctx, struct gs_gpu_set *ret, struct gs_error *err);
    /* Waits for news (health, a changed file) for at most timeout_ns: 1 there may be some, 0 none,
     * -1 the source is broken and will be opened again by read(). */
    int (*wait)(void *ctx, int64_t timeout_ns, struct gs_error *err);
    /* Lets go of the driver, so that it can be replaced, until the next read(). May be NULL. */
    void (*release)(void *ctx);
    /* The processes that hold memory of the GPU with that idx of the last read(), each PID once.
     * GS_ENOENT: it has no such GPU; GS_ETOOBIG; GS_EIO: the driver does not tell. May be NULL. */
    int (*processes)(void *ctx, uint32_t idx, struct gs_gpu_process ret[GS_GPU_PROCESSES_MAX],
                     size_t *ret_count, struct gs_error *err);
    void (*close)(void *ctx);
};

struct gs_gpu_source {
    const struct gs_gpu_source_ops *ops;
    void *ctx;
};
