/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The end of a plugin that another one will follow, at an upgrade. A pod that the kubelet takes in
 * while no plugin serves has failed for good, so the node's GPUs are first made unschedulable in
 * its inventory. What was bound before the extender saw that is still served; then the program
 * ends. The next plugin makes them schedulable again once the kubelet has its list.
 */
struct plugin;

struct shutdown {
    bool begun;
    bool written;         /* the inventory says it */
    int64_t quiet_ns;     /* since when nothing happened; 0: something does */
    int64_t until_ns;     /* not longer than that */
    uint64_t allocations; /* seen so far */
};

/* Ends the program, soon: at once when there is nobody to tell (no GPUs, no kubelet), when the API
 * server cannot be told, or when asked again. */
void shutdown_begin(struct plugin *plugin);

/* Once begun: ends it when all is quiet, or it took too long. */
void shutdown_round(struct plugin *plugin);

/* What became of the inventory. */
void shutdown_node_written(struct plugin *plugin, bool written);
