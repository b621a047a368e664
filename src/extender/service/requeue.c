/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

enum { WORK_PER_WAITER = 32, BREATH_NS = 50000 };
enum { DOUBLINGS_MAX = 6, DOUBLINGS_AFTER_GAIN = 2 };
#define FIRST_PAUSE_NS (1 * GS_NS_PER_S)
#define SETTLE_NS      (300 * GS_NS_PER_MS) /* until kube-scheduler has parked a refused pod */
#define NAMED_NS       (1 * GS_NS_PER_S)

/* A pod that is due, of this pass's arena. */
struct gs_due {
    const char *uid;
    uint32_t share; /* of its namespace */
    uint64_t gained;
    int32_t priority;
    uint32_t requeues;
    bool owed;
};

struct round {
    struct gs_service *service;
    int64_t now_ns;
    int64_t work; /* nodes, rules and pods that may be looked at still under this lock */
};

/* Until it is tried again, after so many times. */
static int64_t pause_ns(uint32_t times)
{
    return FIRST_PAUSE_NS << (times - 1 < DOUBLINGS_MAX ? times - 1 : DOUBLINGS_MAX);
}

/* The pod has room on the node and may use it, as far as is known here. */
static bool fits_now(const struct gs_service *service, const struct gs_waiter *waiter,
                     const struct gs_ask *ask, uint32_t slot)
{
    const struct gs_ledger *ledger = service->ledger;
    const struct gs_node_view *view =
        slot < gs_ledger_slots(ledger) ? gs_ledger_view_at(ledger, slot) : NULL;
    return view && gs_fit_beside_holds(ledger, view, ask, NULL) == GS_FITS &&
           gs_eligible_perhaps(gs_node_facts_eligible(&service->cluster.facts, slot, &waiter->pod));
}

/* It gained room since the pod was refused, and not what the pod or its group gave up itself. */
static bool gained(const struct gs_gains *gains, const struct gs_waiter *waiter, uint32_t slot)
{
    const struct gs_pod *pod = &waiter->pod;
    const struct gs_gain gain = gs_gains_at(gains, slot);
    const bool own = gain.owner && (gain.owner == gs_hash_text(pod->uid) ||
                                    gain.owner == gs_pod_name_hash(pod->ns, pod->group));
    return (own ? gain.before : gain.at) > waiter->epoch;
}

/* The first of all nodes: of one that was refused while kube-scheduler looks at samples the next to
 * be nominated; of one that may not be nominated, so that the sample goes on. In parts. */
static void find_anywhere(struct round *round, struct gs_waiter *waiter, const struct gs_ask *ask,
                          int64_t left)
{
    const struct gs_service *service = round->service;
    const bool nominates = waiter->epoch && gs_nominations_may(service, waiter);
    const bool never_nominated =
        waiter->pod.never_preempts || gs_gang_reservations_concern(&waiter->pod);
    if (waiter->epoch && !nominates && !(never_nominated && atomic_load(&service->nominates))) {
        waiter->search_from = 0;
    } else if (waiter->search_from || waiter->owed || round->now_ns >= waiter->search_ns) {
        const int64_t most = left < round->work ? left : round->work;
        int64_t work = most;
        if (most <= 0)
            return; /* not looked at */
        waiter->slot =
            gs_nominations_find(service, waiter, ask, nominates, &waiter->search_from, &work);
        round->work -= most - work;
        if (waiter->slot != GS_INDEX_NONE)
            waiter->searches = 0;
        else if (!waiter->search_from)
            waiter->search_ns = round->now_ns + pause_ns(++waiter->searches);
    }
    /* one that the watch has not shown yet is nominated when it has */
    waiter->anywhere = waiter->slot != GS_INDEX_NONE || waiter->search_from || !waiter->shown;
    if (!waiter->anywhere && !waiter->epoch)
        waiter->epoch = waiter->compared; /* nowhere now: from here on it waits for memory */
}

