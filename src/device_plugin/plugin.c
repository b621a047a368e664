/* SPDX-License-Identifier: Apache-2.0 */
/* The round: what is done after every step of the loop, in one order. */
#include "device_plugin/plugin.h"

#include <malloc.h>
#include <sys/stat.h>

#include "device_plugin/checkpoint.h"
#include "device_plugin/gpu_thread.h"
#include "device_plugin/kubelet_calls.h"
#include "device_plugin/usage.h"
#include "device_plugin/writes.h"
#include "gpushare/base/log.h"

/* A sign of life, and every so many of them a look at everything. */
#define TICK_NS (10 * GS_NS_PER_S)
enum { TICKS_PER_LOOK = 6 };

/* usage: what pods use, *taken*; NULL: nobody looked. It names the GPUs of now: a page is of one
 * moment. */
static void refresh_pages(struct plugin *plugin, struct usage *usage)
{
    struct gs_allocator_stats stats;
    gs_allocator_stats(plugin->alloc, &stats);
    pthread_mutex_lock(&plugin->pages.lock);
    struct pages_state *state = &plugin->pages.state;
    state->pods_listed = plugin->pods_listed;
    state->linked = gs_dp_streams(plugin->dp) > 0;
    state->beat_ns = plugin_now_ns(plugin);
    state->set = plugin->devices.set;
    state->set.measured = plugin->devices.found.measured;
    memcpy(state->set.used_bytes, plugin->devices.found.used_bytes, sizeof(state->set.used_bytes));
    state->unit = plugin->devices.unit;
    state->foreign_ids = plugin->devices.foreign;
    state->unit_waits = plugin->devices.unit_waits;
    state->stats = stats;
    state->calls = plugin->calls.stats;
    state->checkpoint_read = !plugin->checkpoint_unread;
    state->enforce = plugin->settings.enforce;
    state->hook_trash = plugin->hook.trash.left;
    if (plugin->enforce.keeper)
        gs_keeper_stats(plugin->enforce.keeper, &state->kept);
    if (usage)
        pages_set_usage(&plugin->pages, usage);
    pthread_mutex_unlock(&plugin->pages.lock);
}

static void on_link(void *ctx, enum gs_kubelet_link_event event, const struct gs_error *failure)
{
    struct plugin *plugin = ctx;
    switch (event) {
    case GS_KUBELET_LINK_REGISTERED:
        gs_log(GS_LOG_INFO, "registered with the kubelet",
               GS_STR("resource", plugin->names.gpu_mem));
        pthread_mutex_lock(&plugin->pages.lock);
        plugin->pages.state.registrations++;
        pthread_mutex_unlock(&plugin->pages.lock);
        plugin->node.due = true; /* a kubelet that starts anew may have reset the node */
        devices_read_ids_in(plugin, 0);
        break;
    case GS_KUBELET_LINK_LOST:
        gs_log(GS_LOG_WARN, "connection to the kubelet lost");
        break;
    case GS_KUBELET_LINK_FAILED:
        gs_log(GS_LOG_WARN, "not registered with the kubelet", GS_STR("error", failure->msg));
        break;
    }
}

static void link_kubelet(struct plugin *plugin)
{
    const struct gs_kubelet_link_options options = {
        .dir = plugin->settings.device_plugin_dir,
        .endpoint = plugin->endpoint,
        .resource_name = plugin->names.gpu_mem,
        .event = on_link,
        .ctx = plugin,
    };
    struct gs_error err = {0};
    if (gs_kubelet_link_new(plugin->loop, plugin->dp, &options, &plugin->link, &err) == 0) {
        plugin_wake_at(plugin, 0);
        return;
    }
    gs_log(GS_LOG_ERROR, "cannot serve the kubelet", GS_STR("error", err.msg));
    plugin_stop(plugin, 1);
}

/* Not before it is known what runs here already: an Allocate now would be answered blindly, and ids
 * that pods hold would leave the list. But the API may be away for long, and pods without the
 * device list are refused for good: then the record on the host has to do. */
static bool may_link(struct plugin *plugin)
{
    if (plugin->link || plugin->round.stopping || !plugin->devices.have_gpus ||
        plugin->node.missing)
        return false;
    int64_t until_ns = plugin->devices.since_ns + DEVICES_PATIENCE_NS;
    if (!devices_known(&plugin->devices))
        return false;
    if (devices_synced(plugin) || plugin_now_ns(plugin) >= until_ns)
        return true;
    plugin_wake_at(plugin, until_ns);
    return false;
}

/* A hostPath mount goes on showing a folder that the node has removed: the kubelet's new one, and
 * its socket, are only in a new container. */
static void end_if_folder_is_removed(struct plugin *plugin)
{
    struct stat st;
    if (stat(plugin->settings.device_plugin_dir, &st) < 0 || st.st_nlink > 0)
        return;
    gs_log(
        GS_LOG_ERROR,
        "the node removed the kubelet's folder: exiting so that a new container mounts the new one",
        GS_STR("folder", plugin->settings.device_plugin_dir));
    plugin_stop(plugin, 1);
}

