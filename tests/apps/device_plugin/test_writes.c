/* SPDX-License-Identifier: Apache-2.0 */
/* What is written to the API while a part of it is refused. */
#include <stdatomic.h>
#include <stdlib.h>

#include "device_plugin/plugin.h"
#include "device_plugin/writes.h"
#include "gpushare/base/log.h"
#include "rows.h"

#define PATIENCE_NS (10 * GS_NS_PER_S)
enum { PODS = 5 };

/* The API: what it refuses, and what it was asked. */
struct api {
    enum gs_code events, node;
    atomic_int event_tries, patches;
};

static struct {
    int sent; /* of the pods' records */
    bool under_way;
} queue;

/* ---- the rest of the program ---- */

bool gs_allocator_next_write(struct gs_allocator *alloc, struct gs_allocator_write *ret)
{
    if (queue.under_way || queue.sent == PODS)
        return false;
    *ret = (struct gs_allocator_write){.number = 1, .ns = "default", .name = "p", .uid = "u"};
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
    return false;
}

uint64_t gs_allocator_moved_print(const struct gs_allocator *alloc, struct gs_buf *out)
{
    gs_buf_puts(out, "{}");
    return 1;
}

void gs_allocator_moved_written(struct gs_allocator *alloc, uint64_t state)
{
}

void devices_take_cordon(struct plugin *plugin, gs_gpu_mask cordoned)
{
}

int node_object_read(const struct gs_kube *kube, const char *node, struct node_facts *ret,
                     struct gs_error *err)
{
    struct api *api = kube->ctx;
    return api->node == GS_OK ? 0 : gs_fail(err, api->node, "no such node");
}

int node_object_write(const struct gs_kube *kube, const struct gs_names *names, const char *node,
                      const struct node_object *truth, bool *ret_changed,
                      struct node_facts *ret_facts, struct gs_error *err)
{
    return 0;
}

void devices_take_node(struct plugin *plugin, const struct node_facts *facts)
{
    plugin->devices.node_read = true;
}

static bool upgrade_ends; /* the node's object says so */

void ownership_take_node(struct plugin *plugin, const struct node_facts *facts)
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

void gs_allocator_name_placed(const struct gs_allocator *alloc, gs_gpu_mask gpus,
                              struct gs_buf *out)
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
    return api->events == GS_OK ? 0 : gs_fail(err, api->events, "no events here");
}

static int patch_pod(void *ctx, const struct gs_meta_patch *patch, struct gs_error *err)
{
    atomic_fetch_add(&((struct api *)ctx)->patches, 1);
    return 0;
}

static const struct gs_kube_ops ops = {.create_event = create_event, .patch_pod = patch_pod};

static void step(struct plugin *plugin)
{
    writes_round(plugin);
    gs_loop_step(plugin->loop, 10 * GS_NS_PER_MS, NULL);
}

