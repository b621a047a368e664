/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/writes.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/gpu_slices.h"
#include "gpushare/base/log.h"

#define FIRST_PAUSE_NS (500 * GS_NS_PER_MS)
#define LIST_PAUSE_NS  (200 * GS_NS_PER_MS)
enum { DOUBLINGS_MAX = 6 };

enum job { JOB_READ_NODE, JOB_WRITE_NODE, JOB_READ_SLICES, JOB_NODE_EVENT, JOB_POD };

/* One write on its way; a copy, so that the loop may go on. */
struct writing {
    struct plugin *plugin;
    enum job job;
    struct node_object truth;
    struct node_facts facts; /* of the node, when it was read */
    struct gs_arena arena;
    struct gs_sliced_gpu *sliced; /* read */
    uint32_t sliced_count;
    struct node_event event;         /* of the node */
    struct gs_allocator_write write; /* lent by the allocator until it is told */
    bool changed;
    int result;
    struct gs_error err;
};

static int send_event(const struct plugin *plugin, const struct gs_allocator_write *write,
                      struct gs_error *err)
{
    const struct gs_event event = {
        .kind = "Pod",
        .ns = write->ns,
        .name = write->name,
        .uid = write->uid,
        .warning = write->warning,
        .reason = write->reason,
        .message = write->message,
        .component = "gpushare-device-plugin",
    };
    return plugin->kube.ops->create_event(plugin->kube.ctx, &event, err);
}

static int send_patch(const struct plugin *plugin, const struct gs_allocator_write *write,
                      struct gs_error *err)
{
    const struct gs_meta_patch patch = {
        .ns = write->ns,
        .name = write->name,
        .uid = write->uid,
        .annotations = write->annotations,
        .annotation_count = write->annotation_count,
    };
    return plugin->kube.ops->patch_pod(plugin->kube.ctx, &patch, err);
}

/* `kubectl describe node` looks for events whose UID is the node's name, as the kubelet's are. */
static int send_node_event(const struct plugin *plugin, const struct node_event *about,
                           struct gs_error *err)
{
    const struct gs_event event = {
        .kind = "Node",
        .name = plugin->settings.node_name,
        .uid = plugin->settings.node_name,
        .warning = about->warning,
        .reason = about->reason,
        .message = about->message,
        .component = "gpushare-device-plugin",
    };
    return plugin->kube.ops->create_event(plugin->kube.ctx, &event, err);
}

static int ask(void *ctx, const struct gs_kube_request *request, int *ret_status,
               struct gs_buf *body, struct gs_error *err)
{
    return gs_kube_request(ctx, request, ret_status, body, err);
}

static int do_job(struct writing *writing, struct gs_error *err)
{
    const struct plugin *plugin = writing->plugin;
    const char *node = plugin->settings.node_name;
    switch (writing->job) {
    case JOB_READ_NODE:
        return node_object_read(&plugin->kube, node, &writing->facts, err);
    case JOB_WRITE_NODE:
        return node_object_write(&plugin->kube, &plugin->names, node, &writing->truth,
                                 &writing->changed, &writing->facts, err);
    case JOB_READ_SLICES:
        return gpu_slices_fetch(&(struct gpu_slices_api){ask, plugin->client}, node,
                                &writing->arena, &writing->sliced, &writing->sliced_count, err);
    case JOB_NODE_EVENT:
        return send_node_event(plugin, &writing->event, err);
    case JOB_POD:
        break;
    }
    return writing->write.event ? send_event(plugin, &writing->write, err)
                                : send_patch(plugin, &writing->write, err);
}

/* Writer's thread. */
static void work(void *ctx)
{
    struct writing *writing = ctx;
    writing->result = do_job(writing, &writing->err);
}

/* About the node's object; its failures are not those of pods. */
static bool is_node(const struct writing *writing)
{
    return writing->job == JOB_READ_NODE || writing->job == JOB_WRITE_NODE;
}

