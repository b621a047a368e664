/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/node.h"
#include "service_internal.h"

enum { SHOWN_TRIES = 10, SHOWN_PAUSE_NS = 5000000 };
#define SHOWN_REST_NS (5 * GS_NS_PER_S)

static bool charge_state(void *ctx, const struct gs_claim *claim)
{
    gs_view_charge(ctx, claim->charged, claim->each, 1);
    return true;
}

/* Of a pod that has memory, its node's slot, the only one that fits: there the repetition of a bind
 * without a known outcome will be settled, and a bound pod is filtered again for a resize
 * (KEP-5836). GS_INDEX_NONE: it has none. */
static uint32_t own_slot(const struct gs_ledger *ledger, const char *uid)
{
    struct gs_claim own;
    return gs_ledger_find_claim(ledger, uid, &own) ? own.slot : GS_INDEX_NONE;
}

static uint8_t judge_node(const struct gs_ledger *ledger, const struct gs_node_view *view,
                          const struct gs_ask *ask, uint32_t own)
{
    if (own != GS_INDEX_NONE)
        return view->slot == own ? GS_FITS : GS_REASON_BIND_OPEN;
    return (uint8_t)gs_fit_beside_holds(ledger, view, ask, NULL);
}

/* Nodes that kube-scheduler knows by name. */
static void judge_names(const struct gs_ledger *ledger, const struct gs_ask *ask, uint32_t own,
                        struct gs_scratch *scratch)
{
    uint32_t count = scratch->args.name_count;
    gs_scratch_find_nodes(scratch, ledger);
    for (uint32_t i = 0; i < count; i++) {
        const struct gs_node_view *view = gs_ledger_view_in(ledger, scratch->slots, count, i);
        scratch->verdicts[i] = view ? judge_node(ledger, view, ask, own) : GS_REASON_UNKNOWN_NODE;
    }
}

/* A node object as given: it may not exist yet (Cluster Autoscaler asks about nodes that it might
 * add). Its size comes from the object, what is used and reserved on it from the ledger if it is
 * known there. */
static int judge_object(struct gs_service *service, const struct gs_ask *ask, uint32_t own,
                        struct gs_scratch *scratch, uint32_t i, struct gs_node *node,
                        struct gs_error *err)
{
    struct gs_gpu_state states[GS_GPUS_MAX];
    struct gs_node_view view;
    if (gs_codec_node(service->config.names, scratch->args.nodes[i], node, err) < 0)
        return -1;
    const struct gs_node_view *known = gs_ledger_view(service->ledger, node->name);
    gs_view_of_node(&view, node, states);
    if (!known) {
        scratch->hypothetical = true;
        scratch->verdicts[i] = (uint8_t)gs_fit(&view, ask);
    } else {
        view.slot = known->slot;
        view.nominated = known->nominated;
        gs_ledger_each_claim(service->ledger, known->slot, charge_state, &view);
        gs_view_summarise(&view);
        scratch->verdicts[i] = judge_node(service->ledger, &view, ask, own);
    }
    return 0;
}

static int judge_all(struct gs_service *service, const struct gs_ask *ask,
                     struct gs_scratch *scratch, struct gs_error *err)
{
    const struct gs_filter_args *args = &scratch->args;
    const uint32_t own = own_slot(service->ledger, args->pod.uid);
    scratch->hypothetical = false;
    if (args->has_names)
        judge_names(service->ledger, ask, own, scratch);
    struct gs_node node = {0};
    int result = 0;
    for (uint32_t i = 0; !args->has_names && i < args->node_count && result == 0; i++)
        result = judge_object(service, ask, own, scratch, i, &node, err);
    gs_node_release(&node);
    return result;
}

/* Counts the verdicts, those about hypothetical nodes for nobody; returns how many nodes fit, and
 * why the node does not that comes nearest. */
static uint32_t count_verdicts(struct gs_service *service, const struct gs_scratch *scratch,
                               uint32_t count, enum gs_reason *ret_nearest)
{
    uint32_t by_reason[GS_REASONS] = {0};
    for (uint32_t i = 0; i < count; i++)
        by_reason[scratch->verdicts[i]]++;
    enum gs_reason nearest = GS_REASON_UNKNOWN_NODE;
    for (enum gs_reason r = GS_FITS + 1; r < GS_REASONS; r++) {
        if (!by_reason[r])
            continue;
        if (!scratch->hypothetical)
            atomic_fetch_add(&service->refusals[r], by_reason[r]);
        if (gs_reason_nearer(r, nearest))
            nearest = r;
    }
    *ret_nearest = nearest;
    return by_reason[GS_FITS];
}

