/* SPDX-License-Identifier: Apache-2.0 */
#include "offers.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpushare/base/invariant.h"
#include "gpushare/base/log.h"
#include "holds.h"
#include "service_internal.h"

/* Marks taken off in one tick; the rest in the next one. */
enum { BACK_PER_TICK = 16 };
#define RETRY_NS (1 * GS_NS_PER_S)

/* Of a nomination that the pod shows. */
static bool is_ours(const struct gs_offers *offers, const struct gs_pod *pod)
{
    const char *nominated = pod->nominated_node;
    return (offers->node && strcmp(nominated, offers->node) == 0) ||
           (!offers->left && strcmp(nominated, pod->offer) == 0);
}

static bool is_anothers(const struct gs_waiter *waiter)
{
    return waiter->pod->nominated_node[0] && !is_ours(&waiter->offers, waiter->pod);
}

/* It shows a nomination of ours: to the watch. Whoever reaches the port may tell filter of marks,
 * and have us take a nomination of kube-scheduler's back. */
static bool is_marked(const struct gs_waiter *waiter)
{
    const struct gs_pod *pod = waiter->pod;
    return waiter->shown && pod->offer[0] && !waiter->offers.left &&
           strcmp(pod->nominated_node, pod->offer) == 0;
}

static bool is_stale(const struct gs_waiter *waiter)
{
    return waiter->offers.stale && waiter->offers.stale == gs_pod_revision(waiter->pod);
}

bool gs_offers_wait(const struct gs_waiter *waiter)
{
    return !waiter->offers.node && (is_stale(waiter) || is_marked(waiter));
}

/* What of a node changes before it is offered again. */
static uint64_t print_of(const struct gs_store *store, const struct gs_node_view *view)
{
    uint64_t print = gs_node_facts_hash(&store->cluster.facts, view->slot);
    for (uint32_t i = 0; i < view->gpu_count; i++)
        print = print * 31 + view->gpus[i].free_units;
    return print;
}

static bool was_tried(const struct gs_offers *offers, uint32_t slot, uint64_t print)
{
    for (uint32_t i = 0; i < offers->tried_count; i++) {
        if (offers->tried[i].slot == slot && offers->tried[i].print == print)
            return true;
    }
    return false;
}

static void forget_try(struct gs_offers *offers, uint32_t slot)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < offers->tried_count; i++) {
        if (offers->tried[i].slot != slot)
            offers->tried[kept++] = offers->tried[i];
    }
    offers->tried_count = kept;
}

/* The oldest makes room. */
static bool note_try(struct gs_offers *offers, uint32_t slot, uint64_t print)
{
    forget_try(offers, slot);
    if (offers->tried_count == GS_OFFERS_TRIED_MAX)
        forget_try(offers, offers->tried[0].slot);
    struct gs_tried *wider =
        reallocarray(offers->tried, offers->tried_count + 1, sizeof(*offers->tried));
    if (!wider)
        return false;
    offers->tried = wider;
    wider[offers->tried_count++] = (struct gs_tried){slot, print};
    return true;
}

/* Where its bind is done, or under way, or awaited; NULL: nowhere. */
static const char *claimed_node(const struct gs_service *service, const char *uid)
{
    const struct gs_ledger *ledger = service->store.cluster.ledger;
    struct gs_claim claim;
    uint32_t slot;
    if (gs_ledger_find_claim(ledger, uid, &claim))
        return claim.node;
    return gs_ledger_promised(ledger, uid, &slot) ? gs_ledger_node_name(ledger, slot) : NULL;
}

static bool holds_place(const struct gs_store *store, const struct gs_waiter *waiter)
{
    uint32_t slot = gs_ledger_hold_slot(store->cluster.ledger, waiter->pod->uid);
    return slot != GS_INDEX_NONE &&
           strcmp(gs_ledger_node_name(store->cluster.ledger, slot), waiter->offers.node) == 0;
}

/* Somebody may nominate it, and would do it some good. A member of a group it would lead away from
 * the others. */
