/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bind: choose and reserve under the lock, one call to the API without it, confirm or undo. What
 * has to wait for its turn reserves before that. The API is the only truth: when the answer is
 * lost, the pod is read back, and while the call may still be carried out its reservation stays
 * (reservations.h).
 */

#include "gpushare/codec/annotation.h"
#include "service_internal.h"

/* What became of an attempt. words is for kube-scheduler, "" for success. */
struct outcome {
    enum gs_bind_result result;
    const char *client; /* who asks; NULL: not known */
    bool queues;        /* it is read, and reserves before its turn comes */
    bool queued;        /* it did */
    bool repeats;       /* an earlier attempt, whose outcome is not known */
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

/* The pod's requests: from the watch, else from the API (kube-scheduler's caches may be ahead), if
 * it may be asked. GS_ENOENT; GS_ECONFLICT: not every API server compares the UID with the name. */
static int find_pod(struct gs_service *service, const struct gs_binding_args *args, bool asks,
                    struct gs_pod *ret, struct gs_error *err)
{
    const struct gs_kube *kube = &service->config.kube;
    if (gs_pending_get(service->pending, args->uid, ret))
        return strcmp(ret->name, args->name) == 0 && strcmp(ret->ns, args->ns) == 0
                   ? 0
                   : gs_fail(err, GS_ECONFLICT, "the UID belongs to another pod");
    if (!asks || kube->ops->get_pod(kube->ctx, args->ns, args->name, ret, err) < 0)
        return -1;
    return strcmp(ret->uid, args->uid) == 0
               ? 0
               : gs_fail(err, GS_ECONFLICT, "the pod was deleted and created again");
}

/* True when a claim of this pod settles the request: words say how. False with *ret_claim.gpus:
 * this one has reserved, or an earlier attempt has no answer yet and may still succeed, and is to
 * be repeated as it was. The states of a claim are drawn in docs/architecture.md. Service locked
 * for reading. */
static bool settled(struct gs_service *service, const struct gs_binding_args *args,
                    struct outcome *outcome, struct gs_claim *ret_claim)
{
    *ret_claim = (struct gs_claim){0};
    if (!gs_ledger_find_claim(service->ledger, args->uid, ret_claim))
        return false;
    if (outcome->queues)
        return true;
    bool same_node = strcmp(ret_claim->node, args->node) == 0;
    bool confirmed = ret_claim->state == GS_CLAIM_CONFIRMED;
    if (confirmed && !same_node)
        say(outcome, GS_BIND_CONFLICT, "pod is already bound to another node");
    else if (!confirmed && !outcome->queued && !gs_bind_is_unresolved(service, args->uid))
        say(outcome, GS_BIND_REFUSED, "another bind of this pod is in progress");
    else if (!confirmed && !same_node)
        say(outcome, GS_BIND_REFUSED,
            "unresolved bind: waiting for the outcome of an earlier bind to another node");
    return confirmed || outcome->words[0];
}

static bool takes_still(struct gs_service *service, const struct gs_node_view *view,
                        const struct gs_ask *ask, const struct gs_claim *before)
{
    return before->units == ask->units && before->gpu_count == ask->gpu_count &&
           before->cores_pct == ask->cores_pct &&
           gs_fit_chosen(service->ledger, view, ask, before->gpus, before) == GS_FITS;
}

static uint32_t gpu_size(const struct gs_node_view *view, gs_gpu_mask gpus)
{
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        if (gpus & GS_GPU_BIT(view->gpus[i].idx))
            return view->gpus[i].total_units;
    }
    return 0;
}

/* What was reserved is charged where it was chosen, and no GPU there is overcommitted: so
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

/* What was reserved when it was queued, or for an earlier attempt without an answer, whose request
 * may still be carried out: that one is repeated as it was, or not; of a pod that has changed
 * since, the bind is a new one, and waits until the earlier one has an outcome. Else a new choice.
 */
static gs_gpu_mask choose(struct gs_service *service, const struct gs_node_view *view,
                          const struct gs_ask *ask, struct gs_claim *before,
                          struct outcome *outcome)
{
    if (before->gpus && takes_still(service, view, ask, before)) {
        outcome->repeats = !outcome->queued;
        if (outcome->repeats)
            gs_bind_reservations_find(service, ask->uid)->repetitions++;
        return before->gpus;
    }
    if (before->gpus && !outcome->queued) {
        say(outcome, GS_BIND_REFUSED,
            "unresolved bind: the pod or its GPUs changed, and the outcome of its earlier bind is "
            "not known yet");
        return 0;
    }
    if (before->gpus) { /* the watch was faster */
        gs_bind_undo_locked(service, ask->uid);
        before->gpus = 0;
    }
    enum gs_reason reason;
    const gs_gpu_mask gpus = gs_place_gpus(&service->place, view, ask, &reason);
    if (!gpus)
        say(outcome, GS_BIND_REFUSED, "%s", gs_reason_text(reason));
    return gpus;
}

