/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CORE_ROLLOUT_LANES_H
#define GPUSHARE_CORE_ROLLOUT_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "state.h"
#include "table.h"

/*
 * Rollout's sequences, several side by side: each lane of a vector plays a sequence of its own, all
 * lanes are at the same step, and none knows of the others. Sizes have 16 bits. They are counted in
 * the largest unit that divides what every drawn pod asks for; what a GPU has beyond a multiple of
 * it is never used, and decides nothing. So the sums are exactly those of one sequence after the
 * other, however many lanes a vector has.
 *
 *   if (gs_lanes_can(table->lanes, state))
 *       placed = gs_lanes_placed(table->lanes, state, passes);
 *
 * Read-only once built.
 */
struct gs_lanes;

/* The state that a sequence begins with, in units of the lanes. */
struct gs_lanes_start {
    int16_t room[GS_GPUS_MAX]; /* ascending */
    uint32_t gpus;
    uint8_t group;
    bool cpu_counts;
    int32_t cpu_milli;
    uint32_t passes; /* how often a sequence is offered */
};

/* Units that are left at the end, over all sequences. */
typedef uint64_t gs_lanes_play(const struct gs_lanes *lanes, const struct gs_lanes_start *start);

/* The same result, by vectors of 16 bytes that every machine has (here), and of 32
 * (rollout_play_avx2.c); NULL: this machine has none, or the compiler was not asked for them. */
gs_lanes_play gs_lanes_play_narrow;
gs_lanes_play *gs_lanes_play_wide(void);

/* What the pods ask for, by step and sequence. */
typedef int16_t gs_lanes_i16[GS_ROLLOUT_DRAWS][GS_ROLLOUTS];

struct gs_lanes {
    gs_lanes_play *play;
    uint32_t unit;
    int16_t least_units; /* no pod asks for less */
    int32_t least_cpu_milli;
    uint64_t most_cpu_milli; /* no sequence asks for more, in one pass */
    /* By step; [0] of the sequences 0, 2, 4 …, [1] of 1, 3, 5 … */
    int32_t cpu_milli[GS_ROLLOUT_DRAWS][2][GS_ROLLOUTS / 2];
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
