/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/list_watch.h"
#include "gpushare/codec/gpu_slices.h"

/*
 * GPUs that NVIDIA's driver of dynamic resource allocation (gpu.nvidia.com) offers to pods, of one
 * node, or of all when node is NULL. *ret lies in the arena. An API server without resource.k8s.io
 * offers none. watch: its ask and ctx; what else it has is written here, and says to the next call
 * for what to wait. Blocks. Errors as the port's.
 */
int gpu_slices_next(struct list_watch *watch, const char *node, struct gs_arena *arena,
                    struct gs_sliced_gpu **ret, uint32_t *ret_count, struct gs_error *err);