/* Fills *record and leaves a reservation (true), or says why not. Service locked for writing. */
static bool reserve(struct gs_service *service, const struct gs_binding_args *args,
                    const struct gs_ask *ask, struct gs_bind_record *record,
                    struct outcome *outcome)
{
    struct gs_claim before;
    struct gs_error err = {0};
    if (settled(service, args, outcome, &before))
        return false;
    const struct gs_node_view *view = gs_service_view(service, args->node);
    const gs_gpu_mask gpus = choose(service, view, ask, &before, outcome);
    if (!gpus)
        return false;
    *record = (struct gs_bind_record){
        .gpus = gpus,
        .dev_units = gpu_size(view, gpus),
        .charge = {.gpu_count = ask->gpu_count, .each = ask->each},
        .assume_time_ns = service->config.clock->wall_ns(service->config.clock->ctx)};
    struct gs_claim claim = gs_claim_of_ask(ask, gpus);
    claim.uid = args->uid;
    claim.ns = args->ns;
    claim.name = args->name;
    claim.node = args->node;
    claim.state = GS_CLAIM_RESERVED;
    if (gs_cluster_claim(&service->cluster, &claim, &err) < 0) {
        say(outcome, GS_BIND_FAILED, "%s", err.msg);
        return false;
    }
    if (is_sound(service->ledger, view->slot, args->uid, gpus)) {
        outcome->queued = false;
        return true;
    }
    if (!before.gpus) /* an earlier attempt may be carried out yet: its reservation stays */
        gs_ledger_undo(service->ledger, args->uid);
    say(outcome, GS_BIND_FAILED, "invariant violated: see the extender's log");
    return false;
}

static bool definitely_failed(enum gs_code code)
{
    return code == GS_ENOENT || code == GS_EINVAL || code == GS_EAUTH || code == GS_EDENIED ||
           code == GS_EBUSY;
}

