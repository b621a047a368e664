/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "gpushare/base/array.h"
#include "gpushare/cluster/cluster.h"

/*
 * What the API showed (gpushare/cluster/cluster.h), and what only people ask for: addresses, and
 * pods as they are. Filled through the sink that watches deliver to as well. Not
 * thread-safe: --watch guards it with a lock of its own.
 */
struct snap_node {
    uint32_t slot;               /* of the ledger */
    const char *address;         /* "" when unknown */
    const char *inventory_error; /* "" when there is none */
    bool moved_unread;           /* its list of moved pods is none */
    enum gs_unit unit;
    uint64_t capacity_units, allocatable_units;
    uint32_t capacity_count;
    uint32_t cordon_unknown; /* words of gpu-cordon that name no GPU of it */
    uint32_t whole_gpus;     /* that NVIDIA's device plugin gives out */
    bool ready, unschedulable, labelled, inventory;
    bool sliced;                    /* a driver of dynamic resource allocation has GPUs of it */
    enum gs_enforced says_enforced; /* label gpu-enforced */
    struct gs_arena arena;
    UT_hash_handle hh; /* by name */
    char name[];
};

#define EACH_NODE(node, snapshot)                                                                  \
    for (struct snap_node *node = (snapshot)->nodes; node; node = node->hh.next)

/* A pod that requests GPU memory. */
struct snap_pod {
    struct gs_pod *pod; /* a copy; NULL: a bound one, of which none is kept */
    int64_t created_s;
    uint32_t round;
    UT_hash_handle hh; /* by uid */
    char uid[];        /* behind it gs_pod.owner */
};

#define EACH_POD(pod, table) for (struct snap_pod *pod = (table); pod; pod = pod->hh.next)

/* The schedulers that bound pods with GPU memory, by spec.schedulerName; the first ones. */
enum { SCHEDULERS_MAX = 8 };
struct snap_scheduler {
    char name[256];
    uint64_t recorded, unrecorded; /* pods ever seen whose GPU is on record, or is not */
};

struct snapshot {
    struct gs_cluster cluster;
    struct snap_node *nodes;
    struct snap_pod *waiting; /* without a node */
    struct snap_pod *bound;
    bool copies;    /* also of bound pods, of which a large cluster has 100,000 */
    uint32_t round; /* lists of pods begun */
    struct snap_scheduler schedulers[SCHEDULERS_MAX];
    uint64_t overriding; /* pods that set NVIDIA_VISIBLE_DEVICES themselves, of those listed */
    char overriding_example[320];
};

/* GS_ENOMEM. Release it also then. It is its cluster's context: it stays where it is. */
int snapshot_init(struct snapshot *snapshot, struct gs_error *err);
void snapshot_release(struct snapshot *snapshot);

/* Borrowed until the release; without live(), which is its watcher's. */
struct gs_watch_sink snapshot_sink(struct snapshot *snapshot);

/* NULL when there is no such node. */
struct snap_node *snapshot_node(const struct snapshot *snapshot, const char *name);

/* As placement sees it; NULL: the API does not show it any more. */
static inline const struct gs_node_view *snapshot_view(const struct snapshot *snapshot,
                                                       const struct snap_node *node)
{
    return gs_ledger_view_at(snapshot->cluster.ledger, node->slot);
}

/* Unix seconds; 0: not known. */
int64_t snapshot_since(const struct snapshot *snapshot, const char *uid);
/* "Deployment/web"; "": it has none, or that is not known. */
const char *snapshot_owner(const struct snapshot *snapshot, const char *uid);

/* Who places pods with GPU memory here: the scheduler under whose name most of those were bound
 * whose GPU is on record; NULL: nobody has. */
const char *snapshot_scheduler(const struct snapshot *snapshot);

/* spec.schedulerName, as the API server fills it in. */
const char *snapshot_scheduler_of(const struct gs_pod *pod);

/* It names another scheduler than all pods that have their GPU: nobody places it. */
bool snapshot_is_elsewhere(const struct snapshot *snapshot, const struct gs_pod *pod);

/* Lets rollout and the stranded figure know what was learnt. GS_ENOMEM. */
int snapshot_learnt(struct snapshot *snapshot, struct gs_error *err);

/* The claim sits on the GPUs that its pod's annotation names, as far as its node reports any. */
static inline bool claim_recorded(const struct gs_claim *claim)
{
    return claim->gpus && !claim->unplaced;
}

/* And this is one of them. */
static inline bool claim_on(const struct gs_claim *claim, uint32_t idx)
{
    return claim_recorded(claim) && (claim->gpus & GS_GPU_BIT(idx));
}

/* Of all its GPUs. */
static inline uint64_t claim_units(const struct gs_claim *claim)
{
    return (uint64_t)claim->units * claim->gpu_count;
}

static inline bool gpu_overfull(const struct gs_gpu_state *gpu)
{
    return gpu->used_units > gpu->total_units;
}
