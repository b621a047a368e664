/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "gpushare/model/enforced.h"

/*
 * One physical GPU, as the device plugin reports it in the node annotation `<domain>/gpu-inventory`
 * (docs/contract.md) or as capacity / count when there is no such annotation.
 * Plain data.
 */

/* Highest GPU index on a node is GS_GPUS_MAX - 1: a set of GPUs is one gs_gpu_mask. */
enum { GS_GPUS_MAX = 64 };
typedef uint64_t gs_gpu_mask;

/* What one unit of `<domain>/gpu-mem` is. Every node of a cluster should use the same. */
enum gs_unit { GS_UNIT_UNKNOWN, GS_UNIT_MIB, GS_UNIT_64MIB, GS_UNIT_256MIB, GS_UNIT_GIB };

/* "MiB", "64MiB", "256MiB", "GiB"; "" for unknown. */
const char *gs_unit_name(enum gs_unit unit);

/* The exact names above; false leaves *ret alone. */
bool gs_unit_parse(const char *text, size_t len, enum gs_unit *ret);

/* 1, 64, 256 or 1024; 0 for unknown. */
uint32_t gs_unit_mib(enum gs_unit unit);

/* NUMA node of a GPU that reports none. */
enum { GS_NUMA_NONE = -1 };

/* A GPU's compute, of which pods may ask for a part (`<domain>/gpu-core.percentage`). */
enum { GS_CORES_PCT = 100 };

enum { GS_UUID_BYTES = 64, GS_MODEL_BYTES = 64, GS_PCI_BYTES = 20 };

struct gs_gpu {
    uint32_t idx;       /* belongs to its UUID (docs/architecture.md), below GS_GPUS_MAX */
    uint32_t mem_units; /* size in the node's unit, floored */
    uint32_t mem_mib;   /* size in MiB, 0 when not known */
    uint32_t xid;       /* needs a reset, since this XID; 0: it does not */
    uint32_t xid_boot;  /* of the node, when that came: 31 bits of a hash */
    uint32_t max_pods;  /* so many at a time, as its MPS daemon serves; 0: any number */
    int16_t numa;
    uint16_t node; /* 1 + N of /dev/nvidiaN, the driver's minor number; 0: none, or not known */
    bool healthy;
    bool schedulable; /* false: an administrator's cordon */
    enum gs_enforced enforced;
    char uuid[GS_UUID_BYTES];   /* "" when not known; NUL-terminated */
    char card[GS_UUID_BYTES];   /* of an instance, its card's UUID; "" when not known */
    char model[GS_MODEL_BYTES]; /* "" when not known; NUL-terminated, cut when longer */
    char pci[GS_PCI_BYTES];     /* "0000:3b:00.0", as sysfs writes it; "" when not known */
};

/* New pods may be placed on it. */
static inline bool gs_gpu_usable(const struct gs_gpu *gpu)
{
    return gpu->healthy && gpu->schedulable;
}

/* An instance of a card with MIG: no limit of the kernel holds it, and the driver counts it by two
 * numbers, so it is named by its UUID only ("MIG-…", NVIDIA's MIG user guide). */
static inline bool gs_gpu_is_instance(const struct gs_gpu *gpu)
{
    return strncmp(gpu->uuid, "MIG-", 4) == 0;
}

/* All that an inventory says of them is the same, but for schedulable. */
bool gs_gpu_same(const struct gs_gpu *a, const struct gs_gpu *b);

/* By ascending index. */
void gs_gpus_sort(struct gs_gpu *gpus, uint32_t count);

/* The one of this index; NULL when there is none. *Borrowed* from gpus. */
const struct gs_gpu *gs_gpu_find(const struct gs_gpu *gpus, uint32_t count, uint32_t idx);

#define GS_GPU_BIT(idx) ((gs_gpu_mask)1 << (idx))

/* for (every index in a mask, lowest first) */
#define GS_FOR_EACH_GPU(idx, mask)                                                                 \
    for (gs_gpu_mask gs_left_ = (mask);                                                            \
         gs_left_ && ((idx) = (uint32_t)__builtin_ctzll(gs_left_), 1); gs_left_ &= gs_left_ - 1)

static inline uint32_t gs_gpu_mask_count(gs_gpu_mask mask)
{
    return (uint32_t)__builtin_popcountll(mask);
}
