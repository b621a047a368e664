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
    return !nominated[0] || (waiter->offers.offered_ns && slot < gs_ledger_slots(ledger) &&
                             gs_ledger_view_at(ledger, slot) &&
                             strcmp(gs_ledger_node_name(ledger, slot), nominated) == 0);
}

static void look_on(void *ctx, struct gs_waiter *waiter)
{
    const struct look *look = ctx;
    struct gs_offers *offers = &waiter->offers;
    offers->refused = true;
    if (!is_free(look->ledger, waiter))
        return;
    if (offers->ended_ns && look->now_ns - offers->ended_ns >= GS_OFFERS_AGAIN_NS)
        offers->next_slot = 0, offers->ended_ns = 0;
    waiter->slot = gs_fit_first(look->ledger, look->ask, offers->next_slot);
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
    if (!atomic_load(&service->nominates))
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
    waiter->offers.offered_ns = 0;
    waiter->slot = GS_INDEX_NONE;
}

void gs_offers_leave(struct gs_service *service, const char *uid)
{
    if (atomic_load(&service->nominates))
        gs_pending_waiter(service->pending, uid, leave, NULL);
}

static void given_up(void *ctx, struct gs_waiter *waiter)
{
    const struct gs_store *store = ctx;
    waiter->offers.given_up_at = store->frees;
}

void gs_offers_given_up(struct gs_service *service, const char *uid)
{
    if (atomic_load(&service->nominates))
        gs_pending_waiter(service->pending, uid, given_up, &service->store);
}

bool gs_offers_make(const struct gs_ledger *ledger, struct gs_waiter *waiter, int64_t now_ns)
{
    struct gs_offers *offers = &waiter->offers;
    if (!offers->refused || !is_free(ledger, waiter))
        return false;
    if (!waiter->epoch && waiter->slot >= offers->next_slot) {
        offers->next_slot = waiter->slot + 1;
        offers->young_until_ns = now_ns + GS_OFFER_YOUNG_NS;
    }
    offers->offered_slot = waiter->slot;
    offers->offered_ns = now_ns;
    return true;
}

bool gs_offers_take_back(const struct gs_ledger *ledger, struct gs_waiter *waiter, int64_t now_ns)
{
    struct gs_offers *offers = &waiter->offers;
    if (!offers->offered_ns || now_ns - offers->offered_ns < GS_OFFER_YOUNG_NS ||
        !is_free(ledger, waiter))
        return false;
    if (!waiter->pod->nominated_node[0]) {
        if (now_ns - offers->offered_ns >= GS_OFFERS_AGAIN_NS)
            offers->offered_ns = 0; /* a nomination to that node is somebody else's from now on */
        return false;
    }
    offers->offered_ns = now_ns; /* when the patch fails, or is not even sent, it is repeated */
    return true;
}