/* The API call failed, or nobody knows: settles the reservation. */
static void settle_failure(struct gs_service *service, const struct gs_binding_args *args,
                           const struct gs_error *why, bool answered, struct outcome *outcome)
{
    const int64_t now_ns = gs_service_now(service);
    struct gs_claim claim;
    /* This attempt did not bind it; an earlier one without an answer still may. */
    const bool refused = definitely_failed(why->code) || why->code == GS_ECONFLICT;
    gs_service_read(service);
    const bool open = gs_bind_is_unresolved(service, args->uid);
    gs_service_unlock(service);
    const bool surely = definitely_failed(why->code) && (!open || why->code == GS_ENOENT);
    const enum gs_bind_found found = surely ? GS_BIND_UNBOUND : gs_bind_read_back(service, args);
    if (found == GS_BIND_BOUND) {
        gs_bind_confirm(service, args, 0);
        return;
    }
    if (found == GS_BIND_ELSEWHERE) {
        say(outcome, GS_BIND_CONFLICT, "pod is already bound to another node");
        return;
    }
    if (surely || found == GS_BIND_POD_GONE || (found == GS_BIND_UNBOUND && refused && !open)) {
        gs_bind_undo(service, args->uid);
        say(outcome, surely ? GS_BIND_FAILED : GS_BIND_CONFLICT, "bind failed: %s",
            found == GS_BIND_POD_GONE ? "the pod was deleted" : why->msg);
        return;
    }
    gs_service_write(service);
    const bool reserved = gs_ledger_find_claim(service->ledger, args->uid, &claim) &&
                          claim.state == GS_CLAIM_RESERVED;
    if (reserved && (!refused || !open)) /* else the watch was faster: bound, or gone */
        gs_bind_reservations_add(
            service, args, false, now_ns + GS_NS_PER_S,
            now_ns + (answered ? GS_UNRESOLVED_BIND_ANSWERED_NS : GS_UNRESOLVED_BIND_NS));
    gs_service_unlock(service);
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

static bool has_our_scheduler(const struct gs_service *service, const struct gs_pod *pod)
{
    const char *names = service->config.scheduler_name;
    return !names || gs_scheduler_activity_lists(names, pod->scheduler_name);
}

/* Others than kube-scheduler may reach the port, on loopback too (pods/portforward), and have pods
 * bound: not those at least with which this service has nothing to do. Nor to a node that the pod
 * may not use, or that is none: what is bound to nothing the garbage collector of pods deletes.
 * kube-scheduler saw to it; taints and labels that have changed since refuse, and the pod is tried
 * again. Locked. */
static bool may_bind(const struct gs_service *service, const struct gs_pod *pod,
                     const struct gs_ask *ask, const char *node, struct outcome *outcome)
{
    const struct gs_node_facts *facts = &service->cluster.facts;
    const struct gs_node_view *view = gs_service_view(service, node);
    const char *why = NULL;
    if (ask->broken && !ask->units)
        why = gs_reason_text(ask->broken);
    else if (!pod->names_gpu)
        why = "the pod requests no GPU memory: gpushare-extender does not bind it";
    else if (!has_our_scheduler(service, pod))
        why = "the pod's schedulerName is not in --scheduler-name";
    else if (!view || !gs_node_facts_hash(facts, view->slot))
        why = gs_reason_text(GS_REASON_UNKNOWN_NODE);
    else if (!gs_eligible_perhaps(gs_node_facts_eligible(facts, view->slot, pod)))
        why = gs_eligible_text(gs_node_facts_eligible(facts, view->slot, pod));
    if (why)
        say(outcome, GS_BIND_REFUSED, "%s", why);
    return !why;
}

/* Reserves, or says why not. Working the choice out may take a millisecond: done before everybody
 * else is locked out, it is remembered then. Returns with the service locked for writing. */
static bool admit(struct gs_service *service, const struct gs_binding_args *args,
                  const struct gs_pod *pod, struct gs_ask *ask, struct gs_bind_record *record,
                  struct outcome *outcome)
{
    struct gs_match match;
    if (ask->units && !outcome->queued) {
        enum gs_reason reason;
        gs_service_read(service);
        const struct gs_node_view *view = gs_service_view(service, args->node);
        gs_ask_match(ask, service->ledger, &match);
        if (view)
            gs_place_gpus(&service->place, view, ask, &reason);
        gs_service_unlock(service);
    }
    gs_service_write(service);
    gs_ask_match(ask, service->ledger, &match);
    return may_bind(service, pod, ask, args->node, outcome) &&
           (!ask->units || reserve(service, args, ask, record, outcome));
}

/* Nothing is sent when the lease may be another's: reading the pod may have taken long, and so may
 * attempts. Who leads next waits for binds that have begun, no longer than they are allowed. Not
 * sent is EBUSY: surely not bound. */
static int send_binding(struct gs_service *service, struct gs_binding *binding, int64_t begun_ns,
                        struct gs_error *err)
{
    const struct gs_kube *kube = &service->config.kube;
    if (service->config.election) {
        const int64_t now_ns = gs_service_now(service);
        const int64_t leads_until_ns = gs_election_until_ns(service->config.election);
        const int64_t given_up_ns = begun_ns + GS_ELECTION_BIND_NS;
        binding->deadline_ns = leads_until_ns < given_up_ns ? leads_until_ns : given_up_ns;
        if (binding->deadline_ns <= now_ns)
            return gs_fail(err, GS_EBUSY, "%s",
                           leads_until_ns <= now_ns ? "this replica is no longer the leader"
                                                    : "timeout while reading the pod");
    }
    return kube->ops->bind(kube->ctx, binding, err);
}

static void call_api(struct gs_service *service, const struct gs_binding_args *args,
                     const struct gs_pod *pod, const struct gs_bind_record *record,
                     int64_t begun_ns, struct outcome *outcome)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
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
        return;
    }
    binding.annotations = kv;
    atomic_fetch_add(&service->sent_binds, 1);
    int result = send_binding(service, &binding, begun_ns, &err);
    if (result < 0 && !record->gpus)
        say(outcome, GS_BIND_FAILED, "bind failed: %s", err.msg);
    else if (result < 0)
        settle_failure(service, args, &err, answered, outcome);
    else if (record->gpus)
        gs_bind_confirm(service, args, record->gpus);
    atomic_fetch_sub(&service->sent_binds, 1);
}

