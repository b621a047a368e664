/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/slice_watch.h"
#include "gpushare/base/arena.h"
#include "gpushare/codec/gpu_slices.h"
#include "gpushare/codec/inventory.h"
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
    uint32_t whole_gpus; /* and MIG instances of NVIDIA's device plugin */
    struct gs_arena arena;
    struct gs_sliced_gpu *sliced; /* of its DRA driver */
    uint32_t sliced_count;
    struct slice_watch *watch; /* NULL: they are not asked for */
    bool asked; /* they were answered; until then those count that the record names */
};

/* Until slices are answered, those of the record are another driver's. GS_ENOMEM. */
int ownership_start(struct plugin *plugin, const struct gs_inventory *record, struct gs_error *err);

/* Their UUIDs, for the record; *borrowed* until the next slices. Returns how many. */
uint32_t ownership_others(const struct plugin *plugin, const char *others[GS_INVENTORY_OTHERS_MAX]);

/* The node's object was read. */
void ownership_take_node(struct plugin *plugin, const struct gs_node *node);

/* Slices were read; *taken* with their arena. */
void ownership_take_slices(struct plugin *plugin, struct gs_arena *arena,
                           struct gs_sliced_gpu *sliced, uint32_t count);

/* Takes those that others give out off a set as its source counts. */
void ownership_leave_out(const struct plugin *plugin, struct gs_gpu_set *set);

void ownership_release(struct ownership *ownership);
