/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_DEVICE_PLUGIN_GPU_THREAD_H
#define GPUSHARE_APPS_DEVICE_PLUGIN_GPU_THREAD_H

#include "device_plugin/plugin.h"

/* The source that the settings name; nothing is read yet. */
int gpu_source_open(const struct settings *settings, struct gs_gpu_source *ret,
                    struct gs_error *err);

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

/* From time to time: GPUs whose driver has hung for half a minute take no new pods until it
 * answers.
 */
void gpu_thread_look(struct plugin *plugin);

/* The GPUs as they are now, once their indices are known. */
void gpu_thread_log(const struct plugin *plugin);

/* Lets go of the driver, so that it can be replaced, or takes it back. */
void gpu_thread_let_go(struct plugin *plugin, bool let_go);

/* A driver that does not come back is left behind after two seconds. */
void gpu_thread_stop(struct plugin *plugin);

#endif