/* Reservations are for pods that exist, with the priority that the API server gave them, and the
 * size. */
static bool is_shown(struct gs_service *service, const struct gs_ask *ask, struct gs_pod *pod)
{
    _cleanup_(gs_pod_release) struct gs_pod shown = {0};
    struct gs_ask known;
    gs_service_read(service); /* no bind meanwhile */
    const bool waits = gs_pending_get(service->pending, pod->uid, &shown);
    bool fine = waits || own_slot(service->ledger, pod->uid) != GS_INDEX_NONE;
    gs_service_unlock(service);
    if (waits) {
        gs_ask_of_pod(&known, &shown);
        pod->priority = shown.priority;
        fine = known.units == ask->units && known.gpu_count == ask->gpu_count;
    }
    return fine;
}

/* kube-scheduler's watch may be ahead of ours. It stands still meanwhile: in vain for a namespace
 * only now and then, which may have more pods than are kept. */
static enum gs_answered await_shown(struct gs_service *service, const struct gs_ask *ask,
                                    struct gs_pod *pod, bool may_sleep, bool *ret_shown)
{
    atomic_llong *rest_until_ns = &service->unshown[gs_share_of(pod->ns)];
    const bool rests = gs_service_now(service) < atomic_load(rest_until_ns);
    int tries = rests || !may_sleep ? 0 : SHOWN_TRIES;
    while (!(*ret_shown = is_shown(service, ask, pod)) && tries--)
        nanosleep(&(const struct timespec){.tv_nsec = SHOWN_PAUSE_NS}, NULL);
    if (!*ret_shown && !rests && !may_sleep)
        return GS_WOULD_SLEEP;
    if (!*ret_shown && may_sleep)
        atomic_store(rest_until_ns, gs_service_now(service) + SHOWN_REST_NS);
    return GS_ANSWERED;
}

/* The best of the candidates that fit; GS_INDEX_NONE: it is reserved none. */
static uint32_t reserve_best(struct gs_service *service, const struct gs_ask *ask,
                             struct gs_scratch *scratch)
{
    const uint32_t count = scratch->args.name_count;
    uint32_t best = GS_INDEX_NONE;
    gs_rate(service, ask, scratch);
    for (uint32_t i = 0; i < count; i++) {
        if (scratch->fits[i] &&
            (best == GS_INDEX_NONE || scratch->losses[i] < scratch->losses[best]))
            best = i;
    }
    if (best == GS_INDEX_NONE)
        return GS_INDEX_NONE;
    const struct gs_node_view *view =
        gs_ledger_view_in(service->ledger, scratch->slots, count, best);
    enum gs_reason reason;
    gs_gpu_mask gpus = gs_place_gpus(&service->place, view, ask, &reason);
    return gs_gang_reservations_make(service, &scratch->args.pod, view->slot, gpus) ? best
                                                                                    : GS_INDEX_NONE;
}

static int judge_locked(struct gs_service *service, struct gs_ask *ask, struct gs_scratch *scratch,
                        struct gs_error *err)
{
    if (scratch->reserves) { /* no longer than for each node once: a client may repeat names */
        gs_service_write(service);
        scratch->reserves = scratch->args.name_count <= gs_ledger_slots(service->ledger);
        if (!scratch->reserves)
            gs_service_unlock(service);
    }
    if (scratch->reserves)
        gs_gang_reservations_asked(service, &scratch->args.pod);
    else
        gs_service_read(service);
    scratch->epoch = service->gains.frees;
    gs_ask_match(ask, service->ledger, &scratch->match);
    int result = judge_all(service, ask, scratch, err);
    scratch->reserved = scratch->reserves ? reserve_best(service, ask, scratch) : GS_INDEX_NONE;
    gs_service_unlock(service);
    return result;
}

/* Where it has a reservation it shall go. */
static void name_reserved(struct gs_scratch *scratch)
{
    for (uint32_t i = 0; i < scratch->args.name_count; i++) {
        if (scratch->verdicts[i] == GS_FITS && i != scratch->reserved)
            scratch->verdicts[i] = GS_VERDICT_LEFT_OUT;
    }
}

/* Judges again, as often as memory comes free meanwhile, when others were evicted for this pod on
 * one of the nodes and kube-scheduler may have seen them go before we did. */