/* An Event is a courtesy; a pod's record is what others count on. */
static void events_that_are_refused_keep_no_record_waiting(void **state)
{
    static const struct {
        const char *row;
        enum gs_code events;
        int least_tries, most_tries;
        uint32_t left; /* of the node's event */
    } rows[] = {
        {"events are taken", GS_OK, 1, 1, 0},
        {"no right to write events: it is dropped", GS_EDENIED, 1, 1, 0},
        {"a webhook that fails: it is tried on", GS_EIO, 1, PODS + 1, 1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        static struct plugin plugin;
        struct api api = {.events = r->events};
        struct gs_error err = {0};
        gs_log_init(GS_LOG_ERROR, GS_LOG_TEXT);
        plugin = (struct plugin){.kube = {&ops, &api},
                                 .settings.node_name = "n",
                                 .restored = true,
                                 .devices.unit_state = UNIT_HELD};
        queue.sent = 0;
        queue.under_way = false;
        assert_int_equal(gs_loop_new(gs_clock_system(), &plugin.loop, &err), 0);
        assert_int_equal(worker_start(plugin.loop, &plugin.writes.writer, &err), 0);
        int64_t until_ns = gs_loop_now_ns(plugin.loop) + PATIENCE_NS;
        node_events_add(&plugin, true, "GpuUnhealthy", "GPU 0");
        while (queue.sent < PODS && gs_loop_now_ns(plugin.loop) < until_ns)
            step(&plugin);
        row_equal(r->row, atomic_load(&api.patches), PODS);
        row_true(r->row, atomic_load(&api.event_tries) >= r->least_tries);
        row_true(r->row, atomic_load(&api.event_tries) <= r->most_tries);
        row_equal(r->row, plugin.node_events.count, r->left);
        plugin.round.stopping = true;
        worker_stop(plugin.writes.writer);
        gs_loop_step(plugin.loop, 0, NULL);
        gs_loop_free(plugin.loop);
        worker_free(plugin.writes.writer);
    }
}

/* Nothing is served under a name that no node has. */
static void a_node_that_is_not_there_is_found(void **state)
{
    static const struct {
        const char *row;
        enum gs_code node;
        bool linked, missing, stopped;
    } rows[] = {
        {"it is there", GS_OK, false, false, false},
        {"it is not", GS_ENOENT, false, true, false},
        {"it is not, and was served already", GS_ENOENT, true, true, true},
        {"the API is away", GS_EIO, true, false, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        static struct plugin plugin;
        struct api api = {.node = r->node};
        struct gs_error err = {0};
        gs_log_init(GS_LOG_ERROR + 1, GS_LOG_TEXT);
        plugin = (struct plugin){.kube = {&ops, &api},
                                 .settings.node_name = "n",
                                 .restored = true,
                                 .devices.unit_state = UNIT_HELD};
        plugin.link = r->linked ? (void *)&plugin : NULL;
        queue.sent = PODS;
        node_error[0] = '\0';
        assert_int_equal(gs_loop_new(gs_clock_system(), &plugin.loop, &err), 0);
        assert_int_equal(worker_start(plugin.loop, &plugin.writes.writer, &err), 0);
        plugin.node.due = true;
        writes_round(&plugin);
        while (plugin.writes.writing)
            gs_loop_step(plugin.loop, 10 * GS_NS_PER_MS, &err);
        row_equal(r->row, plugin.node.missing, r->missing);
        row_equal(r->row, strstr(node_error, "no node \"n\"") != NULL, r->missing);
        row_equal(r->row, plugin.round.stopping, r->stopped);
        worker_stop(plugin.writes.writer);
        gs_loop_step(plugin.loop, 0, NULL);
        gs_loop_free(plugin.loop);
        worker_free(plugin.writes.writer);
    }
}

/* What was written says that the GPUs take no pods, which the next write would not compare. */
static void gpus_are_opened_after_a_drivers_upgrade(void **state)
{
    static const struct {
        const char *row;
        bool upgrading, ends, written, due;
    } rows[] = {
        {"no upgrade", false, false, true, false},
        {"it goes on", true, false, true, false},
        {"it ends", true, true, false, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        static struct plugin plugin;
        struct api api = {0};
        gs_log_init(GS_LOG_ERROR + 1, GS_LOG_TEXT);
        plugin = (struct plugin){.kube = {&ops, &api},
                                 .settings.node_name = "n",
                                 .restored = true,
                                 .devices.unit_state = UNIT_HELD};
        plugin.devices.node_read = plugin.restored = true;
        plugin.node.due = true;
        plugin.node.upgrading = r->upgrading;
        queue.sent = PODS;
        upgrade_ends = r->ends;
        assert_int_equal(gs_loop_new(gs_clock_system(), &plugin.loop, NULL), 0);
        assert_int_equal(worker_start(plugin.loop, &plugin.writes.writer, NULL), 0);
        writes_round(&plugin);
        row_true(r->row, plugin.writes.writing);
        while (plugin.writes.writing)
            gs_loop_step(plugin.loop, 10 * GS_NS_PER_MS, NULL);
        row_equal(r->row, plugin.node.written, r->written);
        row_equal(r->row, plugin.node.due, r->due);
        worker_stop(plugin.writes.writer);
        gs_loop_free(plugin.loop);
        worker_free(plugin.writes.writer);
    }
    upgrade_ends = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_is_not_there_is_found),
        cmocka_unit_test(gpus_are_opened_after_a_drivers_upgrade),
        cmocka_unit_test(events_that_are_refused_keep_no_record_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
