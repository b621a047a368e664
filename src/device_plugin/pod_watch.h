/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/plugin.h"

/*
 * This node's pods, from the API to the allocator: a thread that watches, and copies of what it
 * saw, brought to the loop in batches. A full list is one batch.
 */
int pod_watch_start(struct plugin *plugin, struct gs_error *err);
void pod_watch_stop(struct plugin *plugin);

/* Several pods in one go. */
struct pod_batch;

/* Any thread: asks the API for this node's pods. NULL: see err. */
struct pod_batch *pod_batch_list(const struct plugin *plugin, int64_t timeout_ns,
                                 struct gs_error *err);

/* Loop thread: tells the allocator; *taken*. */
void pod_batch_apply(struct plugin *plugin, struct pod_batch *batch);