static bool is_offerable(const struct gs_service *service, const struct gs_waiter *waiter)
{
    const struct gs_pod *pod = waiter->pod;
    return atomic_load(&service->nominates) && !atomic_load(&service->withdrawn) &&
           waiter->offers.refused && !pod->gated && !pod->never_preempts &&
           !gs_promises_concern(pod) && !is_anothers(waiter);
}

bool gs_offers_may(const struct gs_service *service, const struct gs_waiter *waiter)
{
    return is_offerable(service, waiter) && !waiter->offers.node && !gs_offers_wait(waiter) &&
           !claimed_node(service, waiter->pod->uid) &&
           gs_ledger_hold_slot(service->store.cluster.ledger, waiter->pod->uid) == GS_INDEX_NONE;
}

static bool is_paused(const struct gs_service *service, uint32_t slot, int64_t now_ns)
{
    const struct gs_offered_nodes *all = &service->offered_nodes;
    const struct gs_offered_node *node = slot < all->cap ? &all->nodes[slot] : NULL;
    if (!node || node->vain < GS_OFFERS_VAIN)
        return false;
    int64_t pause_ns = (node->vain - GS_OFFERS_VAIN + 1) * GS_OFFER_NS;
    return now_ns - node->vain_ns < (pause_ns < GS_OFFERS_PAUSE_NS ? pause_ns : GS_OFFERS_PAUSE_NS);
}

static void note_vain(struct gs_service *service, uint32_t slot, int64_t now_ns)
{
    struct gs_offered_nodes *all = &service->offered_nodes;
    if (slot >= all->cap) {
        uint32_t cap = gs_ledger_slots(service->store.cluster.ledger);
        struct gs_offered_node *wider = reallocarray(all->nodes, cap, sizeof(*wider));
        if (!wider)
            return; /* it is offered on */
        memset(wider + all->cap, 0, (cap - all->cap) * sizeof(*wider));
        *all = (struct gs_offered_nodes){wider, cap};
    }
    struct gs_offered_node *node = &all->nodes[slot];
    bool in_a_row = now_ns - node->vain_ns < GS_OFFERS_PAUSE_NS;
    *node = (struct gs_offered_node){in_a_row ? node->vain + 1 : 1, now_ns};
}

void gs_offers_bound(struct gs_service *service, uint32_t slot)
{
    if (slot < service->offered_nodes.cap)
        service->offered_nodes.nodes[slot].vain = 0;
}

uint32_t gs_offers_find(const struct gs_service *service, const struct gs_waiter *waiter,
                        const struct gs_ask *ask, int64_t *work)
{
    const struct gs_store *store = &service->store;
    const int64_t now_ns = gs_clock_now_ns(service->config.clock);
    uint32_t end = gs_ledger_slots(store->cluster.ledger);
    for (uint32_t from = 0;;) {
        uint32_t slot = gs_fit_first(store->cluster.ledger, ask, from);
        *work -= (slot == GS_INDEX_NONE ? end : slot + 1) - from;
        if (slot == GS_INDEX_NONE ||
            (!is_paused(service, slot, now_ns) &&
             gs_node_facts_eligible(&store->cluster.facts, slot, waiter->pod) == GS_ELIGIBLE &&
             !was_tried(&waiter->offers, slot,
                        print_of(store, gs_ledger_view_at(store->cluster.ledger, slot)))))
            return slot;
        from = slot + 1;
    }
}

static uint32_t find_for(const struct gs_service *service, const struct gs_waiter *waiter)
{
    struct gs_ask ask;
    struct gs_match match;
    int64_t work = 0;
    gs_ask_of_pod(&ask, waiter->pod);
    gs_ask_match(&ask, service->store.cluster.ledger, &match);
    return gs_offers_find(service, waiter, &ask, &work);
}

struct question {
    const struct gs_service *service;
    const struct gs_pod *pod;
    int64_t now_ns;
    bool held_up; /* out */
};