/* The first to gain of the nodes that gained since the pod was compared. */
static uint32_t find_gained(struct round *round, struct gs_waiter *waiter, const struct gs_ask *ask)
{
    const struct gs_gains *gains = &round->service->gains;
    const int64_t rules_work = gs_nominations_rules_work(&waiter->pod);
    uint32_t slot = gs_gains_after(gains, waiter->compared, &round->work);
    while (slot != GS_INDEX_NONE) {
        waiter->compared = gains->nodes[slot].at;
        round->work -= rules_work;
        if (gained(gains, waiter, slot) && fits_now(round->service, waiter, ask, slot))
            return slot;
        if (round->work <= 0)
            return GS_INDEX_NONE; /* the rest in its next turn */
        slot = gains->nodes[slot].newer;
    }
    waiter->compared = gains->frees;
    return GS_INDEX_NONE;
}

/* Looks for a node: among those that gained memory, or among all for a pod that need not wait for
 * memory. */
static void find_node(struct round *round, struct gs_waiter *waiter, int64_t left)
{
    const struct gs_service *service = round->service;
    const uint64_t frees = service->gains.frees;
    struct gs_ask ask;
    struct gs_match match;
    if (!waiter->compared)
        waiter->compared = frees;
    if (waiter->slot == GS_INDEX_NONE && !waiter->anywhere && waiter->compared == frees)
        return;
    gs_ask_of_pod(&ask, &waiter->pod);
    gs_ask_match(&ask, service->ledger, &match);
    /* the longest lists take as long as some hundred nodes per model */
    if (!ask.broken)
        round->work -= gs_ledger_model_count(service->ledger) *
                       (int64_t)(ask.model.len + ask.model_deny.len) / 2;
    if (waiter->slot != GS_INDEX_NONE && fits_now(service, waiter, &ask, waiter->slot))
        return;
    /* where somebody else took its node, another may have gained with it */
    waiter->slot = find_gained(round, waiter, &ask);
    if (waiter->slot != GS_INDEX_NONE && waiter->requeues > DOUBLINGS_AFTER_GAIN)
        waiter->requeues = DOUBLINGS_AFTER_GAIN;
    if (waiter->slot == GS_INDEX_NONE && waiter->anywhere)
        find_anywhere(round, waiter, &ask, left);
}

/* Of the pods of a namespace none has another before all had one. */
static void take_turn(struct round *round, struct gs_waiter *waiter, struct gs_turn *turn)
{
    const int64_t before = round->work;
    if (waiter->turn == turn->turn)
        return;
    if (turn->left <= 0) {
        turn->more = true;
        return;
    }
    find_node(round, waiter, turn->left);
    turn->left -= before - round->work;
    waiter->turn = turn->turn;
}

/* At once while its preemption is delayed. */
static int64_t due_ns(const struct gs_waiter *waiter)
{
    int64_t due = waiter->refused_ns + SETTLE_NS;
    if (waiter->requeues && !waiter->owed) {
        int64_t again = waiter->last_requeue_ns + pause_ns(waiter->requeues);
        due = again > due ? again : due;
    }
    return due;
}

/* Its preemption was delayed, and that is over: there is no node for it, or no time. */
static bool is_owed(const struct gs_waiter *waiter, int64_t now_ns)
{
    return waiter->owed && waiter->refused_ns + SETTLE_NS <= now_ns &&
           (now_ns - waiter->question_ns >= GS_NOMINATION_NS ||
            (!waiter->node && waiter->slot == GS_INDEX_NONE && !waiter->anywhere));
}

/* Not while filter alone told of it: whoever reaches the port may name any pod there. */
static bool is_due(const struct gs_waiter *waiter, int64_t now_ns)
{
    return waiter->shown &&
           (is_owed(waiter, now_ns) ||
            (!waiter->node && waiter->slot != GS_INDEX_NONE && due_ns(waiter) <= now_ns));
}

/* A patch would make nobody look at it, or is not needed. */
static bool is_passed_over(struct gs_service *service, const struct gs_waiter *waiter,
                           int64_t now_ns)
{
    const struct gs_pod *pod = &waiter->pod;
    return pod->gated || pod->deleting ||
           (waiter->named_ns && now_ns - waiter->named_ns < NAMED_NS) ||
           !gs_scheduler_activity_knows(service, pod->scheduler_name);
}

