/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/core/policy.h"
#include "gpushare/core/view.h"

/*
 * How much of what is free is of use: "free / largest placeable / stranded", of a node and of a
 * cluster. Free memory is stranded when it would still be free after a long run of pods such as
 * those seen so far, placed with best fit: the leftovers that none of them fits into, and GPUs of
 * nodes whose CPU is used up. The same number as rollout's, in whole units.
 *
 *   struct gs_fragmentation part, all = {0};
 *   gs_fragmentation_of_node(policies, view, &part);
 *   gs_fragmentation_add(&all, &part);
 */
struct gs_fragmentation {
    uint64_t free_units;     /* of usable GPUs */
    uint32_t largest_units;  /* the most that one GPU has free: no larger pod fits on one GPU */
    uint64_t stranded_units; /* at most free_units; 0 while not known */
    bool known;              /* enough pods were seen to tell what is stranded */
};

/* Any number of threads. Remembers what it computed together with rollout: microseconds for a node
 * in a new state, much less for others. policies may be NULL: nothing is known then. */
void gs_fragmentation_of_node(struct gs_policies *policies, const struct gs_node_view *view,
                              struct gs_fragmentation *ret);

/* Adds a node (or another sum) to a sum that began as zeroes. */
void gs_fragmentation_add(struct gs_fragmentation *sum, const struct gs_fragmentation *part);
