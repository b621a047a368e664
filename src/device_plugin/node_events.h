/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/port/gpu_source.h"

struct plugin;

/*
 * Events about this node, for the allocator's queue. A GPU that comes and goes all the time must
 * not fill the API server: after a burst of NODE_EVENTS, one a minute, and no more than NODE_EVENTS
 * wait to be sent; what is above that is only in the log. Loop thread.
 */
enum { NODE_EVENTS = 8, NODE_EVENT_BYTES = 512 };

struct node_events {
    uint32_t burst_used; /* of the burst; one comes back a minute */
    int64_t refilled_ns;
};

__attribute__((format(printf, 4, 5))) void
node_events_add(struct plugin *plugin, bool warning, const char *reason, const char *fmt, ...);

/* What changed between two looks at the GPUs: sick, well again, gone. */
void node_events_of_gpus(struct plugin *plugin, const struct gs_gpu_set *before,
                         const struct gs_gpu_set *now);
