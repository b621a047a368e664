/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/kubelet_calls.h"

#include <stdlib.h>
#include <string.h>

#include "device_plugin/container_env.h"
#include "device_plugin/pod_watch.h"
#include "device_plugin/podres_view.h"
#include "gpushare/base/log.h"
#include "gpushare/grpc/pod_resources.h"

/* While Allocate waits the node admits no pod; a start has 30 s and is tried again. Kubelets from
 * 1.28 on refuse a List now and then, those of all their clients counted together
 * (pkg/kubelet/apis/podresources, DefaultQPS): they do answer, so that is waited for longer than
 * for one that is silent. */
#define ALLOCATE_ASK_NS     (300 * GS_NS_PER_MS)
#define ALLOCATE_REFUSED_NS (3 * GS_NS_PER_S)
#define ALLOCATE_PAUSE_NS   (20 * GS_NS_PER_MS)
#define START_ASK_NS        (2 * GS_NS_PER_S)
#define START_PAUSE_NS      (500 * GS_NS_PER_MS)
#define START_TELL_NS       (5 * GS_NS_PER_S)
/* A kubelet that was silent for so long tells no pods at all (the socket is not mounted): nobody
 * waits for it any more. */
#define SILENCE_NS (6 * GS_NS_PER_S)
/* Starts that wait at a time: they share a connection of 32 streams with Allocate. */
enum { STARTS_MAX = 16 };
#define LIST_BUDGET_NS (500 * GS_NS_PER_MS)
/* An error is for good: a silent API is asked again before one is given. */
#define ALLOCATE_PATIENCE_NS (5 * GS_NS_PER_S)
#define LIST_PAUSE_NS        (250 * GS_NS_PER_MS)
#define RECONCILE_ASK_NS     (5 * GS_NS_PER_S)

enum ask_kind { ASK_ALLOCATE, ASK_START, ASK_RECONCILE };

/* What has to come before an ask is decided. */
enum ask_wait {
    WAIT_TO_ASK,  /* until its time has come: the kubelet is to be asked for its pods */
    WAIT_KUBELET, /* for the kubelet's answer */
    WAIT_TURN,    /* for nothing: the kubelet has answered, or will not */
    WAIT_LIST,    /* for a list of this node's pods, or until its time */
    WAIT_TO_LIST, /* until its time: another list is to be asked for */
    WAIT_NODE,    /* for the node to say where the pod is, or until its time */
};

/* One call of the kubelet's, or our own question without a call. */
struct ask {
    struct ask *next;
    struct plugin *plugin;
    enum ask_kind kind;
    struct gs_dp_call *call;
    const struct gs_dp_ids *wanted; /* borrowed until the call is answered */
    size_t count, at;               /* containers, and which one is being decided */
    struct gs_arena arena;          /* of the answers */
    struct gs_dp_container *answers;
    struct podres_view known;
    struct gs_podres_call *podres; /* WAIT_KUBELET */
    enum ask_wait wait;
    int64_t until_ns;      /* see enum ask_wait; 0: now, INT64_MAX: as long as it takes */
    uint64_t list_round;   /* WAIT_LIST: for this list of the API */
    int64_t tell_until_ns; /* how long the node is waited for; 0: it was not yet */
    bool told;             /* that was waited for long enough */
    bool listed;           /* the API was asked */
    int64_t since_ns;
};

static void wait_for(struct ask *ask, enum ask_wait wait, int64_t until_ns)
{
    ask->wait = wait;
    ask->until_ns = until_ns;
}

static void ask_free(struct ask *ask)
{
    struct plugin *plugin = ask->plugin;
    struct ask **at = &plugin->asks;
    while (*at != ask)
        at = &(*at)->next;
    *at = ask->next;
    if (ask->podres)
        gs_podres_cancel(ask->podres);
    podres_view_release(&ask->known);
    gs_arena_release(&ask->arena);
    free(ask);
}

static void fail(struct ask *ask, const struct gs_error *why)
{
    gs_log(GS_LOG_WARN, ask->kind == ASK_ALLOCATE ? "not allocated" : "start held back",
           GS_INT("units", ask->wanted[ask->at].count), GS_STR("why", why->msg));
    if (ask->kind == ASK_ALLOCATE && why->code != GS_EBUSY)
        ask->plugin->calls.failed++;
    gs_dp_call_fail(ask->call, why);
    ask_free(ask);
}

/* ---- the API's list of this node's pods ---- */

struct quick_list {
    struct plugin *plugin;
    struct pod_batch *batch;
    struct gs_error err;
};

static void list_work(void *ctx)
{
    struct quick_list *list = ctx;
    list->batch = pod_batch_list(list->plugin, LIST_BUDGET_NS, &list->err);
}