static enum gs_answered judge_after_eviction(struct gs_service *service, struct gs_ask *ask,
                                             struct gs_scratch *scratch, bool may_sleep)
{
    const struct gs_filter_args *args = &scratch->args;
    const char *uid = args->pod.uid;
    const uint32_t count = args->name_count;
    int64_t left_ns = service->eviction_waits.each_ns;
    struct gs_error err = {0};
    while (args->has_names && !memchr(scratch->verdicts, GS_FITS, count)) {
        const int64_t longest_ns = gs_eviction_waits_left_ns(service, uid, args->names, count);
        if (longest_ns && !may_sleep)
            return GS_WOULD_SLEEP;
        if (!gs_eviction_waits_wait(service, uid, longest_ns, scratch->epoch, &left_ns))
            break;
        judge_locked(service, ask, scratch, &err); /* names cannot fail */
    }
    return GS_ANSWERED;
}

static enum gs_answered filter_gpu_pod(struct gs_service *service, struct gs_ask *ask,
                                       struct gs_scratch *scratch, bool may_sleep,
                                       struct gs_error *err)
{
    const struct gs_pod *pod = &scratch->args.pod;
    const uint32_t count = gs_filter_args_count(&scratch->args);
    if (judge_locked(service, ask, scratch, err) < 0)
        return GS_ANSWER_FAILED;
    const bool real = !scratch->hypothetical; /* else it is a simulation, and leaves nothing */
    if (real)
        gs_scheduler_activity_note(service->schedulers.asked, pod->scheduler_name);
    if (judge_after_eviction(service, ask, scratch, may_sleep) == GS_WOULD_SLEEP)
        return GS_WOULD_SLEEP;
    enum gs_reason why;
    const uint32_t fitting = count_verdicts(service, scratch, count, &why);
    if (fitting == 0 && real && count > 0) {
        /* asked again about every waiting pod whenever something changes: logged once */
        bool news = gs_sync_refused(service, pod, why, scratch->epoch);
        if (scratch->reserves && gs_gang_reservations_concern(pod))
            gs_gang_reservations_refused(service, &scratch->args);
        gs_log(news ? GS_LOG_INFO : GS_LOG_DEBUG, "no node fits", GS_POD_FIELDS(pod),
               GS_INT("units", ask->units), GS_INT("gpus", ask->gpu_count), GS_INT("nodes", count),
               GS_STR("reason", gs_reason_text(why)));
        return GS_ANSWERED;
    }
    if (scratch->reserved != GS_INDEX_NONE)
        name_reserved(scratch);
    if (fitting && real) { /* its scheduler is at work */
        struct gs_waiter *waiter = gs_pending_lock(service->pending, pod->uid);
        if (waiter) {
            waiter->named_ns = gs_service_now(service);
            waiter->why = GS_FITS;
        }
        gs_pending_unlock(service->pending, waiter);
    }
    gs_log(GS_LOG_DEBUG, "pod filtered", GS_POD_FIELDS(pod), GS_INT("nodes", count),
           GS_INT("fit", fitting));
    return GS_ANSWERED;
}

static enum gs_answered filter(struct gs_service *service, struct gs_scratch *scratch,
                               bool may_sleep, struct gs_buf *answer, struct gs_error *err)
{
    enum gs_answered result = GS_ANSWERED;
    bool shown = true;
    struct gs_pod *pod = &scratch->args.pod;
    struct gs_ask ask;
    gs_ask_of_pod(&ask, pod);
    scratch->reserves = ask.units && scratch->args.has_names;
    if (scratch->reserves && gs_gang_reservations_concern(pod))
        result = await_shown(service, &ask, pod, may_sleep, &shown);
    else if (scratch->reserves)
        scratch->reserves =
            service->config.names_one && !pod->has_preferences && is_shown(service, &ask, pod);
    ask.priority = pod->priority;
    if (!ask.units)
        memset(scratch->verdicts, (int)ask.broken, gs_filter_args_count(&scratch->args));
    else if (shown)
        result = filter_gpu_pod(service, &ask, scratch, may_sleep, err);
    if (result != GS_ANSWERED)
        return result;
    if (shown) /* who nominates answers 1.22 or newer */
        gs_codec_filter_result(answer, &scratch->args, scratch->verdicts,
                               atomic_load(&service->nominates));
    else
        gs_codec_filter_error(answer, "the watch has not shown this pod group member yet");
    return GS_ANSWERED;
}

enum gs_answered gs_verb_filter(struct gs_service *service, struct gs_request *request,
                                struct gs_buf *answer, struct gs_error *err)
{
    const char *refuses = gs_service_refuses(service);
    request->refused = refuses != NULL;
    if (refuses) {
        gs_codec_filter_error(answer, refuses);
        return GS_ANSWERED;
    }
    struct gs_scratch *scratch = gs_scratch_take(service, request, err);
    const enum gs_answered result =
        scratch ? filter(service, scratch, request->may_sleep, answer, err) : GS_ANSWER_FAILED;
    gs_scratch_give(service, scratch);
    return result;
}
