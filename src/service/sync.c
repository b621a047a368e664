/* SPDX-License-Identifier: Apache-2.0 */
/* What the watches tell goes into the ledger. */
#include "gpushare/base/log.h"
#include "holds.h"
#include "service_internal.h"

/* Outside a list an event older than what the ledger knows is a repetition or came late. */
static bool is_stale(const struct gs_ledger *ledger, const struct gs_pod *pod, uint64_t revision)
{
    struct gs_claim known;
    return revision && gs_ledger_find_claim(ledger, pod->uid, &known) && revision < known.revision;
}

/* Where a claim is, in numbers: what names the node goes with the node's last claim. */
struct place {
    bool known;
    uint32_t slot; /* GS_INDEX_NONE: a node that the API did not show */
    gs_gpu_mask charged;
    uint32_t units;
};

static struct place place_of(const struct gs_ledger *ledger, const char *uid)
{
    struct gs_claim claim;
    if (!gs_ledger_find_claim(ledger, uid, &claim))
        return (struct place){.slot = GS_INDEX_NONE};
    const struct gs_node_view *view = gs_ledger_view(ledger, gs_slice_of(claim.node));
    return (struct place){true, view ? view->slot : GS_INDEX_NONE, claim.charged, claim.units};
}

/* Memory came free where a claim was, when it is now elsewhere or smaller. */
static void note_move(struct gs_store *store, const struct place *before, const char *uid)
{
    struct place after = place_of(store->ledger, uid);
    if (after.slot != before->slot || after.charged != before->charged ||
        after.units != before->units)
        gs_store_freed(store, before->slot);
}

/* The policies learn which pods there are, each once. */
static void learn(struct gs_service *service, const struct gs_pod *pod)
{
    struct gs_ask ask;
    gs_ask_of_pod(&ask, pod);
    gs_policies_learn(service->store.policies, &ask);
}

/* A bound pod with GPU memory. */
static int sync_claim(struct gs_service *service, const struct gs_pod *pod, struct gs_error *err)
{
    struct gs_store *store = &service->store;
    struct gs_claim claim;
    if (pod->assume_time_ns)
        gs_askers_bound(&service->askers, pod->scheduler_name);
    bool was_pending = gs_pending_remove(service->pending, pod->uid);
    gs_open_binds_remove(service->open_binds, pod->uid);
    gs_claim_of_pod(pod, &claim);
    gs_claim_follow(store->ledger, &claim);
    struct place before = place_of(store->ledger, pod->uid);
    if (gs_store_set_claim(store, &claim, err) < 0)
        return -1;
    if (before.known)
        note_move(store, &before, pod->uid);
    else if (!was_pending)
        learn(service, pod);
    if (gs_recent_bind_shown(service, pod->ns, pod->name, pod->uid) && !before.known)
        gs_wrong_uid_alarm(service, pod->ns, pod->name, pod->uid, pod->node_name);
    return 0;
}

static void end_pod(struct gs_service *service, const struct gs_pod *pod)
{
    struct gs_store *store = &service->store;
    uint32_t slot = gs_ledger_hold_slot(store->ledger, pod->uid);
    bool held = slot != GS_INDEX_NONE;
    bool had_claim = gs_ledger_remove(store->ledger, pod->uid, &slot);
    if (had_claim)
        gs_policies_left(store->policies);
    if (had_claim || held)
        gs_store_freed(store, slot);
    gs_recent_add(&store->ended, pod->uid);
    gs_pending_remove(service->pending, pod->uid);
    gs_open_binds_remove(service->open_binds, pod->uid);
}

/* The phase went back. The watch's events come in order: this one is the newer. */
static void begin_again(struct gs_store *store, const char *uid)
{
    gs_recent_remove(&store->ended_by_phase, uid);
    gs_recent_remove(&store->ended, uid);
    gs_recent_remove(&store->ended_before, uid);
}

/* It ended, as far as this source can tell: what was read while a list was taken in may be older
 * than the list. */
static bool has_ended(const struct gs_store *store, const char *uid, bool read)
{
    return gs_recent_has(&store->ended, uid) || (read && gs_recent_has(&store->ended_before, uid));
}