static void list_done(void *ctx)
{
    struct quick_list *list = ctx;
    struct plugin *plugin = list->plugin;
    plugin->listing = false;
    plugin->list_failed = !list->batch;
    if (list->batch) {
        gs_allocator_quick_pods(plugin->alloc);
        pod_batch_apply(plugin, list->batch);
        gs_allocator_quick_end(plugin->alloc);
    } else {
        gs_log(GS_LOG_WARN, "the API did not tell this node's pods in time",
               GS_STR("why", list->err.msg));
    }
    free(list);
}

static void list_start(struct plugin *plugin)
{
    struct quick_list *list = calloc(1, sizeof(*list));
    if (!list)
        return; /* the budget ends the wait */
    list->plugin = plugin;
    plugin->list_round++;
    plugin->listing = true;
    gs_allocator_quick_begin(plugin->alloc);
    worker_submit(plugin->lister, &(struct worker_job){list_work, list_done, list});
}

/* A list that runs already may have begun too early. */
static void wait_for_list(struct ask *ask)
{
    struct plugin *plugin = ask->plugin;
    ask->list_round = plugin->list_round + 1;
    wait_for(ask, WAIT_LIST, gs_loop_now_ns(plugin->loop) + LIST_BUDGET_NS + LIST_BUDGET_NS / 10);
}

/* Meanwhile the watch may bring what is missing. */
static void pause_before_list(struct ask *ask)
{
    wait_for(ask, WAIT_TO_LIST, gs_loop_now_ns(ask->plugin->loop) + LIST_PAUSE_NS);
}

static bool waits_for_list(const struct ask *ask)
{
    return ask->wait == WAIT_LIST || ask->wait == WAIT_TO_LIST;
}

/* ---- Allocate ---- */

static void log_allocated(const struct ask *ask, const struct gs_allocate_answer *answer)
{
    int64_t took_ns = gs_loop_now_ns(ask->plugin->loop) - ask->since_ns;
    gs_log(GS_LOG_INFO, "allocated", GS_STR("pod", answer->owner[0] ? answer->owner : "unknown"),
           GS_STR("gpu", answer->idx), GS_INT("units", answer->units),
           GS_INT("ms", took_ns / GS_NS_PER_MS));
}

static void decide_allocate(struct ask *ask, enum gs_api_outcome api)
{
    struct plugin *plugin = ask->plugin;
    int64_t waited_ns = gs_loop_now_ns(plugin->loop) - ask->since_ns;
    for (; ask->at < ask->count; ask->at++) {
        const struct gs_allocate_request request = {
            .ids = ask->wanted[ask->at].ids,
            .id_count = ask->wanted[ask->at].count,
            .observed = ask->known.pods,
            .observed_count = ask->known.count,
            .api = api,
            .patient = waited_ns < ALLOCATE_PATIENCE_NS && !plugin->stopping,
        };
        struct gs_allocate_answer answer;
        struct gs_error err = {0};
        enum gs_allocate_result result =
            gs_allocator_allocate(plugin->alloc, &request, &answer, &err);
        if (result == GS_ALLOCATE_LIST_FIRST) {
            if (api == GS_API_TIMEOUT)
                pause_before_list(ask);
            else if (!waits_for_list(ask))
                wait_for_list(ask);
            return;
        }
        if (result == GS_ALLOCATE_DONE &&
            container_env_build(plugin, &answer, &ask->arena, &ask->answers[ask->at]) < 0)
            gs_fail_nomem(&err);
        if (err.code != GS_OK) {
            fail(ask, &err);
            return;
        }
        log_allocated(ask, &answer);
    }
    gs_dp_allocate_reply(ask->call, ask->answers, ask->count);
    plugin->calls.answered++;
    plugin->calls.answered_ns += (uint64_t)(gs_loop_now_ns(plugin->loop) - ask->since_ns);
    devices_ask_soon(plugin); /* ids that were just freed may have been given out again */
    ask_free(ask);
}

/* ---- PreStartContainer ---- */

/* The container starts all the same when the API does not answer. */
static void wait_until_told(struct ask *ask)
{
    if (!ask->tell_until_ns)
        ask->tell_until_ns = gs_loop_now_ns(ask->plugin->loop) + START_TELL_NS;
    wait_for(ask, WAIT_NODE, ask->tell_until_ns);
}

