/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/backoff.h"
#include "gpushare/base/invariant.h"
#include "gpushare/base/log.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/moved.h"

#define FIRST_PAUSE_NS (500 * GS_NS_PER_MS)
#define LAST_PAUSE_NS  (32 * GS_NS_PER_S)

enum job { JOB_READ_NODE, JOB_WRITE_NODE, JOB_QUEUED };

/* One write on its way; a copy, so that the loop may go on. */
struct writing {
    struct plugin *plugin;
    enum job job;
    struct node_object desired;
    struct gs_gpu_set set; /* of what is desired */
    struct gs_buf moved;   /* the same */
    uint64_t moved_state;
    struct gs_node node;             /* as it was read */
    struct gs_allocator_write write; /* lent by the allocator until it is done */
    bool changed;
    int result;
    struct gs_error err;
};

static int send_event(const struct plugin *plugin, const struct gs_allocator_write *write,
                      struct gs_error *err)
{
    const struct gs_event event = {
        .api = write->about.api,
        .kind = write->about.kind,
        .ns = write->ns,
        .name = write->about.name,
        .uid = write->about.uid,
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

static int do_job(struct writing *writing, struct gs_error *err)
{
    const struct plugin *plugin = writing->plugin;
    const char *node = plugin->settings.node_name;
    switch (writing->job) {
    case JOB_READ_NODE:
        return plugin->kube.ops->get_node(plugin->kube.ctx, node, &writing->node, err);
    case JOB_WRITE_NODE:
        return node_object_write(&plugin->kube, &plugin->names, node, &writing->desired,
                                 &writing->changed, &writing->node, err);
    case JOB_QUEUED:
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
    return writing->job != JOB_QUEUED;
}

/* The pod is gone, or its name another's now, or the API refuses these words for good. Who has no
 * right to write Events writes none. */
static bool is_final(const struct writing *writing)
{
    enum gs_code code = writing->err.code;
    return code == GS_ENOENT || code == GS_ECONFLICT || code == GS_EINVAL ||
           (writing->write.event && code == GS_EDENIED);
}

static void log_failure(const struct writing *writing)
{
    const struct gs_allocator_write *write = &writing->write;
    if (is_node(writing))
        gs_log(GS_LOG_WARN,
               writing->job == JOB_WRITE_NODE ? "Node not updated" : "cannot read the Node",
               GS_STR("node", writing->plugin->settings.node_name),
               GS_STR("error", writing->err.msg));
    else
        gs_log(GS_LOG_WARN, "not written to the API server", GS_STR("namespace", write->ns),
               GS_STR("name", write->name),
               GS_STR("what", write->event ? write->reason : "annotations"),
               GS_STR("error", writing->err.msg));
}

static void log_end(const struct writing *writing)
{
    const struct gs_allocator_write *write = &writing->write;
    if (writing->result < 0)
        log_failure(writing);
    else if (!is_node(writing))
        gs_log(GS_LOG_INFO, "written to the API server", GS_STR("namespace", write->ns),
               GS_STR("name", write->name),
               GS_STR("what", write->event ? write->reason : "annotations"));
    else if (writing->changed)
        gs_log(GS_LOG_INFO, "Node updated", GS_STR("node", writing->plugin->settings.node_name));
}

/* A new attempt after a pause that doubles with every failure in a row. */
static void pause_node(struct plugin *plugin)
{
    plugin->writes.node_again_ns =
        plugin_now_ns(plugin) +
        gs_pause_ns(plugin->writes.node_failures++, FIRST_PAUSE_NS, LAST_PAUSE_NS);
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
        snprintf(why, sizeof(why), "the API server has no node \"%s\": correct --node-name",
                 plugin->settings.node_name);
    pages_set_node_error(&plugin->pages, why);
    if (missing)
        gs_log(GS_LOG_ERROR, "not serving", GS_STR("reason", why));
    if (missing && plugin->link && !plugin->devices.node_read)
        plugin_stop(plugin, 1);
}

static void writing_free(struct writing *writing)
{
    gs_buf_release(&writing->moved);
    gs_node_release(&writing->node);
    free(writing);
}

static void node_was_read(struct plugin *plugin, const struct gs_node *node)
{
    struct gs_error err = {0};
    if (gs_allocator_moved_earlier(plugin->alloc, node->moved, node->moved_count, node->tells_moved,
                                   &err) < 0)
        gs_log(GS_LOG_ERROR, "cannot apply the Node's annotation gpu-reassigned",
               GS_STR("error", err.msg));
    plugin->node.due = true;
    devices_take_node(plugin, node);
}

static void node_was_written(struct plugin *plugin, const struct writing *writing)
{
    const struct node_object *desired = &writing->desired;
    /* Not when this answer showed that the driver's upgrade is over: what was written says
     * schedulable:false, which is not compared (node_object.c). */
    plugin->node.written = desired->upgrading == plugin->node.upgrading;
    gs_allocator_moved_written(plugin->alloc, writing->moved_state);
    /* A cordon is read by the GPUs that the inventory names: once more. */
    if (writing->changed && !desired->leaving && !desired->upgrading)
        plugin->node.due = true;
}

/* From 1.28 on: the kubelet calls no Allocate for containers that run. */
static bool skips_running(const char *kubelet)
{
    const char *dot = strchr(kubelet, '.');
    uint32_t minor = 0;
    if (dot)
        gs_parse_u32(dot + 1, strcspn(dot + 1, "."), &minor);
    return minor >= 28;
}

static void node_done(struct plugin *plugin, const struct writing *writing)
{
    bool done = writing->result == 0;
    note_node(plugin, !done && writing->err.code == GS_ENOENT);
    if (!done) {
        pause_node(plugin);
    } else {
        plugin->writes.node_failures = 0;
        ownership_take_node(plugin, &writing->node);
    }
    if (done && writing->job == JOB_READ_NODE)
        node_was_read(plugin, &writing->node);
    if (done) {
        devices_take_cordon(plugin, writing->node.cordoned);
        plugin->calls.skips_running = skips_running(writing->node.kubelet);
    }
    if (writing->job == JOB_READ_NODE)
        return;
    if (done)
        node_was_written(plugin, writing);
    if (writing->desired.leaving)
        shutdown_node_written(plugin, done);
    plugin->writes.outcome = done ? NODE_WRITTEN : NODE_NOT_WRITTEN;
}

static void done(void *ctx)
{
    struct writing *writing = ctx;
    struct plugin *plugin = writing->plugin;
    bool again = writing->result < 0 && !is_final(writing);
    log_end(writing);
    plugin->writes.writing = false;
    if (!is_node(writing))
        gs_allocator_write_done(plugin->alloc, writing->write.number, !again);
    else if (!plugin->round.stopping)
        node_done(plugin, writing);
    writing_free(writing);
}

/* An earlier plugin may have left the node unschedulable, and so it stays until the kubelet has our
 * list. Nor is gpu-reassigned written before all pods are known. */
static bool must_wait(const struct plugin *plugin)
{
    bool ready = plugin->restored && (plugin->node.written || gs_dp_streams(plugin->dp) > 0);
    return plugin->devices.node_read && !ready;
}

static bool next_of_node(struct plugin *plugin, struct writing *writing)
{
    bool put_off = plugin_now_ns(plugin) < plugin->writes.node_again_ns;
    if (plugin->writes.node_again_ns && !put_off) {
        plugin->writes.node_again_ns = 0;
        plugin->node.due = true;
    }
    bool moved = gs_allocator_moved_due(plugin->alloc) && plugin->devices.node_read && !put_off;
    if (!(plugin->node.due || moved) || must_wait(plugin))
        return false;
    writing->job = plugin->devices.node_read ? JOB_WRITE_NODE : JOB_READ_NODE;
    writing->set = plugin->devices.set;
    writing->desired = plugin->node;
    writing->desired.set = &writing->set;
    writing->desired.unit = plugin->devices.unit;
    writing->desired.unit_doubted = plugin->devices.unit_state == UNIT_DOUBTED;
    plugin->node.due = false;
    if (writing->job == JOB_READ_NODE)
        return true;
    GS_INVARIANT(plugin->restored && devices_known(&plugin->devices),
                 "the Node is written only after pods and devices were read");
    writing->moved = GS_BUF(GS_MOVED_TEXT_MAX);
    writing->moved_state = gs_allocator_moved_print(plugin->alloc, &writing->moved);
    writing->desired.moved = writing->moved.data;
    return !gs_buf_failed(&writing->moved);
}

/* The next thing to send, or false. */
static bool next(struct plugin *plugin, struct writing *writing)
{
    writing->plugin = plugin;
    if (next_of_node(plugin, writing))
        return true;
    writing->job = JOB_QUEUED;
    return gs_allocator_next_write(plugin->alloc, !plugin->restored, &writing->write);
}

static void wake_when_due(struct plugin *plugin)
{
    plugin_wake_at(plugin, gs_allocator_write_due_ns(plugin->alloc));
    if (plugin->writes.node_again_ns)
        plugin_wake_at(plugin, plugin->writes.node_again_ns);
}

void writes_round(struct plugin *plugin)
{
    if (plugin->writes.writing || plugin->round.stopping)
        return;
    struct writing *writing = calloc(1, sizeof(*writing));
    if (!writing)
        return; /* the next round comes here again */
    if (!next(plugin, writing)) {
        writing_free(writing);
        wake_when_due(plugin);
        return;
    }
    plugin->writes.writing = true;
    worker_submit(&plugin->writes.writer, plugin->loop, &(struct worker_job){work, done, writing});
}
