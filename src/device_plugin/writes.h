/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device_plugin/worker.h"

struct plugin;

enum node_outcome { NODE_NOT_TRIED, NODE_WRITTEN, NODE_NOT_WRITTEN };

/*
 * What has to be written to the API, one after the other on the writer's thread, again and again
 * until it is: the node's inventory and number of GPUs, and what the allocator asks for.
 */

struct writes {
    struct worker writer;
    bool writing;
    uint32_t node_failures;    /* in a row */
    int64_t node_again_ns;     /* when the node is looked at again; 0: not put off */
    enum node_outcome outcome; /* of the node's object since the last round */
};

/* Sends the next thing, if there is one and none is under way. */
void writes_round(struct plugin *plugin);
