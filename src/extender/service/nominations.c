/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

enum { BACK_PER_NAMESPACE = 16 }; /* marks that wait to be taken off */
#define RETRY_NS (1 * GS_NS_PER_S)

/* It shows a nomination of another's, or will, where others were evicted for it. */
static bool is_anothers(const struct gs_waiter *waiter)
{
    const char *nominated = waiter->pod.nominated_node;
    const bool ours = (waiter->node && strcmp(nominated, waiter->node) == 0) ||
                      (!waiter->left && strcmp(nominated, waiter->pod.offer) == 0);
    return waiter->freed || (nominated[0] && !ours);
}

/* It shows a nomination of ours: to the watch. Whoever reaches the port may tell filter of marks,
 * and have us take a nomination of kube-scheduler's back. */
static bool is_marked(const struct gs_waiter *waiter)
{
    return waiter->shown && waiter->pod.offer[0] && !waiter->left &&
           strcmp(waiter->pod.nominated_node, waiter->pod.offer) == 0;
}

static bool is_stale(const struct gs_waiter *waiter)
{
    return waiter->stale && waiter->stale == gs_pod_revision(&waiter->pod);
}

bool gs_nominations_wait(const struct gs_waiter *waiter)
{
    return !waiter->node && (is_stale(waiter) || is_marked(waiter));
}

/* What of a node changes before it is nominated again. */
static uint64_t print_of(const struct gs_service *service, uint32_t slot)
{
    const struct gs_node_view *view = gs_ledger_view_at(service->ledger, slot);
    uint64_t print = gs_node_facts_hash(&service->cluster.facts, slot) * 31 + slot;
    for (uint32_t i = 0; i < view->gpu_count; i++)
        print = print * 31 + view->gpus[i].free_units;
    return print;
}

static bool was_tried(const struct gs_waiter *waiter, uint64_t print)
{
    for (uint32_t i = 0; i < waiter->tried_count; i++) {
        if (waiter->tried[i] == print)
            return true;
    }
    return false;
}

/* The oldest makes room. */
static bool note_try(struct gs_waiter *waiter, uint64_t print)
{
    const bool full = waiter->tried_count == GS_NOMINATIONS_TRIED_MAX;
    waiter->tried_count -= full;
    if (full)
        memmove(waiter->tried, waiter->tried + 1, waiter->tried_count * sizeof(print));
    if (!gs_array_reach(&waiter->tried, &waiter->tried_cap, waiter->tried_count, sizeof(print)))
        return false;
    waiter->tried[waiter->tried_count++] = print;
    return true;
}

/* Where its bind is done, or under way, or awaited; NULL: nowhere. */
static const char *claimed_node(const struct gs_service *service, const char *uid)
{
    struct gs_claim claim;
    const struct gs_hold *hold = gs_ledger_find_hold(service->ledger, uid);
    if (gs_ledger_find_claim(service->ledger, uid, &claim))
        return claim.node;
    return hold && hold->gpus ? hold->node : NULL;
}

static bool has_reservation(const struct gs_service *service, const struct gs_waiter *waiter)
{
    const struct gs_hold *hold = gs_ledger_find_hold(service->ledger, waiter->uid);
    return hold && strcmp(hold->node, waiter->node) == 0;
}

/* Somebody may nominate it, and would do it some good. A member of a group it would lead away from
 * the others. */
static bool may_be_nominated(const struct gs_service *service, const struct gs_waiter *waiter)
{
    const struct gs_pod *pod = &waiter->pod;
    return atomic_load(&service->nominates) && !atomic_load(&service->withdrawn) &&
           waiter->refused && !pod->gated && !pod->deleting && !pod->never_preempts &&
           !gs_gang_reservations_concern(pod) && !is_anothers(waiter);
}

bool gs_nominations_may(const struct gs_service *service, const struct gs_waiter *waiter)
{
    return may_be_nominated(service, waiter) && !waiter->node && !gs_nominations_wait(waiter) &&
           !claimed_node(service, waiter->uid) &&
           !gs_ledger_find_hold(service->ledger, waiter->uid);
}

static bool is_paused(const struct gs_service *service, uint32_t slot, int64_t now_ns)
{
    const struct gs_nominated_nodes *all = &service->nominated_nodes;
    const struct gs_nominated_node node =
        slot < all->cap ? all->nodes[slot] : (struct gs_nominated_node){0};
    const int64_t pause_ns = ((int64_t)node.vain - GS_NOMINATIONS_VAIN + 1) * GS_NOMINATION_NS;
    return now_ns - node.vain_ns <
           (pause_ns < GS_NOMINATIONS_PAUSE_NS ? pause_ns : GS_NOMINATIONS_PAUSE_NS);
}

