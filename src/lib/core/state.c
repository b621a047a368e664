/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include "gpushare/base/index.h"
#include "memo.h"

void gs_state_of_view(struct gs_state *state, const struct gs_policy_table *table,
                      const struct gs_node_view *view)
{
    /* A node whose CPU is not known is not judged by it. */
    int64_t cpu = view->cpu_milli ? gs_view_cpu_left_milli(view) : INT32_MAX;
    state->cpu_milli = gs_class_cpu(cpu);
    state->gpus = 0;
    state->left_units = 0;
    state->model = view->gpu_count ? view->gpus[0].model : 0;
    state->group = gs_table_group(table, state->model);
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        uint32_t units = view->gpus[i].free_units;
        if (!view->gpus[i].usable || !units)
            continue;
        uint32_t at = state->gpus++;
        for (; at && state->free_units[at - 1] > units; at--)
            state->free_units[at] = state->free_units[at - 1];
        state->free_units[at] = units;
        state->left_units += units;
    }
}

void gs_state_take(struct gs_state *state, uint32_t free_units, uint32_t units)
{
    uint32_t at = 0;
    while (state->free_units[at] != free_units)
        at++;
    uint32_t rest = free_units - units;
    state->left_units -= units;
    if (!rest) {
        state->gpus--;
        for (; at < state->gpus; at++)
            state->free_units[at] = state->free_units[at + 1];
        return;
    }
    for (; at && state->free_units[at - 1] > rest; at--)
        state->free_units[at] = state->free_units[at - 1];
    state->free_units[at] = rest;
}

uint64_t gs_state_key(const struct gs_state *state, uint64_t generation)
{
    /* tenants choose what is left: no two states can be made to have one key */
    uint64_t hash = gs_hash_bytes(&generation, sizeof(generation));
    hash =
        gs_mix(hash, (uint64_t)state->cpu_milli << 32 | (uint64_t)state->group << 8 | state->gpus);
    for (uint32_t i = 0; i < state->gpus; i++)
        hash = gs_mix(hash, state->free_units[i]);
    return gs_mix_end(hash);
}
