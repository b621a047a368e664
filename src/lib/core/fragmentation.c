/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/core/fragmentation.h"

#include "policy_internal.h"

void gs_fragmentation_of_node(struct gs_policies *policies, const struct gs_node_view *view,
                              struct gs_fragmentation *ret)
{
    *ret = (struct gs_fragmentation){
        .free_units = view->sum_free_units,
        .largest_units = view->max_free_units,
    };
    struct gs_policy_table *table = policies ? gs_policies_pin(policies) : NULL;
    if (!table)
        return;
    struct gs_state state;
    gs_state_of_view(&state, table, view);
    uint64_t stranded = gs_rollout_remembered(policies, table, &state);
    ret->stranded_units = (stranded + GS_ROLLOUTS / 2) / GS_ROLLOUTS;
    ret->known = true;
    gs_policies_unpin(policies, table);
}

void gs_fragmentation_add(struct gs_fragmentation *sum, const struct gs_fragmentation *part)
{
    sum->free_units += part->free_units;
    sum->stranded_units += part->stranded_units;
    if (part->largest_units > sum->largest_units)
        sum->largest_units = part->largest_units;
    sum->known = sum->known || part->known;
}
