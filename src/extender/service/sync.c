/* SPDX-License-Identifier: Apache-2.0 */
/* What the watches tell goes into the cluster (gpushare/cluster/cluster.h), under its lock;
 * here is what the extender has more: which pods are pending, unresolved binds, which pods to
 * requeue. */
#include "service_internal.h"

/* --- what the cluster tells --- */

/* It is bound there; NULL: it ended. True when the watch had shown it unbound. */
static bool forget_pending(struct gs_service *service, const struct gs_pod *pod, const char *node)
{
    const bool waited = gs_pending_remove(service->pending, pod->uid);
    if (waited)
        gs_eviction_waits_settle(service, pod->uid, node);
    gs_bind_reservations_remove(service, pod->uid);
    return waited;
}

static int on_bound(void *ctx, const struct gs_pod *pod, bool known)
{
    struct gs_service *service = ctx;
    if (pod->assume_time_ns)
        gs_scheduler_activity_note(service->schedulers.bound, pod->scheduler_name);
    return forget_pending(service, pod, pod->node_name);
}

static int on_waits(void *ctx, const struct gs_pod *pod, struct gs_error *err)
{
    struct gs_service *service = ctx;
    return gs_pending_put(service->pending, pod, err);
}

static void on_ended(void *ctx, const struct gs_pod *pod)
{
    forget_pending(ctx, pod, NULL);
}

static void on_freed(void *ctx, uint32_t slot)
{
    struct gs_service *service = ctx;
    gs_service_freed(service, slot, 0);
}

const struct gs_cluster_owner gs_sync_owner = {
    .bound = on_bound,
    .waits = on_waits,
    .holds = gs_reservations_follow,
    .ended = on_ended,
    .freed = on_freed,
};

/* --- what the watches tell --- */

bool gs_sync_refused(struct gs_service *service, const struct gs_pod *pod, enum gs_reason why,
                     uint64_t epoch)
{
    gs_service_read(service); /* held meanwhile: its end comes before or after */
    bool ended = gs_cluster_has_ended(&service->cluster, pod->uid, true);
    bool news =
        !ended && gs_pending_refused(service->pending, pod, why, epoch, gs_service_now(service));
    gs_service_unlock(service);
    return news;
}

/* The watch has shown the pod as it is in this list, and the ledger has something else: a bug. */
static bool differs(const struct gs_service *service, const struct gs_pod *pod)
{
    struct gs_claim claim, expected;
    if (gs_pod_revision(pod) > service->compared || !pod->node_name[0] || gs_pod_terminal(pod) ||
        !gs_pod_wants_gpu(pod))
        return false;
    if (!gs_ledger_find_claim(service->ledger, pod->uid, &claim))
        return !gs_cluster_has_ended(&service->cluster, pod->uid, true);
    gs_claim_of_pod(pod, &expected);
    gs_claim_follow(service->ledger, &expected, false);
    return strcmp(claim.node, pod->node_name) != 0 || claim.units != expected.units ||
           claim.gpus != expected.gpus || claim.also != expected.also;
}

int gs_sync_pod(struct gs_service *service, const struct gs_pod *pod, bool read)
{
    struct gs_error err = {0};
    gs_service_write(service);
    const bool drift = !read && service->compared && differs(service, pod);
    if (pod->deleting && pod->node_name[0] && !gs_pod_terminal(pod))
        gs_eviction_waits_go(service, pod);
    int result = gs_cluster_pod(&service->cluster, pod, read, &err);
    gs_service_unlock(service);
    atomic_fetch_add(&service->drifted_pods, drift);
    if (drift)
        gs_log(GS_LOG_ERROR, "ledger differed from API server", GS_POD_FIELDS(pod),
               GS_STR("uid", pod->uid));
    if (result < 0)
        gs_log(GS_LOG_ERROR, "cannot add pod to ledger", GS_POD_FIELDS(pod),
               GS_STR("error", err.msg));
    return result;
}

static int on_pod(void *ctx, const struct gs_pod *pod)
{
    int result = gs_sync_pod(ctx, pod, false);
    if (result == 0)
        gs_term_shown(ctx, pod, false);
    return result;
}

static int on_pod_gone(void *ctx, const struct gs_pod *last)
{
    struct gs_service *service = ctx;
    gs_service_write(service);
    if (last->node_name[0] && !gs_pod_terminal(last))
        gs_eviction_waits_go(service, last);
    gs_cluster_pod_gone(&service->cluster, last);
    gs_service_unlock(service);
    gs_term_shown(service, last, true);
    return 0;
}

static int on_node(void *ctx, const struct gs_node *node)
{
    struct gs_service *service = ctx;
    struct gs_error err = {0};
    gs_service_write(service);
    int result = gs_cluster_node(&service->cluster, node, &err);
    gs_service_unlock(service);
    if (result < 0)
        gs_log(GS_LOG_ERROR, "cannot add node to ledger", GS_STR("node", node->name),
               GS_STR("error", err.msg));
    if (node->inventory_error && node->inventory_error[0])
        gs_log(GS_LOG_WARN, "invalid GPU inventory ignored", GS_STR("node", node->name),
               GS_STR("error", node->inventory_error));
    if (node->moved_error && node->moved_error[0])
        gs_log(GS_LOG_WARN, "invalid list of reassigned pods ignored", GS_STR("node", node->name),
               GS_STR("error", node->moved_error));
    return result;
}

static int on_node_gone(void *ctx, const struct gs_node *last)
{
    struct gs_service *service = ctx;
    gs_service_write(service);
    gs_cluster_node_gone(&service->cluster, last->name);
    gs_service_unlock(service);
    return 0;
}

static int on_list_begin(void *ctx, enum gs_kind kind)
{
    struct gs_service *service = ctx;
    gs_service_write(service);
    gs_cluster_list_begin(&service->cluster, kind);
    if (kind == GS_KIND_POD) {
        gs_pending_begin(service->pending);
        const uint64_t shown = gs_term_list_begins(service);
        service->compared = atomic_exchange(&service->compares, false) ? shown : 0;
    }
    gs_service_unlock(service);
    return 0;
}

/* What the list does not have went while no watch stood. */
static bool go_unlisted(void *ctx, const struct gs_claim *claim)
{
    struct gs_service *service = ctx;
    const struct gs_pod pod = {.uid = claim->uid, .node_name = claim->node};
    if (!claim->seen && claim->state == GS_CLAIM_CONFIRMED)
        gs_eviction_waits_go(service, &pod);
    return true;
}

static int on_list_end(void *ctx, enum gs_kind kind)
{
    struct gs_service *service = ctx;
    gs_service_write(service);
    if (kind == GS_KIND_POD)
        gs_ledger_each(service->ledger, go_unlisted, service);
    const uint32_t swept = gs_cluster_list_end(&service->cluster, kind);
    atomic_fetch_add(&service->swept_claims, swept);
    /* what came free before a planned list was seen by the watch */
    const bool news = kind == GS_KIND_NODE || !service->compared || swept;
    if (kind == GS_KIND_POD) {
        gs_pending_sweep(service->pending);
        service->compared = 0;
    }
    for (uint32_t slot = 0; news && slot < gs_ledger_slots(service->ledger); slot++)
        gs_service_freed(service, slot, 0);
    gs_service_unlock(service);
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
        gs_log(GS_LOG_WARN, "watch interrupted", GS_STR("kind", name), GS_STR("error", why));
    else if (!was)
        gs_log(GS_LOG_INFO, "watch established", GS_STR("kind", name));
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
