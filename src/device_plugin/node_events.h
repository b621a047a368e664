/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/port/gpu_source.h"

struct plugin;

/*
 * Events about this node, written in order (writes.c). A GPU that comes and goes all the time must
 * not fill the API server: after a burst of NODE_EVENTS, one a minute; what is above that is only
 * in the log. Loop thread.
 */
enum { NODE_EVENTS = 8, NODE_EVENT_BYTES = 512 };

struct node_event {
    bool warning;
    const char *reason; /* static */
    char message[NODE_EVENT_BYTES];
};

struct node_events {
    struct node_event queue[NODE_EVENTS]; /* oldest first */
    uint32_t count;
    uint32_t burst_used; /* of the burst; one comes back a minute */
    int64_t refilled_ns;
};

__attribute__((format(printf, 4, 5))) void
node_events_add(struct plugin *plugin, bool warning, const char *reason, const char *fmt, ...);
/* The first was written, or never will be. */
void node_events_shift(struct node_events *events);

/* What changed between two looks at the GPUs: sick, well again, gone. */
void node_events_of_gpus(struct plugin *plugin, const struct gs_gpu_set *before,
                         const struct gs_gpu_set *now);