static void note_vain(struct gs_service *service, uint32_t slot, int64_t now_ns)
{
    struct gs_nominated_nodes *all = &service->nominated_nodes;
    if (!gs_array_reach(&all->nodes, &all->cap, slot, sizeof(*all->nodes)))
        return; /* nominations go on */
    struct gs_nominated_node *node = &all->nodes[slot];
    node->vain = now_ns - node->vain_ns < GS_NOMINATIONS_PAUSE_NS ? node->vain + 1 : 1;
    node->vain_ns = now_ns;
}

void gs_nominations_bound(struct gs_service *service, uint32_t slot)
{
    if (slot < service->nominated_nodes.cap)
        service->nominated_nodes.nodes[slot].vain = 0;
}

bool gs_nominations_take(const struct gs_service *service, const struct gs_waiter *waiter,
                         uint32_t slot)
{
    const struct gs_node_facts *facts = &service->cluster.facts;
    return !is_paused(service, slot, gs_service_now(service)) &&
           gs_node_facts_eligible(facts, slot, &waiter->pod) == GS_ELIGIBLE &&
           !was_tried(waiter, print_of(service, slot));
}

int64_t gs_nominations_rules_work(const struct gs_pod *pod)
{
    int64_t work = 1 + pod->rules.selector.count + pod->rules.toleration_count;
    for (uint32_t i = 0; i < pod->rules.term_count; i++)
        work += pod->rules.terms[i].count;
    return work;
}

uint32_t gs_nominations_find(const struct gs_service *service, const struct gs_waiter *waiter,
                             const struct gs_ask *ask, bool nominates, uint32_t *from,
                             int64_t *work)
{
    const struct gs_ledger *ledger = service->ledger;
    const int64_t rules_work = gs_nominations_rules_work(&waiter->pod);
    while (*work > 0) {
        uint32_t slot = gs_fit_first(ledger, ask, *from);
        *work -= (slot == GS_INDEX_NONE ? gs_ledger_slots(ledger) : slot + rules_work) - *from;
        if (slot == GS_INDEX_NONE ||
            (nominates ? gs_nominations_take(service, waiter, slot)
                       : gs_eligible_perhaps(gs_node_facts_eligible(&service->cluster.facts, slot,
                                                                    &waiter->pod)))) {
            *from = 0;
            return slot;
        }
        *from = slot + 1;
    }
    return GS_INDEX_NONE;
}

/* Where the requeuer found room, or else among as many as can be looked at in a moment. */
static uint32_t find_for(const struct gs_service *service, const struct gs_waiter *waiter)
{
    const struct gs_ledger *ledger = service->ledger;
    struct gs_ask ask;
    struct gs_match match;
    int64_t work = GS_NOMINATIONS_WORK;
    uint32_t from = 0;
    gs_ask_of_pod(&ask, &waiter->pod);
    gs_ask_match(&ask, ledger, &match);
    if (waiter->slot != GS_INDEX_NONE && gs_fit_first(ledger, &ask, waiter->slot) == waiter->slot &&
        gs_nominations_take(service, waiter, waiter->slot))
        return waiter->slot;
    return gs_nominations_find(service, waiter, &ask, true, &from, &work);
}

/* For preempt: whether nobody is to be named now. */
static bool decide_delay(const struct gs_service *service, struct gs_waiter *waiter,
                         const struct gs_pod *pod)
{
    const int64_t now_ns = gs_service_now(service);
    if (waiter->node && strcmp(pod->nominated_node, waiter->node) == 0)
        waiter->failed = true;
    bool may = waiter->questions < GS_NOMINATION_QUESTIONS &&
               (!waiter->questions || now_ns - waiter->question_ns < GS_NOMINATION_NS) &&
               may_be_nominated(service, waiter);
    /* once a node was tried in vain, each more would cost another back-off of kube-scheduler's */
    waiter->owed =
        may && (waiter->node ? !waiter->failed
                             : !waiter->tried_count && find_for(service, waiter) != GS_INDEX_NONE);
    if (!waiter->owed)
        return false;
    waiter->question_ns = waiter->questions ? waiter->question_ns : now_ns;
    waiter->questions++;
    GS_INVARIANT(waiter->questions <= GS_NOMINATION_QUESTIONS,
                 "preemption of a pod is delayed at most twice");
    return true;
}

