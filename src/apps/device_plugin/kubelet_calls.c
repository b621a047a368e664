/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/kubelet_calls.h"

#include <stdlib.h>
#include <string.h>

#include "device_plugin/container_env.h"
#include "device_plugin/pod_watch.h"
#include "device_plugin/podres_view.h"
#include "device_plugin/writes.h"
#include "gpushare/base/log.h"
#include "gpushare/grpc/pod_resources.h"

/* While Allocate waits the node admits no pod; a start has 30 s and is tried again. Kubelets from
 * 1.28 on refuse a List now and then, those of all their clients counted together
 * (pkg/kubelet/apis/podresources, DefaultQPS): it is asked for again. */
#define ALLOCATE_ASK_NS   (300 * GS_NS_PER_MS)
#define ALLOCATE_PAUSE_NS (20 * GS_NS_PER_MS)
#define START_ASK_NS      (2 * GS_NS_PER_S)
#define START_PAUSE_NS    (500 * GS_NS_PER_MS)
#define START_TELL_NS     (5 * GS_NS_PER_S)
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
    struct gs_podres_call *podres; /* under way */
    struct gs_loop_timer timer;    /* the list's budget, or the pause before asking again */
    uint64_t list_round;           /* waits for this list of the API; 0: does not */
    int64_t tell_until_ns;         /* waits for the node to say where the pod is; 0: does not */
    bool told;                     /* that was waited for long enough */
    bool listed;                   /* the API was asked */
    int64_t since_ns;
};

static void ask_free(struct ask *ask)
{
    struct plugin *plugin = ask->plugin;
    struct ask **at = &plugin->asks;
    while (*at != ask)
        at = &(*at)->next;
    *at = ask->next;
    if (ask->podres)
        gs_podres_cancel(ask->podres);
    gs_loop_timer_disarm(plugin->loop, &ask->timer);
    podres_view_release(&ask->known);
    gs_arena_release(&ask->arena);
    free(ask);
    if (plugin->stopping && !plugin->asks)
        gs_loop_stop(plugin->loop);
}

static void fail(struct ask *ask, const struct gs_error *why)
{
    gs_log(GS_LOG_WARN, ask->kind == ASK_ALLOCATE ? "not allocated" : "start held back",
           GS_INT("units", ask->wanted[ask->at].count), GS_STR("why", why->msg));
    if (ask->kind == ASK_ALLOCATE && why->code != GS_EBUSY)
        ask->plugin->calls.failed++;
    gs_dp_call_fail(ask->call, why);
    writes_pump(ask->plugin);
    ask_free(ask);
}

/* ---- the API's list of this node's pods ---- */

struct quick_list {
    struct plugin *plugin;
    struct pod_batch *batch;
    struct gs_error err;
};

static void decide(struct ask *ask, enum gs_api_word api);

static void list_work(void *ctx)
{
    struct quick_list *list = ctx;
    list->batch = pod_batch_list(list->plugin, LIST_BUDGET_NS, &list->err);
}

static void list_start(struct plugin *plugin);

static void list_done(void *ctx)
{
    struct quick_list *list = ctx;
    struct plugin *plugin = list->plugin;
    uint64_t round = plugin->list_round;
    enum gs_api_word api = list->batch ? GS_API_TOLD : GS_API_SILENT;
    plugin->listing = false;
    if (list->batch) {
        gs_allocator_quick_pods(plugin->alloc);
        pod_batch_apply(plugin, list->batch);
        gs_allocator_quick_end(plugin->alloc);
    } else {
        gs_log(GS_LOG_WARN, "the API did not tell this node's pods in time",
               GS_STR("why", list->err.msg));
    }
    free(list);
    for (struct ask *ask = plugin->asks, *next; ask; ask = next) {
        next = ask->next;
        if (ask->list_round && ask->list_round <= round)
            decide(ask, api);
    }
    if (plugin->list_again && !plugin->stopping)
        list_start(plugin);
}

static void list_start(struct plugin *plugin)
{
    struct quick_list *list = calloc(1, sizeof(*list));
    plugin->list_again = false;
    if (!list)
        return; /* the budget ends the wait */
    list->plugin = plugin;
    plugin->list_round++;
    plugin->listing = true;
    gs_allocator_quick_begin(plugin->alloc);
    worker_submit(plugin->lister, &(struct worker_job){list_work, list_done, list});
}

