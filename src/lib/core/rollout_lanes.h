/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "state.h"
#include "table.h"

/*
 * Rollout's sequences, several side by side: each lane of a vector has a sequence of its own, all
 * lanes are at the same step, and none depends on another. So the result is that of one sequence
 * after the other, whatever the number of lanes.
 *
 * GPUs of 2^30 units and more count as 2^30 - 1; a pod that requests as much fits on none.
 *
 * Read-only once built.
 */
struct gs_lanes;

/* For a table that has its draws; its arena owns the result. NULL: out of memory. */
struct gs_lanes *gs_lanes_build(struct gs_policy_table *table);

/* Units that all sequences place, each offered `passes` times to the state. */
uint64_t gs_lanes_placed(const struct gs_lanes *lanes, const struct gs_state *state,
                         uint32_t passes);