static void decide_start(struct ask *ask)
{
    const struct gs_start_request request = {
        .ids = ask->wanted->ids,
        .id_count = ask->wanted->count,
        .observed = ask->known.pods,
        .observed_count = ask->known.count,
        .listed = ask->listed,
        .write_tried = ask->told,
    };
    struct gs_error err = {0};
    switch (gs_allocator_start(ask->plugin->alloc, &request, &err)) {
    case GS_START_LIST_FIRST:
        if (!waits_for_list(ask))
            wait_for_list(ask);
        return;
    case GS_START_WRITE_FIRST:
        wait_until_told(ask);
        return;
    case GS_START_HELD:
        fail(ask, &err);
        return;
    case GS_START_OK:
        break;
    }
    if (!enforce_may_start(ask->plugin, &request, &err)) {
        fail(ask, &err);
        return;
    }
    gs_dp_pre_start_reply(ask->call);
    ask_free(ask);
}

static void decide(struct ask *ask, enum gs_api_outcome api)
{
    if (ask->kind == ASK_ALLOCATE) {
        decide_allocate(ask, api);
    } else {
        ask->listed = ask->listed || api != GS_API_NOT_ASKED;
        decide_start(ask);
    }
}

/* ---- the kubelet's list ---- */

static bool is_silent(const struct plugin *plugin)
{
    int64_t since_ns = plugin->podres_silent_ns;
    return since_ns && gs_loop_now_ns(plugin->loop) - since_ns >= SILENCE_NS;
}

static void note_kubelet(struct plugin *plugin, const struct gs_error *failure)
{
    if (failure && !plugin->podres_silent_ns) {
        plugin->podres_silent_ns = gs_loop_now_ns(plugin->loop);
        gs_log(GS_LOG_WARN, "the kubelet did not tell its pods", GS_STR("why", failure->msg));
    }
    if (!failure && is_silent(plugin))
        gs_log(GS_LOG_INFO, "the kubelet tells its pods again");
    if (!failure)
        plugin->podres_silent_ns = 0;
}

static uint32_t starts(const struct plugin *plugin)
{
    uint32_t count = 0;
    for (const struct ask *ask = plugin->asks; ask; ask = ask->next)
        count += ask->kind == ASK_START;
    return count;
}

/* In a moment, as long as the call can wait for an answer that is worth waiting for. */
static bool ask_kubelet_again(struct ask *ask, const struct gs_error *failure)
{
    struct plugin *plugin = ask->plugin;
    int64_t now_ns = gs_loop_now_ns(plugin->loop), pause_ns, patience_ns;
    bool refused = failure->code == GS_EBUSY;
    if (ask->kind == ASK_ALLOCATE) {
        pause_ns = ALLOCATE_PAUSE_NS;
        patience_ns = refused ? ALLOCATE_REFUSED_NS : is_silent(plugin) ? 0 : ALLOCATE_ASK_NS;
    } else {
        pause_ns = START_PAUSE_NS;
        patience_ns = is_silent(plugin) || starts(plugin) > STARTS_MAX ? 0 : SILENCE_NS;
    }
    if (plugin->stopping || now_ns + pause_ns - ask->since_ns >= patience_ns)
        return false;
    wait_for(ask, WAIT_TO_ASK, now_ns + pause_ns);
    return true;
}

static void reconcile(struct ask *ask, const struct gs_podres_list *list)
{
    struct plugin *plugin = ask->plugin;
    if (ask->known.pods)
        gs_allocator_observe(plugin->alloc, ask->known.pods, ask->known.count);
    ask_free(ask);
    devices_take_held(plugin, list);
}

static void kubelet_told(void *ctx, const struct gs_podres_list *list,
                         const struct gs_error *failure)
{
    struct ask *ask = ctx;
    ask->podres = NULL;
    note_kubelet(ask->plugin, failure);
    if (list)
        podres_view_build(&ask->known, list, ask->plugin->names.gpu_mem);
    if (ask->kind == ASK_RECONCILE)
        reconcile(ask, list);
    else if (list || !ask_kubelet_again(ask, failure))
        wait_for(ask, WAIT_TURN, 0);
}

static int64_t patience_with_kubelet(const struct ask *ask)
{
    const struct plugin *plugin = ask->plugin;
    if (ask->kind == ASK_RECONCILE)
        return RECONCILE_ASK_NS;
    if (ask->kind == ASK_ALLOCATE || is_silent(plugin) || starts(plugin) > STARTS_MAX)
        return ALLOCATE_ASK_NS;
    return START_ASK_NS;
}

static void ask_kubelet(struct ask *ask)
{
    struct plugin *plugin = ask->plugin;
    struct gs_error err = {0};
    wait_for(ask, WAIT_KUBELET, INT64_MAX);
    if (gs_podres_list_start(plugin->loop, plugin->settings.pod_resources_socket,
                             patience_with_kubelet(ask), kubelet_told, ask, &ask->podres, &err) < 0)
        kubelet_told(ask, NULL, &err);
}

