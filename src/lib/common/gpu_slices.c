/* SPDX-License-Identifier: Apache-2.0 */
#include "common/gpu_slices.h"

#include <stdio.h>

#define DRIVER "gpu.nvidia.com"

struct found {
    struct gs_arena *arena;
    struct gs_sliced_gpu *gpus;
    uint32_t count;
};

static int begin(void *ctx, struct gs_error *err)
{
    struct found *found = ctx;
    gs_arena_reset(found->arena);
    *found = (struct found){.arena = found->arena};
    return 0;
}

static int take_item(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    struct found *found = ctx;
    return gs_codec_gpu_slice_take(scan, DRIVER, found->arena, &found->gpus, &found->count, err);
}

int gpu_slices_next(struct list_watch *watch, const char *node, struct gs_arena *arena,
                    struct gs_sliced_gpu **ret, uint32_t *ret_count, struct gs_error *err)
{
    static const char *const paths[] = {"/apis/resource.k8s.io/v1/resourceslices",
                                        "/apis/resource.k8s.io/v1beta2/resourceslices",
                                        "/apis/resource.k8s.io/v1beta1/resourceslices", NULL};
    struct found found = {.arena = arena};
    struct gs_error why = {0};
    char select[400];
    snprintf(select, sizeof(select), "fieldSelector=spec.driver%%3D" DRIVER "%s%.253s",
             node ? "%2Cspec.nodeName%3D" : "", node ? node : "");
    watch->paths = paths;
    watch->select = select;
    watch->begin = begin;
    watch->item = take_item;
    watch->items_ctx = &found;
    *ret = NULL;
    *ret_count = 0;
    int result = list_watch_next(watch, &why);
    watch->select = NULL;
    watch->items_ctx = NULL;
    if (result < 0)
        return why.code == GS_ENOENT ? 0 : gs_fail(err, why.code, "%s", why.msg);
    *ret = found.gpus;
    *ret_count = found.count;
    return 0;
}