bool gs_nominations_delay_preemption(struct gs_service *service, const struct gs_pod *pod)
{
    if (!atomic_load(&service->nominates))
        return false;
    gs_service_read(service);
    struct gs_waiter *waiter = gs_pending_lock(service->pending, pod->uid);
    const bool delayed = waiter && decide_delay(service, waiter, pod);
    gs_pending_unlock(service->pending, waiter);
    gs_service_unlock(service);
    return delayed;
}

void gs_nominations_leave(struct gs_service *service, const char *uid,
                          const struct gs_victims *nodes, uint32_t count)
{
    struct gs_waiter *waiter = gs_pending_lock(service->pending, uid);
    if (waiter) {
        const char *mark = waiter->node ? waiter->node : waiter->pod.offer;
        waiter->failed = waiter->evicts = true;
        for (uint32_t i = 0; i < count; i++)
            waiter->left |= strcmp(nodes[i].node, mark) == 0;
    }
    gs_pending_unlock(service->pending, waiter);
}

bool gs_nominations_decide(struct gs_service *service, struct gs_waiter *waiter, int64_t now_ns)
{
    const bool may = !waiter->evicts && gs_nominations_may(service, waiter);
    const uint32_t slot = may ? find_for(service, waiter) : GS_INDEX_NONE;
    if (slot == GS_INDEX_NONE)
        return false;
    const uint64_t print = print_of(service, slot);
    waiter->node = strdup(gs_ledger_node_name(service->ledger, slot));
    if (waiter->node && note_try(waiter, print) &&
        gs_reservations_set(service, &waiter->pod, waiter->node, 0, NULL) == 0 &&
        GS_INVARIANT(has_reservation(service, waiter),
                     "the ledger has the reservation of a new nomination")) {
        waiter->nominated_ns = now_ns;
        waiter->failed = waiter->left = false;
        waiter->awaited = true; /* its PATCH is under way */
        waiter->slot = GS_INDEX_NONE;
        return true;
    }
    free(waiter->node);
    waiter->node = NULL;
    return false;
}

bool gs_nominations_send(struct gs_service *service, const struct gs_pod *pod, const char *node,
                         const struct gs_kv annotations[2])
{
    struct gs_error err = {0};
    const bool sent =
        gs_patch_pod(service, pod, pod->resource_version, annotations, 2, node, &err) == 0;
    /* it changed, or is another pod by now */
    const bool stale = err.code == GS_ECONFLICT;
    /* where the answer is missing the watch shows whether it was carried out */
    const bool stands =
        sent || err.code == GS_ETIMEOUT || err.code == GS_EIO || err.code == GS_EPROTO;
    gs_service_write(service);
    struct gs_waiter *waiter = gs_pending_lock(service->pending, pod->uid);
    if (waiter) {
        waiter->stale = stale ? gs_pod_revision(pod) : waiter->stale;
        waiter->awaited = stands;
    }
    if (waiter && !stands && waiter->node) {
        waiter->tried_count -= stale; /* its last one: it was not tried */
        gs_reservations_end_nomination(service, waiter);
    }
    gs_pending_unlock(service->pending, waiter);
    gs_service_unlock(service);
    gs_log(sent    ? GS_LOG_INFO
           : stale ? GS_LOG_DEBUG
                   : GS_LOG_WARN,
           sent ? "pod nominated" : "cannot nominate pod", GS_POD_FIELDS(pod), GS_STR("node", node),
           GS_STR("error", err.msg));
    /* the API server's words for who has no such right, not an admission webhook's for one pod */
    if (err.code == GS_EDENIED && strstr(err.msg, "cannot patch resource")) {
        gs_service_nominate(service, false);
        gs_log(GS_LOG_WARN, "nomination disabled",
               GS_STR("reason", "no permission to patch pods/status: keep "
                                "percentageOfNodesToScore at 100"));
    }
    atomic_fetch_add(&service->nominations, sent);
    atomic_fetch_add(&service->requeues, stands);
    return stands || stale;
}

static bool is_over(const struct gs_service *service, const struct gs_waiter *waiter,
                    int64_t now_ns)
{
    const struct gs_node_view *view = gs_service_view(service, waiter->node);
    struct gs_ask ask;
    if (waiter->failed || now_ns - waiter->nominated_ns >= GS_NOMINATION_NS || !view ||
        !may_be_nominated(service, waiter))
        return true;
    gs_ask_of_pod(&ask, &waiter->pod);
    return gs_fit_beside_holds(service->ledger, view, &ask, NULL) != GS_FITS ||
           gs_node_facts_eligible(&service->cluster.facts, view->slot, &waiter->pod) != GS_ELIGIBLE;
}

