/* SPDX-License-Identifier: Apache-2.0 */
#include "waker.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gpushare/base/log.h"
#include "service_internal.h"

enum { WAITERS_PER_LOOK = 256, BREATH_NS = 50000 };
enum { DOUBLINGS_MAX = 6, DOUBLINGS_AFTER_GAIN = 2 };
#define FIRST_PAUSE_NS (1 * GS_NS_PER_S)
#define SETTLE_NS      (300 * GS_NS_PER_MS) /* until kube-scheduler has parked a refused pod */
#define NAMED_NS       (1 * GS_NS_PER_S)
#define AGAIN_EVERY_NS (1 * GS_NS_PER_S) /* over nodes that gained before */

/* A pod that is due, of this pass's arena. */
struct due {
    struct due *next;
    const char *uid;
    uint64_t ns; /* hash of its namespace */
    uint64_t gained;
    int32_t priority;
    uint32_t wakes;
    uint32_t rank; /* in its namespace */
    bool owed;
};

struct round {
    struct gs_service *service;
    struct gs_waker *waker;
    int64_t now_ns;
    int64_t work; /* nodes and pods that may be looked at still */
};

/* The pod has room on the node and may use it, as far as is known here. */
static bool fits_now(const struct gs_store *store, const struct gs_waiter *waiter,
                     const struct gs_ask *ask, uint32_t slot)
{
    struct gs_gpu_state room[GS_GPUS_MAX];
    if (slot >= gs_ledger_slots(store->cluster.ledger))
        return false;
    const struct gs_node_view *view = gs_ledger_view_at(store->cluster.ledger, slot);
    return view && gs_fit_beside_holds(store->cluster.ledger, view, ask, room, NULL) == GS_FITS &&
           gs_eligible_perhaps(gs_node_facts_eligible(&store->cluster.facts, slot, waiter->pod));
}

/* It gained room since the pod was refused, and not what the pod gave up itself. */
static bool gained(const struct gs_store *store, const struct gs_waiter *waiter, uint32_t slot)
{
    return slot < store->freed_cap && store->freed_at[slot] > waiter->epoch &&
           store->freed_at[slot] != waiter->offers.given_up_at;
}

/* The first of all nodes: of one that was refused while kube-scheduler looks at samples the next to
 * be offered; of one that may not be offered any, so that the sample goes on. */
static uint32_t find_anywhere(struct round *round, const struct gs_waiter *waiter,
                              const struct gs_ask *ask)
{
    const struct gs_store *store = &round->service->store;
    if (waiter->epoch && gs_offers_may(round->service, waiter))
        return gs_offers_find(round->service, waiter, ask, &round->work);
    bool sampled = atomic_load(&round->service->nominates);
    bool never_offered = waiter->pod->never_preempts || gs_promises_concern(waiter->pod);
    if (waiter->epoch && !(never_offered && sampled))
        return GS_INDEX_NONE;
    for (uint32_t from = 0;; from++) {
        uint32_t slot = gs_fit_first(store->cluster.ledger, ask, from);
        round->work -=
            (slot == GS_INDEX_NONE ? gs_ledger_slots(store->cluster.ledger) : slot) - from;
        if (slot == GS_INDEX_NONE || fits_now(store, waiter, ask, slot))
            return slot;
        from = slot;
    }
}

static uint32_t find_gained(struct round *round, const struct gs_waiter *waiter,
                            const struct gs_ask *ask)
{
    const struct gs_waker *waker = round->waker;
    const struct gs_store *store = &round->service->store;
    for (uint32_t i = 0; ask->units <= waker->gained_units && i < waker->slot_count; i++) {
        round->work--;
        if (gained(store, waiter, waker->slots[i]) && fits_now(store, waiter, ask, waker->slots[i]))
            return waker->slots[i];
    }
    return GS_INDEX_NONE;
}

