/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bind: choose and reserve under the lock, one call to the API without it, confirm or undo. What
 * has to wait for its turn reserves before that (unresolved_binds.h). The API is the only truth:
 * when the answer is lost, the pod is read back, and while the call may still be carried out its
 * reservation stays (unresolved_binds.h).
 */
#include "bind.h"

#include <stdarg.h>
#include <time.h>

#include "gpushare/base/invariant.h"
#include "gpushare/base/log.h"
#include "gpushare/codec/annotation.h"
#include "reservations.h"

/* What became of an attempt. words is for kube-scheduler, "" for success. */
struct outcome {
    enum gs_bind_result result;
    const char *client; /* who asks; NULL: not known */
    bool queued;        /* it has reserved, before its turn came */
    bool repeats;       /* an earlier attempt, whose outcome is not known: see
                           gs_unresolved_binds_repeat_begin() */
    char words[sizeof(((struct gs_error *)0)->msg) + 64]; /* room for a whole error's */
};

__attribute__((format(printf, 3, 4))) static void
say(struct outcome *outcome, enum gs_bind_result result, const char *fmt, ...)
{
    va_list ap;
    outcome->result = result;
    va_start(ap, fmt);
    gs_words(outcome->words, sizeof(outcome->words), fmt, ap);
    va_end(ap);
}

/* As the watch showed it. GS_ENOENT, or GS_ECONFLICT: not every API server compares the UID with
 * the name. */
static int find_known(struct gs_service *service, const struct gs_binding_args *args,
                      struct gs_pod *ret, struct gs_error *err)
{
    if (gs_pending_get(service->pending, args->uid, ret, err) < 0)
        return -1;
    return strcmp(ret->name, args->name) == 0 && strcmp(ret->ns, args->ns) == 0
               ? 0
               : gs_fail(err, GS_ECONFLICT, "the UID belongs to another pod");
}

/* The pod's requests: from the watch, else from the API (kube-scheduler's caches may be ahead). */
static int find_pod(struct gs_service *service, const struct gs_binding_args *args,
                    struct gs_pod *ret, struct gs_error *err)
{
    struct gs_error miss = {0};
    if (find_known(service, args, ret, &miss) == 0)
        return 0;
    if (miss.code == GS_ECONFLICT)
        return gs_fail(err, miss.code, "%s", miss.msg);
    const struct gs_kube *kube = &service->config.kube;
    if (kube->ops->get_pod(kube->ctx, args->ns, args->name, ret, err) < 0)
        return -1;
    if (strcmp(ret->uid, args->uid) != 0)
        return gs_fail(err, GS_ECONFLICT, "the pod was deleted and created again");
    return 0;
}

/* True when a claim of this pod settles the request: words say how. False with *ret_claim.gpus:
 * this one has reserved, or an earlier attempt has no answer yet and may still succeed, and is to
 * be repeated as it was. The states of a claim are drawn in docs/architecture.md. Store locked for
 * reading. */
static bool settled(struct gs_service *service, const struct gs_binding_args *args,
                    struct outcome *outcome, struct gs_claim *ret_claim)
{
    *ret_claim = (struct gs_claim){0};
    if (!gs_ledger_find_claim(service->store.cluster.ledger, args->uid, ret_claim))
        return false;
    bool same_node = strcmp(ret_claim->node, args->node) == 0;
    bool open = gs_unresolved_binds_has(&service->unresolved_binds, args->uid);
    if (ret_claim->state == GS_CLAIM_CONFIRMED && !same_node)
        say(outcome, GS_BIND_CONFLICT, "pod is already bound to another node");
    else if (ret_claim->state != GS_CLAIM_CONFIRMED && !open && !outcome->queued)
        say(outcome, GS_BIND_REFUSED, "another bind of this pod is in progress");
    else if (ret_claim->state != GS_CLAIM_CONFIRMED && !same_node)
        say(outcome, GS_BIND_REFUSED,
            "unresolved bind: waiting for the outcome of an earlier bind to another node");
    return ret_claim->state == GS_CLAIM_CONFIRMED || outcome->words[0];
}

