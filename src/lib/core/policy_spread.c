/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_internal.h"

/* The emptiest GPUs of the least used node: loss is the used share of the node's memory, a node
 * that is full once over counts as one card. */
void gs_policy_spread(const struct gs_node_view *view, const struct gs_ask *ask,
                      struct gs_choice *ret)
{
    ret->gpus = ask->units ? gs_pick_emptiest(view, ask) : 0;
    unsigned __int128 used = (unsigned __int128)view->sum_used_units * 1000 * GS_LOSS_MILLI;
    ret->loss = (int64_t)(used / view->sum_total_units);
}