static void ask_whether(void *ctx, struct gs_waiter *waiter)
{
    struct question *question = ctx;
    struct gs_offers *offers = &waiter->offers;
    if (offers->node && strcmp(question->pod->nominated_node, offers->node) == 0)
        offers->failed = true;
    bool may = offers->questions < GS_OFFER_QUESTIONS &&
               (!offers->questions || question->now_ns - offers->first_ns < GS_OFFER_NS) &&
               is_offerable(question->service, waiter);
    /* once a node was tried in vain, each more would cost another back-off of kube-scheduler's */
    question->held_up =
        may && (offers->node
                    ? !offers->failed
                    : !offers->tried_count && find_for(question->service, waiter) != GS_INDEX_NONE);
    offers->owed = question->held_up;
    if (!question->held_up)
        return;
    offers->first_ns = offers->questions ? offers->first_ns : question->now_ns;
    offers->questions++;
    GS_INVARIANT(offers->questions <= GS_OFFER_QUESTIONS,
                 "preemption is held up twice in a pod's life at most");
}

bool gs_offers_hold_up(struct gs_service *service, const struct gs_pod *pod)
{
    struct question question = {
        .service = service, .pod = pod, .now_ns = gs_clock_now_ns(service->config.clock)};
    if (!atomic_load(&service->nominates))
        return false;
    gs_store_read(&service->store);
    gs_pending_known(service->pending, pod->uid, ask_whether, &question);
    gs_store_unlock(&service->store);
    return question.held_up;
}

struct named {
    const struct gs_victims *nodes;
    uint32_t count;
};

static void leave(void *ctx, struct gs_waiter *waiter)
{
    const struct named *named = ctx;
    const char *mark = waiter->offers.node ? waiter->offers.node : waiter->pod->offer;
    waiter->offers.failed = waiter->offers.evicts = true;
    for (uint32_t i = 0; mark[0] && i < named->count; i++)
        waiter->offers.left |= gs_slice_eq(gs_slice_of(named->nodes[i].node), gs_slice_of(mark));
}

void gs_offers_leave(struct gs_service *service, const char *uid, const struct gs_victims *nodes,
                     uint32_t count)
{
    struct named named = {nodes, count};
    gs_pending_known(service->pending, uid, leave, &named);
}

/* The offer does not stand any more. What the pod shows holds its place until that is taken back.
 * Store locked for writing, and the table. */
static void end_offer(struct gs_service *service, struct gs_waiter *waiter)
{
    struct gs_store *store = &service->store;
    struct gs_offers *offers = &waiter->offers;
    const struct gs_pod *pod = waiter->pod;
    uint32_t slot = gs_ledger_hold_slot(store->cluster.ledger, pod->uid);
    if (strcmp(pod->nominated_node, offers->node) != 0 && slot != GS_INDEX_NONE &&
        strcmp(gs_ledger_node_name(store->cluster.ledger, slot), offers->node) == 0) {
        gs_ledger_release_hold(store->cluster.ledger, pod->uid);
        gs_store_freed(store, slot);
        offers->given_up_at = store->frees;
    }
    free(offers->node);
    offers->node = NULL;
    offers->failed = false;
    waiter->slot = GS_INDEX_NONE;
    waiter->anywhere = true;
}

bool gs_offers_decide(struct gs_service *service, struct gs_waiter *waiter, int64_t now_ns)
{
    struct gs_store *store = &service->store;
    struct gs_offers *offers = &waiter->offers;
    bool may = !offers->evicts && gs_offers_may(service, waiter);
    uint32_t slot = may ? find_for(service, waiter) : GS_INDEX_NONE;
    if (slot == GS_INDEX_NONE)
        return false;
    const struct gs_node_view *view = gs_ledger_view_at(store->cluster.ledger, slot);
    const char *name = gs_ledger_node_name(store->cluster.ledger, slot);
    offers->node = strdup(name);
    if (offers->node && note_try(offers, slot, print_of(store, view)) &&
        gs_holds_set(service, waiter->pod, name, NULL) == 0) {
        offers->since_ns = now_ns;
        offers->failed = offers->left = offers->cleaned = false;
        waiter->slot = GS_INDEX_NONE;
        if (GS_INVARIANT(holds_place(store, waiter), "the ledger holds the place of an offer"))
            return true;
    }
    free(offers->node);
    offers->node = NULL;
    return false;
}

