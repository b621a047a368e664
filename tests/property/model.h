/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/core/ledger.h"
#include "gpushare/core/placement.h"

/*
 * The ledger once more, slow and obvious: plain arrays, no totals. Everything is worked out from
 * the contract (docs/contract.md, section 1) each time it is asked for. Shares no code with
 * src/lib/core.
 */
enum { M_NODES = 6, M_UIDS = 40, M_GPUS = 8 };

struct m_node {
    bool present, seen;
    uint32_t gpu_count;
    struct gs_gpu gpus[M_GPUS];
    int64_t cpu_milli;
    enum gs_unit unit;
    bool tells_moved;
    bool unread;               /* this event's list of moved pods cannot be read */
    gs_gpu_mask moved[M_UIDS]; /* 0: not in the list */
};

struct m_claim {
    bool there, seen, reserved, leaving;
    uint32_t node;
    gs_gpu_mask gpus, also;
    bool from_moved;
    uint32_t units, gpu_count, gpus_max, cores, cpu_milli;
    uint32_t total; /* 0: units of all its GPUs */
    int32_t priority;
    uint64_t revision;
    uint64_t age; /* larger: later */
};

struct m_other {
    bool there, seen;
    uint32_t node;
    int64_t cpu_milli;
};

struct m_hold {
    bool there, seen;
    uint32_t node;
    uint32_t units, gpu_count, cores;
    int32_t priority;
    const char *model; /* which GPUs it may have: one of the test's own words, or NULL */
    uint64_t age;
    /* It is none, and takes the place of the one before all the same. */
    enum { M_HOLDS, M_NO_NODE, M_EMPTY_NODE, M_NO_UNITS, M_BROKEN } nothing;
};

struct model {
    struct m_node nodes[M_NODES];
    struct m_claim claims[M_UIDS];
    struct m_other others[M_UIDS];
    struct m_hold holds[M_UIDS];
    uint64_t age;
};

const char *m_node_name(uint32_t node);
const char *m_uid(uint32_t uid);

/* Changes. */
void m_set_node(struct model *model, uint32_t node, const struct m_node *as);
void m_drop_node(struct model *model, uint32_t node);
void m_set_claim(struct model *model, uint32_t uid, const struct m_claim *as);
void m_place(struct model *model, uint32_t uid, gs_gpu_mask gpus);
/* True when a claim went. */
bool m_remove(struct model *model, uint32_t uid);
void m_set_other(struct model *model, uint32_t uid, uint32_t node, int64_t cpu_milli);
void m_set_hold(struct model *model, uint32_t uid, const struct m_hold *as);
void m_begin_pods(struct model *model);
/* How many claims went. */
uint32_t m_sweep_pods(struct model *model);
void m_sweep_nodes(struct model *model);

/* Where a claim counts now; *unplaced: its recorded GPUs are not believed. */
gs_gpu_mask m_charged(const struct model *model, uint32_t uid, bool *unplaced);

/* The view of a node; states has room for M_GPUS. False without a node object. Version, slot,
 * inventory and model numbers are not filled. */
bool m_view(const struct model *model, uint32_t node, struct gs_node_view *view,
            struct gs_gpu_state *states);
void m_stats(const struct model *model, struct gs_ledger_stats *ret);

/* UIDs of a node's claims, newest first; of its holds, in their order. Return how many. */
uint32_t m_claims_of(const struct model *model, uint32_t node, uint32_t uids[M_UIDS]);
uint32_t m_holds_of(const struct model *model, uint32_t node, uint32_t uids[M_UIDS]);

/* Answers. */
gs_gpu_mask m_allowed(const struct m_node *node, const struct gs_ask *ask);
enum gs_reason m_fit(const struct m_node *node, const struct gs_node_view *view,
                     const struct gs_ask *ask);
/* By trying every set of GPUs. */
gs_gpu_mask m_pick(const struct m_node *node, const struct gs_node_view *view,
                   const struct gs_ask *ask, bool tightest);
/* view is changed to what the ask is judged by. */
enum gs_reason m_fit_beside_holds(const struct model *model, uint32_t node,
                                  struct gs_node_view *view, const struct gs_ask *ask);
