/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_plugin/advertise.h"
#include "device_plugin/checkpoint.h"
#include "device_plugin/device_nodes.h"
#include "device_plugin/plugin.h"
#include "device_plugin/unit.h"
#include "gpushare/base/index.h"
#include "gpushare/base/invariant.h"
#include "gpushare/base/log.h"

#define SOON_NS          (500 * GS_NS_PER_MS)
#define EVENT_PODS_BYTES 256

/* ---- ids that pods hold ---- */

void devices_read_ids_in(struct plugin *plugin, int64_t pause_ns)
{
    struct devices *devices = &plugin->devices;
    int64_t at_ns = plugin_now_ns(plugin) + pause_ns;
    if (at_ns < devices->ids_at_ns)
        devices->ids_at_ns = at_ns;
}

void devices_read_ids_soon(struct plugin *plugin)
{
    if (plugin->devices.foreign || plugin->devices.unit_waits)
        devices_read_ids_in(plugin, SOON_NS);
}

static void read_ids_when_due(struct plugin *plugin)
{
    struct devices *devices = &plugin->devices;
    if (plugin_now_ns(plugin) >= devices->ids_at_ns) {
        devices->ids_at_ns = INT64_MAX;
        checkpoint_observe(plugin, false, true);
    }
    plugin_wake_at(plugin, devices->ids_at_ns);
}

/* ---- the unit ---- */

/* Once it is in force it is what is recorded. */
static struct unit_choice choose_unit(const struct plugin *plugin,
                                      const struct gs_allocator_stats *stats)
{
    const struct devices *devices = &plugin->devices;
    const struct gs_inventory *record = &devices->record.now;
    bool synced = plugin->pods_listed && (devices->ids_observed || plugin->link);
    bool chosen = devices_known(devices);
    const struct unit_facts facts = {
        .wanted = plugin->settings.unit,
        .recorded = chosen ? devices->unit : record->unit,
        .noted = chosen ? GS_UNIT_UNKNOWN : devices->noted,
        .read = devices->remembered && devices->noted_read,
        .held = !synced || stats->placed || devices->in_use.count,
        .doubted = chosen ? devices->unit_state == UNIT_DOUBTED : record->unit_doubted,
    };
    struct unit_choice choice = unit_choose(&facts);
    GS_INVARIANT(!chosen || choice.unit == devices->unit || choice.state == UNIT_FREE,
                 "the unit changes only on an empty node");
    return choice;
}

static void tell_unit_waits(struct plugin *plugin)
{
    _cleanup_(gs_buf_release) struct gs_buf pods = GS_BUF(EVENT_PODS_BYTES);
    gs_allocator_name_placed(plugin->alloc, 0, &pods);
    const char *names = gs_buf_failed(&pods) || !pods.len ? "pods" : pods.data;
    const char *unit = gs_unit_name(plugin->devices.unit);
    const char *wanted = gs_unit_name(plugin->settings.unit);
    if (plugin->devices.unit_state == UNIT_DOUBTED)
        node_events_add(plugin, true, "GpuMemoryUnitChangePending",
                        "pods in the kubelet's checkpoint use units of %s, --memory-unit is %s, "
                        "and the unit of this node is not recorded: the node accepts no new pods. "
                        "Start the device plugin with --memory-unit %s, or delete these pods: %s",
                        unit, wanted, unit, names);
    else
        node_events_add(
            plugin, true, "GpuMemoryUnitChangePending",
            "--memory-unit %s is not applied while pods use units of %s: %s. Delete these pods to "
            "apply it, or start the device plugin with --memory-unit %s to keep them",
            wanted, unit, names, unit);
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
        gs_log(GS_LOG_INFO, "memory unit changed", GS_STR("unit", gs_unit_name(devices->unit)));
    }
}

/* Of those that run: where a pod that is only bound ends up is not known yet. */
static void add_held(void *ctx, const struct gs_placed *pod)
{
    uint64_t *held = ctx;
    uint32_t idx;
    GS_FOR_EACH_GPU (idx, pod->runs ? pod->gpus : 0)
        held[idx] += pod->units;
}

