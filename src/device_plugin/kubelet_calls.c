/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_plugin/checkpoint.h"
#include "device_plugin/container_env.h"
#include "device_plugin/pod_watch.h"
#include "gpushare/base/log.h"

#define START_WRITE_NS (5 * GS_NS_PER_S)
#define LIST_BUDGET_NS (500 * GS_NS_PER_MS)
/* An error is for good: a silent API is asked again before one is given. */
#define ALLOCATE_PATIENCE_NS (5 * GS_NS_PER_S)
#define LIST_PAUSE_NS        (250 * GS_NS_PER_MS)

enum call_kind { CALL_ALLOCATE, CALL_START };

/* What has to come before a call is decided. */
enum call_wait {
    WAIT_TURN, /* for nothing: it is new */
    WAIT_LIST, /* for a list of this node's pods, or until its time */
    WAIT_NODE, /* for the node to say where the pod is, or until its time */
};

/* One call of the kubelet's. */
struct pending_call {
    struct pending_call *next;
    struct plugin *plugin;
    enum call_kind kind;
    struct gs_dp_call *call;
    const struct gs_dp_ids *wanted; /* borrowed until the call is answered */
    size_t count, at;               /* containers, and which one is being decided */
    struct gs_arena arena;          /* of the answers */
    struct gs_dp_container *answers;
    bool told; /* the kubelet's checkpoint could be read */
    enum call_wait wait;
    int64_t until_ns;       /* see enum call_wait; 0: now, INT64_MAX: as long as it takes */
    uint64_t list_round;    /* WAIT_LIST: for this list of the API */
    int64_t write_until_ns; /* how long the node is waited for; 0: it was not yet */
    bool write_tried;       /* that was waited for long enough */
    bool listed;            /* the API was asked */
    int64_t since_ns;
};

static void wait_for(struct pending_call *pending, enum call_wait wait, int64_t until_ns)
{
    pending->wait = wait;
    pending->until_ns = until_ns;
}

static void pending_free(struct pending_call *pending)
{
    struct plugin *plugin = pending->plugin;
    struct pending_call **at = &plugin->calls.pending;
    while (*at != pending)
        at = &(*at)->next;
    *at = pending->next;
    gs_arena_release(&pending->arena);
    free(pending);
}

static void fail(struct pending_call *pending, const struct gs_error *why)
{
    gs_log(GS_LOG_WARN,
           pending->kind == CALL_ALLOCATE ? "GPU memory not allocated" : "container start blocked",
           GS_INT("units", pending->wanted[pending->at].count), GS_STR("error", why->msg));
    if (pending->kind == CALL_ALLOCATE && why->code != GS_EBUSY)
        pending->plugin->calls.stats.failed++;
    gs_dp_call_fail(pending->call, why);
    pending_free(pending);
}

/* ---- the API's list of this node's pods ---- */

/* Its own thread. */
static void list_work(void *ctx)
{
    struct plugin *plugin = ctx;
    plugin->calls.list_error = (struct gs_error){0};
    plugin->calls.list = pod_batch_list(plugin, LIST_BUDGET_NS, &plugin->calls.list_error);
}

static void list_done(void *ctx)
{
    struct plugin *plugin = ctx;
    plugin->calls.listing = false;
    plugin->calls.list_failed = !plugin->calls.list;
    if (plugin->calls.list) {
        gs_allocator_quick_pods(plugin->alloc);
        pod_batch_apply(plugin, plugin->calls.list);
        gs_allocator_list_end(plugin->alloc);
    } else {
        plugin->calls.list_again_ns = plugin_now_ns(plugin) + LIST_PAUSE_NS;
        gs_log(GS_LOG_WARN, "the API server did not list this node's pods in time",
               GS_STR("error", plugin->calls.list_error.msg));
    }
}

static void list_start(struct plugin *plugin)
{
    plugin->calls.list_round++;
    plugin->calls.listing = true;
    gs_allocator_quick_begin(plugin->alloc);
    worker_submit(&plugin->calls.lister, plugin->loop,
                  &(struct worker_job){list_work, list_done, plugin});
}

/* A list that runs already may have begun too early. Before the next one the watch may bring what
 * is missing. */