/* The mark stays while a bind to that node has no answer, or where nobody may be nominated. */
static bool is_kept(const struct gs_service *service, const struct gs_waiter *waiter)
{
    const char *claimed = claimed_node(service, waiter->uid);
    return !atomic_load(&service->nominates) ||
           (claimed && strcmp(claimed, waiter->pod.offer) == 0 &&
            !atomic_load(&service->withdrawn));
}

/* Of a mark without a nomination here: nobody's nomination is there, or another's; once, since
 * owners may write it too. */
static bool is_due_back(const struct gs_service *service, const struct gs_waiter *waiter)
{
    return waiter->shown && waiter->pod.offer[0] && !waiter->node &&
           (is_marked(waiter) || !waiter->cleaned) && !is_stale(waiter) &&
           !is_kept(service, waiter);
}

static void take_back(struct gs_service *service, const char *uid)
{
    const struct gs_kv off = {service->config.names->offer, NULL};
    _cleanup_(gs_pod_release) struct gs_pod pod = {0};
    struct gs_error err = {0};
    gs_service_read(service);
    struct gs_waiter *waiter = gs_pending_lock(service->pending, uid);
    const bool due = waiter && is_due_back(service, waiter) && gs_pod_copy(&pod, &waiter->pod) == 0;
    const bool nominated = due && is_marked(waiter);
    gs_pending_unlock(service->pending, waiter);
    gs_service_unlock(service);
    if (!due)
        return;
    const bool taken = gs_patch_pod(service, &pod, pod.resource_version, &off, 1,
                                    nominated ? "" : NULL, &err) == 0;
    const bool known = taken || err.code == GS_ECONFLICT || err.code == GS_EINVAL;
    waiter = gs_pending_lock(service->pending, uid);
    if (waiter && known) {
        waiter->stale = gs_pod_revision(&pod); /* its next event says what is so */
        waiter->cleaned |= taken;
    }
    gs_pending_unlock(service->pending, waiter);
    if (!known)
        gs_log(GS_LOG_WARN, "cannot withdraw nomination", GS_POD_FIELDS(&pod),
               GS_STR("node", pod.offer), GS_STR("error", err.msg));
}

struct back {
    struct gs_service *service;
    int64_t now_ns;
    bool answers; /* a standby takes no marks off */
    uint32_t outstanding;
};

static void look_back(void *ctx, struct gs_waiter *waiter)
{
    struct back *back = ctx;
    struct gs_service *service = back->service;
    const int64_t now_ns = back->now_ns;
    const bool claimed = claimed_node(service, waiter->uid) != NULL;
    if (waiter->freed && now_ns - waiter->freed_ns >= GS_NOMINATION_FREED_NS) {
        free(gs_steal(&waiter->freed));
        gs_reservations_end_nomination(service, waiter);
    }
    if (waiter->node && (claimed || is_over(service, waiter, now_ns))) {
        const struct gs_hold *hold = gs_ledger_find_hold(service->ledger, waiter->uid);
        if (!claimed && hold)
            note_vain(service, hold->slot, now_ns);
        gs_reservations_end_nomination(service, waiter);
    }
    GS_INVARIANT(!waiter->node || has_reservation(service, waiter),
                 "the ledger has the reservation of every current nomination");
    if (waiter->pod.offer[0] || now_ns - waiter->nominated_ns >= 2 * GS_NOMINATION_NS)
        waiter->awaited = false; /* it was shown, or was not carried out */
    if (!back->answers)
        return;
    back->outstanding += waiter->awaited || (is_marked(waiter) && !is_kept(service, waiter));
    const uint32_t share = gs_share_of(waiter->pod.ns);
    if (now_ns < waiter->retry_ns || !is_due_back(service, waiter) ||
        atomic_load(&service->patches.lanes[GS_PATCH_TAKE_BACK][share].jobs) >= BACK_PER_NAMESPACE)
        return;
    waiter->retry_ns = now_ns + RETRY_NS;
    gs_patches_add(&service->patches, GS_PATCH_TAKE_BACK, share, waiter->uid, take_back);
}

void gs_nominations_tick(struct gs_service *service, int64_t now_ns)
{
    struct back back = {
        .service = service, .now_ns = now_ns, .answers = !gs_service_refuses(service)};
    gs_service_write(service);
    gs_pending_each_nominated(service->pending, look_back, &back);
    gs_service_unlock(service);
    atomic_store(&service->nominations_out, back.outstanding);
}
