/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/log.h"
#include "gpushare/codec/node.h"
#include "rating.h"
#include "service_internal.h"

/* Nodes that kube-scheduler knows by name. */
static void judge_names(const struct gs_ledger *ledger, const struct gs_ask *ask,
                        struct gs_scratch *scratch)
{
    uint32_t count = scratch->args.name_count;
    struct gs_gpu_state room[GS_GPUS_MAX];
    gs_scratch_find_nodes(scratch, ledger);
    for (uint32_t i = 0; i < count; i++) {
        const struct gs_node_view *view = gs_ledger_view_in(ledger, scratch->slots, count, i);
        scratch->verdicts[i] = view ? (uint8_t)gs_fit_beside_holds(ledger, view, ask, room, NULL)
                                    : GS_REASON_UNKNOWN_NODE;
    }
}

static bool charge_state(void *ctx, const struct gs_claim *claim)
{
    gs_view_charge(ctx, claim->charged, claim->units, (int32_t)claim->cores_pct);
    return true;
}

/* A bind of this pod has no known outcome: its place is kept for it, where the repetition of that
 * bind will be settled, and no other node can be had before. NULL: there is no such bind. */
static const char *reserved_node(const struct gs_ledger *ledger, const char *uid)
{
    struct gs_claim own;
    return gs_ledger_find_claim(ledger, uid, &own) && own.state == GS_CLAIM_RESERVED ? own.node
                                                                                     : NULL;
}

static uint8_t judge_reserved(const char *reserved, struct gs_slice node)
{
    return gs_slice_eq(node, gs_slice_of(reserved)) ? GS_FITS : GS_REASON_BIND_OPEN;
}

/* A node object as given: it may not exist yet (Cluster Autoscaler asks about nodes that it might
 * add). Its size comes from the object, what is used and held on it from the ledger if it is known
 * there; *known_all becomes false if it is not. */
static int judge_object(struct gs_service *service, const struct gs_ask *ask, const char *reserved,
                        struct gs_slice json, struct gs_node *node, uint8_t *ret_reason,
                        bool *known_all, struct gs_error *err)
{
    struct gs_gpu_state states[GS_GPUS_MAX], room[GS_GPUS_MAX];
    struct gs_node_view view;
    if (gs_codec_node(service->config.names, json, node, err) < 0)
        return -1;
    gs_view_of_node(&view, node, states);
    const struct gs_ledger *ledger = service->store.cluster.ledger;
    const struct gs_node_view *known = gs_ledger_view(ledger, gs_slice_of(node->name));
    if (!known) {
        *known_all = false;
        *ret_reason = (uint8_t)gs_fit(&view, ask);
        return 0;
    }
    if (reserved) {
        *ret_reason = judge_reserved(reserved, gs_slice_of(node->name));
        return 0;
    }
    view.slot = known->slot;
    view.nominated = known->nominated;
    gs_ledger_each_claim(ledger, known->slot, charge_state, &view);
    gs_view_summarise(&view);
    *ret_reason = (uint8_t)gs_fit_beside_holds(ledger, &view, ask, room, NULL);
    return 0;
}

/* *known_all stays true when no node is hypothetical. */
static int judge_all(struct gs_service *service, const struct gs_ask *ask,
                     struct gs_scratch *scratch, bool *known_all, struct gs_error *err)
{
    const struct gs_filter_args *args = &scratch->args;
    const char *reserved = reserved_node(service->store.cluster.ledger, args->pod.uid);
    if (args->has_names && reserved) {
        for (uint32_t i = 0; i < args->name_count; i++)
            scratch->verdicts[i] = judge_reserved(reserved, args->names[i]);
        return 0;
    }
    if (args->has_names) {
        judge_names(service->store.cluster.ledger, ask, scratch);
        return 0;
    }
    struct gs_node node = {0};
    int result = 0;
    for (uint32_t i = 0; i < args->node_count && result == 0; i++)
        result = judge_object(service, ask, reserved, args->nodes[i], &node, &scratch->verdicts[i],
                              known_all, err);
    gs_node_release(&node);
    return result;
}

/* Counts the verdicts, those about hypothetical nodes for nobody; returns how many nodes fit, and
 * why the node does not that comes nearest. */