bool gs_sync_refused(struct gs_service *service, const struct gs_pod *pod, enum gs_reason why,
                     uint64_t epoch)
{
    gs_store_read(&service->store); /* held meanwhile: its end comes before or after */
    bool ended = has_ended(&service->store, pod->uid, true);
    bool news = !ended && gs_pending_refused(service->pending, pod, why, epoch,
                                             gs_clock_now_ns(service->config.clock));
    gs_store_unlock(&service->store);
    return news;
}

static int sync_pod(struct gs_service *service, const struct gs_pod *pod, bool read,
                    struct gs_error *err)
{
    struct gs_store *store = &service->store;
    if (gs_pod_terminal(pod)) {
        end_pod(service, pod);
        if (!read)
            gs_recent_add(&store->ended_by_phase, pod->uid);
        return 0;
    }
    if (!read && gs_recent_has(&store->ended_by_phase, pod->uid))
        begin_again(store, pod->uid);
    if (has_ended(store, pod->uid, read) || is_stale(store->ledger, pod, gs_pod_revision(pod)))
        return 0;
    bool wants = gs_pod_wants_gpu(pod);
    if (pod->node_name[0]) {
        if (wants)
            return sync_claim(service, pod, err);
        return gs_ledger_set_other(store->ledger, pod->uid, pod->node_name, gs_pod_cpu_milli(pod),
                                   err);
    }
    if (!wants)
        return 0;
    if (gs_holds_follow(service, pod, err) < 0)
        return -1;
    int is_new = gs_pending_put(service->pending, pod, err);
    if (is_new > 0)
        learn(service, pod);
    return is_new < 0 ? -1 : 0;
}

static int take_in(struct gs_service *service, const struct gs_pod *pod, bool read)
{
    struct gs_error err = {0};
    gs_store_write(&service->store);
    int result = sync_pod(service, pod, read, &err);
    gs_store_unlock(&service->store);
    if (result < 0)
        gs_log(GS_LOG_ERROR, "pod not taken in", GS_STR("pod", pod->name),
               GS_STR("namespace", pod->ns), GS_STR("why", err.msg));
    return result;
}

int gs_sync_pod(struct gs_service *service, const struct gs_pod *pod)
{
    return take_in(service, pod, true);
}

void gs_sync_pod_gone(struct gs_service *service, const struct gs_pod *last)
{
    gs_store_write(&service->store);
    end_pod(service, last);
    gs_recent_remove(&service->store.ended_by_phase, last->uid);
    gs_store_unlock(&service->store);
}

static int on_pod(void *ctx, const struct gs_pod *pod)
{
    int result = take_in(ctx, pod, false);
    if (result == 0)
        gs_term_shown(ctx, pod, false);
    return result;
}

static int on_pod_gone(void *ctx, const struct gs_pod *last)
{
    gs_sync_pod_gone(ctx, last);
    gs_term_shown(ctx, last, true);
    return 0;
}

/* A pod may fit now although neither the largest free GPU nor their sum grew: it asked for a model,
 * or for two GPUs. */
static bool same_gpus(const struct gs_node_view *view, const struct gs_node *node)
{
    if (!view || !view->inventory || view->gpu_count != node->gpu_count)
        return false;
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const struct gs_gpu *old = &view->inventory[i], *new = &node->gpus[i];
        if (old->idx != new->idx || old->mem_units != new->mem_units ||
            old->max_pods != new->max_pods || gs_gpu_usable(old) != gs_gpu_usable(new) ||
            strcmp(old->uuid, new->uuid) != 0 || strcmp(old->model, new->model) != 0)
            return false;
    }
    return true;
}