/* The pod as it was decided on, or no pod. Nothing is sent when the lease is over, nor answered for
 * long after. nominated NULL: it stays as it is. */
static int patch_pod(struct gs_service *service, const struct gs_pod *pod,
                     const struct gs_kv *annotations, size_t count, const char *nominated,
                     struct gs_error *err)
{
    const struct gs_kube *kube = &service->config.kube;
    struct gs_meta_patch patch = {.ns = pod->ns,
                                  .name = pod->name,
                                  .uid = pod->uid,
                                  .resource_version = pod->resource_version,
                                  .annotations = annotations,
                                  .annotation_count = count,
                                  .nominated_node = nominated};
    if (gs_service_refuses(service))
        return gs_fail(err, GS_ECANCELED, "another replica leads");
    if (service->config.election)
        patch.deadline_ns = gs_election_until_ns(service->config.election);
    return kube->ops->patch_pod(kube->ctx, &patch, err);
}

struct sent {
    struct gs_service *service;
    const struct gs_pod *pod; /* as it was decided on */
    bool stands;
    bool stale;
};

static void note_sent(void *ctx, struct gs_waiter *waiter)
{
    const struct sent *sent = ctx;
    struct gs_offers *offers = &waiter->offers;
    if (sent->stale)
        offers->stale = gs_pod_revision(sent->pod);
    if (!offers->node)
        return;
    offers->awaited = sent->stands;
    if (sent->stands)
        return;
    uint32_t slot = gs_ledger_hold_slot(sent->service->store.cluster.ledger, waiter->pod->uid);
    if (sent->stale)
        forget_try(offers, slot);
    end_offer(sent->service, waiter);
}

/* Whether it was carried out: not known where the answer is missing, and then the watch tells. */
static bool is_sure(enum gs_code code)
{
    return code != GS_ETIMEOUT && code != GS_EIO && code != GS_EPROTO;
}

enum gs_offer_sent gs_offers_send(struct gs_service *service, const struct gs_pod *pod,
                                  const char *node, int64_t wall_ns)
{
    const struct gs_names *names = service->config.names;
    char value[32];
    snprintf(value, sizeof(value), "%lld", (long long)wall_ns);
    const struct gs_kv annotations[] = {{names->wake, value}, {names->offer, node}};
    struct gs_error err = {0};
    int result = patch_pod(service, pod, annotations, 2, node, &err);
    /* 409: it changed, or is another pod by now; 422: it was bound just now */
    struct sent sent = {service, pod, result == 0 || !is_sure(err.code),
                        err.code == GS_ECONFLICT || err.code == GS_EINVAL};
    gs_store_write(&service->store);
    gs_pending_known(service->pending, pod->uid, note_sent, &sent);
    gs_store_unlock(&service->store);
    gs_log(result == 0  ? GS_LOG_INFO
           : sent.stale ? GS_LOG_DEBUG
                        : GS_LOG_WARN,
           result == 0 ? "nominated" : "not nominated", GS_STR("pod", pod->name),
           GS_STR("namespace", pod->ns), GS_STR("node", node), GS_STR("why", err.msg));
    if (result == 0)
        atomic_fetch_add(&service->nominations, 1);
    return sent.stands ? GS_OFFER_WRITTEN : sent.stale ? GS_OFFER_STALE : GS_OFFER_REFUSED;
}

struct back {
    struct gs_service *service;
    int64_t now_ns;
    struct {
        struct gs_pod pod; /* a copy */
        bool nominated;    /* that is taken back as well */
    } items[BACK_PER_TICK];
    uint32_t count;
    uint32_t outstanding;
};

static bool is_over(const struct gs_service *service, const struct gs_waiter *waiter,
                    int64_t now_ns)
{
    const struct gs_store *store = &service->store;
    const struct gs_offers *offers = &waiter->offers;
    const struct gs_node_view *view = gs_store_view(store, offers->node);
    struct gs_gpu_state room[GS_GPUS_MAX];
    struct gs_ask ask;
    if (offers->failed || now_ns - offers->since_ns >= GS_OFFER_NS || !view ||
        !is_offerable(service, waiter))
        return true;
    gs_ask_of_pod(&ask, waiter->pod);
    return gs_fit_beside_holds(store->cluster.ledger, view, &ask, room, NULL) != GS_FITS ||
           gs_node_facts_eligible(&store->cluster.facts, view->slot, waiter->pod) != GS_ELIGIBLE;
}

