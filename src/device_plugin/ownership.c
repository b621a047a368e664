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
    char why[320] = "";
    if (ownership->whole_gpus)
        snprintf(why, sizeof(why),
                 "%u of nvidia.com/gpu, mig- or vgpu are in this node's capacity: NVIDIA's device "
                 "plugin allocates the same GPUs, so none is shared; remove it from this node, or "
                 "start with --allow-shared-devices",
                 ownership->whole_gpus);
    else if (ownership->sliced_count)
        snprintf(
            why, sizeof(why),
            "a ResourceSlice of gpu.nvidia.com has %u GPUs of this node: these are not shared; "
            "remove NVIDIA's DRA driver from this node, or start with --allow-shared-devices",
            ownership->sliced_count);
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

int ownership_start(struct plugin *plugin, const struct gs_inventory *record, struct gs_error *err)
{
    struct ownership *ownership = &plugin->ownership;
    ownership->asked = plugin->settings.share_with_others;
    if (ownership->asked)
        return 0;
    struct gs_sliced_gpu *sliced =
        gs_arena_calloc(&ownership->arena, record->other_count + 1, sizeof(*sliced));
    if (!sliced)
        return gs_fail_nomem(err);
    for (uint32_t i = 0; i < record->other_count; i++) {
        const char *uuid = record->others[i];
        sliced[i].node = plugin->settings.node_name;
        sliced[i].uuid = gs_arena_strdup(&ownership->arena, uuid);
        if (!sliced[i].uuid)
            return gs_fail_nomem(err);
    }
    ownership->sliced = sliced;
    ownership->sliced_count = record->other_count;
    return 0;
}

uint32_t ownership_others(const struct plugin *plugin, const char *others[GS_INVENTORY_OTHERS_MAX])
{
    const struct ownership *ownership = &plugin->ownership;
    uint32_t count = 0;
    for (uint32_t i = 0; i < ownership->sliced_count && count < GS_INVENTORY_OTHERS_MAX; i++)
        others[count++] = ownership->sliced[i].uuid;
    return count;
}

static bool same_slices(const struct ownership *ownership, const struct gs_sliced_gpu *sliced,
                        uint32_t count)
{
    bool same = ownership->sliced_count == count;
    for (uint32_t i = 0; same && i < count; i++)
        same = strcmp(ownership->sliced[i].uuid, sliced[i].uuid) == 0;
    return same;
}

void ownership_take_slices(struct plugin *plugin, struct gs_arena *arena,
                           struct gs_sliced_gpu *sliced, uint32_t count)
{
    struct ownership *ownership = &plugin->ownership;
    bool known = same_slices(ownership, sliced, count) && (ownership->asked || !count);
    gs_arena_release(&ownership->arena);
    ownership->arena = *arena;
    *arena = (struct gs_arena){0};
    ownership->sliced = sliced;
    ownership->sliced_count = count;
    ownership->asked = true;
    if (known)
        return;
    tell_owner(plugin);
    share_anew(plugin);
}

/* An instance is its card's owner's: the driver may have made it for a claim. */
static bool is_sliced(const struct ownership *ownership, const struct gs_gpu *gpu)
{
    for (uint32_t i = 0; i < ownership->sliced_count; i++) {
        if (strcmp(ownership->sliced[i].uuid, gpu->uuid) == 0 ||
            strcmp(ownership->sliced[i].uuid, gpu->card) == 0)
            return true;
    }
    return false;
}

void ownership_leave_out(const struct plugin *plugin, struct gs_gpu_set *set)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        if (!plugin->ownership.whole_gpus && !is_sliced(&plugin->ownership, &set->gpus[i]))
            set->gpus[kept++] = set->gpus[i];
    }
    set->count = kept;
}

void ownership_release(struct ownership *ownership)
{
    gs_arena_release(&ownership->arena);
}