static int on_node(void *ctx, const struct gs_node *node)
{
    struct gs_service *service = ctx;
    struct gs_store *store = &service->store;
    struct gs_error err = {0};
    gs_store_write(store);
    const struct gs_node_view *view = gs_ledger_view(store->ledger, gs_slice_of(node->name));
    bool same = same_gpus(view, node);
    bool had_gpus = view && view->gpu_count;
    int result = gs_ledger_set_node(store->ledger, node, &err);
    if (result == 0) {
        view = gs_ledger_view(store->ledger, gs_slice_of(node->name));
        bool news = false;
        gs_node_facts_set(&store->facts, view->slot, node, &news); /* no memory: what was known */
        if (!same || news || node->moved_count) /* who is told to be elsewhere may have made room */
            gs_store_freed(store, view->slot);
        if (view->gpu_count && !had_gpus && service->pods_begun)
            gs_new_nodes_add(&service->new_nodes, node->name);
    }
    gs_store_unlock(store);
    if (result < 0)
        gs_log(GS_LOG_ERROR, "node not taken in", GS_STR("node", node->name),
               GS_STR("why", err.msg));
    if (node->inventory_error && node->inventory_error[0])
        gs_log(GS_LOG_WARN, "inventory not believed", GS_STR("node", node->name),
               GS_STR("why", node->inventory_error));
    if (node->moved_error && node->moved_error[0])
        gs_log(GS_LOG_WARN, "list of moved pods not believed", GS_STR("node", node->name),
               GS_STR("why", node->moved_error));
    return result;
}

static int on_node_gone(void *ctx, const struct gs_node *last)
{
    struct gs_service *service = ctx;
    struct gs_ledger *ledger = service->store.ledger;
    gs_store_write(&service->store);
    const struct gs_node_view *view = gs_ledger_view(ledger, gs_slice_of(last->name));
    if (view)
        gs_node_facts_set(&service->store.facts, view->slot, NULL, NULL);
    gs_ledger_drop_node(ledger, last->name);
    gs_store_unlock(&service->store);
    return 0;
}

static int on_list_begin(void *ctx, enum gs_kind kind)
{
    struct gs_service *service = ctx;
    gs_store_write(&service->store);
    if (kind == GS_KIND_NODE) {
        gs_ledger_begin_nodes(service->store.ledger);
    } else {
        service->pods_begun = true;
        gs_ledger_begin_pods(service->store.ledger);
        gs_store_forget_ended(&service->store);
        gs_pending_begin(service->pending);
        gs_term_list_begins(service);
    }
    gs_store_unlock(&service->store);
    return 0;
}

static int on_list_end(void *ctx, enum gs_kind kind)
{
    struct gs_service *service = ctx;
    struct gs_store *store = &service->store;
    gs_store_write(store);
    if (kind == GS_KIND_NODE) {
        gs_ledger_sweep_nodes(store->ledger);
    } else {
        atomic_fetch_add(&service->swept_claims, gs_ledger_sweep_pods(store->ledger));
        gs_pending_sweep(service->pending);
    }
    for (uint32_t slot = 0; slot < gs_ledger_slots(store->ledger); slot++)
        gs_store_freed(store, slot);
    gs_store_unlock(store);
    if (kind == GS_KIND_POD)
        gs_term_list_ends(service);
    if (!atomic_exchange(&service->listed[kind], true))
        gs_log(GS_LOG_INFO, "list loaded", GS_STR("kind", kind == GS_KIND_NODE ? "nodes" : "pods"));
    return 0;
}

static void on_live(void *ctx, enum gs_kind kind, bool live, const char *why)
{
    struct gs_service *service = ctx;
    bool was = atomic_exchange(&service->live[kind], live);
    const char *name = kind == GS_KIND_NODE ? "nodes" : "pods";
    if (!live)
        gs_log(GS_LOG_WARN, "watch interrupted", GS_STR("kind", name), GS_STR("why", why));
    else if (!was)
        gs_log(GS_LOG_INFO, "watch stands", GS_STR("kind", name));
}

struct gs_watch_sink gs_service_sink(struct gs_service *service)
{
    return (struct gs_watch_sink){
        .ctx = service,
        .list_begin = on_list_begin,
        .list_end = on_list_end,
        .node = on_node,
        .node_gone = on_node_gone,
        .pod = on_pod,
        .pod_gone = on_pod_gone,
        .live = on_live,
    };
}