/* The pod is gone, or its name another's now, or the API refuses these words for good. Who has no
 * right to write Events writes none. */
static bool is_final(const struct writing *writing)
{
    enum gs_code code = writing->err.code;
    bool event = writing->job == JOB_NODE_EVENT || writing->write.event;
    return code == GS_ENOENT || code == GS_ECONFLICT || code == GS_EINVAL ||
           (event && code == GS_EDENIED);
}

static void log_failure(const struct writing *writing)
{
    const struct gs_allocator_write *write = &writing->write;
    if (writing->job != JOB_POD)
        gs_log(GS_LOG_WARN,
               writing->job == JOB_WRITE_NODE  ? "the node's object is not up to date"
               : writing->job == JOB_READ_NODE ? "the node's object cannot be read"
               : writing->job == JOB_READ_SLICES
                   ? "whether a DRA driver gives out this node's GPUs is not known"
                   : "not written",
               GS_STR("node", writing->plugin->settings.node_name),
               GS_STR("why", writing->err.msg));
    else
        gs_log(GS_LOG_WARN, "not written", GS_STR("namespace", write->ns),
               GS_STR("pod", write->name),
               GS_STR("what", write->event ? write->reason : "annotations"),
               GS_STR("why", writing->err.msg));
}

static void log_end(const struct writing *writing)
{
    const struct gs_allocator_write *write = &writing->write;
    if (writing->result < 0)
        log_failure(writing);
    else if (writing->job == JOB_POD)
        gs_log(GS_LOG_INFO, "written", GS_STR("namespace", write->ns), GS_STR("pod", write->name),
               GS_STR("what", write->event ? write->reason : "annotations"));
    else if (writing->changed)
        gs_log(GS_LOG_INFO, "the node's object is up to date",
               GS_STR("node", writing->plugin->settings.node_name));
}

static void pump_later(void *ctx)
{
    writes_pump(ctx);
}

static void node_later(void *ctx)
{
    struct plugin *plugin = ctx;
    plugin->node.due = true;
    writes_pump(plugin);
}

static int64_t pause_ns(uint32_t failures)
{
    return FIRST_PAUSE_NS << (failures < DOUBLINGS_MAX ? failures : DOUBLINGS_MAX);
}

/* A new attempt after a pause that doubles with every failure in a row. Pods do not wait for the
 * node's object, nor it for them. */
static void pause_writes(struct plugin *plugin, bool node)
{
    struct gs_loop_timer *timer = node ? &plugin->node_again : &plugin->write_again;
    uint32_t *failures = node ? &plugin->node_failures : &plugin->write_failures;
    gs_loop_timer_disarm(plugin->loop, timer);
    *timer = (struct gs_loop_timer){.fn = node ? node_later : pump_later, .ctx = plugin};
    gs_loop_timer_arm(plugin->loop, timer, gs_loop_now_ns(plugin->loop) + pause_ns(*failures));
    ++*failures;
}

/* A name that no node has is found before anything is served under it. Where the API server was too
 * slow to say so, what was served ends. */
static void note_node(struct plugin *plugin, bool missing)
{
    char why[320] = "";
    if (missing == plugin->node.missing)
        return;
    plugin->node.missing = missing;
    if (missing)
        snprintf(why, sizeof(why), "the API server has no node \"%s\" (--node-name)",
                 plugin->settings.node_name);
    pages_set_node_error(&plugin->pages, why);
    if (missing)
        gs_log(GS_LOG_ERROR, "not serving", GS_STR("why", why));
    if (missing && plugin->link && !plugin->devices.node_read)
        plugin_stop(plugin, 1);
}

static void take_what_was_read(struct plugin *plugin, struct writing *writing)
{
    if (writing->job == JOB_READ_SLICES)
        plugin->ownership.asked = true;
    if (writing->result < 0 || plugin->stopping)
        return;
    if (writing->job == JOB_READ_SLICES)
        ownership_take_slices(plugin, &writing->arena, writing->sliced, writing->sliced_count);
    if (is_node(writing))
        ownership_take_node(plugin, &writing->facts);
    if (writing->job != JOB_READ_NODE)
        return;
    plugin->node.due = true;
    devices_take_node(plugin, &writing->facts);
}