/* For its turn, which comes later. Never sleeps. */
static void queue_bind(struct gs_service *service, const struct gs_binding_args *args)
{
    _cleanup_(gs_pod_release) struct gs_pod pod = {0};
    struct outcome unsaid = {.queues = true};
    struct gs_bind_record record;
    const int64_t until_ns = gs_service_now(service) + GS_BIND_QUEUE_NS;
    struct gs_ask ask;
    if (gs_service_refuses(service) || find_pod(service, args, false, &pod, NULL) < 0)
        return;
    gs_ask_of_pod(&ask, &pod);
    if (!ask.units)
        return;
    if (admit(service, args, &pod, &ask, &record, &unsaid) &&
        !gs_bind_reservations_add(service, args, true, until_ns, until_ns))
        gs_ledger_undo(service->ledger, args->uid);
    gs_service_unlock(service);
}

/* Whether what is reserved for the pod is what this bind reserved when it was queued. One whose
 * reservation is gone goes, too: its time would end that of a bind that is under way. */
static bool take_turn(struct gs_service *service, const struct gs_binding_args *args)
{
    struct gs_claim claim;
    gs_service_write(service);
    struct gs_bind_reservation *one = gs_bind_reservations_find(service, args->uid);
    const bool reserved = gs_ledger_find_claim(service->ledger, args->uid, &claim) &&
                          claim.state == GS_CLAIM_RESERVED;
    const bool elsewhere = reserved && strcmp(claim.node, args->node) != 0;
    const bool turn = one && one->queued && !elsewhere;
    if (turn)
        gs_bind_reservations_remove(service, args->uid);
    gs_service_unlock(service);
    return turn && reserved;
}

static void bind_pod(struct gs_service *service, const struct gs_binding_args *args,
                     struct gs_pod *pod, struct gs_bind_record *record, struct outcome *outcome)
{
    const int64_t begun_ns = gs_service_now(service);
    struct gs_error err = {0};
    struct gs_ask ask;
    struct gs_claim claim;
    gs_service_read(service);
    const bool is_settled = settled(service, args, outcome, &claim);
    gs_service_unlock(service);
    if (is_settled) {
        *record = (struct gs_bind_record){.gpus = claim.gpus, .charge.units = claim.units};
        return;
    }
    if (find_pod(service, args, true, pod, &err) < 0) {
        say(outcome, GS_BIND_FAILED, "bind failed: %s", err.msg);
        return;
    }
    gs_ask_of_pod(&ask, pod);
    const bool go = admit(service, args, pod, &ask, record, outcome);
    gs_service_unlock(service);
    if (go)
        call_api(service, args, pod, record, begun_ns, outcome);
    if (outcome->repeats) { /* it may have been settled, and be another one by now */
        gs_service_write(service);
        struct gs_bind_reservation *one = gs_bind_reservations_find(service, args->uid);
        if (one && one->repetitions)
            one->repetitions--;
        gs_service_unlock(service);
    }
    if (outcome->words[0] && ask.units && has_our_scheduler(service, pod)) {
        gs_sync_refused(service, pod, GS_FITS, 0); /* it may fit elsewhere at this moment */
        gs_gang_reservations_unbound(service, pod->uid);
    }
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

static void bind_now(struct gs_service *service, const struct gs_binding_args *args,
                     struct outcome *outcome)
{
    _cleanup_(gs_pod_release) struct gs_pod pod = {0};
    struct gs_bind_record record = {0};
    const char *refuses = gs_service_refuses(service);
    outcome->queued = take_turn(service, args);
    if (refuses) {
        say(outcome, GS_BIND_REFUSED, "%s", refuses);
    } else {
        await_first(service);
        bind_pod(service, args, &pod, &record, outcome);
        log_bind(args, &record, outcome);
    }
    if (outcome->queued) /* for nothing */
        gs_bind_undo(service, args->uid);
    atomic_fetch_add(&service->binds[outcome->result], 1);
}

enum gs_answered gs_verb_bind(struct gs_service *service, struct gs_request *request,
                              struct gs_buf *answer, struct gs_error *err)
{
    _cleanup_(gs_binding_args_release) struct gs_binding_args args = {0};
    struct outcome outcome = {.client = request->client};
    const bool known = gs_codec_binding_args(request->body, &args, err) == 0;
    if (!request->may_sleep) {
        request->ns = known ? gs_hash_text(args.ns) : 0;
        if (known)
            queue_bind(service, &args);
        return GS_WOULD_SLEEP;
    }
    if (!known)
        return GS_ANSWER_FAILED;
    bind_now(service, &args, &outcome);
    gs_codec_binding_result(answer, outcome.words);
    request->refused = outcome.words[0];
    return GS_ANSWERED;
}
