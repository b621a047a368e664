/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_internal.h"

#include "rollout_lanes.h"

/*
 * Rollout: offer a node state the same 64 sequences of 64 pods each, skip what does not fit, and
 * sum up what stays free. The difference that a pod makes to this sum is its loss. Exact integers.
 */

/* Enough passes over a sequence that the node is full at the end: it is offered at least four times
 * what it has left. Nodes much larger than their pods need more than one. */
static uint32_t passes_for(const struct gs_policy_table *table, uint64_t left_units)
{
    enum { TIMES_OFFERED = 4, PASSES_MAX = 64 };
    if (!table->row_units)
        return 1;
    uint64_t passes = (left_units * TIMES_OFFERED + table->row_units - 1) / table->row_units;
    return passes > PASSES_MAX ? PASSES_MAX : passes ? (uint32_t)passes : 1;
}

uint64_t gs_rollout_stranded(const struct gs_policy_table *table, const struct gs_state *state)
{
    uint32_t passes = passes_for(table, state->left_units);
    return state->left_units * GS_ROLLOUTS - gs_lanes_placed(table->lanes, state, passes);
}

int64_t gs_rollout_loss(uint64_t before_stranded, uint64_t after_stranded, int64_t price,
                        uint64_t taken_units, uint32_t card_units)
{
    const int64_t one = GS_LOSS_MILLI / GS_ROLLOUTS;
    __int128 worse = (__int128)after_stranded - (__int128)before_stranded;
    __int128 loss = worse * one + (__int128)price * (__int128)taken_units;
    return (int64_t)(loss * 1000 / card_units);
}
