/* SPDX-License-Identifier: Apache-2.0 */
/* What happens without being asked. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bind.h"
#include "gpushare/base/log.h"

/*
 * Waking. kube-scheduler parks a refused pod until an event concerns it, for minutes. Its caches
 * may see memory come free before our ledger does, and then it asks too early; another pod's bind
 * may be faster than this one's; the API may fail a bind; this program may have been away. So a
 * pod that waits and would fit now gets an annotation touched, which makes kube-scheduler look
 * again. Each pod at a growing distance, shorter again when memory came free since, all pods
 * together at a bounded rate.
 */
enum { WAITERS_PER_LOOK = 256, BREATH_NS = 50000 };
enum { WAKES_PER_TICK = 5, NODES_PER_TICK = 256, DOUBLINGS_MAX = 6, DOUBLINGS_AFTER_GAIN = 2 };
#define FIRST_PAUSE_NS   (1 * GS_NS_PER_S)
#define SETTLE_NS        (300 * GS_NS_PER_MS) /* until kube-scheduler has parked a refused pod */
#define AUDIT_EVERY_NS   (30 * GS_NS_PER_S)
#define REFRESH_EVERY_NS (1 * GS_NS_PER_S)
#define AGAIN_EVERY_NS   (1 * GS_NS_PER_S) /* over nodes that gained before */

/* A patch of a waiting pod. */
struct wake {
    struct gs_pod pod; /* a copy */
    const char *why;   /* it is woken; NULL: it is not */
    const char *node;  /* in the copy's arena: where it is nominated; "": no more; NULL: as it is */
};

struct wake_round {
    struct gs_service *service;
    int64_t now_ns;
    uint32_t slots[NODES_PER_TICK]; /* nodes that gained memory since the last round */
    uint32_t slot_count;
    uint32_t gained_units; /* what is free on one GPU of the best of these nodes */
    struct wake *woken;
    uint32_t woken_count;
};

static bool fits_now(const struct gs_store *store, const struct gs_waiter *waiter,
                     const struct gs_ask *ask, uint32_t slot)
{
    struct gs_gpu_state room[GS_GPUS_MAX];
    if (slot >= gs_ledger_slots(store->ledger) ||
        (waiter->epoch && (slot >= store->freed_cap || store->freed_at[slot] <= waiter->epoch ||
                           store->freed_at[slot] == waiter->offers.given_up_at)))
        return false;
    const struct gs_node_view *view = gs_ledger_view_at(store->ledger, slot);
    return view && gs_fit_beside_holds(store->ledger, view, ask, room, NULL) == GS_FITS;
}

/* Looks for a node: among those that gained memory, or among all for a pod that did not wait for
 * memory. Most pods want more than what came free: they are done with one comparison. */
static void find_node(const struct wake_round *round, struct gs_waiter *waiter)
{
    struct gs_service *service = round->service;
    const struct gs_store *store = &round->service->store;
    if (waiter->slot == GS_INDEX_NONE && waiter->epoch && !round->slot_count)
        return;
    struct gs_ask ask;
    struct gs_match match;
    gs_ask_of_pod(&ask, waiter->pod);
    if (waiter->slot == GS_INDEX_NONE && waiter->epoch && ask.units > round->gained_units)
        return;
    gs_ask_match(&ask, store->ledger, &match);
    if (waiter->slot != GS_INDEX_NONE && !fits_now(store, waiter, &ask, waiter->slot)) {
        waiter->slot = GS_INDEX_NONE; /* somebody else took it; another may have gained with it */
        if (waiter->epoch && (!service->lost_epoch || waiter->epoch < service->lost_epoch))
            service->lost_epoch = waiter->epoch;
    }
    if (waiter->slot != GS_INDEX_NONE)
        return;
    uint32_t slots = ask.units <= round->gained_units ? round->slot_count : 0;
    for (uint32_t i = 0; waiter->slot == GS_INDEX_NONE && i < slots; i++) {
        if (fits_now(store, waiter, &ask, round->slots[i]))
            waiter->slot = round->slots[i];
    }
    if (waiter->slot != GS_INDEX_NONE && waiter->wakes > DOUBLINGS_AFTER_GAIN)
        waiter->wakes = DOUBLINGS_AFTER_GAIN;
    if (waiter->slot == GS_INDEX_NONE && !waiter->epoch) {
        waiter->slot = gs_fit_first(store->ledger, &ask, waiter->offers.next_slot);
        if (waiter->slot == GS_INDEX_NONE)
            waiter->epoch = store->frees; /* nowhere now: from here on it waits for memory */
    }
}

