/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CORE_ROLLOUT_LANES_H
#define GPUSHARE_CORE_ROLLOUT_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "state.h"
#include "table.h"

/*
 * Rollout's sequences, eight side by side: lane n of a vector plays sequence n of a block, all
 * lanes are at the same step, and none knows of the others. Sizes have 16 bits. They are counted in
 * the largest unit that divides what every drawn pod asks for; what a GPU has beyond a multiple of
 * it is never used, and decides nothing. So the sums are exactly those of one sequence after the
 * other.
 *
 *   if (gs_lanes_can(table->lanes, state))
 *       placed = gs_lanes_placed(table->lanes, state, passes);
 *
 * Read-only once built.
 */
enum { GS_LANES = 8, GS_LANE_BLOCKS = GS_ROLLOUTS / GS_LANES };

/* What the pods ask for, by block and step. */
typedef int16_t gs_lanes_i16[GS_LANE_BLOCKS][GS_ROLLOUT_DRAWS][GS_LANES];
typedef int32_t gs_lanes_i32[GS_LANE_BLOCKS][GS_ROLLOUT_DRAWS][GS_LANES];

struct gs_lanes {
    uint32_t unit;
    int16_t least_units; /* no pod asks for less */
    int32_t least_cpu_milli;
    gs_lanes_i32 cpu_milli;
    gs_lanes_i16 gpus;
    gs_lanes_i16 *units; /* by model group; INT16_MAX: too large, or may not run there */
};

/* For a table that has its draws; its arena owns the result. NULL: out of memory. */
struct gs_lanes *gs_lanes_build(struct gs_policy_table *table);

/* Do the state's sizes have 16 bits? */
bool gs_lanes_can(const struct gs_lanes *lanes, const struct gs_state *state);

/* Units that all sequences place, each offered `passes` times to the state. */
uint64_t gs_lanes_placed(const struct gs_lanes *lanes, const struct gs_state *state,
                         uint32_t passes);

#endif