/* Somebody else took its node; another may have gained with it. */
static void lose_node(struct gs_waker *waker, struct gs_waiter *waiter)
{
    waiter->slot = GS_INDEX_NONE;
    if (waiter->epoch && (!waker->lost_epoch || waiter->epoch < waker->lost_epoch))
        waker->lost_epoch = waiter->epoch;
}

/* What matching its lists takes, in nodes: the longest take as long as some hundred per model. */
static int64_t match_work(const struct gs_store *store, const struct gs_ask *ask)
{
    int64_t bytes = (int64_t)(ask->model.len + ask->model_deny.len);
    return ask->broken ? 0 : gs_ledger_model_count(store->cluster.ledger) * bytes / 2;
}

/* Looks for a node: among those that gained memory, or among all for a pod that need not wait for
 * memory. Most pods want more than what came free: they are done with one comparison. */
static void find_node(struct round *round, struct gs_waiter *waiter)
{
    const struct gs_store *store = &round->service->store;
    struct gs_waker *waker = round->waker;
    struct gs_ask ask;
    struct gs_match match;
    if (waiter->slot == GS_INDEX_NONE && !waiter->anywhere && !waker->slot_count)
        return;
    gs_ask_of_pod(&ask, waiter->pod);
    if (waiter->slot == GS_INDEX_NONE && !waiter->anywhere && ask.units > waker->gained_units)
        return;
    gs_ask_match(&ask, store->cluster.ledger, &match);
    round->work -= match_work(store, &ask);
    if (waiter->slot != GS_INDEX_NONE && !fits_now(store, waiter, &ask, waiter->slot))
        lose_node(waker, waiter);
    if (waiter->slot != GS_INDEX_NONE)
        return;
    waiter->slot = find_gained(round, waiter, &ask);
    if (waiter->slot != GS_INDEX_NONE && waiter->wakes > DOUBLINGS_AFTER_GAIN)
        waiter->wakes = DOUBLINGS_AFTER_GAIN;
    if (waiter->slot == GS_INDEX_NONE && waiter->anywhere) {
        waiter->slot = find_anywhere(round, waiter, &ask);
        /* one that the watch has not shown yet is offered a node when it has */
        waiter->anywhere = waiter->slot != GS_INDEX_NONE || !waiter->shown;
        if (!waiter->anywhere && !waiter->epoch)
            waiter->epoch = store->frees; /* nowhere now: from here on it waits for memory */
    }
}

/* At once while its preemption is held up. */
static int64_t due_ns(const struct gs_waiter *waiter)
{
    int64_t due = waiter->refused_ns + SETTLE_NS;
    if (waiter->wakes && !waiter->offers.owed) {
        uint32_t doublings = waiter->wakes - 1 < DOUBLINGS_MAX ? waiter->wakes - 1 : DOUBLINGS_MAX;
        int64_t again = waiter->last_wake_ns + (FIRST_PAUSE_NS << doublings);
        due = again > due ? again : due;
    }
    return due;
}

/* Its preemption was held up, and that is over: there is nothing to be offered, or no time. */
static bool is_owed(const struct gs_waiter *waiter, int64_t now_ns)
{
    const struct gs_offers *offers = &waiter->offers;
    return offers->owed && waiter->refused_ns + SETTLE_NS <= now_ns &&
           (now_ns - offers->first_ns >= GS_OFFER_NS ||
            (!offers->node && waiter->slot == GS_INDEX_NONE && !waiter->anywhere));
}

/* Not while filter alone told of it: who reaches the port may name there whom he likes. */
static bool is_due(const struct gs_waiter *waiter, int64_t now_ns)
{
    return waiter->shown &&
           (is_owed(waiter, now_ns) ||
            (!waiter->offers.node && waiter->slot != GS_INDEX_NONE && due_ns(waiter) <= now_ns));
}

/* A patch would make nobody look at it, or is not needed. */
static bool is_passed_over(struct gs_service *service, const struct gs_waiter *waiter,
                           int64_t now_ns)
{
    const struct gs_pod *pod = waiter->pod;
    return pod->gated || (waiter->named_ns && now_ns - waiter->named_ns < NAMED_NS) ||
           !gs_askers_know(&service->askers, service->config.scheduler_name, pod->scheduler_name);
}

