/* SPDX-License-Identifier: Apache-2.0 */
#include "holds.h"

#include <stdio.h>

#include "service_internal.h"

struct place {
    char *room;
    bool held; /* out */
};

static void look_at_place(void *ctx, struct gs_waiter *waiter)
{
    struct place *place = ctx;
    place->held = waiter->offers.node != NULL;
    if (place->held)
        snprintf(place->room, GS_NODE_NAME_BYTES, "%s", waiter->offers.node);
}

/* The node whose place is held for an offer that the pod does not show yet, else NULL. */
static const char *offered_place(struct gs_service *service, const char *uid,
                                 char room[GS_NODE_NAME_BYTES])
{
    struct place place = {.room = room};
    gs_pending_known(service->pending, uid, look_at_place, &place);
    return place.held ? room : NULL;
}

static void given_up(void *ctx, struct gs_waiter *waiter)
{
    const struct gs_store *store = ctx;
    waiter->offers.given_up_at = store->frees;
}

/* The pod holds that place no more: news to every pod but itself. */
static void give_place_up(struct gs_service *service, const char *uid, uint32_t slot)
{
    gs_store_freed(&service->store, slot);
    gs_pending_known(service->pending, uid, given_up, &service->store);
}

int gs_holds_follow(struct gs_service *service, const struct gs_pod *pod, struct gs_error *err)
{
    char room[GS_NODE_NAME_BYTES];
    const char *node = pod->nominated_node;
    if (!node[0])
        node = offered_place(service, pod->uid, room);
    return gs_holds_set(service, pod, node, err);
}

static void look_whether(void *ctx, struct gs_waiter *waiter)
{
    *(bool *)ctx = waiter->pod->nominated_node[0] || waiter->offers.node;
}

void gs_holds_again(struct gs_service *service, const char *uid)
{
    struct gs_pod pod = {0};
    bool has_place = false;
    gs_pending_known(service->pending, uid, look_whether, &has_place);
    if (has_place && gs_pending_get(service->pending, uid, &pod, NULL) == 0)
        (void)gs_holds_follow(service, &pod, NULL); /* no memory: none until its next event */
    gs_pod_release(&pod);
}

int gs_holds_set(struct gs_service *service, const struct gs_pod *pod, const char *node,
                 struct gs_error *err)
{
    struct gs_store *store = &service->store;
    if (gs_ledger_promised(store->cluster.ledger, pod->uid, NULL))
        return 0; /* that comes first: promises.h */
    uint32_t before = gs_ledger_hold_slot(store->cluster.ledger, pod->uid);
    if (gs_ledger_hold_pod(store->cluster.ledger, pod, node, 0, err) < 0)
        return -1;
    if (before != GS_INDEX_NONE && gs_ledger_hold_slot(store->cluster.ledger, pod->uid) != before)
        give_place_up(service, pod->uid, before);
    return 0;
}
