/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/plugin.h"

/*
 * A thread that reads the source, again after every sign of news and every few seconds, with
 * growing pauses while it fails, and brings changes to the loop: to the kubelet's list, the
 * allocator and the node's object. GPUs that were seen and cannot be seen now take no new pods. A
 * driver that has failed for ten minutes, or half a minute because it is not that of the library in
 * this container, ends the program.
 * source is *taken*, also on failure.
 */
int gpu_thread_start(struct plugin *plugin, const struct gs_gpu_source *source,
                     struct gs_error *err);

/* Lets go of the driver while it is replaced (node.upgrading), and gives GPUs up whose driver has
 * hung for half a minute: they take no new pods until it answers. */
void gpu_thread_round(struct plugin *plugin);

/* A driver that does not come back is left behind after two seconds. */
void gpu_thread_stop(struct plugin *plugin);
