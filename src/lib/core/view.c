/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/core/view.h"

struct gs_node_view gs_view_copy(const struct gs_node_view *view, struct gs_gpu_state *states)
{
    struct gs_node_view copy = *view;
    memcpy(states, view->gpus, view->gpu_count * sizeof(*states));
    copy.gpus = states;
    copy.version = 0;
    return copy;
}

void gs_view_clear(struct gs_node_view *view)
{
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        struct gs_gpu_state *gpu = &view->gpus[i];
        gpu->used_units = gpu->used_cores_pct = gpu->pods = 0;
        gpu->free_units = gpu->total_units;
        gpu->free_cores_pct = GS_CORES_PCT;
    }
}

void gs_view_summarise(struct gs_node_view *view)
{
    uint32_t max_free = 0, max_total = 0;
    uint64_t sum_free = 0, sum_total = 0, sum_used = 0;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        max_total = gpu->total_units > max_total ? gpu->total_units : max_total;
        sum_total += gpu->total_units;
        sum_used += gpu->used_units;
        if (!gpu->usable)
            continue;
        max_free = gpu->free_units > max_free ? gpu->free_units : max_free;
        sum_free += gpu->free_units;
    }
    view->max_free_units = max_free;
    view->max_total_units = max_total;
    view->sum_free_units = sum_free;
    view->sum_total_units = sum_total;
    view->sum_used_units = sum_used;
}

bool gs_gpu_is_crowded(const struct gs_gpu_state *gpu, uint32_t pods)
{
    return gpu->max_pods && pods >= gpu->max_pods;
}

uint32_t gs_gpu_offers(const struct gs_gpu_state *gpu, uint64_t used_units, uint32_t pods)
{
    if (gs_gpu_is_crowded(gpu, pods))
        return 0;
    return used_units < gpu->total_units ? (uint32_t)(gpu->total_units - used_units) : 0;
}

void gs_view_charge(struct gs_node_view *view, gs_gpu_mask gpus, struct gs_amount each, int sign)
{
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        struct gs_gpu_state *gpu = &view->gpus[i];
        if (!(gpus & GS_GPU_BIT(gpu->idx)))
            continue;
        gpu->used_units += (uint64_t)(sign * (int64_t)each.units); /* wraps back */
        gpu->pods += (uint32_t)sign;
        gpu->free_units = gs_gpu_offers(gpu, gpu->used_units, gpu->pods);
        gpu->used_cores_pct += (uint32_t)sign * each.cores_pct;
        gpu->free_cores_pct = gs_gpu_cores_left(gpu->used_cores_pct);
    }
}

gs_gpu_mask gs_view_present(const struct gs_node_view *view)
{
    gs_gpu_mask mask = 0;
    for (uint32_t i = 0; i < view->gpu_count; i++)
        mask |= GS_GPU_BIT(view->gpus[i].idx);
    return mask;
}

int64_t gs_view_cpu_left_milli(const struct gs_node_view *view)
{
    return view->cpu_milli > view->cpu_used_milli ? view->cpu_milli - view->cpu_used_milli : 0;
}

void gs_view_of_node(struct gs_node_view *view, const struct gs_node *node,
                     struct gs_gpu_state *states)
{
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const struct gs_gpu *gpu = &node->gpus[i];
        states[i] = (struct gs_gpu_state){
            .total_units = gpu->mem_units,
            .max_pods = gpu->max_pods,
            .idx = (uint8_t)gpu->idx,
            .usable = gs_gpu_usable(gpu),
            .numa = gpu->numa,
        };
    }
    *view = (struct gs_node_view){
        .gpu_count = node->gpu_count,
        .gpus = states,
        .inventory = node->gpus,
        .cpu_milli = node->cpu_milli,
        .slot = UINT32_MAX,
        .unit = node->unit,
        .tells_moved = node->tells_moved,
    };
    gs_view_clear(view);
    gs_view_summarise(view);
}
