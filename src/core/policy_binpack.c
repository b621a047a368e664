/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_internal.h"

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

/* Tightest GPUs first, then the fullest node: a small leftover on the GPU outweighs everything
 * that the rest of the node may have free. */
void gs_policy_binpack(const struct gs_node_view *view, const struct gs_ask *ask,
                       struct gs_choice *ret)
{
    ret->gpus = gs_pick_tightest(view, ask);
    if (!ret->gpus)
        return;
    uint64_t left = leftover(view, ret->gpus, ask->units);
    uint64_t node_free = view->sum_free_units < UINT32_MAX ? view->sum_free_units : UINT32_MAX;
    if (left > INT32_MAX)
        left = INT32_MAX;
    ret->loss = (int64_t)(left << 32 | node_free);
}