/* What came free since the pass began is everybody's in the next one: who was looked at before had
 * no part in it. */
static bool is_too_new(const struct round *round, const struct gs_waiter *waiter)
{
    const struct gs_store *store = &round->service->store;
    return waiter->slot < store->freed_cap &&
           store->freed_at[waiter->slot] > round->waker->pass_epoch;
}

static bool consider(void *ctx, struct gs_waiter *waiter)
{
    struct round *round = ctx;
    const struct gs_store *store = &round->service->store;
    round->work--;
    if (is_passed_over(round->service, waiter, round->now_ns))
        return true;
    if (!waiter->offers.node && !gs_offers_wait(waiter))
        find_node(round, waiter);
    bool owed = is_owed(waiter, round->now_ns);
    if (!is_due(waiter, round->now_ns) || (!owed && is_too_new(round, waiter)))
        return round->work > 0;
    struct due *due = gs_arena_alloc(&round->waker->arena, sizeof(*due));
    const char *uid =
        gs_arena_strndup(&round->waker->arena, waiter->pod->uid, strlen(waiter->pod->uid));
    if (!due || !uid)
        return false;
    *due = (struct due){.next = round->waker->due,
                        .uid = uid,
                        .ns = gs_hash_text(waiter->pod->ns),
                        .gained = waiter->slot < store->freed_cap && waiter->epoch
                                      ? store->freed_at[waiter->slot]
                                      : 0,
                        .priority = waiter->pod->priority,
                        .wakes = waiter->wakes,
                        .owed = owed};
    round->waker->due = due;
    round->waker->due_count++;
    return round->work > 0;
}

/* A chain of comparisons: the first that is not equal decides. */
#define LESS_FIRST(a, b)                                                                           \
    if ((a) != (b))                                                                                \
    return (a) < (b) ? -1 : 1

static int by_least_wakes(const void *a, const void *b)
{
    const struct due *one = *(struct due *const *)a, *other = *(struct due *const *)b;
    LESS_FIRST(one->wakes, other->wakes);
    LESS_FIRST(other->gained, one->gained);
    LESS_FIRST(other->priority, one->priority);
    return 0;
}

static int by_namespace(const void *a, const void *b)
{
    const struct due *one = *(struct due *const *)a, *other = *(struct due *const *)b;
    LESS_FIRST(other->owed, one->owed);
    LESS_FIRST(other->priority, one->priority);
    LESS_FIRST(one->ns, other->ns);
    return by_least_wakes(a, b);
}

/* ns counts from the one whose turn it was last. */
static int by_turn(const void *a, const void *b)
{
    const struct due *one = *(struct due *const *)a, *other = *(struct due *const *)b;
    LESS_FIRST(other->owed, one->owed);
    LESS_FIRST(other->priority, one->priority);
    LESS_FIRST(one->rank, other->rank);
    LESS_FIRST(one->ns, other->ns);
    return 0;
}

/* The order in which they are woken, with so many at its head as waker.h says. */
static struct due **in_order(struct gs_waker *waker, uint32_t wakes)
{
    uint32_t count = waker->due_count, at = 0;
    struct due **all = gs_arena_calloc(&waker->arena, count, sizeof(struct due *));
    if (!all)
        return NULL;
    for (struct due *due = waker->due; due; due = due->next)
        all[at++] = due;
    qsort(all, count, sizeof(struct due *), by_namespace);
    for (uint32_t i = 0; i < count; i++) {
        bool same = i && all[i]->owed == all[i - 1]->owed &&
                    all[i]->priority == all[i - 1]->priority && all[i]->ns == all[i - 1]->ns;
        all[i]->rank = same ? all[i - 1]->rank + 1 : 0;
    }
    for (uint32_t i = 0; i < count; i++)
        all[i]->ns -= waker->last_ns + 1;
    qsort(all, count, sizeof(struct due *), by_turn);
    uint32_t head = wakes - wakes / GS_WAKES_PER_TICK;
    if (count > head + 1)
        qsort(all + head, count - head, sizeof(struct due *), by_least_wakes);
    if (count)
        waker->last_ns += all[count < head ? count - 1 : head - 1]->ns + 1;
    return all;
}

