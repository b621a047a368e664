/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_DEVICE_PLUGIN_KUBELET_CALLS_H
#define GPUSHARE_APPS_DEVICE_PLUGIN_KUBELET_CALLS_H

#include "device_plugin/plugin.h"

/*
 * The kubelet's Allocate and PreStartContainer, from the call to its answer: first the kubelet is
 * asked which pods it has (PodResources), then, only if the allocator does not know the pod, the
 * API for this node's pods. Both have short limits; without an answer the call goes on.
 */
extern const struct gs_dp_ops kubelet_calls_ops; /* ctx: struct plugin */

/* New pods are there: a call that waits for one may go on. */
void kubelet_calls_pods_changed(struct plugin *plugin);

/* The node's object was written, or that failed: a start that waits for it may go on. */
void kubelet_calls_node_told(struct plugin *plugin, bool written);

/* The once-a-minute question to the kubelet whose ids are whose. */
void kubelet_calls_reconcile(struct plugin *plugin);

/* Nobody waits for these any more: the program ends. */
void kubelet_calls_free(struct plugin *plugin);

#endif
