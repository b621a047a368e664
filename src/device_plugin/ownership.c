/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/ownership.h"

#include <stdio.h>
#include <string.h>

#include "device_plugin/plugin.h"
#include "gpushare/base/log.h"

/* The node's event, and what /readyz says. */
static void tell_owner(struct plugin *plugin)
{
    const struct ownership *ownership = &plugin->ownership;
    const uint32_t others = plugin->devices.record.now.other_count;
    char why[320] = "";
    if (ownership->whole_gpus)
        snprintf(why, sizeof(why),
                 "%u of nvidia.com/gpu, mig- or vgpu are in this node's capacity: NVIDIA's device "
                 "plugin allocates the same GPUs, so none is shared; remove it from this node, or "
                 "start with --allow-shared-devices",
                 ownership->whole_gpus);
    else if (others)
        snprintf(
            why, sizeof(why),
            "a ResourceSlice of gpu.nvidia.com has %u GPUs of this node: these are not shared; "
            "remove NVIDIA's DRA driver from this node, or start with --allow-shared-devices",
            others);
    pages_set_node_error(&plugin->pages, ownership->whole_gpus ? why : "");
    if (why[0])
        node_events_add(plugin, true, "GpuManagedByOtherDriver", "%s", why);
    else
        gs_log(GS_LOG_INFO, "no other driver allocates this node's GPUs");
}

static void share_anew(struct plugin *plugin)
{
    plugin->devices.indices.seen = 0; /* who is left out now is nobody's that came and went */
    plugin->devices.due = true;
    plugin->node.due = true;
}

static void let_go(struct plugin *plugin, bool let_go)
{
    plugin->node.upgrading = let_go;
    plugin->node.due = true;
    if (let_go) {
        node_events_add(plugin, false, "GpuDriverReleased",
                        "label %s=true: the driver is released for its upgrade, and this node's "
                        "GPUs accept no new pods until the label is removed",
                        plugin->names.driver_upgrade);
    } else {
        plugin->node.written = false; /* what is written says schedulable:false */
        gs_log(GS_LOG_INFO, "driver used again");
    }
}

void ownership_take_node(struct plugin *plugin, const struct gs_node *node)
{
    struct ownership *ownership = &plugin->ownership;
    uint32_t whole_gpus = plugin->settings.share_with_others ? 0 : node->whole_gpus;
    bool changed = !whole_gpus != !ownership->whole_gpus;
    if (node->driver_upgrade != plugin->node.upgrading)
        let_go(plugin, node->driver_upgrade);
    ownership->whole_gpus = whole_gpus;
    if (!changed)
        return;
    tell_owner(plugin);
    share_anew(plugin);
}

static bool is_among(const char *const *uuids, uint32_t count, const char *uuid)
{
    uint32_t i = 0;
    while (i < count && strcmp(uuids[i], uuid) != 0)
        i++;
    return i < count;
}

void ownership_take_slices(struct plugin *plugin, const struct gs_sliced_gpu *sliced,
                           uint32_t count)
{
    struct ownership *ownership = &plugin->ownership;
    const char *uuids[GS_INVENTORY_OTHERS_MAX] = {NULL};
    uint32_t others = 0;
    for (uint32_t i = 0; i < count && others < GS_INVENTORY_OTHERS_MAX; i++) {
        if (!is_among(uuids, others, sliced[i].uuid)) /* a card comes with each instance */
            uuids[others++] = sliced[i].uuid;
    }
    bool known =
        !record_set_others(&plugin->devices.record, uuids, others) && (ownership->asked || !others);
    ownership->asked = true;
    if (known)
        return;
    tell_owner(plugin);
    share_anew(plugin);
}

/* An instance is its card's owner's: the driver may have made it for a claim. */
static bool is_others(const struct plugin *plugin, const struct gs_gpu *gpu)
{
    const struct gs_inventory *record = &plugin->devices.record.now;
    return !plugin->settings.share_with_others &&
           (plugin->ownership.whole_gpus ||
            is_among(record->others, record->other_count, gpu->uuid) ||
            is_among(record->others, record->other_count, gpu->card));
}

void ownership_leave_out(const struct plugin *plugin, struct gs_gpu_set *set)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        if (!is_others(plugin, &set->gpus[i]))
            set->gpus[kept++] = set->gpus[i];
    }
    set->count = kept;
}
