/* SPDX-License-Identifier: Apache-2.0 */
#include "holds.h"

#include <string.h>

#include "gpushare/base/log.h"
#include "service_internal.h"

static const char *place_of(const struct gs_waiter *waiter, const struct gs_pod *pod)
{
    const struct gs_offers *offers = &waiter->offers;
    if (offers->freed)
        return offers->freed;
    return pod->nominated_node[0] ? pod->nominated_node : offers->node;
}

struct following {
    struct gs_service *service;
    const struct gs_pod *pod;
    struct gs_error *err;
    int result;
    bool known, renominated;
};

static void follow(void *ctx, struct gs_waiter *waiter)
{
    struct following *following = ctx;
    const struct gs_pod *pod = following->pod;
    following->known = true;
    following->renominated =
        pod->nominated_node[0] && strcmp(pod->nominated_node, waiter->pod->nominated_node) != 0;
    if (following->renominated)
        gs_offers_forget_freed(&waiter->offers);
    following->result =
        gs_holds_set(following->service, pod, place_of(waiter, pod), 0, following->err);
}

int gs_holds_follow(struct gs_service *service, const struct gs_pod *pod, struct gs_error *err)
{
    struct following following = {service, pod, err, 0, false, false};
    gs_pending_known(service->pending, pod->uid, follow, &following);
    if (!following.known)
        return gs_holds_set(service, pod, pod->nominated_node, 0, err);
    if (following.renominated)
        gs_eviction_waits_settle(&service->eviction_waits, pod->uid, pod->nominated_node,
                                 gs_service_now(service));
    return following.result;
}

/* For a pod that the watch showed, after its offers changed; the table is locked. */
static void update_hold(struct gs_service *service, const struct gs_waiter *waiter)
{
    if (waiter->shown) /* no memory: as it was until its next event */
        (void)gs_holds_set(service, waiter->pod, place_of(waiter, waiter->pod), 0, NULL);
}

static void update(void *ctx, struct gs_waiter *waiter)
{
    update_hold(ctx, waiter);
}

void gs_holds_again(struct gs_service *service, const char *uid)
{
    gs_pending_known(service->pending, uid, update, service);
}

int gs_holds_set(struct gs_service *service, const struct gs_pod *pod, const char *node,
                 gs_gpu_mask gpus, struct gs_error *err)
{
    struct gs_store *store = &service->store;
    if (!gpus && gs_ledger_promised(store->cluster.ledger, pod->uid, NULL))
        return 0; /* that comes first: promises.h */
    uint32_t before = gs_ledger_hold_slot(store->cluster.ledger, pod->uid);
    if (gs_ledger_hold_pod(store->cluster.ledger, pod, node, gpus, err) < 0)
        return -1;
    if (before != GS_INDEX_NONE && gs_ledger_hold_slot(store->cluster.ledger, pod->uid) != before)
        gs_store_freed(store, before, gs_hash_text(pod->uid));
    return 0;
}

void gs_holds_end_offer(struct gs_service *service, struct gs_waiter *waiter)
{
    struct gs_offers *offers = &waiter->offers;
    free(offers->node);
    offers->node = NULL;
    offers->failed = false;
    update_hold(service, waiter);
    waiter->slot = GS_INDEX_NONE;
    waiter->anywhere = true;
}

struct freeing {
    struct gs_service *service;
    const char *node;
    bool shown; /* out */
};

static void reserve_freed(void *ctx, struct gs_waiter *waiter)
{
    struct freeing *freeing = ctx;
    struct gs_offers *offers = &waiter->offers;
    freeing->shown = waiter->shown;
    if (!waiter->shown || (offers->freed && strcmp(offers->freed, freeing->node) == 0))
        return;
    gs_offers_forget_freed(offers);
    offers->freed = strdup(freeing->node);
    offers->freed_ns = gs_service_now(freeing->service);
    gs_holds_end_offer(freeing->service, waiter);
    gs_log(GS_LOG_INFO, "freed memory reserved", GS_STR("pod", waiter->pod->name),
           GS_STR("namespace", waiter->pod->ns), GS_STR("node", freeing->node));
}

bool gs_holds_freed(void *ctx, const char *uid, const char *node)
{
    struct gs_service *service = ctx;
    struct freeing freeing = {service, node, false};
    gs_pending_known(service->pending, uid, reserve_freed, &freeing);
    return freeing.shown;
}
