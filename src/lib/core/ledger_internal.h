/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/array.h"
#include "gpushare/base/index.h"
#include "gpushare/core/ledger.h"

/* What ledger*.c share. Records live in growing arrays and name each other by slot number. */

/* As gs_moved, with the UID's hash. */
struct gs_ledger_moved {
    uint64_t uid;
    gs_gpu_mask gpus;
};

struct gs_ledger_node {
    struct gs_node_view view;
    struct gs_slice name;          /* ends with a NUL, owned */
    struct gs_gpu *inventory;      /* view.inventory, owned */
    struct gs_ledger_moved *moved; /* of the node's list, sorted */
    uint32_t moved_count;
    bool present; /* there is a node object; without one the record only carries claims */
    bool seen;    /* mentioned in this list round */
    uint32_t first_claim;
    uint32_t first_hold;
    uint32_t others; /* pods in gs_ledger.others that point here */
};

struct gs_ledger_claim {
    char *text; /* uid NUL ns NUL name NUL; NULL: unused slot */
    struct gs_claim_body is;
    uint32_t next, prev; /* in the node's list */
};

/* 16 bytes, plus 8 in the index */
struct gs_ledger_other {
    uint64_t uid;  /* hash */
    uint32_t node; /* GS_INDEX_NONE: unused slot */
    uint32_t cpu_milli : 31;
    uint32_t seen : 1;
};

struct gs_ledger_hold {
    char *texts;          /* uid NUL and the four lists; NULL: unused slot */
    struct gs_hold asked; /* its texts lie in `texts`, its node's name in the node's record */
    uint64_t order;
    uint32_t next; /* in the node's list, highest priority first */
    bool seen;
};

struct gs_ledger {
    struct gs_ledger_node *nodes;
    struct gs_ledger_claim *claims;
    struct gs_ledger_other *others;
    struct gs_ledger_hold *holds;
    struct gs_pool node_pool, claim_pool, other_pool, hold_pool;
    struct gs_index by_name, by_claim, by_other, by_hold;
    char models[GS_MODELS_MAX][GS_MODEL_BYTES]; /* "": a number that is free */
    uint32_t model_gpus[GS_MODELS_MAX];         /* GPUs of that number; 0: free */
    uint16_t model_count;                       /* the highest number in use */
    uint64_t version;                           /* the last one given to a view */
    uint64_t names_epoch;                       /* changes when a name gets or loses a slot */
    uint64_t hold_order;
    uint32_t unplaced;
    uint32_t reserved;
    uint32_t promised; /* holds with GPUs */
};

/* nodes */
uint32_t gs_ledger_node_slot(const struct gs_ledger *ledger, const char *name);
/* Finds or makes the record of a name; GS_INDEX_NONE when out of memory. */
uint32_t gs_ledger_node_need(struct gs_ledger *ledger, const char *name);
/* Gives the record back when nothing refers to it. */
void gs_ledger_node_tidy(struct gs_ledger *ledger, uint32_t slot);
/* New summary and version after gpus[], holds or CPU changed. */
void gs_ledger_node_touch(struct gs_ledger *ledger, struct gs_ledger_node *node);

/* claims */
uint32_t gs_ledger_claim_slot(const struct gs_ledger *ledger, const char *uid);
/* Takes all claims of a node out of its totals, or counts them anew (after its GPUs changed). */
void gs_ledger_recount_node(struct gs_ledger *ledger, uint32_t slot);
/* The claims of a node are where its list of moved pods says; not counted anew. */
void gs_ledger_follow_moved(struct gs_ledger *ledger, uint32_t slot);
void gs_ledger_claim_drop(struct gs_ledger *ledger, uint32_t slot);

/* others and holds */
bool gs_ledger_remove_other(struct gs_ledger *ledger, const char *uid);
void gs_ledger_sweep_others(struct gs_ledger *ledger);
void gs_ledger_sweep_holds(struct gs_ledger *ledger);
