/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/slice_watch.h"
#include "gpushare/codec/gpu_slices.h"
#include "gpushare/port/gpu_source.h"

/*
 * Who else has to do with this node's GPUs. NVIDIA's device plugin (nvidia.com/gpu in the node's
 * capacity) gives them out whole, and does not say which: then none is shared. NVIDIA's driver of
 * dynamic resource allocation publishes those that it gives out: these are not shared. And somebody
 * replaces the driver: the label <domain>/gpu-driver-upgrade says so. Loop thread.
 */
struct plugin;
struct gs_node;

struct ownership {
    uint32_t whole_gpus;       /* and MIG instances of NVIDIA's device plugin */
    struct slice_watch *watch; /* of its DRA driver; NULL: not asked for */
    bool asked; /* slices were answered; until then those count that the record names */
};

/* The node's object was read. */
void ownership_take_node(struct plugin *plugin, const struct gs_node *node);

/* Slices were read: what they name is recorded. */
void ownership_take_slices(struct plugin *plugin, const struct gs_sliced_gpu *sliced,
                           uint32_t count);

/* Takes those that others give out off a set as its source counts. */
void ownership_leave_out(const struct plugin *plugin, struct gs_gpu_set *set);
