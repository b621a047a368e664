/* SPDX-License-Identifier: Apache-2.0 */
/* What happens without being asked. */
#include <stdlib.h>

#include "bind.h"
#include "gpushare/base/log.h"

/*
 * Waking. kube-scheduler parks a refused pod until an event concerns it. Its caches may see memory
 * come free before our ledger does: then it asks too early, is refused, and nothing wakes the pod
 * again for minutes. So: a pod that was refused before a node gained memory, and would fit there
 * now, gets an annotation touched, which makes kube-scheduler look again. Each pod at a growing
 * distance, all pods together at a bounded rate.
 */
enum { WAKES_PER_TICK = 5, NODES_PER_TICK = 256 };
#define FIRST_PAUSE_NS   (1 * GS_NS_PER_S)
#define LAST_PAUSE_NS    (60 * GS_NS_PER_S)
#define AUDIT_EVERY_NS   (30 * GS_NS_PER_S)
#define REFRESH_EVERY_NS (1 * GS_NS_PER_S)

struct wake_round {
    struct gs_service *service;
    int64_t now_ns;
    uint32_t slots[NODES_PER_TICK]; /* nodes that gained memory since the last round */
    uint32_t slot_count;
    struct gs_pod *woken; /* copies of pods to wake */
    uint32_t woken_count;
};

static bool fits_now(const struct gs_store *store, const struct gs_waiter *waiter, uint32_t slot)
{
    struct gs_gpu_state room[GS_GPUS_MAX];
    struct gs_ask ask;
    if (slot >= gs_ledger_slots(store->ledger) || slot >= store->freed_cap ||
        store->freed_at[slot] <= waiter->epoch)
        return false;
    const struct gs_node_view *view = gs_ledger_view_at(store->ledger, slot);
    gs_ask_of_pod(&ask, waiter->pod);
    return view && gs_fit_beside_holds(store->ledger, view, &ask, room, NULL) == GS_FITS;
}

static bool consider(void *ctx, struct gs_waiter *waiter)
{
    struct wake_round *round = ctx;
    const struct gs_store *store = &round->service->store;
    if (waiter->slot != GS_INDEX_NONE && !fits_now(store, waiter, waiter->slot))
        waiter->slot = GS_INDEX_NONE; /* somebody else took it */
    for (uint32_t i = 0; waiter->slot == GS_INDEX_NONE && i < round->slot_count; i++) {
        if (fits_now(store, waiter, round->slots[i]))
            waiter->slot = round->slots[i];
    }
    if (waiter->slot == GS_INDEX_NONE || waiter->not_before_ns > round->now_ns ||
        round->woken_count == WAKES_PER_TICK)
        return true;
    if (gs_pod_copy(&round->woken[round->woken_count], waiter->pod) < 0)
        return false;
    round->woken_count++;
    uint32_t doublings = waiter->wakes < 6 ? waiter->wakes : 6;
    int64_t pause_ns = FIRST_PAUSE_NS << doublings;
    waiter->not_before_ns = round->now_ns + (pause_ns < LAST_PAUSE_NS ? pause_ns : LAST_PAUSE_NS);
    waiter->wakes++;
    return true;
}

static void wake_pod(struct gs_service *service, const struct gs_pod *pod, int64_t wall_ns)
{
    const struct gs_kube *kube = &service->config.kube;
    char value[32];
    snprintf(value, sizeof(value), "%lld", (long long)wall_ns);
    const struct gs_kv touch = {service->config.names->wake, value};
    const struct gs_meta_patch patch = {.ns = pod->ns,
                                        .name = pod->name,
                                        .uid = pod->uid,
                                        .annotations = &touch,
                                        .annotation_count = 1};
    struct gs_error err = {0};
    if (kube->ops->patch_pod(kube->ctx, &patch, &err) == 0) {
        atomic_fetch_add(&service->wakes, 1);
        gs_log(GS_LOG_INFO, "woken", GS_STR("pod", pod->name), GS_STR("namespace", pod->ns),
               GS_STR("why", "memory that it could use came free after it was refused"));
    } else {
        atomic_fetch_add(&service->wake_failures, 1);
        gs_log(GS_LOG_WARN, "not woken", GS_STR("pod", pod->name), GS_STR("namespace", pod->ns),
               GS_STR("why", err.msg));
    }
}