/* What is written for a pod that is due, under the locks. */
struct wake {
    struct gs_service *service;
    int64_t now_ns;
    struct gs_pod pod; /* a copy; zeroed: it is due no more */
    const char *why;
    char node[GS_NODE_NAME_BYTES]; /* where it is nominated; "": nowhere */
};

/* Others may have been offered its place in this very tick. */
static bool still_fits(const struct gs_service *service, struct gs_waiter *waiter)
{
    struct gs_ask ask;
    gs_ask_of_pod(&ask, waiter->pod);
    if (!fits_now(&service->store, waiter, &ask, waiter->slot))
        waiter->slot = GS_INDEX_NONE;
    return waiter->slot != GS_INDEX_NONE;
}

static void prepare(void *ctx, struct gs_waiter *waiter)
{
    struct wake *wake = ctx;
    struct gs_offers *offers = &waiter->offers;
    bool owed = is_owed(waiter, wake->now_ns);
    if (!is_due(waiter, wake->now_ns) || (!owed && !still_fits(wake->service, waiter)) ||
        gs_pod_copy(&wake->pod, waiter->pod) < 0)
        return;
    wake->why =
        owed ? "nothing stands in the way of its preemption any more"
        : waiter->epoch
            ? "a node where it fits gained room since it was refused, or was not asked about"
            : "it waits though a node has room: nobody asked about it, or its bind failed";
    if (owed)
        offers->owed = false;
    else if (waiter->epoch && gs_offers_decide(wake->service, waiter, wake->now_ns))
        snprintf(wake->node, sizeof(wake->node), "%s", offers->node);
    waiter->last_wake_ns = wake->now_ns;
    waiter->wakes++;
}

static int touch(struct gs_service *service, const struct gs_pod *pod, int64_t wall_ns,
                 struct gs_error *err)
{
    const struct gs_kube *kube = &service->config.kube;
    char value[32];
    snprintf(value, sizeof(value), "%lld", (long long)wall_ns);
    const struct gs_kv annotation = {service->config.names->wake, value};
    const struct gs_meta_patch patch = {.ns = pod->ns,
                                        .name = pod->name,
                                        .uid = pod->uid,
                                        .annotations = &annotation,
                                        .annotation_count = 1};
    return kube->ops->patch_pod(kube->ctx, &patch, err);
}

static void wake_pod(struct gs_service *service, const struct wake *wake)
{
    const struct gs_pod *pod = &wake->pod;
    int64_t wall_ns = service->config.clock->wall_ns(service->config.clock->ctx);
    struct gs_error err = {0};
    if (wake->node[0]) {
        enum gs_offer_sent sent = gs_offers_send(service, pod, wake->node, wall_ns);
        atomic_fetch_add(&service->wakes, sent == GS_OFFER_WRITTEN);
        if (sent != GS_OFFER_REFUSED)
            return;
    }
    if (touch(service, pod, wall_ns, &err) < 0) {
        /* of a pod that is no more, or was created anew meanwhile, that is no bad news */
        bool gone = err.code == GS_ENOENT || err.code == GS_ECONFLICT;
        atomic_fetch_add(&service->wake_failures, 1);
        gs_log(gone ? GS_LOG_DEBUG : GS_LOG_WARN, "not woken", GS_STR("pod", pod->name),
               GS_STR("namespace", pod->ns), GS_STR("why", err.msg));
        return;
    }
    atomic_fetch_add(&service->wakes, 1);
    gs_log(GS_LOG_INFO, "woken", GS_STR("pod", pod->name), GS_STR("namespace", pod->ns),
           GS_STR("why", wake->why));
}