static void done(void *ctx)
{
    struct writing *writing = ctx;
    struct plugin *plugin = writing->plugin;
    bool node = is_node(writing);
    bool again =
        writing->result < 0 && writing->job != JOB_READ_SLICES && (node || !is_final(writing));
    bool node_written = writing->job == JOB_WRITE_NODE && writing->result == 0;
    bool missing = node && writing->result < 0 && writing->err.code == GS_ENOENT;
    bool left = writing->job == JOB_WRITE_NODE && writing->truth.leaving;
    log_end(writing);
    plugin->writing = false;
    if (writing->job == JOB_POD)
        gs_allocator_write_done(plugin->alloc, writing->write.number, !again);
    if (writing->job == JOB_NODE_EVENT && !again)
        node_events_shift(&plugin->node_events);
    take_what_was_read(plugin, writing);
    gs_arena_release(&writing->arena);
    free(writing);
    if (plugin->stopping)
        return;
    if (node)
        note_node(plugin, missing);
    plugin->node.written = plugin->node.written || node_written;
    if (left)
        shutdown_told(plugin, node_written);
    if (again)
        pause_writes(plugin, node);
    else if (node)
        plugin->node_failures = 0;
    else
        plugin->write_failures = 0;
    writes_pump(plugin);
    plugin_changed(plugin);
}

/* An earlier plugin may have left the node unschedulable, and so it stays until the kubelet has our
 * list. Nobody tells when that is. */
static bool must_wait(struct plugin *plugin)
{
    if (!plugin->devices.node_read || plugin->node.written || gs_dp_streams(plugin->dp) > 0)
        return false;
    if (!plugin->node_again.armed) {
        plugin->node_again = (struct gs_loop_timer){.fn = pump_later, .ctx = plugin};
        gs_loop_timer_arm(plugin->loop, &plugin->node_again,
                          gs_loop_now_ns(plugin->loop) + LIST_PAUSE_NS);
    }
    return true;
}

static bool next_node_event(const struct plugin *plugin, struct writing *writing)
{
    if (!plugin->node_events.count)
        return false;
    writing->job = JOB_NODE_EVENT;
    writing->event = plugin->node_events.queue[0];
    return true;
}

static bool next_of_pods(const struct plugin *plugin, struct writing *writing)
{
    writing->job = JOB_POD;
    return gs_allocator_next_write(plugin->alloc, &writing->write);
}

/* The next thing to send, or false. The node's events and the pods' writes take turns: what cannot
 * be sent of one must not stop the other. */
static bool next(struct plugin *plugin, struct writing *writing)
{
    writing->plugin = plugin;
    if (plugin->node.due && !must_wait(plugin)) {
        writing->job = plugin->devices.node_read ? JOB_WRITE_NODE : JOB_READ_NODE;
        writing->truth = plugin->node;
        plugin->node.due = false;
        return true;
    }
    if (plugin->ownership.due) {
        writing->job = JOB_READ_SLICES;
        plugin->ownership.due = false;
        return true;
    }
    if (plugin->write_again.armed)
        return false;
    plugin->pods_turn = !plugin->pods_turn;
    return plugin->pods_turn ? next_of_pods(plugin, writing) || next_node_event(plugin, writing)
                             : next_node_event(plugin, writing) || next_of_pods(plugin, writing);
}

void writes_pump(struct plugin *plugin)
{
    if (plugin->writing || plugin->stopping || !plugin->writer)
        return;
    struct writing *writing = calloc(1, sizeof(*writing));
    if (!writing)
        return; /* the next change, or the next look, comes here again */
    if (!next(plugin, writing)) {
        free(writing);
        return;
    }
    plugin->writing = true;
    worker_submit(plugin->writer, &(struct worker_job){work, done, writing});
}
