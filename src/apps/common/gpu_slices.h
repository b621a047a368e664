/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_COMMON_GPU_SLICES_H
#define GPUSHARE_APPS_COMMON_GPU_SLICES_H

#include "gpushare/codec/gpu_slices.h"
#include "gpushare/codec/list.h"
#include "gpushare/kube/client.h"

/*
 * GPUs that NVIDIA's driver of dynamic resource allocation (gpu.nvidia.com) offers to pods, of one
 * node, or of all when node is NULL. *ret lies in the arena. An API server without resource.k8s.io
 * offers none. Blocks. Errors as the port's.
 */
struct gpu_slices_api {
    /* As gs_kube_request(). */
    int (*ask)(void *ctx, const struct gs_kube_request *request, int *ret_status,
               struct gs_buf *body, struct gs_error *err);
    void *ctx;
};

/* Where a list was read: what came later can be waited for. */
struct gpu_slices_place {
    const char *path;     /* NULL: nowhere, there is no such API */
    char rv[GS_RV_BYTES]; /* "": it did not say */
};

/* ret_place: may be NULL; nowhere on failure, too. */
int gpu_slices_fetch(const struct gpu_slices_api *api, const char *node, struct gs_arena *arena,
                     struct gs_sliced_gpu **ret, uint32_t *ret_count,
                     struct gpu_slices_place *ret_place, struct gs_error *err);

/* 0: something has changed since, or may have, or minutes went by. -1: it cannot be watched. */
int gpu_slices_wait(const struct gpu_slices_api *api, const char *node,
                    const struct gpu_slices_place *place, struct gs_error *err);

#endif