static void list_given_up(void *ctx)
{
    decide(ctx, GS_API_SILENT);
}

/* A list that runs already may have begun too early. */
static void wait_for_list(struct ask *ask)
{
    struct plugin *plugin = ask->plugin;
    if (ask->list_round)
        return;
    ask->list_round = plugin->list_round + 1;
    ask->timer = (struct gs_loop_timer){.fn = list_given_up, .ctx = ask};
    gs_loop_timer_arm(plugin->loop, &ask->timer,
                      gs_loop_now_ns(plugin->loop) + LIST_BUDGET_NS + LIST_BUDGET_NS / 10);
    if (plugin->listing)
        plugin->list_again = true;
    else
        list_start(plugin);
}

static void list_once_more(void *ctx)
{
    struct ask *ask = ctx;
    ask->list_round = 0;
    wait_for_list(ask);
}

/* Meanwhile the watch may bring what is missing: see kubelet_calls_pods_changed(). */
static void pause_before_list(struct ask *ask)
{
    struct gs_loop *loop = ask->plugin->loop;
    ask->list_round = UINT64_MAX;
    gs_loop_timer_disarm(loop, &ask->timer);
    ask->timer = (struct gs_loop_timer){.fn = list_once_more, .ctx = ask};
    gs_loop_timer_arm(loop, &ask->timer, gs_loop_now_ns(loop) + LIST_PAUSE_NS);
}

/* ---- Allocate ---- */

static void log_allocated(const struct ask *ask, const struct gs_allocate_answer *answer)
{
    int64_t took_ns = gs_loop_now_ns(ask->plugin->loop) - ask->since_ns;
    gs_log(GS_LOG_INFO, "allocated", GS_STR("pod", answer->owner[0] ? answer->owner : "unknown"),
           GS_STR("gpu", answer->idx), GS_INT("units", answer->units),
           GS_INT("ms", took_ns / GS_NS_PER_MS));
}