/* Pods that hold more than their GPU offers since its memory, or what is reserved, has changed. */
static void tell_overfull(struct plugin *plugin)
{
    _cleanup_(gs_buf_release) struct gs_buf pods = GS_BUF(EVENT_PODS_BYTES);
    uint64_t held[GS_GPUS_MAX] = {0};
    gs_gpu_mask overfull = 0;
    gs_allocator_each_placed(plugin->alloc, add_held, held);
    size_t above = 0;
    for (uint32_t i = 0; plugin->restored && i < plugin->devices.set.count; i++) {
        const struct gs_gpu *gpu = &plugin->devices.set.gpus[i];
        if (held[gpu->idx] <= gpu->mem_units)
            continue;
        overfull |= GS_GPU_BIT(gpu->idx);
        above += held[gpu->idx] - gpu->mem_units;
    }
    plugin->devices.due |= above != plugin->devices.above;
    plugin->devices.above = above;
    bool more = overfull & ~plugin->devices.overfull;
    plugin->devices.overfull = overfull;
    if (!more)
        return;
    gs_allocator_name_placed(plugin->alloc, overfull, &pods);
    node_events_add(
        plugin, true, "GpuCapacityReduced",
        "these pods are allocated more memory than their GPU advertises now (its size less "
        "--gpu-reserve and --overhead-mib); they keep it, and the GPU accepts no new pods: %s",
        gs_buf_failed(&pods) || !pods.len ? "unknown" : pods.data);
}

/* ---- the list ---- */