/* Decided and written one after the other: each on what is so then. Once all were looked at, or
 * whoever stands first in a long line would be offered what came free before another has his turn.
 */
static void wake_due(struct gs_service *service)
{
    struct gs_waker *waker = &service->waker;
    uint32_t wakes = waker->ticks * GS_WAKES_PER_TICK;
    wakes = wakes < GS_WAKES_PER_PASS ? wakes : GS_WAKES_PER_PASS;
    struct due **all = in_order(waker, wakes);
    for (uint32_t i = 0; all && i < waker->due_count && i < wakes; i++) {
        struct wake wake = {.service = service, .now_ns = gs_clock_now_ns(service->config.clock)};
        if (gs_service_refuses(service))
            return; /* who lost the lease writes nothing */
        gs_store_write(&service->store);
        gs_pending_waiter(service->pending, all[i]->uid, prepare, &wake);
        gs_store_unlock(&service->store);
        if (wake.why)
            wake_pod(service, &wake);
        gs_pod_release(&wake.pod);
    }
}

static void add_gain(struct gs_waker *waker, const struct gs_ledger *ledger, uint32_t slot)
{
    const struct gs_node_view *view =
        slot < gs_ledger_slots(ledger) ? gs_ledger_view_at(ledger, slot) : NULL;
    if (!view)
        return;
    waker->slots[waker->slot_count++] = slot;
    if (view->max_free_units > waker->gained_units)
        waker->gained_units = view->max_free_units;
}

/* The nodes that gained memory since the last pass over all nodes, which takes several passes over
 * the pods when there are more than one of these holds. */
static void find_gains(struct gs_waker *waker, const struct gs_store *store, int64_t now_ns)
{
    waker->slot_count = 0;
    waker->gained_units = 0;
    if (waker->gain_cursor == 0) {
        waker->gain_epoch = store->frees;
        if (waker->lost_epoch && now_ns >= waker->next_again_ns) {
            if (waker->lost_epoch < waker->woken_epoch)
                waker->woken_epoch = waker->lost_epoch;
            waker->lost_epoch = 0;
            waker->next_again_ns = now_ns + AGAIN_EVERY_NS;
        }
    }
    uint32_t slot = waker->gain_cursor;
    for (; slot < store->freed_cap && waker->slot_count < GS_GAINS_PER_PASS; slot++) {
        if (store->freed_at[slot] > waker->woken_epoch)
            add_gain(waker, store->cluster.ledger, slot);
    }
    waker->gain_cursor = slot;
    if (slot < store->freed_cap)
        return;
    waker->gain_cursor = 0;
    waker->woken_epoch = waker->gain_epoch;
}

void gs_waker_tick(struct gs_service *service, int64_t now_ns)
{
    struct gs_waker *waker = &service->waker;
    struct round round = {
        .service = service, .waker = waker, .now_ns = now_ns, .work = GS_NODES_PER_TICK};
    if (!waker->under_way) {
        gs_store_read(&service->store);
        find_gains(waker, &service->store, now_ns);
        waker->pass_epoch = service->store.frees;
        gs_store_unlock(&service->store);
        gs_pending_first_waiter(service->pending, now_ns);
        gs_arena_reset(&waker->arena);
        waker->due = NULL;
        waker->due_count = waker->ticks = 0;
    }
    waker->under_way = true;
    waker->ticks++;
    for (uint32_t seen = 0; waker->under_way && round.work > 0 && seen < GS_WAITERS_PER_TICK;
         seen += WAITERS_PER_LOOK) {
        gs_store_read(&service->store);
        waker->under_way =
            gs_pending_next_waiters(service->pending, WAITERS_PER_LOOK, consider, &round);
        gs_store_unlock(&service->store);
        /* filter and bind wait for these locks, and unlocking alone does not hand them over */
        if (waker->under_way)
            nanosleep(&(const struct timespec){.tv_nsec = BREATH_NS}, NULL);
    }
    if (!waker->under_way)
        wake_due(service);
}
