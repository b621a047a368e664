/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/model/amount.h"
#include "gpushare/model/gpu.h"
#include "gpushare/model/node.h"

/*
 * A node as placement sees it: what each GPU has, what of it is charged. The ledger keeps one per
 * node and lends it; one can also be made of a node that does not exist yet. Plain data, read-only
 * for policies.
 */
struct gs_gpu_state {
    uint64_t used_units; /* sum of claims; may exceed the total */
    uint32_t total_units;
    uint32_t free_units;     /* total - used; zero when overfull, or when max_pods are there */
    uint32_t pods;           /* claims that are charged here */
    uint32_t max_pods;       /* 0: as many as there is memory for */
    uint32_t used_cores_pct; /* sum of claims; may exceed GS_CORES_PCT */
    int16_t numa;
    uint16_t model; /* number of the model's name in its ledger; 0: unknown */
    uint8_t idx;
    bool usable;            /* healthy and not cordoned */
    uint8_t free_cores_pct; /* GS_CORES_PCT - used; zero when more is used */
};

struct gs_node_view {
    /* Summary of gpus[], first because filter reads little else. */
    uint32_t max_free_units;  /* of one usable GPU */
    uint32_t max_total_units; /* of one GPU, usable or not */
    uint64_t sum_free_units;  /* over usable GPUs */
    uint64_t sum_total_units; /* over all GPUs */
    uint64_t sum_used_units;  /* over all GPUs */
    uint32_t gpu_count;
    uint32_t nominated;             /* pods that hold a place here; see gs_ledger_hold() */
    struct gs_gpu_state *gpus;      /* ascending idx */
    const struct gs_gpu *inventory; /* same order: UUID and model texts; NULL when not kept */
    int64_t cpu_milli;              /* allocatable */
    int64_t cpu_used_milli;         /* requests of all its pods */
    uint64_t version; /* another number after every change; unique over all nodes of a ledger; 0:
                         not a state of the ledger, remember nothing about it */
    uint32_t slot;    /* the node's number in its ledger */
    enum gs_unit unit;
    bool tells_moved; /* gs_node.tells_moved */
};

/* The view with gpus of its own, in `states` (room for GS_GPUS_MAX): to be changed, and no state of
 * the ledger. */
struct gs_node_view gs_view_copy(const struct gs_node_view *view, struct gs_gpu_state *states);

/* No pod is charged on its GPUs; the summary is left as it was. */
void gs_view_clear(struct gs_node_view *view);

/* Sets the summary from gpus[]. */
void gs_view_summarise(struct gs_node_view *view);

/* So many pods are as many as may be there. */
bool gs_gpu_is_crowded(const struct gs_gpu_state *gpu, uint32_t pods);

/* What a GPU would have free if so many pods used so much of it. */
uint32_t gs_gpu_offers(const struct gs_gpu_state *gpu, uint64_t used_units, uint32_t pods);

/* What compute is left where so much is used. */
static inline uint8_t gs_gpu_cores_left(uint32_t used_cores_pct)
{
    return used_cores_pct < GS_CORES_PCT ? (uint8_t)(GS_CORES_PCT - used_cores_pct) : 0;
}

/* Adds a pod to each of these GPUs (sign 1), or takes it away (sign -1), and sets what is free. The
 * summary is left as it was. */
void gs_view_charge(struct gs_node_view *view, gs_gpu_mask gpus, struct gs_amount each, int sign);

/* The set of its GPUs. */
gs_gpu_mask gs_view_present(const struct gs_node_view *view);

/* CPU that is not requested; never negative. */
int64_t gs_view_cpu_left_milli(const struct gs_node_view *view);

/* Enough of it for so much more, as far as is known. */
static inline bool gs_view_has_cpu(const struct gs_node_view *view, int64_t cpu_milli)
{
    return !view->cpu_milli || gs_view_cpu_left_milli(view) >= cpu_milli;
}

/* A view of a node outside any ledger, nothing used; states (room for node->gpu_count entries) is
 * borrowed by the view, and so is node. */
void gs_view_of_node(struct gs_node_view *view, const struct gs_node *node,
                     struct gs_gpu_state *states);