static void tell_foreign(const struct devices *devices, const struct advertised *made)
{
    if (made->foreign != devices->foreign)
        gs_log(GS_LOG_INFO, "device IDs of another plugin or unit, used by pods, stay listed",
               GS_INT("ids", made->foreign));
    if (made->dropped && made->dropped != devices->dropped)
        gs_log(GS_LOG_WARN,
               "free units are not advertised: the device list would be too long for the kubelet",
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
static struct gs_gpu_set number_gpus(struct plugin *plugin, const struct gs_allocator_stats *stats,
                                     struct gpu_indices *indices)
{
    struct gs_gpu_set set = plugin->devices.found;
    ownership_leave_out(plugin, &set);
    mps_mark(plugin, &set);
    gpu_indices_apply(indices, &set, plugin->restored ? placed_on(stats) : ~(gs_gpu_mask)0);
    return set;
}

/* Events about GPUs name the pods on them. */
static void tell_gpus(struct plugin *plugin)
{
    struct devices *devices = &plugin->devices;
    if (!devices->tell_gpus || !plugin->restored)
        return;
    devices->tell_gpus = false;
    node_events_of_gpus(plugin, &devices->reported, &devices->set);
    devices->reported = devices->set;
}

/* A cordon is the node's, not the driver's: the inventory does not name it. */
static int tell_allocator(struct plugin *plugin, const struct gs_gpu_set *set,
                          enum unit_state state, struct gs_error *err)
{
    struct gs_gpu gpus[GS_GPUS_MAX];
    memcpy(gpus, set->gpus, set->count * sizeof(*gpus));
    for (uint32_t i = 0; i < set->count; i++)
        gpus[i].schedulable &=
            !(plugin->devices.cordoned & GS_GPU_BIT(gpus[i].idx)) && state != UNIT_DOUBTED;
    return gs_allocator_set_gpus(plugin->alloc, gpus, set->count, set->gone, err);
}

/* On the host first: what is given out after it is known to the next start. One that stops may do
 * so because the Node knows better. */
static void keep_record(struct plugin *plugin, const struct gs_gpu_set *set,
                        struct unit_choice choice)
{
    const struct gs_inventory now = {.unit = choice.unit,
                                     .unit_doubted = choice.state == UNIT_DOUBTED,
                                     .mps =
                                         plugin->settings.mps_by_label && plugin->settings.mps_root,
                                     .gpus = (struct gs_gpu *)set->gpus,
                                     .gpu_count = set->count};
    if (choice.state == UNIT_UNREAD || plugin->round.stopping)
        return;
    int64_t rev = record_keep(&plugin->devices.record, &now);
    plugin->node.due |= rev != plugin->node.rev;
    plugin->node.rev = rev;
}

static int apply(struct plugin *plugin, const struct gs_allocator_stats *stats,
                 struct unit_choice choice, struct gs_error *err)
{
    struct devices *devices = &plugin->devices;
    struct gpu_indices indices = devices->indices;
    struct gs_gpu_set set = number_gpus(plugin, stats, &indices);
    struct advertised made;
    advertise_divide(&set, choice.unit);
    devices->in_use.above = devices->above;
    if (advertise_devices(&set, choice.unit, &devices->in_use, &made, err) < 0)
        return -1;
    keep_record(plugin, &set, choice);
    int result = gs_dp_set_devices(plugin->dp, made.ids, made.count, err);
    free((void *)made.ids);
    if (result < 0 || tell_allocator(plugin, &set, choice.state, err) < 0)
        return -1;
    devices->unit = choice.unit;
    devices->unit_state = choice.state;
    tell_foreign(devices, &made);
    devices->foreign = made.foreign;
    devices->dropped = made.dropped;
    devices->indices = indices;
    devices->tell_gpus = true;
    devices->set = set;
    plugin->enforce.look_due = true;
    return 0;
}

/* Makes the list anew from what is known now. */
static int renew(struct plugin *plugin, const struct gs_allocator_stats *stats,
                 struct gs_error *err)
{
    struct unit_choice choice = choose_unit(plugin, stats);
    bool changed = choice.unit != plugin->devices.unit;
    plugin->devices.due = false;
    plugin->devices.tried = choice;
    if (apply(plugin, stats, choice, err) < 0)
        return -1;
    plugin->node.due = plugin->node.due || changed;
    return 0;
}

static bool is_tried(const struct devices *devices, struct unit_choice choice)
{
    return choice.unit == devices->tried.unit && choice.state == devices->tried.state;
}

static void renew_if_due(struct plugin *plugin)
{
    struct devices *devices = &plugin->devices;
    struct gs_allocator_stats stats;
    struct gs_error err = {0};
    gs_allocator_stats(plugin->alloc, &stats);
    if (stats.pods < devices->pods)
        devices_read_ids_soon(plugin);
    devices->pods = stats.pods;
    tell_overfull(plugin);
    if (plugin->restored && gpu_indices_forget(&devices->indices, placed_on(&stats)))
        devices->due = plugin->node.due = true;
    if (!devices->have_gpus || (!devices->due && is_tried(devices, choose_unit(plugin, &stats))))
        return;
    if (renew(plugin, &stats, &err) < 0)
        gs_log(GS_LOG_ERROR, "device list not updated", GS_STR("error", err.msg));
}

/* ---- what was before ---- */

/* The file counts once the API server had its time: the node's object may be newer. */
static void remember(struct plugin *plugin)
{
    struct devices *devices = &plugin->devices;
    const struct gs_inventory *record = &devices->record.now;
    int64_t until_ns = devices->since_ns + DEVICES_PATIENCE_NS;
    bool late = plugin_now_ns(plugin) >= until_ns;
    if (devices->remembered || !devices->have_gpus)
        return;
    if (!devices->node_read && !(late && devices->record.on_host)) {
        plugin_wake_at(plugin, late ? INT64_MAX : until_ns);
        return;
    }
    devices->indices = (struct gpu_indices){.boot = devices->indices.boot};
    gpu_indices_remember(&devices->indices, record->gpus, record->gpu_count);
    devices->remembered = devices->due = devices->log_due = true;
}

/* Where no record says whose index is whose, what containers were told does: pods go by it, those
 * on a card that is away, too. */
static void number_by_notes(struct plugin *plugin, const struct gpu_indices *indices)
{
    struct devices *devices = &plugin->devices;
    enum gs_unit unit = devices->noted ? devices->noted : plugin->settings.unit;
    uint32_t idx;
    devices->indices = (struct gpu_indices){.boot = devices->indices.boot};
    GS_FOR_EACH_GPU (idx, indices->used) {
        struct gs_gpu gpu = indices->remembered[idx];
        gpu.mem_mib = gpu.mem_units * gs_unit_mib(unit);
        gpu_indices_remember(&devices->indices, &gpu, 1);
    }
}

/* Where there is no record, what pods hold says in which unit it is. */
static void read_notes(struct plugin *plugin)
{
    struct devices *devices = &plugin->devices;
    const struct gs_inventory *record = &devices->record.now;
    struct gpu_indices indices = devices->indices;
    struct checkpoint_notes said;
    int64_t now_ns = plugin_now_ns(plugin);
    if (!devices->remembered || devices->noted_read || !devices->have_gpus)
        return;
    if (now_ns < devices->notes_again_ns) {
        plugin_wake_at(plugin, devices->notes_again_ns);
        return;
    }
    devices->notes_again_ns = now_ns + DEVICES_PATIENCE_NS;
    struct gs_gpu_set set = devices->found; /* those left to another driver, too */
    gpu_indices_apply(&indices, &set, ~(gs_gpu_mask)0);
    advertise_divide(&set, plugin->settings.unit);
    bool read = checkpoint_units(plugin->settings.device_plugin_dir, &plugin->names, &set, record,
                                 plugin->settings.unit, &said, NULL) == 0;
    devices->noted = said.unit;
    devices->noted_read = record->unit || (read && (said.unit || !said.unclear));
    if (!record->gpu_count)
        number_by_notes(plugin, &said.indices);
    devices->due |= devices->noted_read;
}

/* What a start waits for, said once. */
static void tell_waiting(struct plugin *plugin)
{
    struct devices *devices = &plugin->devices;
    bool waits = devices->have_gpus && !devices_known(devices) &&
                 plugin_now_ns(plugin) >= devices->since_ns + DEVICES_PATIENCE_NS;
    const char *why = !devices->remembered
                          ? "waiting for the Node: the GPU indices and the memory unit of pods are "
                            "unknown, and the host has no record of them"
                          : "waiting: pods use GPU memory, and neither the Node nor the kubelet's "
                            "checkpoint has its unit";
    if (waits == devices->waits_told)
        return;
    devices->waits_told = waits;
    pages_set_node_error(&plugin->pages, waits ? why : "");
    if (waits)
        gs_log(GS_LOG_ERROR, "not serving", GS_STR("reason", why));
}

static void log_node(const struct plugin *plugin, const struct gs_gpu *gpu)
{
    char node[DEVICE_NODE_BYTES];
    device_node_of(plugin->settings.nvidia_dev_root, plugin->devices.set.vendor, gpu, node);
    gs_log(node[0] ? GS_LOG_INFO : GS_LOG_WARN,
           node[0] ? "device node" : "--pass-device-specs: no device node for this GPU",
           GS_INT("gpu", gpu->idx), GS_STR("node", node));
}

/* Once their indices are known. */
static void log_gpus(struct plugin *plugin)
{
    const struct gs_gpu_set *set = &plugin->devices.set;
    if (!plugin->devices.log_due || !devices_known(&plugin->devices))
        return;
    plugin->devices.log_due = false;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct gs_gpu *gpu = &set->gpus[i];
        gs_log(GS_LOG_INFO, "GPU", GS_INT("gpu", gpu->idx), GS_STR("uuid", gpu->uuid),
               GS_STR("model", gpu->model), GS_INT("mib", gpu->mem_mib),
               GS_INT("units", gpu->mem_units),
               GS_STR("state", set->gone & GS_GPU_BIT(gpu->idx) ? "removed"
                               : gpu->healthy                   ? "healthy"
                                                                : "unhealthy"));
        if (plugin->settings.pass_device_specs)
            log_node(plugin, gpu);
    }
    if (set->refused[0])
        gs_log(GS_LOG_WARN, "some GPUs are not advertised", GS_STR("reason", set->refused));
}

void devices_round(struct plugin *plugin)
{
    remember(plugin);
    read_notes(plugin);
    read_ids_when_due(plugin);
    renew_if_due(plugin);
    tell_waiting(plugin);
    tell_unit(plugin);
    tell_gpus(plugin);
    log_gpus(plugin);
}

/* ---- what changed ---- */

int devices_take_gpus(struct plugin *plugin, const struct gs_gpu_set *found, struct gs_error *err)
{
    struct gs_gpu_set before = plugin->devices.found;
    struct gs_allocator_stats stats;
    plugin->devices.found = *found;
    plugin->devices.found.reserved_mib = settings_reserved_mib(&plugin->settings);
    gs_allocator_stats(plugin->alloc, &stats);
    if (renew(plugin, &stats, err) < 0) {
        plugin->devices.found = before;
        return -1;
    }
    if (!plugin->devices.ids_observed)
        devices_read_ids_in(plugin, 0);
    return 0;
}

/* Indices and unit that were given out by the file, while the API was away, and differ from a newer
 * record on the node are in containers by now: the next start reads the node first. */
void devices_take_node(struct plugin *plugin, const struct gs_node *node)
{
    struct devices *devices = &plugin->devices;
    devices->node_read = true;
    record_take_node(&devices->record, node);
    const struct gs_inventory *record = &devices->record.now;
    if (plugin->settings.mps_by_label && node->mps != (plugin->settings.mps_root != NULL)) {
        gs_log(GS_LOG_ERROR,
               "the Node's MPS label differs from the record on the host: exiting to restart");
        plugin_stop(plugin, 1);
    }
    if (!devices->remembered)
        return;
    if (!gpu_indices_remember(&devices->indices, record->gpus, record->gpu_count) ||
        (devices_known(devices) && record->unit && record->unit != devices->unit)) {
        gs_log(GS_LOG_ERROR, "the Node has a newer record, with other GPU indices or another "
                             "memory unit: exiting to restart with it");
        plugin_stop(plugin, 1);
    }
    devices->due = true;
}

void devices_take_cordon(struct plugin *plugin, gs_gpu_mask cordoned)
{
    if (cordoned == plugin->devices.cordoned)
        return;
    plugin->devices.cordoned = cordoned;
    plugin->devices.due = true;
}

bool devices_synced(const struct plugin *plugin)
{
    return plugin->pods_listed && plugin->devices.node_read &&
           (plugin->ownership.asked || plugin->settings.share_with_others) &&
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
    plugin->devices.indices.boot = read_boot();
    plugin->devices.unit = plugin->devices.tried.unit = plugin->settings.unit;
    plugin->devices.ids_at_ns = INT64_MAX;
}

void devices_release(struct devices *devices)
{
    ids_in_use_release(&devices->in_use);
    record_release(&devices->record);
}
