/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/node.h"

#include <stdlib.h>

void gs_node_reset(struct gs_node *node)
{
    gs_arena_reset(&node->arena);
    *node = (struct gs_node){
        .name = "",
        .uid = "",
        .resource_version = "",
        .address = "",
        .kubelet = "",
        .enforced = "",
        .inventory_error = "",
        .moved_error = "",
        .arena = node->arena,
    };
}

void gs_node_release(struct gs_node *node)
{
    gs_arena_release(&node->arena);
    *node = (struct gs_node){0};
}

int gs_node_divide_capacity(struct gs_node *node)
{
    if (node->gpu_count || !node->capacity_count || !node->capacity_units)
        return 0;
    uint64_t share = node->capacity_units / node->capacity_count;
    uint32_t count = node->capacity_count < GS_GPUS_MAX ? node->capacity_count : GS_GPUS_MAX;
    struct gs_gpu *gpus = gs_arena_calloc(&node->arena, count, sizeof(*gpus));
    if (!gpus)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        gpus[i] = (struct gs_gpu){
            .idx = i,
            .mem_units = share < UINT32_MAX ? (uint32_t)share : UINT32_MAX,
            .numa = GS_NUMA_NONE,
            .healthy = true,
            .schedulable = true,
        };
    }
    node->gpus = gpus;
    node->gpu_count = count;
    return 0;
}

void gs_moved_sort(struct gs_moved *moved, size_t count)
{
    if (count)
        qsort(moved, count, sizeof(*moved), gs_text_order);
}