static bool consider(void *ctx, struct gs_waiter *waiter)
{
    struct round *round = ctx;
    struct gs_requeue *requeue = &round->service->requeue;
    const uint32_t share = gs_share_of(waiter->pod.ns);
    round->work -= WORK_PER_WAITER;
    if (is_passed_over(round->service, waiter, round->now_ns))
        return round->work > 0;
    if (!waiter->node && !gs_nominations_wait(waiter))
        take_turn(round, waiter, &requeue->turns[share]);
    if (!is_due(waiter, round->now_ns) ||
        atomic_load(&round->service->patches.lanes[GS_PATCH_REQUEUE][share].jobs))
        return round->work > 0;
    const char *uid = gs_arena_strdup(&requeue->arena, waiter->uid);
    if (!uid || !gs_array_reach(&requeue->due, &requeue->due_cap, requeue->due_count,
                                sizeof(*requeue->due)))
        return false;
    requeue->due[requeue->due_count++] = (struct gs_due){
        .uid = uid,
        .share = share,
        .gained = waiter->epoch ? gs_gains_at(&round->service->gains, waiter->slot).at : 0,
        .priority = waiter->pod.priority,
        .requeues = waiter->requeues,
        .owed = is_owed(waiter, round->now_ns)};
    return round->work > 0;
}

/* Namespaces are in turn by when one of theirs was requeued last. */
static bool goes_first(const struct gs_due *a, const struct gs_due *b, const struct gs_turn *turns,
                       bool in_turn)
{
    const uint64_t last = turns[a->share].requeued, other_last = turns[b->share].requeued;
    if (in_turn && a->owed != b->owed)
        return a->owed;
    if (in_turn && a->priority != b->priority)
        return a->priority > b->priority;
    if (in_turn && last != other_last)
        return last < other_last;
    if (a->requeues != b->requeues)
        return a->requeues < b->requeues;
    return a->gained != b->gained ? a->gained > b->gained : a->priority > b->priority;
}

static const char
    proceeds[] = "its preemption may proceed",
    unevaluated[] =
        "a node has enough free memory, but no scheduler evaluated the pod, or its bind failed";

/* Why it is requeued, the pod in *ret, and where it is nominated, "" for nowhere; NULL: it is due
 * no more. Under the locks. */
static const char *decide(struct gs_service *service, struct gs_waiter *waiter, struct gs_pod *ret,
                          char node[GS_NODE_NAME_BYTES])
{
    const int64_t now_ns = gs_service_now(service);
    const bool owed = is_owed(waiter, now_ns);
    struct gs_ask ask;
    gs_ask_of_pod(&ask, &waiter->pod);
    /* others may have been nominated there meanwhile */
    if (!waiter->waits || !is_due(waiter, now_ns) ||
        (!owed && !fits_now(service, waiter, &ask, waiter->slot)) ||
        gs_pod_copy(ret, &waiter->pod) < 0)
        return NULL;
    waiter->last_requeue_ns = now_ns;
    waiter->requeues++;
    if (owed) {
        waiter->owed = false;
        return proceeds;
    }
    if (!waiter->epoch)
        return unevaluated;
    if (gs_nominations_decide(service, waiter, now_ns))
        snprintf(node, GS_NODE_NAME_BYTES, "%s", waiter->node);
    return "a node gained enough free memory since the pod was rejected, or was not evaluated";
}