/* Somebody may have changed the node's object, and a start may have gone by unseen. */
static void look_around(struct plugin *plugin)
{
    if (++plugin->round.ticks == 1)
        malloc_trim(0); /* what only the start needed */
    end_if_folder_is_removed(plugin);
    devices_read_ids_soon(plugin);
    gs_allocator_put_right(plugin->alloc);
    plugin->enforce.pass_due = plugin->round.usage_due = true;
    if (plugin->round.ticks % TICKS_PER_LOOK != 0)
        return;
    plugin->node.due = plugin->devices.have_gpus || plugin->restored;
    devices_read_ids_in(plugin, 0);
}

static void tick(struct plugin *plugin)
{
    int64_t now_ns = plugin_now_ns(plugin);
    if (now_ns >= plugin->round.tick_ns) {
        plugin->round.tick_ns = now_ns + TICK_NS;
        if (!plugin->round.stopping)
            look_around(plugin);
    }
    plugin_wake_at(plugin, plugin->round.tick_ns);
}

/* Where the keeper counts, it has words of its own. */
static void tell_over(struct plugin *plugin)
{
    uint64_t bytes;
    const char *uid;
    char words[192];
    const int64_t now_ns = plugin_now_ns(plugin);
    while (plugin->settings.pod_usage &&
           (uid = driver_usage_next_over(&plugin->driver_usage, now_ns, &bytes)) != NULL) {
        snprintf(words, sizeof(words),
                 "uses %.1f GiB more of a GPU's memory than it requested, as the driver counts: "
                 "other pods of the GPU may run out of memory; request more, or use less",
                 (double)bytes / (1 << 30));
        gs_allocator_warn(plugin->alloc, uid, true, "GpuMemoryOverRequest", words);
    }
}

/* After a pass over all pods: what they use. false: there was none. */
static bool tell_usage(struct plugin *plugin, struct usage *usage)
{
    if (!plugin->round.usage_due)
        return false;
    plugin->round.usage_due = false;
    usage_init(usage);
    usage->keeper = plugin->enforce.keeper;
    if (plugin->settings.pod_usage_from != POD_USAGE_DMEM)
        usage->driver = &plugin->driver_usage;
    usage->driver_alone = plugin->settings.pod_usage_from == POD_USAGE_NVML;
    usage->now_ns = plugin_now_ns(plugin);
    usage->unit_bytes = (uint64_t)gs_unit_mib(plugin->devices.unit) << 20;
    usage->names_pods = plugin->settings.pod_usage;
    usage->set = &plugin->devices.set;
    usage->charged_elsewhere = usage_charged_elsewhere(&plugin->devices.set);
    driver_usage_pass_begin(&plugin->driver_usage);
    gs_allocator_each_placed(plugin->alloc, usage_add_pod, usage);
    driver_usage_pass_end(&plugin->driver_usage);
    tell_over(plugin);
    return true;
}

/* Each part reads what the callbacks and those before it have changed. Where one changes what an
 * earlier one reads, it wants a next round at once. */
void plugin_round(struct plugin *plugin)
{
    struct usage usage;
    tick(plugin);
    gpu_thread_round(plugin);   /* GPUs that were read, or cannot be */
    mps_round(plugin);          /* MPS daemons that came or went */
    slice_watch_round(plugin);  /* GPUs that a DRA driver names */
    hook_round(plugin);         /* the hook's library, if there is one */
    devices_round(plugin);      /* the list for the kubelet */
    checkpoint_restore(plugin); /* what earlier runs answered: before any call is decided */
    enforce_round(plugin);      /* pods' limits: before a start is decided */
    guards_round(plugin);       /* the word of each GPU */
    bool told = tell_usage(plugin, &usage); /* what the pass over them saw */
    kubelet_calls_round(plugin);            /* Allocate and PreStartContainer */
    if (may_link(plugin))
        link_kubelet(plugin);
    shutdown_round(plugin);
    writes_round(plugin); /* what all of these have to say to the API */
    refresh_pages(plugin, told ? &usage : NULL);
    if (plugin->round.stopping)
        plugin_wake_at(plugin, plugin->round.give_up_ns);
    gs_loop_timer_arm(plugin->loop, &plugin->round.wake, plugin->round.wake_ns);
    plugin->round.wake_ns = INT64_MAX;
}

static bool is_over(const struct plugin *plugin)
{
    return plugin->round.stopping &&
           (!plugin->calls.pending || plugin_now_ns(plugin) >= plugin->round.give_up_ns);
}

int plugin_run(struct plugin *plugin, struct gs_error *err)
{
    int result = 0;
    plugin_round(plugin);
    while (result == 0 && !is_over(plugin)) {
        result = gs_loop_step(plugin->loop, INT64_MAX, err);
        plugin_round(plugin);
    }
    return result;
}

static void on_wake(void *ctx)
{
    /* the round follows */
}

void plugin_start(struct plugin *plugin)
{
    plugin->round.wake = (struct gs_loop_timer){.fn = on_wake};
    plugin->round.tick_ns = plugin_now_ns(plugin) + TICK_NS;
    devices_start(plugin);
    plugin->round.usage_due = true; /* the pages have the families from the start */
}

void plugin_release(struct plugin *plugin)
{
    gs_loop_timer_disarm(plugin->loop, &plugin->round.wake);
    devices_release(&plugin->devices);
    enforce_release(plugin);
    driver_usage_release(&plugin->driver_usage);
    hook_release(plugin);
}