static bool takes_still(struct gs_service *service, const struct gs_node_view *view,
                        const struct gs_ask *ask, const struct gs_claim *before)
{
    return before->units == ask->units && before->gpu_count == ask->gpu_count &&
           before->cores_pct == ask->cores_pct &&
           gs_fit_chosen(service->store.cluster.ledger, view, ask, before->gpus, before) == GS_FITS;
}

/* The GPUs of an earlier attempt without an answer, whose request may still be carried out: that it
 * is repeated as it was, or not. Of a pod that has changed since, the bind is a new one, and waits
 * until the earlier one has an outcome. */
static gs_gpu_mask choose_again(struct gs_service *service, const struct gs_node_view *view,
                                const struct gs_ask *ask, const struct gs_claim *before,
                                struct outcome *outcome)
{
    if (takes_still(service, view, ask, before) &&
        gs_unresolved_binds_repeat_begin(&service->unresolved_binds, before->uid)) {
        outcome->repeats = true;
        return before->gpus;
    }
    say(outcome, GS_BIND_REFUSED,
        "unresolved bind: the pod or its GPUs changed, and the outcome of its earlier bind is not "
        "known yet");
    return 0;
}

/* Working the choice out may take a millisecond: done before everybody else is locked out, it is
 * remembered then. */
static void choose_ahead(struct gs_service *service, const char *node, struct gs_ask *ask,
                         struct gs_match *match)
{
    enum gs_reason reason;
    gs_store_read(&service->store);
    gs_ask_match(ask, service->store.cluster.ledger, match);
    const struct gs_node_view *view = gs_store_view(&service->store, node);
    const struct gs_place place = gs_service_place(service);
    if (view)
        gs_place_gpus(&place, view, ask, &reason);
    gs_store_unlock(&service->store);
}

static uint32_t gpu_size(const struct gs_node_view *view, gs_gpu_mask gpus)
{
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        if (gpus & GS_GPU_BIT(view->gpus[i].idx))
            return view->gpus[i].total_units;
    }
    return 0;
}

/* What was reserved is charged where it was chosen, and no GPU there has more than it holds: so
 * gs_fit_chosen() said a moment ago. A pod that the node says is elsewhere is bound already, and
 * its bind will say so. */
static bool is_sound(const struct gs_ledger *ledger, uint32_t slot, const char *uid,
                     gs_gpu_mask gpus)
{
    const struct gs_node_view *view = gs_ledger_view_at(ledger, slot);
    struct gs_claim claim = {0};
    bool sound = GS_INVARIANT(view && gs_ledger_find_claim(ledger, uid, &claim) &&
                                  gs_gpu_mask_count(claim.gpus) == claim.gpu_count &&
                                  (claim.from_moved || (claim.charged == gpus && !claim.unplaced)),
                              "a reservation is on the chosen GPUs");
    for (uint32_t i = 0; sound && !claim.from_moved && i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        sound = !(gpus & GS_GPU_BIT(gpu->idx)) ||
                GS_INVARIANT(gpu->used_units <= gpu->total_units &&
                                 (!claim.cores_pct || gpu->used_cores_pct <= GS_CORES_PCT) &&
                                 (!gpu->max_pods || gpu->pods <= gpu->max_pods),
                             "a GPU has the memory that is reserved on it");
    }
    return sound && GS_INVARIANT(gs_ledger_audit(ledger, slot) == 0,
                                 "a node's totals equal the sum of its allocations");
}