static void wait_for_list(struct pending_call *pending)
{
    const struct plugin *plugin = pending->plugin;
    int64_t now_ns = plugin_now_ns(plugin), again_ns = plugin->calls.list_again_ns;
    pending->list_round = plugin->calls.list_round + 1;
    wait_for(pending, WAIT_LIST,
             (now_ns < again_ns ? again_ns : now_ns) + LIST_BUDGET_NS + LIST_BUDGET_NS / 10);
}

/* ---- Allocate ---- */

static void log_allocated(const struct pending_call *pending,
                          const struct gs_allocate_answer *answer)
{
    int64_t took_ns = plugin_now_ns(pending->plugin) - pending->since_ns;
    gs_log(GS_LOG_INFO, "allocated", GS_STR("pod", answer->name), GS_STR("namespace", answer->ns),
           GS_STR("gpu", answer->idx), GS_INT("units", answer->units),
           GS_INT("ms", took_ns / GS_NS_PER_MS));
}

static void decide_allocate(struct pending_call *pending, enum gs_api_outcome api)
{
    struct plugin *plugin = pending->plugin;
    int64_t waited_ns = plugin_now_ns(plugin) - pending->since_ns;
    for (; pending->at < pending->count; pending->at++) {
        const struct gs_allocate_request request = {
            .ids = pending->wanted[pending->at].ids,
            .id_count = pending->wanted[pending->at].count,
            .told = pending->told,
            .skips_running = plugin->calls.skips_running,
            .api = api,
            .patient = waited_ns < ALLOCATE_PATIENCE_NS && !plugin->round.stopping,
        };
        struct gs_allocate_answer answer;
        struct gs_error err = {0};
        enum gs_allocate_result result =
            gs_allocator_allocate(plugin->alloc, &request, &answer, &err);
        if (result == GS_ALLOCATE_LIST_FIRST) {
            if (api == GS_API_TIMEOUT || pending->wait != WAIT_LIST)
                wait_for_list(pending);
            return;
        }
        if (result == GS_ALLOCATE_DONE && container_env_build(plugin, &answer, &pending->arena,
                                                              &pending->answers[pending->at]) < 0)
            gs_fail_nomem(&err);
        else if (result == GS_ALLOCATE_DONE)
            guards_add(plugin, &answer, &pending->wanted[pending->at], &pending->arena,
                       &pending->answers[pending->at], &err);
        if (err.code != GS_OK) {
            fail(pending, &err);
            return;
        }
        log_allocated(pending, &answer);
    }
    gs_dp_allocate_reply(pending->call, pending->answers, pending->count);
    enforce_allocated(plugin);
    plugin->calls.stats.answered++;
    plugin->calls.stats.answered_ns += (uint64_t)(plugin_now_ns(plugin) - pending->since_ns);
    devices_read_ids_soon(plugin); /* ids that were just freed may have been given out again */
    pending_free(pending);
}

/* ---- PreStartContainer ---- */

/* The container starts all the same when the API does not answer. */
static void wait_for_node(struct pending_call *pending)
{
    if (!pending->write_until_ns)
        pending->write_until_ns = plugin_now_ns(pending->plugin) + START_WRITE_NS;
    wait_for(pending, WAIT_NODE, pending->write_until_ns);
}

static void decide_start(struct pending_call *pending)
{
    const struct gs_start_request request = {
        .ids = pending->wanted->ids,
        .id_count = pending->wanted->count,
        .listed = pending->listed,
        .write_tried = pending->write_tried,
    };
    struct gs_error err = {0};
    /* Of pods that came meanwhile, too: once for all starts that came before this round. */
    if (!pending->plugin->calls.observed)
        checkpoint_observe(pending->plugin, false, false);
    pending->plugin->calls.observed = true;
    switch (gs_allocator_start(pending->plugin->alloc, &request, &err)) {
    case GS_START_LIST_FIRST:
        if (pending->wait != WAIT_LIST)
            wait_for_list(pending);
        return;
    case GS_START_WRITE_FIRST:
        wait_for_node(pending);
        return;
    case GS_START_HELD:
        fail(pending, &err);
        return;
    case GS_START_OK:
        break;
    }
    if (!guards_may_start(pending->plugin, &request, &err)) {
        fail(pending, &err);
        return;
    }
    gs_dp_pre_start_reply(pending->call);
    pending_free(pending);
}