static struct ask *ask_new(struct plugin *plugin, enum ask_kind kind, struct gs_dp_call *call,
                           const struct gs_dp_ids *wanted, size_t count)
{
    struct ask *ask = calloc(1, sizeof(*ask));
    if (!ask)
        return NULL;
    *ask = (struct ask){.next = plugin->asks,
                        .plugin = plugin,
                        .kind = kind,
                        .call = call,
                        .wanted = wanted,
                        .count = count,
                        .since_ns = gs_loop_now_ns(plugin->loop)};
    plugin->asks = ask;
    ask->answers = gs_arena_calloc(&ask->arena, count + 1, sizeof(*ask->answers));
    if (!ask->answers) {
        ask_free(ask);
        return NULL;
    }
    return ask;
}

/* The kubelet is asked in the next round. */
static void begin(struct plugin *plugin, enum ask_kind kind, struct gs_dp_call *call,
                  const struct gs_dp_ids *wanted, size_t count)
{
    struct ask *ask = ask_new(plugin, kind, call, wanted, count);
    struct gs_error err = {0};
    if (!ask && call) {
        gs_fail_nomem(&err);
        gs_dp_call_fail(call, &err);
    }
}

static void on_allocate(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *wanted,
                        size_t count)
{
    begin(ctx, ASK_ALLOCATE, call, wanted, count);
}

static void on_pre_start(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *ids)
{
    begin(ctx, ASK_START, call, ids, 1);
}

const struct gs_dp_ops kubelet_calls_ops = {.allocate = on_allocate, .pre_start = on_pre_start};

/* ---- the round ---- */

static bool has_reconcile(const struct plugin *plugin)
{
    const struct ask *ask = plugin->asks;
    while (ask && ask->kind != ASK_RECONCILE)
        ask = ask->next;
    return ask != NULL;
}

static void go_on_with_list(struct ask *ask, bool due)
{
    const struct plugin *plugin = ask->plugin;
    if (!plugin->listing && ask->list_round <= plugin->list_round)
        decide(ask, plugin->list_failed ? GS_API_TIMEOUT : GS_API_ANSWERED);
    else if (due)
        decide(ask, GS_API_TIMEOUT);
    else if (plugin->pods_changed)
        decide(ask, GS_API_NOT_ASKED);
}

static void go_on_with_node(struct ask *ask, bool due)
{
    enum node_outcome outcome = ask->plugin->node_write;
    if (!due && outcome == NODE_NOT_TRIED)
        return;
    ask->told = due || outcome == NODE_NOT_WRITTEN;
    decide_start(ask);
}

/* May answer the call, and free the ask. */
static void go_on(struct ask *ask)
{
    const struct plugin *plugin = ask->plugin;
    bool due = gs_loop_now_ns(plugin->loop) >= ask->until_ns;
    switch (ask->wait) {
    case WAIT_TO_ASK:
        if (due)
            ask_kubelet(ask);
        break;
    case WAIT_KUBELET:
        break;
    case WAIT_TURN:
        decide(ask, GS_API_NOT_ASKED);
        break;
    case WAIT_LIST:
        go_on_with_list(ask, due);
        break;
    case WAIT_TO_LIST:
        if (due)
            wait_for_list(ask);
        else if (plugin->pods_changed)
            decide(ask, GS_API_NOT_ASKED);
        break;
    case WAIT_NODE:
        go_on_with_node(ask, due);
        break;
    }
}

static bool wants_list(const struct plugin *plugin, const struct ask *ask)
{
    return ask->wait == WAIT_LIST && ask->list_round > plugin->list_round;
}

void kubelet_calls_round(struct plugin *plugin)
{
    bool list = false;
    if (plugin->reconcile_due && !plugin->stopping && !has_reconcile(plugin)) {
        plugin->reconcile_due = false;
        begin(plugin, ASK_RECONCILE, NULL, NULL, 0);
    }
    for (struct ask *ask = plugin->asks, *next; ask; ask = next) {
        next = ask->next;
        go_on(ask);
    }
    for (const struct ask *ask = plugin->asks; ask; ask = ask->next) {
        list = list || wants_list(plugin, ask);
        plugin_wake_at(plugin, ask->until_ns);
    }
    if (list && !plugin->listing)
        list_start(plugin);
    plugin->pods_changed = false;
    plugin->node_write = NODE_NOT_TRIED;
}

void kubelet_calls_free(struct plugin *plugin)
{
    struct gs_error err = {0};
    gs_fail(&err, GS_EIO, "the device plugin is being stopped");
    while (plugin->asks) {
        if (plugin->asks->call)
            gs_dp_call_fail(plugin->asks->call, &err);
        ask_free(plugin->asks);
    }
}