/* Locked part: fills *record and leaves a reservation (true), or says why not. */
static bool reserve(struct gs_service *service, const struct gs_binding_args *args,
                    const struct gs_pod *pod, const struct gs_ask *ask,
                    struct gs_bind_record *record, struct outcome *outcome)
{
    struct gs_ledger *ledger = service->store.cluster.ledger;
    struct gs_claim before;
    if (settled(service, args, outcome, &before))
        return false;
    const struct gs_node_view *view = gs_ledger_view(ledger, gs_slice_of(args->node));
    if (!view) {
        say(outcome, GS_BIND_REFUSED, "%s", gs_reason_text(GS_REASON_UNKNOWN_NODE));
        return false;
    }
    enum gs_reason reason = GS_FITS;
    const struct gs_place place = gs_service_place(service);
    if (outcome->queued && !takes_still(service, view, ask, &before)) { /* the watch was faster */
        gs_ledger_undo(ledger, args->uid);
        gs_store_freed(&service->store, view->slot, 0);
        gs_reservations_again(service, args->uid);
        before.gpus = 0;
    }
    const gs_gpu_mask gpus = !before.gpus      ? gs_place_gpus(&place, view, ask, &reason)
                             : outcome->queued ? before.gpus
                                               : choose_again(service, view, ask, &before, outcome);
    if (reason != GS_FITS)
        say(outcome, GS_BIND_REFUSED, "%s", gs_reason_text(reason));
    if (!gpus)
        return false;
    record->gpus = gpus;
    record->dev_units = gpu_size(view, gpus);
    record->charge = (struct gs_charge){.gpu_count = ask->gpu_count, .each = ask->each};
    record->assume_time_ns = service->config.clock->wall_ns(service->config.clock->ctx);
    struct gs_claim claim = gs_claim_of_ask(ask, gpus);
    claim.uid = pod->uid;
    claim.ns = pod->ns;
    claim.name = pod->name;
    claim.node = args->node;
    claim.state = GS_CLAIM_RESERVED;
    struct gs_error err = {0};
    if (gs_cluster_claim(&service->store.cluster, &claim, &err) < 0) {
        say(outcome, GS_BIND_FAILED, "%s", err.msg);
        return false;
    }
    if (is_sound(ledger, view->slot, pod->uid, gpus)) {
        outcome->queued = false;
        return true;
    }
    if (!before.gpus) /* an earlier attempt may be carried out yet: its place stays its own */
        gs_ledger_undo(ledger, args->uid);
    say(outcome, GS_BIND_FAILED, "invariant violated: see the extender's log");
    return false;
}

static bool definitely_failed(enum gs_code code)
{
    switch (code) {
    case GS_ENOENT:
    case GS_EINVAL:
    case GS_EAUTH:
    case GS_EDENIED:
    case GS_EBUSY:
        return true;
    default:
        return false;
    }
}

/* The API call failed, or nobody knows: settles the reservation. */
static void settle_failure(struct gs_service *service, const struct gs_binding_args *args,
                           const struct gs_error *why, bool answered, struct outcome *outcome)
{
    int64_t now_ns = gs_service_now(service);
    /* This attempt did not bind it; an earlier one without an answer still may. */
    bool refused = definitely_failed(why->code) || why->code == GS_ECONFLICT;
    gs_store_read(&service->store);
    bool open = gs_unresolved_binds_has(&service->unresolved_binds, args->uid);
    gs_store_unlock(&service->store);
    if (definitely_failed(why->code) && (!open || why->code == GS_ENOENT)) {
        gs_bind_undo(service, args->uid);
        say(outcome, GS_BIND_FAILED, "bind failed: %s", why->msg);
        return;
    }
    struct gs_error err = {0};
    switch (gs_bind_read_back(service, args->ns, args->name, args->uid, args->node, &err)) {
    case GS_BIND_BOUND:
        gs_bind_confirm(service, args, 0);
        return;
    case GS_BIND_ELSEWHERE:
        say(outcome, GS_BIND_CONFLICT, "pod is already bound to another node");
        return;
    case GS_BIND_POD_GONE:
        gs_bind_undo(service, args->uid);
        say(outcome, GS_BIND_CONFLICT, "bind failed: the pod was deleted");
        return;
    case GS_BIND_UNBOUND:
        if (refused && !open) {
            gs_bind_undo(service, args->uid);
            say(outcome, GS_BIND_CONFLICT, "bind failed: %s", why->msg);
            return;
        }
        break;
    case GS_BIND_UNKNOWN:
        break;
    }
    struct gs_claim claim;
    gs_store_write(&service->store);
    const bool reserved = gs_ledger_find_claim(service->store.cluster.ledger, args->uid, &claim) &&
                          claim.state == GS_CLAIM_RESERVED;
    if (reserved && (!refused || !open)) /* else the watch was faster: bound, or gone */
        gs_unresolved_binds_add(
            &service->unresolved_binds, args->ns, args->uid, now_ns + GS_NS_PER_S,
            now_ns + (answered ? GS_UNRESOLVED_BIND_ANSWERED_NS : GS_UNRESOLVED_BIND_NS));
    gs_store_unlock(&service->store);
    say(outcome, GS_BIND_UNRESOLVED, "unresolved bind, its GPU memory stays reserved: %s",
        why->msg);
}

