/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/model/gpu.h"

#include "classes.h"

/*
 * What rollout looks things up in: built once from the classes seen so far and the GPU
 * models there are, then read-only.
 */
enum {
    GS_ROLLOUTS = 64,      /* sequences that a node state is offered */
    GS_ROLLOUT_DRAWS = 64, /* pods in a sequence */
    GS_GROUPS_MAX = 64,
};

/* GPU memory by model number of the ledger; 0: model unknown. */
struct gs_supply {
    uint32_t models; /* entries; at least 1 once counted */
    uint64_t *units;
    char (*names)[GS_MODEL_BYTES];
};

struct gs_policy_table {
    uint64_t generation;
    uint32_t refs;           /* readers at work, and one while in service */
    struct gs_class *shapes; /* most frequent first; their texts are gone with the caller's */
    uint32_t shape_count;
    bool constrained;                              /* some shape does not run on every model */
    uint16_t draws[GS_ROLLOUTS][GS_ROLLOUT_DRAWS]; /* shape numbers */
    uint64_t row_units; /* what one sequence asks for, on average; 0: nothing to draw */
    uint32_t models;    /* entries of the following three */
    uint8_t *model_group;
    int64_t *model_price; /* per unit, in 1/65536: what a scarce model's memory is worth more */
    uint64_t *model_units;
    struct gs_lanes *lanes; /* the draws once more, for several sequences at a time */
    struct gs_arena arena;  /* of all arrays */
};

/* NULL when out of memory, or when there is no class with GPU memory. */
struct gs_policy_table *gs_policy_table_build(const struct gs_class *classes, uint32_t count,
                                              const struct gs_supply *supply);
void gs_policy_table_free(struct gs_policy_table *table);
GS_DEFINE_CLEANUP(struct gs_policy_table *, gs_policy_table_free)

static inline uint8_t gs_table_group(const struct gs_policy_table *table, uint16_t model)
{
    return table->model_group[model < table->models ? model : 0];
}

static inline int64_t gs_table_price(const struct gs_policy_table *table, uint16_t model)
{
    return table->model_price[model < table->models ? model : 0];
}
