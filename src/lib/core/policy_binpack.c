/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_internal.h"

/* Thousandths of the node's largest card. */
static uint64_t milli_of(uint64_t units, const struct gs_node_view *view)
{
    return units * 1000 / view->max_total_units;
}

/* What the chosen GPUs have left once the pod is there, in units. */
static uint64_t leftover(const struct gs_node_view *view, gs_gpu_mask gpus, uint32_t units)
{
    uint64_t left = 0;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        if (gpus & GS_GPU_BIT(view->gpus[i].idx))
            left += view->gpus[i].free_units - units;
    }
    return left;
}

/*
 * Tightest GPUs first, then the fullest node: one thousandth of a card left on the GPU outweighs
 * everything that the rest of the node may have free (at most 64 cards: 64000 thousandths, which
 * fit below GS_LOSS_MILLI). A pod without GPU memory goes to the fullest node.
 */
void gs_policy_binpack(const struct gs_node_view *view, const struct gs_ask *ask,
                       struct gs_choice *ret)
{
    ret->gpus = ask->units ? gs_pick_tightest(view, ask) : 0;
    uint64_t left = leftover(view, ret->gpus, ask->units);
    ret->loss = (int64_t)milli_of(left, view) * GS_LOSS_MILLI +
                (int64_t)milli_of(view->sum_free_units, view);
}