static void log_bind(const struct gs_binding_args *args, const struct gs_bind_record *record,
                     const struct outcome *outcome)
{
    char gpus[GS_IDX_TEXT_BYTES];
    const char *client = outcome->client ? outcome->client : "-";
    if (outcome->words[0])
        gs_log(GS_LOG_WARN, "pod not bound", GS_POD_FIELDS(args), GS_STR("node", args->node),
               GS_STR("client", client), GS_STR("reason", outcome->words));
    else
        gs_log(GS_LOG_INFO, "pod bound", GS_POD_FIELDS(args), GS_STR("node", args->node),
               GS_STR("client", client), GS_STR("gpu", gs_codec_idx_format(record->gpus, gpus)),
               GS_INT("units", record->charge.units));
}

/* Others than kube-scheduler may reach the port, on loopback too (pods/portforward), and have pods
 * bound: not those at least with which this service has nothing to do. */
static bool is_ours(const struct gs_service *service, const struct gs_pod *pod,
                    const struct gs_ask *ask, struct outcome *outcome)
{
    const struct gs_service_config *config = &service->config;
    if (ask->broken && !ask->units)
        say(outcome, GS_BIND_REFUSED, "%s", gs_reason_text(ask->broken));
    else if (!pod->names_gpu)
        say(outcome, GS_BIND_REFUSED,
            "the pod requests no GPU memory: gpushare-extender does not bind it");
    else if (config->scheduler_name &&
             !gs_scheduler_activity_lists(config->scheduler_name, pod->scheduler_name))
        say(outcome, GS_BIND_REFUSED, "the pod's schedulerName is not in --scheduler-name");
    return !outcome->words[0];
}

/* Nor to a node that the pod may not use, or that is none: what is bound to nothing the garbage
 * collector of pods deletes. kube-scheduler saw to it; taints and labels that have
 * changed since refuse, and the pod is tried again. Store locked for reading. */
static bool may_use(const struct gs_service *service, const struct gs_pod *pod, const char *node,
                    struct outcome *outcome)
{
    const struct gs_store *store = &service->store;
    const struct gs_node_view *view = gs_store_view(store, node);
    if (!view || !gs_node_facts_hash(&store->cluster.facts, view->slot)) {
        say(outcome, GS_BIND_REFUSED, "%s", gs_reason_text(GS_REASON_UNKNOWN_NODE));
        return false;
    }
    enum gs_eligible verdict = gs_node_facts_eligible(&store->cluster.facts, view->slot, pod);
    if (!gs_eligible_perhaps(verdict))
        say(outcome, GS_BIND_REFUSED, "%s", gs_eligible_text(verdict));
    return !outcome->words[0];
}

/* Nothing is sent when the lease may be another's: reading the pod may have taken long, and so may
 * attempts. Who leads next waits for binds that have begun, no longer than they are allowed. Not
 * sent is EBUSY: surely not bound. */
static int send_binding(struct gs_service *service, struct gs_binding *binding, int64_t begun_ns,
                        struct gs_error *err)
{
    const struct gs_kube *kube = &service->config.kube;
    if (service->config.election) {
        int64_t now_ns = gs_service_now(service);
        int64_t leads_until_ns = gs_election_until_ns(service->config.election);
        int64_t given_up_ns = begun_ns + GS_ELECTION_BIND_NS;
        if (leads_until_ns <= now_ns)
            return gs_fail(err, GS_EBUSY, "this replica is no longer the leader");
        if (given_up_ns <= now_ns)
            return gs_fail(err, GS_EBUSY, "timeout while reading the pod");
        binding->deadline_ns = leads_until_ns < given_up_ns ? leads_until_ns : given_up_ns;
    }
    return kube->ops->bind(kube->ctx, binding, err);
}