static void write_requeue(struct gs_service *service, const struct gs_pod *pod, const char *node,
                          const char *why)
{
    int64_t wall_ns = service->config.clock->wall_ns(service->config.clock->ctx);
    char value[32];
    snprintf(value, sizeof(value), "%lld", (long long)wall_ns);
    const struct gs_names *names = service->config.names;
    const struct gs_kv annotations[] = {{names->wake, value}, {names->offer, node}};
    struct gs_error err = {0};
    if (node[0] && gs_nominations_send(service, pod, node, annotations))
        return;
    const bool sent = gs_patch_pod(service, pod, NULL, annotations, 1, NULL, &err) == 0;
    atomic_fetch_add(sent ? &service->requeues : &service->requeue_failures, 1);
    if (!sent) {
        /* of a pod that is no more, or was created anew meanwhile, that is no bad news */
        bool gone = err.code == GS_ENOENT || err.code == GS_ECONFLICT;
        gs_log(gone ? GS_LOG_DEBUG : GS_LOG_WARN, "cannot requeue pod", GS_POD_FIELDS(pod),
               GS_STR("error", err.msg));
        struct gs_waiter *waiter = gs_pending_lock(service->pending, pod->uid);
        if (waiter && why == proceeds) {
            waiter->owed = true;
            waiter->refused_ns = waiter->last_requeue_ns + pause_ns(waiter->requeues) - SETTLE_NS;
        }
        gs_pending_unlock(service->pending, waiter);
        return;
    }
    gs_log(why == unevaluated ? GS_LOG_DEBUG : GS_LOG_INFO, "pod requeued", GS_POD_FIELDS(pod),
           GS_STR("reason", why));
}

/* Decided in its turn, on what is so then. */
static void requeue_pod(struct gs_service *service, const char *uid)
{
    _cleanup_(gs_pod_release) struct gs_pod pod = {0};
    char node[GS_NODE_NAME_BYTES] = "";
    gs_service_write(service);
    struct gs_waiter *waiter = gs_pending_lock(service->pending, uid);
    const char *why = waiter ? decide(service, waiter, &pod, node) : NULL;
    gs_pending_unlock(service->pending, waiter);
    gs_service_unlock(service);
    if (why)
        write_requeue(service, &pod, node, why);
}

/* Once all were looked at, or whoever stands first in a long line would be nominated to what came
 * free before another has a turn. */
static void queue_due(struct gs_service *service)
{
    struct gs_requeue *requeue = &service->requeue;
    const uint32_t requeues = requeue->ticks * GS_REQUEUES_PER_TICK;
    for (uint32_t i = 0; i < requeues && requeue->due_count; i++) {
        const bool in_turn = i < requeues - requeue->ticks;
        struct gs_due *next = requeue->due;
        GS_EACH_OF (due, requeue->due, requeue->due_count)
            next = goes_first(due, next, requeue->turns, in_turn) ? due : next;
        requeue->turns[next->share].requeued = ++requeue->requeues;
        gs_patches_add(&service->patches, GS_PATCH_REQUEUE, next->share, next->uid, requeue_pod);
        *next = requeue->due[--requeue->due_count];
    }
}

void gs_requeue_tick(struct gs_service *service, int64_t now_ns)
{
    struct gs_requeue *requeue = &service->requeue;
    struct round round = {.service = service, .now_ns = now_ns};
    int64_t work = GS_NODES_PER_TICK;
    if (!requeue->under_way) {
        gs_pending_first_waiter(service->pending, now_ns);
        gs_arena_reset(&requeue->arena);
        requeue->due_count = requeue->ticks = 0;
        GS_EACH_OF (turn, requeue->turns, GS_SHARES) {
            turn->left = GS_NODES_PER_TICK / 2;
            turn->turn += !turn->more;
            turn->more = false;
        }
    }
    requeue->under_way = true;
    requeue->ticks++;
    while (requeue->under_way && work > 0) {
        round.work = GS_NOMINATIONS_WORK;
        gs_service_read(service);
        requeue->under_way = gs_pending_next_waiters(service->pending, consider, &round);
        gs_service_unlock(service);
        work -= GS_NOMINATIONS_WORK - round.work;
        /* filter and bind wait for these locks, and unlocking alone does not hand them over */
        if (requeue->under_way)
            nanosleep(&(const struct timespec){.tv_nsec = BREATH_NS}, NULL);
    }
    if (!requeue->under_way)
        queue_due(service);
}
