/* SPDX-License-Identifier: Apache-2.0 */
#include "offers.h"

#include "service_internal.h"

struct look {
    const struct gs_ledger *ledger;
    const struct gs_ask *ask;
    int64_t now_ns;
    bool young; /* out */
};

/* Nobody nominated the pod, or we did. */
static bool is_free(const struct gs_ledger *ledger, const struct gs_waiter *waiter)
{
    const char *nominated = waiter->pod->nominated_node;
    uint32_t slot = waiter->offers.offered_slot;
    return !nominated[0] || (waiter->offers.nominated && slot < gs_ledger_slots(ledger) &&
                             gs_ledger_view_at(ledger, slot) &&
                             strcmp(gs_ledger_node_name(ledger, slot), nominated) == 0);
}

static uint32_t find_room(const struct look *look, uint32_t from)
{
    struct gs_gpu_state room[GS_GPUS_MAX];
    for (uint32_t slot = from; slot < gs_ledger_slots(look->ledger); slot++) {
        const struct gs_node_view *view = gs_ledger_view_at(look->ledger, slot);
        if (view && gs_fit_beside_holds(look->ledger, view, look->ask, room, NULL) == GS_FITS)
            return slot;
    }
    return GS_INDEX_NONE;
}

static void look_on(void *ctx, struct gs_waiter *waiter)
{
    const struct look *look = ctx;
    struct gs_offers *offers = &waiter->offers;
    if (!is_free(look->ledger, waiter))
        return;
    if (offers->ended_ns && look->now_ns - offers->ended_ns >= GS_OFFERS_AGAIN_NS)
        offers->next_slot = 0, offers->ended_ns = 0;
    waiter->slot = find_room(look, offers->next_slot);
    if (waiter->slot != GS_INDEX_NONE) {
        waiter->epoch = 0; /* it fits as things are */
        offers->young_until_ns = look->now_ns + GS_OFFER_YOUNG_NS;
        return;
    }
    offers->young_until_ns = 0;
    if (!offers->ended_ns)
        offers->ended_ns = look->now_ns;
}

void gs_offers_look(struct gs_service *service, const char *uid, const struct gs_ask *ask)
{
    if (!service->config.nominates)
        return;
    struct look look = {.ledger = service->store.ledger,
                        .ask = ask,
                        .now_ns = gs_clock_now_ns(service->config.clock)};
    gs_store_read(&service->store);
    gs_pending_waiter(service->pending, uid, look_on, &look);
    gs_store_unlock(&service->store);
}

static void is_young(void *ctx, struct gs_waiter *waiter)
{
    struct look *look = ctx;
    look->young = look->now_ns < waiter->offers.young_until_ns;
}

bool gs_offers_young(struct gs_service *service, const char *uid)
{
    struct look look = {.now_ns = gs_clock_now_ns(service->config.clock)};
    return gs_pending_waiter(service->pending, uid, is_young, &look) && look.young;
}

static void leave(void *ctx, struct gs_waiter *waiter)
{
    waiter->offers.nominated = false;
    waiter->slot = GS_INDEX_NONE;
}

void gs_offers_leave(struct gs_service *service, const char *uid)
{
    if (service->config.nominates)
        gs_pending_waiter(service->pending, uid, leave, NULL);
}

static void given_up(void *ctx, struct gs_waiter *waiter)
{
    const struct gs_store *store = ctx;
    waiter->offers.given_up_at = store->frees;
}

void gs_offers_given_up(struct gs_service *service, const char *uid)
{
    if (service->config.nominates)
        gs_pending_waiter(service->pending, uid, given_up, &service->store);
}

bool gs_offers_make(const struct gs_ledger *ledger, struct gs_waiter *waiter, int64_t now_ns)
{
    struct gs_offers *offers = &waiter->offers;
    if (!is_free(ledger, waiter))
        return false;
    if (!waiter->epoch && waiter->slot >= offers->next_slot) {
        offers->next_slot = waiter->slot + 1;
        offers->young_until_ns = now_ns + GS_OFFER_YOUNG_NS;
    }
    offers->offered_slot = waiter->slot;
    offers->nominated = true;
    return true;
}

bool gs_offers_take_back(const struct gs_ledger *ledger, struct gs_waiter *waiter, int64_t now_ns)
{
    struct gs_offers *offers = &waiter->offers;
    if (!offers->nominated || !waiter->pod->nominated_node[0] || !is_free(ledger, waiter) ||
        now_ns - waiter->last_wake_ns < GS_OFFER_YOUNG_NS)
        return false;
    offers->nominated = false;
    return true;
}