/* The nodes that gained memory since the last pass over all nodes; a pass takes several rounds when
 * there are more than a round holds. */
static void find_gains(struct gs_service *service, struct wake_round *round)
{
    const struct gs_store *store = &service->store;
    if (service->gain_cursor == 0)
        service->gain_epoch = store->frees;
    uint32_t slot = service->gain_cursor;
    for (; slot < store->freed_cap && round->slot_count < NODES_PER_TICK; slot++) {
        if (store->freed_at[slot] > service->woken_epoch)
            round->slots[round->slot_count++] = slot;
    }
    service->gain_cursor = slot;
    if (slot < store->freed_cap)
        return;
    service->gain_cursor = 0;
    service->woken_epoch = service->gain_epoch;
}

static void wake(struct gs_service *service, int64_t now_ns)
{
    struct gs_pod woken[WAKES_PER_TICK] = {0};
    struct wake_round round = {.service = service, .now_ns = now_ns, .woken = woken};
    gs_store_read(&service->store);
    find_gains(service, &round);
    gs_pending_each_waiter(service->pending, now_ns, consider, &round);
    gs_store_unlock(&service->store);
    int64_t wall_ns = service->config.clock->wall_ns(service->config.clock->ctx);
    for (uint32_t i = 0; i < round.woken_count; i++)
        wake_pod(service, &woken[i], wall_ns);
    for (uint32_t i = 0; i < WAKES_PER_TICK; i++)
        gs_pod_release(&woken[i]);
}

/* Binds without an answer: asks the API what became of them. */
static void settle_limbo(struct gs_service *service, int64_t now_ns)
{
    struct gs_limbo_entry entry;
    struct gs_error err = {0};
    if (!gs_limbo_due(service->limbo, now_ns, &entry))
        return;
    switch (gs_bind_read_back(service, entry.ns, entry.name, entry.uid, NULL, &err)) {
    case GS_BIND_BOUND:
    case GS_BIND_ELSEWHERE:
        gs_limbo_remove(service->limbo, entry.uid);
        break;
    case GS_BIND_POD_GONE:
        gs_bind_undo(service, entry.uid);
        break;
    case GS_BIND_UNBOUND:
        if (now_ns >= entry.until_ns)
            gs_bind_undo(service, entry.uid);
        break;
    case GS_BIND_UNKNOWN:
        break; /* looked at again in a second */
    }
    gs_limbo_entry_release(&entry);
}

/* Tables of fgd and rollout: built off the request path. */
static void refresh(struct gs_service *service, int64_t now_ns)
{
    struct gs_error err = {0};
    if (now_ns < service->next_refresh_ns)
        return;
    service->next_refresh_ns = now_ns + REFRESH_EVERY_NS;
    gs_store_read(&service->store);
    gs_policies_supply(service->store.policies, service->store.ledger);
    gs_store_unlock(&service->store);
    if (gs_policies_refresh_due(service->store.policies) &&
        gs_policies_refresh(service->store.policies, &err) < 0)
        gs_log(GS_LOG_WARN, "placement tables not refreshed", GS_STR("why", err.msg));
}

static void audit(struct gs_service *service, int64_t now_ns)
{
    if (now_ns < service->next_audit_ns)
        return;
    service->next_audit_ns = now_ns + AUDIT_EVERY_NS;
    gs_store_read(&service->store);
    uint32_t differing = gs_ledger_audit(service->store.ledger);
    gs_store_unlock(&service->store);
    atomic_store(&service->drift, differing);
    if (differing)
        gs_log(GS_LOG_ERROR, "the ledger's totals differ from its claims",
               GS_INT("gpus", differing));
}

void gs_service_tick(struct gs_service *service)
{
    int64_t now_ns = gs_clock_now_ns(service->config.clock);
    if (gs_service_refuses(service))
        return;
    wake(service, now_ns);
    settle_limbo(service, now_ns);
    refresh(service, now_ns);
    audit(service, now_ns);
}
