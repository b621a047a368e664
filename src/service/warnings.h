/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_WARNINGS_H
#define GPUSHARE_SERVICE_WARNINGS_H

#include <stdatomic.h>
#include <stdint.h>

#include "gpushare/base/recent.h"
#include "gpushare/model/gpu.h"

struct gs_service;

/*
 * Warning Events about what the API shows and cannot be: bound pods whose GPU index is missing, out
 * of range or contradicts the node, one each, so that their owner learns why a whole node looks
 * full; nodes whose GPUs are charged with more than they have, one when that begins. One of each is
 * written in two seconds, pods' namespaces in turn. Of the thread that compares.
 */
struct gs_warnings {
    struct gs_recent unplaced; /* UIDs of pods that have theirs */
    gs_gpu_mask *overfull;     /* by the node's slot: overfull, and written about */
    uint32_t overfull_cap;
    uint64_t turn; /* the least hash of a namespace that is next */
    int64_t next_ns;
    atomic_ullong unplaced_written;
};

void gs_warnings_release(struct gs_warnings *warnings);
void gs_warnings_tick(struct gs_service *service, int64_t now_ns);

#endif
