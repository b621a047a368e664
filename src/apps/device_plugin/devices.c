/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_plugin/advertise.h"
#include "device_plugin/device_nodes.h"
#include "device_plugin/plugin.h"
#include "device_plugin/unit.h"
#include "gpushare/base/index.h"
#include "gpushare/base/log.h"

#define SOON_NS          (500 * GS_NS_PER_MS)
#define FIRST_ASK_NS     (1 * GS_NS_PER_S)
#define LAST_ASK_NS      (60 * GS_NS_PER_S)
#define EVENT_PODS_BYTES 256

/* ---- the kubelet's word on ids ---- */

static void ask_in(struct plugin *plugin, int64_t pause_ns)
{
    struct devices *devices = &plugin->devices;
    int64_t at_ns = gs_loop_now_ns(plugin->loop) + pause_ns;
    if (at_ns < devices->ask_at_ns)
        devices->ask_at_ns = at_ns;
    plugin_wake_at(plugin, devices->ask_at_ns);
}

static void ask_when_due(struct plugin *plugin)
{
    struct devices *devices = &plugin->devices;
    if (gs_loop_now_ns(plugin->loop) >= devices->ask_at_ns) {
        devices->ask_at_ns = INT64_MAX;
        plugin->reconcile_due = true;
    }
    plugin_wake_at(plugin, devices->ask_at_ns);
}

void devices_ask_soon(struct plugin *plugin)
{
    if (plugin->devices.foreign || plugin->devices.unit_waits)
        ask_in(plugin, SOON_NS);
}

/* ---- the unit ---- */

static enum gs_unit choose_unit(const struct plugin *plugin, const struct gs_allocator_stats *stats)
{
    const struct devices *devices = &plugin->devices;
    bool synced = plugin->pods_listed && (devices->ids_observed || plugin->link);
    const struct unit_facts facts = {
        .wanted = plugin->settings.unit,
        .inventory = devices->inventory,
        .node_read = devices->node_read,
        .in_use = !synced || stats->placed || devices->in_use.count,
        .largest_share = stats->largest_share,
    };
    return unit_in_force(&facts, &devices->found);
}

static void tell_unit_waits(struct plugin *plugin)
{
    _cleanup_(gs_buf_release) struct gs_buf pods = GS_BUF(EVENT_PODS_BYTES);
    gs_allocator_name_placed(plugin->alloc, 0, &pods);
    const char *names = gs_buf_failed(&pods) || !pods.len ? "pods" : pods.data;
    const char *unit = gs_unit_name(plugin->devices.unit);
    node_events_add(
        plugin, true, "GpuMemoryUnitHeld",
        "--memory-unit %s is not taken up while pods hold units of %s: %s. It is once they are "
        "deleted; to keep them as they are, start the device plugin with --memory-unit %s",
        gs_unit_name(plugin->settings.unit), unit, names, unit);
}

/* Says once that the wanted unit has to wait, and once that it is there. */
static void tell_unit(struct plugin *plugin)
{
    struct devices *devices = &plugin->devices;
    bool waits = devices->unit != plugin->settings.unit;
    if (waits == devices->unit_waits || !devices_synced(plugin))
        return;
    devices->unit_waits = waits;
    if (waits) {
        tell_unit_waits(plugin);
    } else {
        gs_log(GS_LOG_INFO, "the unit of memory has changed",
               GS_STR("unit", gs_unit_name(devices->unit)));
    }
}

/* ---- the list ---- */

static void tell_foreign(const struct devices *devices, const struct advertised *made)
{
    if (made->foreign != devices->foreign)
        gs_log(GS_LOG_INFO, "pods hold device ids of another plugin or unit: they stay listed",
               GS_INT("ids", made->foreign));
    if (made->dropped && made->dropped != devices->dropped)
        gs_log(GS_LOG_WARN, "free units are left out, the list would be too long for the kubelet",
               GS_INT("units", made->dropped));
}

static gs_gpu_mask placed_on(const struct gs_allocator_stats *stats)
{
    gs_gpu_mask placed = 0;
    for (uint32_t idx = 0; idx < GS_GPUS_MAX; idx++)
        placed |= stats->used_units[idx] ? GS_GPU_BIT(idx) : 0;
    return placed;
}

/* Nobody is known to be on a GPU before the pods are. */
static struct gs_gpu_set number_gpus(struct plugin *plugin, struct numbers *numbers)
{
    struct gs_gpu_set set = plugin->devices.found;
    struct gs_allocator_stats stats;
    gs_allocator_stats(plugin->alloc, &stats);
    ownership_leave_out(plugin, &set);
    mps_mark(plugin, &set);
    numbers_apply(numbers, &set, plugin->restored ? placed_on(&stats) : ~(gs_gpu_mask)0);
    return set;
}