static void decide(struct pending_call *pending, enum gs_api_outcome api)
{
    if (pending->kind == CALL_ALLOCATE) {
        decide_allocate(pending, api);
    } else {
        pending->listed = pending->listed || api != GS_API_NOT_ASKED;
        decide_start(pending);
    }
}

/* ---- a new call ---- */

static void begin(struct plugin *plugin, enum call_kind kind, struct gs_dp_call *call,
                  const struct gs_dp_ids *wanted, size_t count)
{
    struct pending_call *pending = calloc(1, sizeof(*pending));
    struct gs_error err = {0};
    if (!pending) {
        gs_fail_nomem(&err);
        gs_dp_call_fail(call, &err);
        return;
    }
    *pending = (struct pending_call){.next = plugin->calls.pending,
                                     .plugin = plugin,
                                     .kind = kind,
                                     .call = call,
                                     .wanted = wanted,
                                     .count = count,
                                     .since_ns = plugin_now_ns(plugin)};
    plugin->calls.pending = pending;
    pending->answers = gs_arena_calloc(&pending->arena, count + 1, sizeof(*pending->answers));
    if (!pending->answers) {
        gs_fail_nomem(&err);
        fail(pending, &err);
    }
}

static void on_allocate(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *wanted,
                        size_t count)
{
    begin(ctx, CALL_ALLOCATE, call, wanted, count);
}

static void on_pre_start(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *ids)
{
    begin(ctx, CALL_START, call, ids, 1);
}

const struct gs_dp_ops kubelet_calls_ops = {.allocate = on_allocate, .pre_start = on_pre_start};

/* ---- the round ---- */

static void go_on_with_list(struct pending_call *pending, bool due)
{
    const struct plugin *plugin = pending->plugin;
    if (!plugin->calls.listing && pending->list_round <= plugin->calls.list_round)
        decide(pending, plugin->calls.list_failed ? GS_API_TIMEOUT : GS_API_ANSWERED);
    else if (due)
        decide(pending, GS_API_TIMEOUT);
    else if (plugin->pods_changed)
        decide(pending, GS_API_NOT_ASKED);
}

static void go_on_with_node(struct pending_call *pending, bool due)
{
    enum node_outcome outcome = pending->plugin->writes.outcome;
    if (!due && outcome == NODE_NOT_TRIED)
        return;
    pending->write_tried = due || outcome == NODE_NOT_WRITTEN;
    decide_start(pending);
}

/* May answer the call, and free it. */
static void go_on(struct pending_call *pending)
{
    bool due = plugin_now_ns(pending->plugin) >= pending->until_ns;
    switch (pending->wait) {
    case WAIT_TURN:
        if (pending->kind == CALL_ALLOCATE) /* once: what it does not name is counted */
            pending->told = checkpoint_observe(pending->plugin, true, false);
        decide(pending, GS_API_NOT_ASKED);
        break;
    case WAIT_LIST:
        go_on_with_list(pending, due);
        break;
    case WAIT_NODE:
        go_on_with_node(pending, due);
        break;
    }
}

static bool wants_list(const struct plugin *plugin, const struct pending_call *pending)
{
    return pending->wait == WAIT_LIST && pending->list_round > plugin->calls.list_round;
}

void kubelet_calls_round(struct plugin *plugin)
{
    bool list = false;
    plugin->calls.observed = false;
    for (struct pending_call *pending = plugin->calls.pending, *next; pending; pending = next) {
        next = pending->next;
        go_on(pending);
    }
    for (const struct pending_call *pending = plugin->calls.pending; pending;
         pending = pending->next) {
        list = list || wants_list(plugin, pending);
        plugin_wake_at(plugin, pending->until_ns);
    }
    if (list && !plugin->calls.listing) {
        if (plugin_now_ns(plugin) >= plugin->calls.list_again_ns)
            list_start(plugin);
        else
            plugin_wake_at(plugin, plugin->calls.list_again_ns);
    }
    plugin->pods_changed = false;
    plugin->writes.outcome = NODE_NOT_TRIED;
}

void kubelet_calls_free(struct plugin *plugin)
{
    struct gs_error err = {0};
    gs_fail(&err, GS_EIO, "the device plugin is stopping");
    while (plugin->calls.pending) {
        gs_dp_call_fail(plugin->calls.pending->call, &err);
        pending_free(plugin->calls.pending);
    }
}
