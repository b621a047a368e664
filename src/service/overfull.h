/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_OVERFULL_H
#define GPUSHARE_SERVICE_OVERFULL_H

#include <stdint.h>

#include "gpushare/model/gpu.h"

struct gs_service;

/*
 * Nodes whose GPUs are charged with more than they have get one Warning Event when that begins. A
 * few are told per round. Of the thread that ticks.
 */
struct gs_overfull {
    gs_gpu_mask *told; /* by the node's slot: overfull, and told */
    uint32_t cap;
    int64_t next_ns;
};

void gs_overfull_release(struct gs_overfull *overfull);
void gs_overfull_tick(struct gs_service *service, int64_t now_ns);

#endif
