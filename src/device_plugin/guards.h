/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/allocate/allocator.h"
#include "gpushare/grpc/device_plugin.h"

struct plugin;

/*
 * The ways of keeping pods to their share (docs/limits.md): MPS, MIG, the hook and the kernel, a
 * row each in guards.c. Loop thread.
 */
struct guards {
    enum gs_enforced words[GS_GPUS_MAX]; /* by index, as logged and sent to the node last */
};

/* Says of each GPU what keeps its pods to their share, or why nothing does. */
void guards_round(struct plugin *plugin);

/* Adds to an answer what containers are limited by, in the arena. GS_EINVAL: the container cannot
 * be; GS_ENOMEM. */
int guards_add(const struct plugin *plugin, const struct gs_allocate_answer *answer,
               const struct gs_dp_ids *ids, struct gs_arena *arena,
               struct gs_dp_container *container, struct gs_error *err);

/* Before a container starts. False: it has to wait, see err. */
bool guards_may_start(struct plugin *plugin, const struct gs_start_request *request,
                      struct gs_error *err);