static uint32_t count_verdicts(struct gs_service *service, const uint8_t *verdicts, uint32_t count,
                               bool known_all, enum gs_reason *ret_nearest)
{
    uint32_t by_reason[GS_REASONS] = {0};
    for (uint32_t i = 0; i < count; i++)
        by_reason[verdicts[i]]++;
    enum gs_reason nearest = GS_REASON_UNKNOWN_NODE;
    for (int r = GS_FITS + 1; r < GS_REASONS; r++) {
        if (!by_reason[r])
            continue;
        if (known_all)
            atomic_fetch_add_explicit(&service->refusals[r], by_reason[r], memory_order_relaxed);
        if (gs_reason_nearer((enum gs_reason)r, nearest))
            nearest = (enum gs_reason)r;
    }
    *ret_nearest = nearest;
    return by_reason[GS_FITS];
}

static bool is_member(const struct gs_filter_args *args)
{
    return args->has_names && gs_promises_concern(&args->pod);
}

/* The best of the candidates that fit; GS_INDEX_NONE: it is promised none. */
static uint32_t promise(struct gs_service *service, const struct gs_ask *ask,
                        struct gs_scratch *scratch)
{
    const uint32_t count = scratch->args.name_count;
    uint32_t best = GS_INDEX_NONE;
    gs_rate(service, ask, scratch, scratch->verdicts);
    for (uint32_t i = 0; i < count; i++) {
        if (scratch->fits[i] &&
            (best == GS_INDEX_NONE || scratch->losses[i] < scratch->losses[best]))
            best = i;
    }
    if (best == GS_INDEX_NONE)
        return GS_INDEX_NONE;
    const struct gs_node_view *view =
        gs_ledger_view_in(service->store.cluster.ledger, scratch->slots, count, best);
    const struct gs_place place = gs_service_place(service);
    enum gs_reason reason;
    gs_gpu_mask gpus = gs_place_gpus(&place, view, ask, &reason);
    return gs_promises_make(service, &scratch->args.pod, view->slot, gpus) ? best : GS_INDEX_NONE;
}

static int judge_locked(struct gs_service *service, struct gs_ask *ask, struct gs_scratch *scratch,
                        bool *known_all, uint64_t *ret_epoch, struct gs_error *err)
{
    const bool member = is_member(&scratch->args);
    if (member) {
        gs_store_write(&service->store);
        gs_promises_asked(service, &scratch->args.pod);
    } else {
        gs_store_read(&service->store);
    }
    *ret_epoch = service->store.frees;
    gs_ask_match(ask, service->store.cluster.ledger, &scratch->match);
    int result = judge_all(service, ask, scratch, known_all, err);
    scratch->promised = member ? promise(service, ask, scratch) : GS_INDEX_NONE;
    gs_store_unlock(&service->store);
    return result;
}

/* Where it has a promise it shall go. */
static void name_promised(struct gs_scratch *scratch)
{
    for (uint32_t i = 0; i < scratch->args.name_count; i++) {
        if (scratch->verdicts[i] == GS_FITS && i != scratch->promised)
            scratch->verdicts[i] = GS_VERDICT_LEFT_OUT;
    }
}

static bool fits_none(const uint8_t *verdicts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (verdicts[i] == GS_FITS)
            return false;
    }
    return true;
}

/* Judges again, as often as memory comes free meanwhile, when others were evicted for this pod on
 * one of the nodes and kube-scheduler may have seen them go before we did. */
static void judge_after_eviction(struct gs_service *service, struct gs_ask *ask,
                                 struct gs_scratch *scratch, uint64_t *epoch, bool *waits)
{
    const struct gs_filter_args *args = &scratch->args;
    int64_t left_ns = service->eviction_waits.each_ns;
    bool known_all = true;
    struct gs_error err = {0};
    if (waits) {
        *waits = args->has_names && fits_none(scratch->verdicts, args->name_count) &&
                 gs_eviction_waits_due(&service->eviction_waits, args->pod.uid, args->names,
                                       args->name_count);
        return;
    }
    while (args->has_names && fits_none(scratch->verdicts, args->name_count) &&
           gs_eviction_waits_wait(&service->eviction_waits, &service->store, args->pod.uid,
                                  args->names, args->name_count, *epoch, &left_ns)) {
        judge_locked(service, ask, scratch, &known_all, epoch, &err); /* names cannot fail */
    }
}

