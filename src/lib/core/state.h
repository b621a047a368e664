/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/core/view.h"

#include "table.h"

/*
 * A node as rollout sees it: many nodes are the same. Free memory of the usable GPUs,
 * ascending, without those that have none. A node of several models is judged by its first GPU's.
 */
struct gs_state {
    int32_t cpu_milli; /* left */
    uint32_t gpus;     /* entries of free_units */
    uint16_t model;
    uint8_t group;
    uint64_t left_units; /* sum */
    uint32_t free_units[GS_GPUS_MAX];
};

void gs_state_of_view(struct gs_state *state, const struct gs_policy_table *table,
                      const struct gs_node_view *view);

/* One GPU that had `free_units` has `units` less, and is back in order. */
void gs_state_take(struct gs_state *state, uint32_t free_units, uint32_t units);

/* For a memo of what the table of this generation says about it. */
uint64_t gs_state_key(const struct gs_state *state, uint64_t generation);
