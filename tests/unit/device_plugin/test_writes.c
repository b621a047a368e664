/* SPDX-License-Identifier: Apache-2.0 */
/* What is written to the API while a part of it is refused. */
#include <stdatomic.h>

#include "device_plugin/plugin.h"
#include "device_plugin/writes.h"
#include "gpushare/base/log.h"
#include "rows.h"

enum { PODS = 5 };

/* The API: what it refuses, and what it was asked. */
struct api {
    enum gs_code events, node, pods;
    char about[64];
    atomic_int event_tries, patches;
    const char *kubelet;
};

static struct {
    int sent;   /* of the pods' records */
    bool event; /* in place of a record */
    bool under_way;
    bool moved_due;
    uint64_t moved_written;
} queue;

/* ---- the rest of the program ---- */

bool gs_allocator_next_write(struct gs_allocator *alloc, bool events_only,
                             struct gs_allocator_write *ret)
{
    if (events_only || queue.under_way || queue.sent == PODS)
        return false;
    *ret = (struct gs_allocator_write){.number = 1, .ns = "default", .name = "p", .uid = "u"};
    ret->event = queue.event;
    ret->about = (struct gs_event_object){"apps/v1", "ReplicaSet", "web-7f", "r"};
    queue.under_way = true;
    return true;
}

void gs_allocator_write_done(struct gs_allocator *alloc, uint64_t number, bool sent)
{
    queue.under_way = false;
    queue.sent += sent;
}

int64_t gs_allocator_write_due_ns(const struct gs_allocator *alloc)
{
    return INT64_MAX;
}

int gs_allocator_moved_earlier(struct gs_allocator *alloc, const struct gs_moved *moved,
                               uint32_t count, bool told, struct gs_error *err)
{
    return 0;
}

bool gs_allocator_moved_due(const struct gs_allocator *alloc)
{
    return queue.moved_due;
}

uint64_t gs_allocator_moved_print(const struct gs_allocator *alloc, struct gs_buf *out)
{
    gs_buf_puts(out, "{}");
    return 1;
}

void gs_allocator_moved_written(struct gs_allocator *alloc, uint64_t state)
{
    queue.moved_written = state;
}

void devices_take_cordon(struct plugin *plugin, gs_gpu_mask cordoned)
{
}

int node_object_write(const struct gs_kube *kube, const struct gs_names *names, const char *node,
                      const struct node_object *truth, bool *ret_changed, struct gs_node *ret,
                      struct gs_error *err)
{
    struct api *api = kube->ctx;
    ret->kubelet = "";
    return api->node == GS_OK ? 0 : gs_fail(err, api->node, "not written");
}

void devices_take_node(struct plugin *plugin, const struct gs_node *node)
{
    plugin->devices.node_read = true;
}

static bool upgrade_ends; /* the node's object says so */

void ownership_take_node(struct plugin *plugin, const struct gs_node *node)
{
    if (!upgrade_ends)
        return;
    plugin->node.upgrading = plugin->node.written = false;
    plugin->node.due = true;
}

static char node_error[320];

void pages_set_node_error(struct pages *pages, const char *why)
{
    snprintf(node_error, sizeof(node_error), "%s", why);
}

void shutdown_node_written(struct plugin *plugin, bool written)
{
}

size_t gs_dp_streams(const struct gs_dp *dp)
{
    return 1;
}

/* ---- the API ---- */

static int create_event(void *ctx, const struct gs_event *event, struct gs_error *err)
{
    struct api *api = ctx;
    atomic_fetch_add(&api->event_tries, 1);
    snprintf(api->about, sizeof(api->about), "%s %s %s/%s %s", event->api ? event->api : "v1",
             event->kind, event->ns ? event->ns : "", event->name, event->uid);
    return api->events == GS_OK ? 0 : gs_fail(err, api->events, "no events here");
}

static int patch_pod(void *ctx, const struct gs_meta_patch *patch, struct gs_error *err)
{
    struct api *api = ctx;
    atomic_fetch_add(&api->patches, 1);
    return api->pods == GS_OK ? 0 : gs_fail(err, api->pods, "refused");
}

static int get_node(void *ctx, const char *name, struct gs_node *ret, struct gs_error *err)
{
    struct api *api = ctx;
    ret->kubelet = api->kubelet ? api->kubelet : "";
    return api->node == GS_OK ? 0 : gs_fail(err, api->node, "no such node");
}

static const struct gs_kube_ops ops = {
    .create_event = create_event, .patch_pod = patch_pod, .get_node = get_node};