static void call_api(struct gs_service *service, const struct gs_binding_args *args,
                     const struct gs_pod *pod, const struct gs_bind_record *record,
                     int64_t begun_ns, struct outcome *outcome)
{
    struct gs_arena arena = {0};
    struct gs_error err = {0};
    bool answered = false;
    struct gs_kv *kv = NULL;
    struct gs_binding binding = {.ns = args->ns,
                                 .name = args->name,
                                 .uid = args->uid,
                                 .node = args->node,
                                 .ret_answered = &answered};
    if (record->gpus && gs_codec_bind_annotations(service->config.names, pod, record, &arena, &kv,
                                                  &binding.annotation_count, &err) < 0) {
        gs_bind_undo(service, args->uid);
        say(outcome, GS_BIND_FAILED, "bind failed: %s", err.msg);
        gs_arena_release(&arena);
        return;
    }
    binding.annotations = kv;
    atomic_fetch_add(&service->sent_binds, 1);
    int result = send_binding(service, &binding, begun_ns, &err);
    gs_arena_release(&arena);
    if (result == 0 && record->gpus)
        gs_bind_confirm(service, args, record->gpus);
    else if (result < 0 && record->gpus)
        settle_failure(service, args, &err, answered, outcome);
    else if (result < 0)
        say(outcome, GS_BIND_FAILED, "bind failed: %s", err.msg);
    atomic_fetch_sub(&service->sent_binds, 1);
}

static void queue_bind(struct gs_service *service, const struct gs_binding_args *args,
                       const struct gs_pod *pod)
{
    struct outcome unsaid = {0};
    struct gs_bind_record record = {0};
    const int64_t until_ns = gs_service_now(service) + GS_BIND_QUEUE_NS;
    struct gs_ask ask;
    struct gs_match match;
    struct gs_claim claim;
    gs_ask_of_pod(&ask, pod);
    if (!ask.units)
        return;
    choose_ahead(service, args->node, &ask, &match);
    gs_store_write(&service->store);
    struct gs_ledger *ledger = service->store.cluster.ledger;
    gs_ask_match(&ask, ledger, &match);
    if (!gs_ledger_find_claim(ledger, args->uid, &claim) && is_ours(service, pod, &ask, &unsaid) &&
        may_use(service, pod, args->node, &unsaid) &&
        reserve(service, args, pod, &ask, &record, &unsaid) &&
        !gs_unresolved_binds_add(&service->bind_queue, args->ns, args->uid, until_ns, until_ns))
        gs_ledger_undo(ledger, args->uid);
    gs_store_unlock(&service->store);
}

uint64_t gs_service_queue_bind(struct gs_service *service, const char *body, size_t len)
{
    uint64_t ns = 0;
    struct gs_binding_args args = {0};
    struct gs_pod pod = {0};
    if (gs_codec_binding_args((struct gs_slice){body, len}, &args, NULL) == 0) {
        ns = gs_hash_text(args.ns);
        if (!gs_service_refuses(service) && find_known(service, &args, &pod, NULL) == 0)
            queue_bind(service, &args, &pod);
    }
    gs_pod_release(&pod);
    gs_binding_args_release(&args);
    return ns;
}

/* Whether what is reserved for the pod is what this bind reserved when it was queued. One whose
 * place is gone goes, too: its time would end the place of a bind that is under way. */
static bool take_turn(struct gs_service *service, const struct gs_binding_args *args)
{
    struct gs_claim claim;
    gs_store_write(&service->store);
    const bool found = gs_ledger_find_claim(service->store.cluster.ledger, args->uid, &claim);
    const bool reserved = found && claim.state == GS_CLAIM_RESERVED;
    const bool elsewhere = reserved && strcmp(claim.node, args->node) != 0;
    const bool queued =
        !elsewhere && gs_unresolved_binds_remove(&service->bind_queue, args->uid) && reserved;
    gs_store_unlock(&service->store);
    return queued;
}

