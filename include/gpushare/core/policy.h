/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CORE_POLICY_H
#define GPUSHARE_CORE_POLICY_H

#include <stdint.h>

#include "gpushare/core/placement.h"

/*
 * How good a node is for a pod, and which of its GPUs the pod gets there: one answer, so that the
 * GPU that bind takes is the one that the score meant.
 *
 *   struct gs_choice choice;
 *   if (gs_policy_choose(policy, GS_PLACEMENT_BINPACK, view, &ask, &choice))
 *       ... choice.loss orders nodes, choice.gpus go into the annotation
 *
 * A gs_policies object holds what stateful policies learn and cache; choose may be called from
 * several threads at once, learn too.
 */
struct gs_policies;

struct gs_choice {
    int64_t loss;     /* smaller is better; comparable between nodes for one ask and policy only */
    gs_gpu_mask gpus; /* gpu_count of them */
};

/* NULL when out of memory. */
struct gs_policies *gs_policies_new(void);
void gs_policies_free(struct gs_policies *policies);
GS_DEFINE_CLEANUP(struct gs_policies *, gs_policies_free)

/* False when the ask does not fit the view. placement is a real policy, not DEFAULT or BROKEN. */
bool gs_policy_choose(struct gs_policies *policies, enum gs_placement placement,
                      const struct gs_node_view *view, const struct gs_ask *ask,
                      struct gs_choice *ret);

/* Scores 0..10 for kube-scheduler from losses: the least loss gets 10, the most gets `worst`…;
 * entries with fits[i] false get 0. All equal: all 10. */
void gs_policy_scores(const int64_t *loss, const bool *fits, size_t count, uint8_t *ret_scores);

#endif