static void decide_allocate(struct ask *ask, enum gs_api_word api)
{
    struct plugin *plugin = ask->plugin;
    int64_t waited_ns = gs_loop_now_ns(plugin->loop) - ask->since_ns;
    for (; ask->at < ask->count; ask->at++) {
        const struct gs_allocate_request request = {
            .ids = ask->wanted[ask->at].ids,
            .id_count = ask->wanted[ask->at].count,
            .known = ask->known.pods,
            .known_count = ask->known.count,
            .api = api,
            .patient = waited_ns < ALLOCATE_PATIENCE_NS && !plugin->stopping,
        };
        struct gs_allocate_answer answer;
        struct gs_error err = {0};
        enum gs_allocate_result result =
            gs_allocator_allocate(plugin->alloc, &request, &answer, &err);
        if (result == GS_ALLOCATE_LIST_FIRST) {
            if (api == GS_API_SILENT)
                pause_before_list(ask);
            else
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
    writes_pump(plugin);
    ask_free(ask);
}

/* ---- PreStartContainer ---- */

static void decide_start(struct ask *ask);

static void told_given_up(void *ctx)
{
    struct ask *ask = ctx;
    ask->told = true;
    decide_start(ask);
}

/* The container starts all the same when the API does not answer. */
static void wait_until_told(struct ask *ask)
{
    struct gs_loop *loop = ask->plugin->loop;
    ask->list_round = 0;
    if (!ask->tell_until_ns)
        ask->tell_until_ns = gs_loop_now_ns(loop) + START_TELL_NS;
    gs_loop_timer_disarm(loop, &ask->timer);
    ask->timer = (struct gs_loop_timer){.fn = told_given_up, .ctx = ask};
    gs_loop_timer_arm(loop, &ask->timer, ask->tell_until_ns);
    writes_pump(ask->plugin);
}

static void decide_start(struct ask *ask)
{
    const struct gs_start_request request = {
        .ids = ask->wanted->ids,
        .id_count = ask->wanted->count,
        .known = ask->known.pods,
        .known_count = ask->known.count,
        .listed = ask->listed,
        .told = ask->told,
    };
    struct gs_error err = {0};
    switch (gs_allocator_start(ask->plugin->alloc, &request, &err)) {
    case GS_START_LIST_FIRST:
        wait_for_list(ask);
        return;
    case GS_START_TELL_FIRST:
        wait_until_told(ask);
        return;
    case GS_START_HELD:
        fail(ask, &err);
        return;
    case GS_START_OK:
        break;
    }
    gs_dp_pre_start_reply(ask->call);
    writes_pump(ask->plugin);
    ask_free(ask);
}

static void decide_reconcile(struct ask *ask, const struct gs_podres_list *list)
{
    struct plugin *plugin = ask->plugin;
    if (ask->known.pods)
        gs_allocator_known(plugin->alloc, ask->known.pods, ask->known.count);
    ask_free(ask);
    devices_take_held(plugin, list);
    writes_pump(plugin);
}

static void decide_listed_start(struct ask *ask, enum gs_api_word api)
{
    ask->listed = ask->listed || api != GS_API_NOT_ASKED;
    decide_start(ask);
}

static void decide(struct ask *ask, enum gs_api_word api)
{
    if (ask->kind == ASK_ALLOCATE)
        decide_allocate(ask, api);
    else
        decide_listed_start(ask, api);
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

static void ask_kubelet(void *ctx);

/* In a moment, as long as the call can wait for an answer that is worth waiting for. */
static bool ask_kubelet_again(struct ask *ask, const struct gs_error *failure)
{
    struct plugin *plugin = ask->plugin;
    int64_t now_ns = gs_loop_now_ns(plugin->loop), pause_ns, patience_ns;
    bool refused = failure->code == GS_EBUSY;
    if (ask->kind == ASK_ALLOCATE) {
        pause_ns = ALLOCATE_PAUSE_NS;
        patience_ns = refused || !is_silent(plugin) ? ALLOCATE_ASK_NS : 0;
    } else {
        pause_ns = START_PAUSE_NS;
        patience_ns = is_silent(plugin) || starts(plugin) > STARTS_MAX ? 0 : SILENCE_NS;
    }
    if (plugin->stopping || now_ns + pause_ns - ask->since_ns >= patience_ns)
        return false;
    gs_loop_timer_disarm(plugin->loop, &ask->timer);
    ask->timer = (struct gs_loop_timer){.fn = ask_kubelet, .ctx = ask};
    gs_loop_timer_arm(plugin->loop, &ask->timer, now_ns + pause_ns);
    return true;
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
        decide_reconcile(ask, list);
    else if (list || !ask_kubelet_again(ask, failure))
        decide(ask, GS_API_NOT_ASKED);
}

static int64_t patience_with_kubelet(const struct ask *ask)
{
    const struct plugin *plugin = ask->plugin;
    if (ask->kind == ASK_RECONCILE)
        return RECONCILE_ASK_NS;
    if (ask->kind == ASK_ALLOCATE) /* what is left of it, when it was refused before */
        return ask->since_ns + ALLOCATE_ASK_NS - gs_loop_now_ns(plugin->loop);
    return is_silent(plugin) || starts(plugin) > STARTS_MAX ? ALLOCATE_ASK_NS : START_ASK_NS;
}

static void ask_kubelet(void *ctx)
{
    struct ask *ask = ctx;
    struct plugin *plugin = ask->plugin;
    struct gs_error err = {0};
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

static void begin(struct plugin *plugin, enum ask_kind kind, struct gs_dp_call *call,
                  const struct gs_dp_ids *wanted, size_t count)
{
    struct ask *ask = ask_new(plugin, kind, call, wanted, count);
    struct gs_error err = {0};
    if (ask) {
        ask_kubelet(ask);
    } else if (call) {
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

void kubelet_calls_reconcile(struct plugin *plugin)
{
    begin(plugin, ASK_RECONCILE, NULL, NULL, 0);
}

/* Those that wait for a list, from the first on; each may be answered and freed. */
void kubelet_calls_pods_changed(struct plugin *plugin)
{
    for (struct ask *ask = plugin->asks, *next; ask; ask = next) {
        next = ask->next;
        if (ask->list_round)
            decide(ask, GS_API_NOT_ASKED);
    }
}

void kubelet_calls_node_told(struct plugin *plugin, bool written)
{
    for (struct ask *ask = plugin->asks, *next; ask; ask = next) {
        next = ask->next;
        if (!ask->tell_until_ns)
            continue;
        ask->told = !written;
        decide_start(ask);
    }
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