static void bind_pod(struct gs_service *service, const struct gs_binding_args *args,
                     struct gs_pod *pod, struct outcome *outcome)
{
    int64_t begun_ns = gs_service_now(service);
    struct gs_bind_record record = {0};
    struct gs_error err = {0};
    struct gs_ask ask;
    struct gs_match match;
    struct gs_claim claim;
    outcome->queued = take_turn(service, args);
    gs_store_read(&service->store);
    bool is_settled = settled(service, args, outcome, &claim);
    if (is_settled)
        record = (struct gs_bind_record){.gpus = claim.gpus, .charge.units = claim.units};
    gs_store_unlock(&service->store);
    if (is_settled) {
        log_bind(args, &record, outcome);
        return;
    }
    if (find_pod(service, args, pod, &err) < 0) {
        say(outcome, GS_BIND_FAILED, "bind failed: %s", err.msg);
        log_bind(args, &record, outcome);
        return;
    }
    gs_ask_of_pod(&ask, pod);
    gs_store_read(&service->store);
    bool ours = is_ours(service, pod, &ask, outcome);
    bool go = ours && may_use(service, pod, args->node, outcome);
    gs_store_unlock(&service->store);
    if (go && ask.units) {
        if (!outcome->queued)
            choose_ahead(service, args->node, &ask, &match);
        gs_store_write(&service->store);
        gs_ask_match(&ask, service->store.cluster.ledger, &match);
        go = reserve(service, args, pod, &ask, &record, outcome);
        gs_store_unlock(&service->store);
    }
    if (go)
        call_api(service, args, pod, &record, begun_ns, outcome);
    if (outcome->repeats) {
        gs_store_write(&service->store);
        gs_unresolved_binds_repeat_end(&service->unresolved_binds, args->uid);
        gs_store_unlock(&service->store);
    }
    if (outcome->words[0] && ours && ask.units) {
        gs_sync_refused(service, pod, GS_FITS, 0); /* it may fit elsewhere at this moment */
        if (gs_gang_reservations_concern(pod))
            gs_gang_reservations_unbound(service, pod->uid);
    }
    log_bind(args, &record, outcome);
}

/* Binds of a process before this one may still be under way. */
static void await_first(const struct gs_service *service)
{
    int64_t left_ns = service->config.first_bind_ns - gs_service_now(service);
    const struct timespec span = {.tv_sec = left_ns / GS_NS_PER_S,
                                  .tv_nsec = left_ns % GS_NS_PER_S};
    if (left_ns > 0)
        nanosleep(&span, NULL);
}

int gs_service_bind(struct gs_service *service, const char *body, size_t len, struct gs_buf *answer,
                    struct gs_error *err)
{
    return gs_service_bind_for(service, NULL, body, len, answer, err);
}

int gs_service_bind_for(struct gs_service *service, const char *client, const char *body,
                        size_t len, struct gs_buf *answer, struct gs_error *err)
{
    int64_t start_ns = gs_service_now(service);
    struct gs_binding_args args = {0};
    struct gs_pod pod = {0};
    struct outcome outcome = {.result = GS_BIND_DONE, .client = client};
    const char *refuses = gs_service_refuses(service);
    int result = gs_codec_binding_args((struct gs_slice){body, len}, &args, err);
    if (result == 0) {
        if (refuses) {
            outcome.queued = take_turn(service, &args);
            say(&outcome, GS_BIND_REFUSED, "%s", refuses);
        } else {
            await_first(service);
            bind_pod(service, &args, &pod, &outcome);
        }
        if (outcome.queued) /* for nothing */
            gs_bind_undo(service, args.uid);
        atomic_fetch_add_explicit(&service->binds[outcome.result], 1, memory_order_relaxed);
        gs_codec_binding_result(answer, outcome.words);
        result = gs_service_answered(answer, err);
    }
    gs_pod_release(&pod);
    gs_binding_args_release(&args);
    gs_meter_add(&service->meters[GS_VERB_BIND], gs_service_now(service) - start_ns,
                 result < 0 || outcome.words[0]);
    return result;
}
