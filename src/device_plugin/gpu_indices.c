/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/gpu_indices.h"

#include <stdio.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/base/slice.h"

enum { NONE = GS_GPUS_MAX };

static bool is_same(const struct gs_gpu *remembered, const struct gs_gpu *gpu)
{
    if (remembered->uuid[0] || gpu->uuid[0])
        return strcmp(remembered->uuid, gpu->uuid) == 0;
    return remembered->idx == gpu->idx;
}

static uint32_t find(const struct gpu_indices *indices, const struct gs_gpu *gpu)
{
    uint32_t idx;
    GS_FOR_EACH_GPU (idx, indices->used) {
        if (is_same(&indices->remembered[idx], gpu))
            return idx;
    }
    return NONE;
}

static void keep(struct gpu_indices *indices, uint32_t idx, const struct gs_gpu *gpu)
{
    indices->remembered[idx] = *gpu;
    indices->remembered[idx].idx = idx;
    indices->used |= GS_GPU_BIT(idx);
}

bool gpu_indices_remember(struct gpu_indices *indices, const struct gs_gpu *gpus, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t idx = find(indices, &gpus[i]);
        if (idx == NONE ? (indices->used & GS_GPU_BIT(gpus[i].idx)) != 0 : idx != gpus[i].idx)
            return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t idx = gpus[i].idx;
        if (find(indices, &gpus[i]) == NONE)
            keep(indices, idx, &gpus[i]);
        struct gs_gpu *remembered = &indices->remembered[idx];
        remembered->xid = gpus[i].xid_boot == indices->boot ? gpus[i].xid : 0;
    }
    return true;
}

/* For a card that was not met before. */
static uint32_t choose(const struct gpu_indices *indices, uint32_t wanted, gs_gpu_mask taken)
{
    if (wanted < GS_GPUS_MAX && !(taken & GS_GPU_BIT(wanted)))
        return wanted;
    return ~taken ? (uint32_t)__builtin_ctzll(~taken) : NONE;
}

/* remembered: who had the index before, or NULL. */
static void describe(const struct gpu_indices *indices, const struct gs_gpu *remembered,
                     struct gs_gpu_set *set, const struct gs_gpu_set *from, uint32_t at,
                     uint32_t idx)
{
    const struct gs_gpu *gpu = &from->gpus[at];
    struct gs_gpu *to = &set->gpus[set->count++];
    *to = *gpu;
    to->idx = idx;
    if (remembered && remembered->xid && !to->xid && !from->fresh) {
        to->xid = remembered->xid;
        to->healthy = false;
    }
    to->xid_boot = to->xid ? indices->boot : 0;
    set->source_idx[idx] = gpu->idx;
}

static void add_gone(const struct gpu_indices *indices, struct gs_gpu_set *set)
{
    uint32_t idx;
    GS_FOR_EACH_GPU (idx, indices->used & ~indices->present) {
        set->gpus[set->count] = indices->remembered[idx];
        set->gpus[set->count].schedulable = true;
        set->gpus[set->count++].healthy = false;
        set->gone |= GS_GPU_BIT(idx);
        set->source_idx[idx] = GS_GPUS_MAX;
    }
    gs_gpus_sort(set->gpus, set->count);
}

/* Those that are remembered first: a new card must not take their indices. */
static gs_gpu_mask find_remembered(const struct gpu_indices *indices, const struct gs_gpu_set *set,
                                   uint32_t found[GS_GPUS_MAX])
{
    gs_gpu_mask present = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        found[i] = find(indices, &set->gpus[i]);
        if (found[i] != NONE)
            present |= GS_GPU_BIT(found[i]);
    }
    return present;
}

void gpu_indices_apply(struct gpu_indices *indices, struct gs_gpu_set *set, gs_gpu_mask placed)
{
    const struct gs_gpu_set from = *set;
    uint32_t found[GS_GPUS_MAX];
    gs_gpu_mask present = find_remembered(indices, &from, found);
    gs_gpu_mask lost = indices->used & ~present;
    set->count = 0;
    set->gone = 0;
    for (uint32_t i = 0; i < from.count; i++) {
        uint32_t idx = found[i];
        if (idx == NONE)
            idx = choose(indices, from.gpus[i].idx, present | (lost & placed));
        if (idx == NONE) {
            size_t len = strlen(set->refused);
            snprintf(set->refused + len, sizeof(set->refused) - len,
                     "%s%s exceeds the maximum of 64 GPUs", len ? "; " : "", from.gpus[i].uuid);
            continue;
        }
        present |= GS_GPU_BIT(idx);
        describe(indices, found[i] == NONE ? NULL : &indices->remembered[idx], set, &from, i, idx);
        keep(indices, idx, &set->gpus[set->count - 1]);
    }
    indices->present = present;
    indices->seen = (indices->seen & indices->used) | present;
    add_gone(indices, set);
}

bool gpu_indices_forget(struct gpu_indices *indices, gs_gpu_mask placed)
{
    gs_gpu_mask kept = indices->used & (indices->present | indices->seen | placed);
    bool some = kept != indices->used;
    indices->used = kept;
    return some;
}

static uint32_t one_of_visible(const struct gs_gpu_set *set, struct gs_slice word)
{
    uint32_t number;
    bool is_number = gs_parse_u32(word.at, word.len, &number);
    for (uint32_t i = 0; i < set->count; i++) {
        const struct gs_gpu *gpu = &set->gpus[i];
        bool same = is_number ? set->source_idx[gpu->idx] == number
                              : gs_slice_eq(gs_slice_of(gpu->uuid), word);
        if (word.len && same)
            return gpu->idx;
    }
    return NONE;
}

gs_gpu_mask gpu_indices_of_visible(const struct gs_gpu_set *set, const char *visible)
{
    struct gs_slice rest = gs_slice_of(visible);
    gs_gpu_mask gpus = 0;
    do {
        uint32_t idx = one_of_visible(set, gs_slice_cut(&rest, ','));
        if (idx == NONE)
            return 0;
        gpus |= GS_GPU_BIT(idx);
    } while (rest.at);
    return gpus;
}
