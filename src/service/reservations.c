/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

static const char *place_of(const struct gs_waiter *waiter, const struct gs_pod *pod)
{
    const struct gs_nominations *nominations = &waiter->nominations;
    if (nominations->freed)
        return nominations->freed;
    return pod->nominated_node[0] ? pod->nominated_node : nominations->node;
}

int gs_reservations_follow(struct gs_service *service, const struct gs_pod *pod,
                           struct gs_error *err)
{
    struct gs_waiter *waiter = gs_pending_lock(service->pending, pod->uid);
    if (!waiter)
        return gs_reservations_set(service, pod, pod->nominated_node, 0, err);
    const bool renominated =
        pod->nominated_node[0] && strcmp(pod->nominated_node, waiter->pod->nominated_node) != 0;
    if (renominated)
        gs_nominations_forget_freed(&waiter->nominations);
    int result = gs_reservations_set(service, pod, place_of(waiter, pod), 0, err);
    gs_pending_unlock(service->pending, waiter);
    if (renominated)
        gs_eviction_waits_settle(&service->eviction_waits, pod->uid, pod->nominated_node,
                                 gs_service_now(service));
    return result;
}

/* For a pod that the watch showed, after its nomination changed; the table is locked. */
static void update_hold(struct gs_service *service, const struct gs_waiter *waiter)
{
    if (waiter->shown) /* no memory: as it was until its next event */
        (void)gs_reservations_set(service, waiter->pod, place_of(waiter, waiter->pod), 0, NULL);
}

void gs_reservations_again(struct gs_service *service, const char *uid)
{
    struct gs_waiter *waiter = gs_pending_lock(service->pending, uid);
    if (!waiter)
        return;
    update_hold(service, waiter);
    gs_pending_unlock(service->pending, waiter);
}

int gs_reservations_set(struct gs_service *service, const struct gs_pod *pod, const char *node,
                        gs_gpu_mask gpus, struct gs_error *err)
{
    struct gs_store *store = &service->store;
    if (!gpus && gs_ledger_promised(store->cluster.ledger, pod->uid, NULL))
        return 0; /* that comes first: gang_reservations.h */
    uint32_t before = gs_ledger_hold_slot(store->cluster.ledger, pod->uid);
    if (gs_ledger_hold_pod(store->cluster.ledger, pod, node, gpus, err) < 0)
        return -1;
    if (before != GS_INDEX_NONE && gs_ledger_hold_slot(store->cluster.ledger, pod->uid) != before)
        gs_store_freed(store, before, gs_hash_text(pod->uid));
    return 0;
}

void gs_reservations_end_nomination(struct gs_service *service, struct gs_waiter *waiter)
{
    struct gs_nominations *nominations = &waiter->nominations;
    free(nominations->node);
    nominations->node = NULL;
    nominations->failed = false;
    update_hold(service, waiter);
    waiter->slot = GS_INDEX_NONE;
    waiter->anywhere = true;
}

static void reserve_freed(struct gs_service *service, struct gs_waiter *waiter, const char *node)
{
    struct gs_nominations *nominations = &waiter->nominations;
    if (nominations->freed && strcmp(nominations->freed, node) == 0)
        return;
    gs_nominations_forget_freed(nominations);
    nominations->freed = strdup(node);
    nominations->freed_ns = gs_service_now(service);
    gs_reservations_end_nomination(service, waiter);
    gs_log(GS_LOG_INFO, "freed memory reserved", GS_STR("pod", waiter->pod->name),
           GS_STR("namespace", waiter->pod->ns), GS_STR("node", node));
}

bool gs_reservations_freed(void *ctx, const char *uid, const char *node)
{
    struct gs_service *service = ctx;
    struct gs_waiter *waiter = gs_pending_lock(service->pending, uid);
    if (!waiter)
        return false;
    const bool shown = waiter->shown;
    if (shown)
        reserve_freed(service, waiter, node);
    gs_pending_unlock(service->pending, waiter);
    return shown;
}
