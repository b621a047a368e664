/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/model/eligible.h"
#include "gpushare/model/gpu.h"

/* Where a pod is, by the device plugin's word, when that is not where it was bound. */
struct gs_moved {
    const char *uid; /* of a pod */
    gs_gpu_mask gpus;
};

/*
 * What this project knows of a Kubernetes Node (core/v1 Node). Plain data; strings are borrowed
 * from the node's arena until gs_node_reset() or gs_node_release().
 */
struct gs_node {
    const char *name;             /* metadata.name, never NULL */
    const char *uid;              /* metadata.uid, "" when absent */
    const char *resource_version; /* metadata.resourceVersion, "" when absent */
    const char *enforced;         /* label <domain>/gpu-enforced, "" when absent */
    const char *address;          /* first InternalIP of status.addresses, "" when absent */
    const char *kubelet;          /* status.nodeInfo.kubeletVersion, "" when absent */
    bool labelled;                /* label gpushare=true */
    bool ready;                   /* condition Ready is True */
    bool unschedulable;           /* spec.unschedulable */
    bool driver_upgrade;          /* label <domain>/gpu-driver-upgrade=true */
    bool mps;                     /* label <domain>/gpu-mps=true */
    uint32_t whole_gpus;          /* status.capacity of nvidia.com/gpu*, mig-* and vgpu* */
    uint64_t capacity_units;      /* status.capacity of <domain>/gpu-mem, 0 when absent */
    uint64_t allocatable_units;   /* status.allocatable of the same */
    uint32_t capacity_count;      /* status.capacity of <domain>/gpu-count */
    uint32_t capacity_cores_pct;  /* the same of <domain>/gpu-core.percentage */
    int64_t cpu_milli;            /* status.allocatable.cpu */
    int64_t memory_bytes;         /* status.allocatable.memory */
    enum gs_unit unit;            /* of the inventory; unknown without one */
    bool inventory;               /* gpus[] come from a valid annotation, not from division */
    const char *inventory_error;  /* why the annotation is not valid, "" when it is or absent */
    struct gs_gpu *gpus;          /* ascending idx, no index twice; NULL when gpu_count is 0 */
    uint32_t gpu_count;           /* entries in gpus */
    gs_gpu_mask cordoned;         /* of these, by an administrator; they are not schedulable */
    uint32_t cordon_unknown;      /* words of gpu-cordon that name none of gpus[] */
    bool tells_moved;             /* by the inventory: the plugin keeps moved[] true */
    bool unit_doubted;            /* by the inventory: it is not what the plugin was told */
    int64_t inventory_rev;        /* 0: it does not say */
    const char *moved_error;      /* why that annotation is not valid, "" when it is or absent */
    struct gs_moved *moved;       /* ascending UID, none twice; NULL when moved_count is 0 */
    uint32_t moved_count;
    struct gs_node_rules rules; /* which pods may use it */
    struct gs_arena arena;
};

/* Empties it and keeps memory for the next decode; a zeroed struct is fine. All strings become "",
 * numbers 0. */
void gs_node_reset(struct gs_node *node);

/* Frees what it holds; the struct is as zeroed. */
void gs_node_release(struct gs_node *node);

/*
 * Fills gpus[] from capacity_units and capacity_count for a node whose plugin writes no inventory
 * (the original's): equal shares, index 0..count-1, a remainder is lost, as in the original.
 * Does nothing when the node has GPUs already or one of the two numbers is 0; a count above
 * GS_GPUS_MAX is cut there. Returns 0, or -1 when out of memory.
 */
int gs_node_divide_capacity(struct gs_node *node);

/* By UID. */
void gs_moved_sort(struct gs_moved *moved, size_t count);