static int filter_gpu_pod(struct gs_service *service, struct gs_ask *ask,
                          struct gs_scratch *scratch, bool *waits, struct gs_error *err)
{
    const struct gs_pod *pod = &scratch->args.pod;
    uint32_t count = gs_filter_args_count(&scratch->args);
    uint64_t epoch;
    bool known_all = true;
    if (judge_locked(service, ask, scratch, &known_all, &epoch, err) < 0)
        return -1;
    if (known_all) /* else it is a simulation, which leaves nothing behind */
        gs_askers_asked(&service->askers, pod->scheduler_name);
    judge_after_eviction(service, ask, scratch, &epoch, waits);
    if (waits && *waits)
        return 0;
    enum gs_reason why;
    uint32_t fitting = count_verdicts(service, scratch->verdicts, count, known_all, &why);
    if (fitting == 0 && known_all && count > 0) {
        /* asked again about every waiting pod whenever something changes: told once */
        bool news = gs_sync_refused(service, pod, why, epoch);
        if (is_member(&scratch->args))
            gs_promises_refused(service, &scratch->args);
        gs_log(news ? GS_LOG_INFO : GS_LOG_DEBUG, "no node fits", GS_STR("pod", pod->name),
               GS_STR("namespace", pod->ns), GS_INT("units", ask->units),
               GS_INT("gpus", ask->gpu_count), GS_INT("nodes", count),
               GS_STR("why", gs_reason_text(why)));
    } else {
        if (scratch->promised != GS_INDEX_NONE)
            name_promised(scratch);
        if (fitting && known_all)
            gs_pending_named(service->pending, pod->uid, gs_clock_now_ns(service->config.clock));
        gs_log(GS_LOG_DEBUG, "filtered", GS_STR("pod", pod->name), GS_STR("namespace", pod->ns),
               GS_INT("nodes", count), GS_INT("fit", fitting));
    }
    return 0;
}

/* waits NULL: it may sleep. */
static int filter(struct gs_service *service, struct gs_slice body, struct gs_scratch *scratch,
                  struct gs_buf *answer, bool *waits, struct gs_error *err)
{
    if (gs_codec_filter_args(service->config.names, body, &scratch->args, err) < 0)
        return -1;
    if (gs_scratch_room(scratch, gs_filter_args_count(&scratch->args)) < 0)
        return gs_fail_nomem(err);
    struct gs_ask ask;
    gs_ask_of_pod(&ask, &scratch->args.pod);
    if (!ask.units)
        memset(scratch->verdicts, (int)ask.broken, gs_filter_args_count(&scratch->args));
    else if (filter_gpu_pod(service, &ask, scratch, waits, err) < 0)
        return -1;
    if (waits && *waits)
        return 0;
    /* who nominates answers 1.22 or newer */
    gs_codec_filter_result(answer, &scratch->args, scratch->verdicts,
                           atomic_load(&service->nominates));
    return gs_buf_failed(answer) ? gs_fail(err, GS_ENOMEM, "the answer does not fit") : 0;
}

static int answer_filter(struct gs_service *service, const char *body, size_t len,
                         struct gs_buf *answer, bool *waits, struct gs_error *err)
{
    int64_t start_ns = gs_clock_now_ns(service->config.clock);
    const char *refuses = gs_service_refuses(service);
    int result = 0;
    if (refuses) {
        gs_codec_filter_error(answer, refuses);
    } else {
        struct gs_scratch *scratch = gs_scratch_take(service);
        if (!scratch)
            return gs_fail_nomem(err);
        result = filter(service, (struct gs_slice){body, len}, scratch, answer, waits, err);
        gs_scratch_give(service, scratch);
    }
    if (!waits || !*waits) /* else it is asked again */
        gs_meter_add(&service->meters[GS_VERB_FILTER],
                     gs_clock_now_ns(service->config.clock) - start_ns, refuses || result < 0);
    return result;
}

int gs_service_filter(struct gs_service *service, const char *body, size_t len,
                      struct gs_buf *answer, struct gs_error *err)
{
    return answer_filter(service, body, len, answer, NULL, err);
}

int gs_service_filter_at_once(struct gs_service *service, const char *body, size_t len,
                              struct gs_buf *answer, bool *ret_waits, struct gs_error *err)
{
    bool waits = false;
    int result = answer_filter(service, body, len, answer, &waits, err);
    if (result == 0)
        *ret_waits = waits;
    return result;
}
