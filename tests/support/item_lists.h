/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/codec/budgets.h"
#include "gpushare/codec/gpu_slices.h"
#include "gpushare/codec/list.h"

/* Whole lists of what programs take item by item. As the codec's own: outputs are untouched on
 * failure. */

struct item_list {
    struct gs_arena *arena;
    const char *driver;
    struct gs_budget *budgets;
    struct gs_sliced_gpu *gpus;
    uint32_t count;
    struct gs_error *err;
};

static inline int take_budget(void *ctx, struct gs_scan *scan)
{
    struct item_list *list = ctx;
    return gs_codec_budget_take(scan, list->arena, &list->budgets, &list->count, list->err) < 0 ? -1
                                                                                                : 0;
}

static inline int take_slice(void *ctx, struct gs_scan *scan)
{
    struct item_list *list = ctx;
    return gs_codec_gpu_slice_take(scan, list->driver, list->arena, &list->gpus, &list->count,
                                   list->err);
}

static inline int budget_list(struct gs_slice json, struct gs_arena *arena, struct gs_budget **ret,
                              uint32_t *ret_count, struct gs_error *err)
{
    struct item_list list = {.arena = arena, .err = err};
    struct gs_list_meta meta;
    if (gs_codec_list_items(json, take_budget, &list, &meta, err) < 0)
        return -1;
    *ret = list.budgets;
    *ret_count = list.count;
    return 0;
}

static inline int slice_list(struct gs_slice json, const char *driver, struct gs_arena *arena,
                             struct gs_sliced_gpu **ret, uint32_t *ret_count, struct gs_error *err)
{
    struct item_list list = {.arena = arena, .driver = driver, .err = err};
    struct gs_list_meta meta;
    if (gs_codec_list_items(json, take_slice, &list, &meta, err) < 0)
        return -1;
    *ret = list.gpus;
    *ret_count = list.count;
    return 0;
}
