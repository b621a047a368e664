/* SPDX-License-Identifier: Apache-2.0 */
/* What the watches tell goes into the cluster (gpushare/cluster/cluster.h), under the store's lock;
 * here is what the extender has more: who waits, whose bind is open, whom to wake. */
#include "gpushare/base/log.h"
#include "holds.h"
#include "service_internal.h"

/* --- what the cluster tells --- */

static int on_bound(void *ctx, const struct gs_pod *pod, bool known)
{
    struct gs_service *service = ctx;
    if (pod->assume_time_ns)
        gs_askers_bound(&service->askers, pod->scheduler_name);
    bool waited = gs_pending_remove(service->pending, pod->uid);
    gs_open_binds_remove(service->open_binds, pod->uid);
    if (gs_recent_bind_shown(service, pod->ns, pod->name, pod->uid) && !known)
        gs_wrong_uid_alarm(service, pod->ns, pod->name, pod->uid, pod->node_name);
    return waited;
}

static int on_waits(void *ctx, const struct gs_pod *pod, struct gs_error *err)
{
    struct gs_service *service = ctx;
    return gs_pending_put(service->pending, pod, err);
}

static int on_holds(void *ctx, const struct gs_pod *pod, struct gs_error *err)
{
    return gs_holds_follow(ctx, pod, err);
}

static void on_ended(void *ctx, const struct gs_pod *pod)
{
    struct gs_service *service = ctx;
    gs_pending_remove(service->pending, pod->uid);
    gs_open_binds_remove(service->open_binds, pod->uid);
}

static void on_freed(void *ctx, uint32_t slot)
{
    struct gs_service *service = ctx;
    gs_store_freed(&service->store, slot);
}

const struct gs_cluster_owner gs_sync_owner = {
    .bound = on_bound,
    .waits = on_waits,
    .holds = on_holds,
    .ended = on_ended,
    .freed = on_freed,
    .keeps_labels = true,
};

/* --- what the watches tell --- */

bool gs_sync_refused(struct gs_service *service, const struct gs_pod *pod, enum gs_reason why,
                     uint64_t epoch)
{
    gs_store_read(&service->store); /* held meanwhile: its end comes before or after */
    bool ended = gs_cluster_has_ended(&service->store.cluster, pod->uid, true);
    bool news = !ended && gs_pending_refused(service->pending, pod, why, epoch,
                                             gs_clock_now_ns(service->config.clock));
    gs_store_unlock(&service->store);
    return news;
}

static int take_in(struct gs_service *service, const struct gs_pod *pod, bool read)
{
    struct gs_error err = {0};
    gs_store_write(&service->store);
    int result = gs_cluster_pod(&service->store.cluster, pod, read, &err);
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
    gs_cluster_pod_gone(&service->store.cluster, last);
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

static int on_node(void *ctx, const struct gs_node *node)
{
    struct gs_service *service = ctx;
    struct gs_store *store = &service->store;
    struct gs_error err = {0};
    gs_store_write(store);
    const struct gs_node_view *view = gs_store_view(store, node->name);
    bool had_gpus = view && view->gpu_count;
    int result = gs_cluster_node(&store->cluster, node, &err);
    if (result == 0 && !had_gpus && service->pods_begun &&
        gs_store_view(store, node->name)->gpu_count)
        gs_new_nodes_add(&service->new_nodes, node->name);
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
    gs_store_write(&service->store);
    gs_cluster_node_gone(&service->store.cluster, last->name);
    gs_store_unlock(&service->store);
    return 0;
}

static int on_list_begin(void *ctx, enum gs_kind kind)
{
    struct gs_service *service = ctx;
    gs_store_write(&service->store);
    gs_cluster_list_begin(&service->store.cluster, kind);
    if (kind == GS_KIND_POD) {
        service->pods_begun = true;
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
    atomic_fetch_add(&service->swept_claims, gs_cluster_list_end(&store->cluster, kind));
    if (kind == GS_KIND_POD)
        gs_pending_sweep(service->pending);
    for (uint32_t slot = 0; slot < gs_ledger_slots(store->cluster.ledger); slot++)
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