/* Of a mark that is not an offer's: nobody's nomination is there, or another's; once, since owners
 * may write it too. */
static bool is_due_back(const struct gs_waiter *waiter, int64_t now_ns, bool *ret_nominated)
{
    const struct gs_offers *offers = &waiter->offers;
    const struct gs_pod *pod = waiter->pod;
    *ret_nominated = is_marked(waiter);
    return waiter->shown && pod->offer[0] && !offers->node &&
           (*ret_nominated || !offers->cleaned) && !is_stale(waiter) && now_ns >= offers->retry_ns;
}

static bool look_back(void *ctx, struct gs_waiter *waiter)
{
    struct back *back = ctx;
    struct gs_offers *offers = &waiter->offers;
    const char *claimed = claimed_node(back->service, waiter->pod->uid);
    bool kept = claimed && strcmp(claimed, waiter->pod->offer) == 0 &&
                !atomic_load(&back->service->withdrawn);
    bool nominated;
    if (offers->node && (claimed || is_over(back->service, waiter, back->now_ns))) {
        uint32_t slot = gs_ledger_hold_slot(back->service->store.cluster.ledger, waiter->pod->uid);
        if (!claimed && slot != GS_INDEX_NONE)
            note_vain(back->service, slot, back->now_ns);
        end_offer(back->service, waiter);
    }
    GS_INVARIANT(!offers->node || holds_place(&back->service->store, waiter),
                 "the ledger holds the place of every offer that stands");
    if (waiter->pod->offer[0] || back->now_ns - offers->since_ns >= 2 * GS_OFFER_NS)
        offers->awaited = false; /* it was shown, or was not carried out */
    bool due = !kept && is_due_back(waiter, back->now_ns, &nominated);
    back->outstanding += offers->awaited || (!kept && is_marked(waiter));
    if (!due)
        return true;
    if (back->count == BACK_PER_TICK || gs_pod_copy(&back->items[back->count].pod, waiter->pod) < 0)
        return true;
    back->items[back->count++].nominated = nominated;
    offers->retry_ns = back->now_ns + RETRY_NS;
    return true;
}

static void note_taken(void *ctx, struct gs_waiter *waiter)
{
    const struct sent *sent = ctx;
    waiter->offers.stale = gs_pod_revision(sent->pod); /* its next event says what is so */
    waiter->offers.cleaned |= sent->stands;
}

static void take_back(struct gs_service *service, const struct gs_pod *pod, bool nominated)
{
    const struct gs_kv off = {service->config.names->offer, NULL};
    struct gs_error err = {0};
    int result = patch_pod(service, pod, &off, 1, nominated ? "" : NULL, &err);
    struct sent sent = {service, pod, result == 0, false};
    if (result == 0 || err.code == GS_ECONFLICT || err.code == GS_EINVAL)
        gs_pending_known(service->pending, pod->uid, note_taken, &sent);
    else
        gs_log(GS_LOG_WARN, "nomination not taken back", GS_STR("pod", pod->name),
               GS_STR("namespace", pod->ns), GS_STR("node", pod->offer), GS_STR("why", err.msg));
}

void gs_offers_tick(struct gs_service *service, int64_t now_ns)
{
    struct back back = {.service = service, .now_ns = now_ns};
    if (!atomic_load(&service->nominates))
        return;
    if (!gs_pending_offered(service->pending)) {
        atomic_store(&service->offers_out, 0);
        return;
    }
    gs_store_write(&service->store);
    gs_pending_each_offered(service->pending, look_back, &back);
    gs_store_unlock(&service->store);
    for (uint32_t i = 0; i < back.count; i++) {
        take_back(service, &back.items[i].pod, back.items[i].nominated);
        gs_pod_release(&back.items[i].pod);
    }
    atomic_store(&service->offers_out, back.outstanding);
}