static void begin(struct plugin *plugin, struct api *api)
{
    gs_log_init(GS_LOG_ERROR + 1, GS_LOG_TEXT);
    *plugin = (struct plugin){.kube = {&ops, api},
                              .settings.node_name = "n",
                              .restored = true,
                              .devices = {.unit_state = UNIT_HELD, .node_read = true}};
    queue.sent = PODS;
    queue.under_way = queue.moved_due = false;
    assert_int_equal(gs_loop_new(gs_clock_system(), &plugin->loop, NULL), 0);
}

static void end(struct plugin *plugin)
{
    while (plugin->writes.writing)
        gs_loop_step(plugin->loop, 10 * GS_NS_PER_MS, NULL);
    worker_stop(&plugin->writes.writer);
    gs_loop_free(plugin->loop);
    queue.moved_due = false;
}

/* Nothing is served under a name that no node has. */
static void a_node_that_is_not_there_is_found(void **state)
{
    static const struct {
        const char *row;
        enum gs_code node;
        const char *kubelet;
        bool linked, missing, stopped, skips_running;
    } rows[] = {
        {"it is there", GS_OK, "v1.28.0", false, false, false, true},
        {"it is there, and older", GS_OK, "v1.27.16", false, false, false, false},
        {"it is not", GS_ENOENT, "", false, true, false, false},
        {"it is not, and was served already", GS_ENOENT, "", true, true, true, false},
        {"the API is away", GS_EIO, "", true, false, false, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        static struct plugin plugin;
        struct api api = {.node = r->node, .kubelet = r->kubelet};
        begin(&plugin, &api);
        plugin.devices.node_read = false;
        plugin.link = r->linked ? (void *)&plugin : NULL;
        node_error[0] = '\0';
        plugin.node.due = true;
        writes_round(&plugin);
        end(&plugin);
        row_equal(r->row, plugin.node.missing, r->missing);
        row_equal(r->row, strstr(node_error, "no node \"n\"") != NULL, r->missing);
        row_equal(r->row, plugin.round.stopping, r->stopped);
        row_equal(r->row, plugin.calls.skips_running, r->skips_running);
    }
}

/* A pod that is gone, or another of its name, is not written to again and again. */
static void a_record_is_given_up_where_the_api_will_never_take_it(void **state)
{
    static const struct {
        const char *row;
        enum gs_code code;
        bool over, event;
    } rows[] = {
        {"taken", GS_OK, true},
        {"the pod is gone", GS_ENOENT, true},
        {"made anew", GS_ECONFLICT, true},
        {"refused", GS_EINVAL, true},
        {"no right yet", GS_EDENIED, false},
        {"a webhook failed", GS_EIO, false},
        {"an event is taken", GS_OK, true, true},
        {"no right to write events", GS_EDENIED, true, true},
        {"a webhook failed an event", GS_EIO, false, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        static struct plugin plugin;
        struct api api = {.pods = r->code, .events = r->code};
        begin(&plugin, &api);
        queue.sent = PODS - 1;
        queue.event = r->event;
        writes_round(&plugin);
        row_true(r->row, plugin.writes.writing);
        end(&plugin);
        row_equal(r->row, queue.sent == PODS, r->over);
        row_equal(r->row, atomic_load(&api.event_tries), r->event);
        row_text(r->row, api.about, r->event ? "apps/v1 ReplicaSet default/web-7f r" : "");
        queue.event = false;
    }
}

/* Of pods that are not known yet neither list nor record may be written: what frees them would. */
static void the_node_is_written_when_all_pods_are_known(void **state)
{
    static const struct {
        const char *row;
        bool restored, due, moved, pod, paused, writes;
    } rows[] = {
        {"nothing is due", true, false, false, false, false, false},
        {"the inventory", true, true, false, false, false, true},
        {"who moved", true, false, true, false, false, true},
        {"a pod", true, false, false, true, false, true},
        {"the inventory, before the pods are known", false, true, false, false, false, false},
        {"who moved, before the pods are known", false, false, true, false, false, false},
        {"a pod, before they are known", false, false, false, true, false, false},
        {"who moved, after a write that failed", true, false, true, false, true, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        static struct plugin plugin;
        struct api api = {0};
        begin(&plugin, &api);
        plugin.restored = r->restored;
        plugin.node.due = r->due;
        queue.moved_due = r->moved;
        queue.sent = PODS - r->pod;
        if (r->paused)
            plugin.writes.node_again_ns = gs_loop_now_ns(plugin.loop) + GS_NS_PER_S * 3600;
        writes_round(&plugin);
        row_equal(r->row, plugin.writes.writing, r->writes);
        end(&plugin);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_node_is_written_when_all_pods_are_known),
        cmocka_unit_test(a_record_is_given_up_where_the_api_will_never_take_it),
        cmocka_unit_test(a_node_that_is_not_there_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
