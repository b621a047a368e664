/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/array.h"
#include "gpushare/base/index.h"
#include "gpushare/core/ledger.h"

/* What ledger*.c share. Records name each other by slot number of a growing array. */

/* As gs_moved, with the UID's hash. */
struct gs_ledger_moved {
    uint64_t uid;
    gs_gpu_mask gpus;
};

struct gs_ledger_node {
    struct gs_node_view view;
    char *name;
    size_t name_len;
    struct gs_gpu *inventory;      /* view.inventory, owned */
    struct gs_ledger_moved *moved; /* of the node's list, sorted */
    uint32_t moved_count;
    enum gs_unit unit;
    bool tells_moved;
    bool present; /* there is a node object; without one the record only carries claims */
    bool seen;    /* mentioned in this list round */
    uint32_t first_claim;
    uint32_t first_hold;
    uint32_t others; /* pods in gs_ledger.others that point here */
};

/* What a pod has on a node, by its UID: a claim, or until it has one a hold. Texts lie behind the
 * record, the node's name in the node's. */
struct gs_ledger_pod {
    union {
        struct gs_claim claim;
        struct {
            struct gs_hold hold;
            uint64_t order; /* of age */
            bool hold_seen; /* as gs_claim.seen */
        };
    };
    uint32_t node;
    uint32_t next, prev; /* in the node's list of claims, or of holds, highest priority first */
    bool is_hold;
};

/* 16 bytes, plus 8 in the index */
struct gs_ledger_other {
    uint64_t uid;  /* hash */
    uint32_t node; /* GS_INDEX_NONE: unused slot */
    uint32_t cpu_milli : 31;
    uint32_t seen : 1;
};

struct gs_ledger {
    struct gs_ledger_node *nodes;
    struct gs_ledger_pod **pods; /* NULL: unused slot */
    struct gs_ledger_other *others;
    struct gs_pool node_pool, pod_pool, other_pool;
    struct gs_index by_name, by_uid, by_other;
    char models[GS_MODELS_MAX][GS_MODEL_BYTES]; /* "": a number that is free */
    uint32_t model_gpus[GS_MODELS_MAX];         /* GPUs of that number; 0: free */
    uint16_t model_count;                       /* the highest number in use */
    uint64_t version;                           /* the last one given to a view */
    uint64_t names_epoch;                       /* changes when a name gets or loses a slot */
    uint64_t hold_order;
    uint32_t unplaced;
    uint32_t reserved;
    uint32_t holds;
    uint32_t promised; /* of them, with GPUs */
};

/* nodes */
uint32_t gs_ledger_node_slot(const struct gs_ledger *ledger, struct gs_slice name);
/* Finds or makes the record of a name; GS_INDEX_NONE when out of memory. */
uint32_t gs_ledger_node_need(struct gs_ledger *ledger, struct gs_slice name);
/* Gives the record back when nothing refers to it. */
void gs_ledger_node_tidy(struct gs_ledger *ledger, uint32_t slot);
/* New summary and version after gpus[], holds or CPU changed. */
void gs_ledger_node_touch(struct gs_ledger *ledger, struct gs_ledger_node *node);

/* pods */
/* The pod's, if it is of that kind; GS_INDEX_NONE: there is none. */
uint32_t gs_ledger_pod_slot(const struct gs_ledger *ledger, const char *uid, bool is_hold);
/* One more record with copies of the texts, which point there then; the first is the UID. Zeroed
 * else, and in no list. GS_INDEX_NONE: out of memory. */
uint32_t gs_ledger_pod_add(struct gs_ledger *ledger, const char **const *texts, size_t count);
/* Into its node's list, behind `prev` (GS_INDEX_NONE: first). */
void gs_ledger_pod_link(struct gs_ledger *ledger, uint32_t slot, uint32_t prev);
void gs_ledger_pod_drop(struct gs_ledger *ledger, uint32_t slot);

/* Counts all claims of a node anew (after its GPUs changed). */
void gs_ledger_recount_node(struct gs_ledger *ledger, uint32_t slot);
/* The claims of a node are where its list of moved pods says; not counted anew. */
void gs_ledger_follow_moved(struct gs_ledger *ledger, uint32_t slot);

/* others */
bool gs_ledger_remove_other(struct gs_ledger *ledger, const char *uid);
void gs_ledger_sweep_others(struct gs_ledger *ledger);
void gs_ledger_forget_others(struct gs_ledger *ledger, uint32_t slot);