/* Events about GPUs name the pods on them. */
static void tell_gpus(struct plugin *plugin)
{
    struct devices *devices = &plugin->devices;
    if (!devices->tell_gpus || !plugin->restored)
        return;
    devices->tell_gpus = false;
    node_events_of_gpus(plugin, &devices->reported, &plugin->set);
    devices->reported = plugin->set;
}

/* A cordon is the node's, not the driver's: the inventory does not name it. */
static int tell_allocator(struct plugin *plugin, const struct gs_gpu_set *set, struct gs_error *err)
{
    struct gs_gpu gpus[GS_GPUS_MAX];
    memcpy(gpus, set->gpus, set->count * sizeof(*gpus));
    for (uint32_t i = 0; i < set->count; i++)
        gpus[i].schedulable &= !(plugin->devices.cordoned & GS_GPU_BIT(gpus[i].idx));
    return gs_allocator_set_gpus(plugin->alloc, gpus, set->count, set->gone, err);
}

static int apply(struct plugin *plugin, enum gs_unit unit, struct gs_error *err)
{
    struct devices *devices = &plugin->devices;
    struct numbers numbers = devices->numbers;
    struct gs_gpu_set set = number_gpus(plugin, &numbers);
    struct advertised made;
    advertise_divide(&set, unit);
    if (advertise_devices(&set, unit, &devices->in_use, &made, err) < 0)
        return -1;
    int result = gs_dp_set_devices(plugin->dp, made.devices, made.count, err);
    free(made.devices);
    if (result == 0)
        result = tell_allocator(plugin, &set, err);
    if (result < 0)
        return -1;
    tell_foreign(devices, &made);
    devices->foreign = made.foreign;
    devices->dropped = made.dropped;
    devices->unit = unit;
    devices->numbers = numbers;
    devices->tell_gpus = true;
    if (devices->node_read)
        devices->inventory = unit;
    plugin->set = plugin->node.set = set;
    plugin->node.unit = unit;
    plugin->enforce.look_due = true;
    return 0;
}

/* Makes the list anew from what is known now. */
static int renew(struct plugin *plugin, struct gs_error *err)
{
    struct gs_allocator_stats stats;
    gs_allocator_stats(plugin->alloc, &stats);
    enum gs_unit unit = choose_unit(plugin, &stats);
    bool changed = unit != plugin->devices.unit;
    plugin->devices.due = false;
    plugin->devices.tried = unit;
    if (apply(plugin, unit, err) < 0)
        return -1;
    plugin->node.due = plugin->node.due || changed;
    return 0;
}

static void renew_if_due(struct plugin *plugin)
{
    struct devices *devices = &plugin->devices;
    struct gs_allocator_stats stats;
    struct gs_error err = {0};
    gs_allocator_stats(plugin->alloc, &stats);
    if (stats.pods < devices->pods)
        devices_ask_soon(plugin);
    devices->pods = stats.pods;
    if (plugin->restored && numbers_forget(&devices->numbers, placed_on(&stats)))
        devices->due = plugin->node.due = true;
    if (!plugin->have_gpus || (!devices->due && choose_unit(plugin, &stats) == devices->tried))
        return;
    if (renew(plugin, &err) < 0)
        gs_log(GS_LOG_ERROR, "the list of devices stays as it was", GS_STR("why", err.msg));
}

static void log_node(const struct settings *settings, const struct gs_gpu *gpu)
{
    char node[DEVICE_NODE_BYTES];
    device_node_of(settings->nvidia_dev_root, gpu, node);
    if (node[0])
        gs_log(GS_LOG_INFO, "device node", GS_INT("gpu", gpu->idx), GS_STR("node", node));
    else
        gs_log(GS_LOG_WARN, "--pass-device-specs: this GPU has no device node that could be passed",
               GS_INT("gpu", gpu->idx),
               GS_STR("why", gs_gpu_is_instance(gpu) ? "it is an instance of a card (MIG)"
                             : gpu->node             ? "there is no such file"
                                                     : "its minor number is not known"));
}

