/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device_plugin/allocate/allocator.h"
#include "gpushare/base/arena.h"
#include "gpushare/grpc/device_plugin.h"
#include "gpushare/model/enforced.h"
#include "gpushare/port/gpu_source.h"

struct plugin;

/*
 * --mps-root: containers become clients of the MPS daemon that gpushare-mps keeps for their GPU
 * (docs/limits.md). Without that option nothing here does anything.
 */
struct mps {
    int64_t look_ns;           /* when the daemons are looked at again */
    gs_gpu_mask looked, ready; /* by the source's indices, as last looked at */
};

/* At the start, before anything is told to anybody: with --mps-by-label the node's object says
 * whether there is --mps-root; where there is, the kernel's limits are off. While the API server is
 * away the record on the host says what it was. Errors are the port's: a guess would start
 * containers without limits. */
int mps_choose(struct plugin *plugin, struct gs_error *err);

/* Looks at the daemons every two seconds; GPUs are told anew when one came or went. */
void mps_round(struct plugin *plugin);

/* max_pods of each GPU, and a GPU whose daemon is away is not healthy: no new pods. */
void mps_mark(const struct plugin *plugin, struct gs_gpu_set *set);

/* The GPU's word. */
enum gs_enforced mps_word(const struct plugin *plugin, const struct gs_gpu *gpu, uint32_t pods);

/* Adds environment and mounts of a client to an answer, all in the arena. GS_EINVAL: it has several
 * GPUs, whose daemons one process cannot have; GS_ENOMEM. */
int mps_add(const struct plugin *plugin, const struct gs_allocate_answer *answer,
            const struct gs_dp_ids *ids, struct gs_arena *arena, struct gs_dp_container *container,
            struct gs_error *err);

/* False: the container's start is blocked, as its GPU's daemon is away, or as its pod requires
 * a limit that holds. */
bool mps_may_start(struct plugin *plugin, const struct gs_start_request *request,
                   const struct gs_placed *pod, struct gs_error *err);
