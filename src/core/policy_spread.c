/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_internal.h"

enum { FULL_PER_MILLION = 1000000 };

/* The emptiest GPUs of the least used node: loss is the used share of the node's memory. */
void gs_policy_spread(const struct gs_node_view *view, const struct gs_ask *ask,
                      struct gs_choice *ret)
{
    ret->gpus = gs_pick_emptiest(view, ask);
    if (!ret->gpus)
        return;
    double share = (double)view->sum_used_units / (double)view->sum_total_units;
    ret->loss = (int64_t)(share * FULL_PER_MILLION);
}