/* Once their indices are known. */
static void log_gpus(struct plugin *plugin)
{
    const struct gs_gpu_set *set = &plugin->set;
    if (!plugin->devices.log_due || !(plugin->devices.node_read || plugin->link))
        return;
    plugin->devices.log_due = false;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct gs_gpu *gpu = &set->gpus[i];
        gs_log(GS_LOG_INFO, "GPU", GS_INT("idx", gpu->idx), GS_STR("uuid", gpu->uuid),
               GS_STR("model", gpu->model), GS_INT("mib", gpu->mem_mib),
               GS_INT("units", gpu->mem_units),
               GS_STR("state", set->gone & GS_GPU_BIT(gpu->idx) ? "gone"
                               : gpu->healthy                   ? "healthy"
                                                                : "unhealthy"));
        if (plugin->settings.pass_device_specs)
            log_node(&plugin->settings, gpu);
    }
    if (set->refused[0])
        gs_log(GS_LOG_WARN, "GPUs left out", GS_STR("why", set->refused));
}

void devices_round(struct plugin *plugin)
{
    renew_if_due(plugin);
    tell_unit(plugin);
    tell_gpus(plugin);
    log_gpus(plugin);
    ask_when_due(plugin);
}

/* ---- what changed ---- */

int devices_take_gpus(struct plugin *plugin, const struct gs_gpu_set *found, struct gs_error *err)
{
    struct gs_gpu_set before = plugin->devices.found;
    plugin->devices.found = *found;
    plugin->devices.found.reserved_mib =
        plugin->settings.overhead_mib * plugin->settings.overhead_slots;
    if (renew(plugin, err) < 0) {
        plugin->devices.found = before;
        return -1;
    }
    if (!plugin->devices.ids_observed)
        ask_in(plugin, 0);
    return 0;
}

/* Indices that were given out without the node's memory, while the API was away, and differ from
 * it are in containers by now: the next start reads the memory first, and what the kubelet noted.
 */
void devices_take_node(struct plugin *plugin, const struct node_facts *facts)
{
    struct devices *devices = &plugin->devices;
    if (!plugin->link)
        devices->numbers = (struct numbers){.boot = devices->numbers.boot};
    if (!numbers_remember(&devices->numbers, facts->gpus, facts->gpu_count)) {
        gs_log(GS_LOG_ERROR, "GPUs have other indices than this node's inventory says: ending, to "
                             "start anew with those");
        plugin_stop(plugin, 1);
        return;
    }
    devices->inventory = facts->unit;
    devices->node_read = devices->due = devices->log_due = true;
}

void devices_take_cordon(struct plugin *plugin, gs_gpu_mask cordoned)
{
    if (cordoned == plugin->devices.cordoned)
        return;
    plugin->devices.cordoned = cordoned;
    plugin->devices.due = true;
}

void devices_take_ids_in_use(struct plugin *plugin, const struct gs_podres_list *list)
{
    struct devices *devices = &plugin->devices;
    struct gs_allocator_stats stats;
    gs_allocator_stats(plugin->alloc, &stats);
    bool good = list && ids_in_use_update(&devices->in_use, list, plugin->names.gpu_mem,
                                          plugin->alloc) == 0;
    if (good && devices->in_use.named >= stats.running) {
        devices->ids_observed = true;
        devices->ask_pause_ns = FIRST_ASK_NS;
    } else { /* no kubelet, or one that has not met all its pods yet */
        ask_in(plugin, devices->ask_pause_ns);
        devices->ask_pause_ns *= devices->ask_pause_ns < LAST_ASK_NS ? 2 : 1;
    }
    if (!good)
        return;
    if (devices->in_use.unlistable)
        gs_log(GS_LOG_WARN, "pods hold device ids that no list can carry",
               GS_INT("ids", devices->in_use.unlistable));
    devices->due = true;
}

bool devices_synced(const struct plugin *plugin)
{
    return plugin->pods_listed && plugin->devices.node_read && plugin->ownership.asked &&
           (plugin->devices.ids_observed || plugin->link);
}

/* Of this boot of the node: what a driver says of its GPUs' sickness ends with it. */
static uint32_t read_boot(void)
{
    char id[64];
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    size_t len = file ? fread(id, 1, sizeof(id), file) : 0;
    if (file)
        fclose(file);
    return (uint32_t)(gs_hash_lasting(id, len) & INT32_MAX);
}

void devices_start(struct plugin *plugin)
{
    plugin->devices.numbers.boot = read_boot();
    plugin->devices.unit = plugin->devices.tried = plugin->settings.unit;
    plugin->devices.ask_pause_ns = FIRST_ASK_NS;
    plugin->devices.ask_at_ns = INT64_MAX;
}

void devices_release(struct devices *devices)
{
    ids_in_use_release(&devices->in_use);
}