static int64_t due_ns(const struct gs_waiter *waiter)
{
    int64_t due = waiter->refused_ns + SETTLE_NS;
    if (waiter->wakes) {
        uint32_t doublings = waiter->wakes - 1 < DOUBLINGS_MAX ? waiter->wakes - 1 : DOUBLINGS_MAX;
        int64_t again = waiter->last_wake_ns + (FIRST_PAUSE_NS << doublings);
        due = again > due ? again : due;
    }
    return due;
}

static bool consider(void *ctx, struct gs_waiter *waiter)
{
    struct wake_round *round = ctx;
    const struct gs_ledger *ledger = round->service->store.ledger;
    struct wake *wake = &round->woken[round->woken_count];
    find_node(round, waiter);
    if (round->woken_count == WAKES_PER_TICK)
        return true;
    bool due = waiter->slot != GS_INDEX_NONE && due_ns(waiter) <= round->now_ns;
    if (!due && !gs_offers_take_back(ledger, waiter, round->now_ns))
        return true;
    if (gs_pod_copy(&wake->pod, waiter->pod) < 0)
        return false;
    round->woken_count++;
    if (!due) {
        wake->node = "";
        return true;
    }
    wake->why = waiter->epoch
                    ? "a node where it fits gained room since it was refused"
                    : "it waits though a node has room: nobody asked about it, or its bind failed";
    if (atomic_load(&round->service->nominates) && gs_offers_make(ledger, waiter, round->now_ns)) {
        const char *node = gs_ledger_node_name(ledger, waiter->slot);
        wake->node = gs_arena_strndup(&wake->pod.arena, node, strlen(node));
    }
    waiter->last_wake_ns = round->now_ns;
    waiter->wakes++;
    return true;
}

static int patch_pod(struct gs_service *service, const struct wake *wake, const char *node,
                     int64_t wall_ns, struct gs_error *err)
{
    const struct gs_kube *kube = &service->config.kube;
    char value[32];
    snprintf(value, sizeof(value), "%lld", (long long)wall_ns);
    const struct gs_kv touch = {service->config.names->wake, value};
    const struct gs_meta_patch patch = {.ns = wake->pod.ns,
                                        .name = wake->pod.name,
                                        .uid = wake->pod.uid,
                                        .annotations = &touch,
                                        .annotation_count = wake->why ? 1 : 0,
                                        .nominated_node = node};
    return kube->ops->patch_pod(kube->ctx, &patch, err);
}

/* Of a pod that is no more, or was created anew meanwhile, that is no bad news. */
static enum gs_log_level level_of(enum gs_code code)
{
    return code == GS_ENOENT || code == GS_ECONFLICT ? GS_LOG_DEBUG : GS_LOG_WARN;
}

/* Wakes the pod in the same patch, if it is woken. False: nothing was changed. */
static bool nominate(struct gs_service *service, const struct wake *wake, int64_t wall_ns)
{
    const struct gs_pod *pod = &wake->pod;
    struct gs_error err = {0};
    if (patch_pod(service, wake, wake->node, wall_ns, &err) < 0) {
        /* 422: it was bound just now */
        gs_log(err.code == GS_EINVAL ? GS_LOG_DEBUG : level_of(err.code),
               wake->node[0] ? "not nominated" : "nomination not taken back",
               GS_STR("pod", pod->name), GS_STR("namespace", pod->ns), GS_STR("node", wake->node),
               GS_STR("why", err.msg));
        return false;
    }
    if (wake->node[0]) {
        atomic_fetch_add(&service->nominations, 1);
        gs_log(GS_LOG_INFO, "nominated", GS_STR("pod", pod->name), GS_STR("namespace", pod->ns),
               GS_STR("node", wake->node));
    }
    return true;
}

static void wake_pod(struct gs_service *service, const struct wake *wake, int64_t wall_ns)
{
    const struct gs_pod *pod = &wake->pod;
    struct gs_error err = {0};
    bool done = wake->node && nominate(service, wake, wall_ns);
    if (!wake->why)
        return;
    if (!done && patch_pod(service, wake, NULL, wall_ns, &err) < 0) {
        atomic_fetch_add(&service->wake_failures, 1);
        gs_log(level_of(err.code), "not woken", GS_STR("pod", pod->name),
               GS_STR("namespace", pod->ns), GS_STR("why", err.msg));
        return;
    }
    atomic_fetch_add(&service->wakes, 1);
    gs_log(GS_LOG_INFO, "woken", GS_STR("pod", pod->name), GS_STR("namespace", pod->ns),
           GS_STR("why", wake->why));
}

static void add_gain(struct wake_round *round, uint32_t slot)
{
    const struct gs_ledger *ledger = round->service->store.ledger;
    const struct gs_node_view *view =
        slot < gs_ledger_slots(ledger) ? gs_ledger_view_at(ledger, slot) : NULL;
    if (!view)
        return;
    round->slots[round->slot_count++] = slot;
    if (view->max_free_units > round->gained_units)
        round->gained_units = view->max_free_units;
}

