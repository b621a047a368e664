/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_COMMON_GPU_SLICES_H
#define GPUSHARE_APPS_COMMON_GPU_SLICES_H

#include "gpushare/codec/gpu_slices.h"
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

int gpu_slices_fetch(const struct gpu_slices_api *api, const char *node, struct gs_arena *arena,
                     struct gs_sliced_gpu **ret, uint32_t *ret_count, struct gs_error *err);

#endif