/* The nodes that gained memory since the last pass over all nodes; a pass takes several rounds when
 * there are more than a round holds. */
static void find_gains(struct gs_service *service, struct wake_round *round)
{
    const struct gs_store *store = &service->store;
    if (service->gain_cursor == 0) {
        service->gain_epoch = store->frees;
        if (service->lost_epoch && round->now_ns >= service->next_again_ns) {
            if (service->lost_epoch < service->woken_epoch)
                service->woken_epoch = service->lost_epoch;
            service->lost_epoch = 0;
            service->next_again_ns = round->now_ns + AGAIN_EVERY_NS;
        }
    }
    uint32_t slot = service->gain_cursor;
    for (; slot < store->freed_cap && round->slot_count < NODES_PER_TICK; slot++) {
        if (store->freed_at[slot] > service->woken_epoch)
            add_gain(round, slot);
    }
    service->gain_cursor = slot;
    if (slot < store->freed_cap)
        return;
    service->gain_cursor = 0;
    service->woken_epoch = service->gain_epoch;
}

static void wake(struct gs_service *service, int64_t now_ns)
{
    struct wake woken[WAKES_PER_TICK] = {0};
    struct wake_round round = {.service = service, .now_ns = now_ns, .woken = woken};
    gs_store_read(&service->store);
    find_gains(service, &round);
    gs_store_unlock(&service->store);
    gs_pending_first_waiter(service->pending, now_ns);
    for (bool more = true; more;) {
        gs_store_read(&service->store);
        more = gs_pending_next_waiters(service->pending, WAITERS_PER_LOOK, consider, &round);
        gs_store_unlock(&service->store);
        /* filter and bind wait for these locks, and unlocking alone does not hand them over */
        if (more)
            nanosleep(&(const struct timespec){.tv_nsec = BREATH_NS}, NULL);
    }
    int64_t wall_ns = service->config.clock->wall_ns(service->config.clock->ctx);
    for (uint32_t i = 0; i < round.woken_count; i++)
        wake_pod(service, &woken[i], wall_ns);
    for (uint32_t i = 0; i < WAKES_PER_TICK; i++)
        gs_pod_release(&woken[i].pod);
}

/* Asks the API what became of a bind without an answer. */
static void settle_open_bind(struct gs_service *service, int64_t now_ns)
{
    struct gs_open_bind entry;
    struct gs_error err = {0};
    gs_store_write(&service->store);
    bool due = gs_open_binds_due(service->open_binds, now_ns, &entry);
    gs_store_unlock(&service->store);
    if (!due)
        return;
    switch (gs_bind_read_back(service, entry.ns, entry.name, entry.uid, NULL, &err)) {
    case GS_BIND_BOUND:
    case GS_BIND_ELSEWHERE:
        break; /* the ledger has it: it is open no more */
    case GS_BIND_POD_GONE:
        gs_bind_undo(service, entry.uid);
        break;
    case GS_BIND_UNBOUND:
        gs_bind_expire(service, entry.uid, now_ns);
        break;
    case GS_BIND_UNKNOWN:
        break; /* looked at again in a second */
    }
    gs_open_bind_release(&entry);
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

static void audit_node(void *ctx, const struct gs_store *store, const struct gs_node_view *view)
{
    uint32_t *differing = ctx;
    *differing += gs_ledger_audit(store->ledger, view->slot);
}

static void audit(struct gs_service *service, int64_t now_ns)
{
    if (now_ns < service->next_audit_ns)
        return;
    service->next_audit_ns = now_ns + AUDIT_EVERY_NS;
    uint32_t differing = 0;
    gs_store_each_node(&service->store, audit_node, &differing);
    atomic_store(&service->drift, differing);
    if (differing)
        gs_log(GS_LOG_ERROR, "the ledger's totals differ from its claims",
               GS_INT("gpus", differing));
}

void gs_service_tick(struct gs_service *service)
{
    int64_t now_ns = gs_clock_now_ns(service->config.clock);
    bool answers = !gs_service_refuses(service);
    if (answers && !service->answered)
        gs_pending_all_wait(service->pending, now_ns);
    service->answered = answers;
    if (gs_service_loaded(service)) { /* a standby's ledger shall be right when it leads */
        gs_reconcile_tick(service, now_ns);
        gs_new_nodes_tick(service, now_ns);
    }
    if (!answers)
        return;
    wake(service, now_ns);
    if (gs_open_binds_count(service->open_binds))
        settle_open_bind(service, now_ns);
    gs_warnings_tick(service, now_ns);
    refresh(service, now_ns);
    audit(service, now_ns);
}
