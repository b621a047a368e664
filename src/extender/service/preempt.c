/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

#define HOLD_NS GS_NS_PER_MS

static const char *const *uids_of(const struct gs_victims *node, struct gs_arena *arena)
{
    const char **uids = gs_arena_calloc(arena, node->pod_count, sizeof(*uids));
    for (uint32_t i = 0; uids && i < node->pod_count; i++)
        uids[i] = node->pods[i].uid;
    return uids;
}

/* True when `added` is more important than a proposed victim that is known here. */
static bool goes_before(const struct gs_ledger *ledger, const char *added, const char *proposed)
{
    struct gs_claim first, second;
    return gs_ledger_find_claim(ledger, added, &first) &&
           gs_ledger_find_claim(ledger, proposed, &second) && first.priority > second.priority;
}

/*
 * Proposed victims stay as they are: they may be needed for CPU, ports or sums that are not seen
 * here. The added ones are merged in by priority, because kube-scheduler takes the first one for
 * the most important when it compares nodes.
 */
static int with_added(const struct gs_ledger *ledger, struct gs_victims *node,
                      const char *const *added, size_t count, struct gs_arena *arena)
{
    struct gs_victim *pods = gs_arena_calloc(arena, (size_t)node->pod_count + count, sizeof(*pods));
    if (!pods)
        return -1;
    uint32_t to = 0;
    size_t next = 0;
    for (uint32_t i = 0; i < node->pod_count; i++) {
        while (next < count && goes_before(ledger, added[next], node->pods[i].uid))
            pods[to++] = (struct gs_victim){.uid = added[next++]};
        pods[to++] = node->pods[i];
    }
    while (next < count)
        pods[to++] = (struct gs_victim){.uid = added[next++]};
    node->pods = pods;
    node->pod_count = to;
    return 0;
}

/* kube-scheduler may have given such a pod up, and fails its whole preemption when it is told to
 * evict one that it does not see on the node. */
static bool has_open_bind(const struct gs_ledger *ledger, const char *const *uids, size_t count)
{
    struct gs_claim claim;
    for (size_t i = 0; i < count; i++) {
        if (gs_ledger_find_claim(ledger, uids[i], &claim) && claim.state == GS_CLAIM_RESERVED)
            return true;
    }
    return false;
}

/* Whether eviction helps on this node, whose victims become those that it takes. */
static enum gs_eviction plan_node(struct gs_service *service, const struct gs_ask *ask,
                                  const struct gs_pod *pod, struct gs_victims *node,
                                  struct gs_plan_budgets *budgets, struct gs_arena *arena)
{
    const struct gs_ledger *ledger = service->ledger;
    const struct gs_node_view *view = gs_ledger_view(ledger, node->node);
    struct gs_claim claim;
    if (gs_ledger_find_claim(ledger, pod->uid, &claim)) {
        /* A bind that kube-scheduler does not know yet, or a resize (KEP-5836). */
        bool its_own =
            strcmp(pod->node_name, claim.node) == 0 && strcmp(node->node, claim.node) == 0;
        return its_own ? GS_EVICTION_FITS : GS_EVICTION_USELESS;
    }
    if (!view)
        return GS_EVICTION_USELESS;
    const char *const *uids = uids_of(node, arena), *const *added = NULL;
    size_t count = 0;
    if (!uids)
        return GS_EVICTION_NO_MEMORY;
    budgets->count = 0;
    enum gs_eviction plan =
        gs_plan_eviction(ledger, view, ask, uids, node->pod_count,
                         service->budgets.count ? &budgets->plan : NULL, arena, &added, &count);
    if (plan == GS_EVICTION_FITS && has_open_bind(ledger, added, count))
        return GS_EVICTION_USELESS;
    if (plan == GS_EVICTION_FITS && with_added(ledger, node, added, count, arena) < 0)
        return GS_EVICTION_NO_MEMORY;
    node->pdb_violations += plan == GS_EVICTION_FITS ? budgets->plan.violations : 0;
    return plan;
}

/* Keeps the nodes where eviction helps, in place; returns how many, or -1 when out of memory. The
 * lock is held for a moment at a time: a node's pods and budgets are bounded, nodes are not. */
static int64_t keep_useful(struct gs_service *service, struct gs_ask *ask,
                           struct gs_preemption_args *args)
{
    struct gs_plan_budgets budgets = {.plan.falls = gs_budgets_fall, .budgets = &service->budgets};
    struct gs_match match;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < args->node_count;) {
        enum gs_eviction plan;
        gs_service_read(service);
        gs_ask_match(ask, service->ledger, &match);
        const int64_t until_ns = gs_service_now(service) + HOLD_NS;
        do {
            plan = plan_node(service, ask, &args->pod, &args->nodes[i], &budgets, &args->arena);
            if (plan == GS_EVICTION_FITS)
                args->nodes[kept++] = args->nodes[i];
        } while (++i < args->node_count && plan != GS_EVICTION_NO_MEMORY &&
                 gs_service_now(service) < until_ns);
        gs_service_unlock(service);
        if (plan == GS_EVICTION_NO_MEMORY)
            return -1;
    }
    return kept;
}

static int preempt(struct gs_service *service, struct gs_preemption_args *args,
                   struct gs_buf *answer, struct gs_error *err)
{
    struct gs_ask ask;
    gs_ask_of_pod(&ask, &args->pod);
    int64_t kept = args->node_count;
    if (gs_service_refuses(service)) {
        kept = 0; /* this answer has no Error: nobody is evicted on our word */
    } else if (gs_nominations_delay_preemption(service, &args->pod)) {
        kept = 0; /* a node has room without that */
    } else if (ask.units || ask.broken) {
        kept = keep_useful(service, &ask, args);
        if (kept > 0) {
            gs_eviction_waits_add(service, &args->pod, args->nodes, (uint32_t)kept);
            gs_nominations_leave(service, args->pod.uid, args->nodes, (uint32_t)kept);
        }
    }
    if (kept < 0)
        return gs_fail_nomem(err);
    gs_log(kept ? GS_LOG_INFO : GS_LOG_DEBUG, "preemption", GS_POD_FIELDS(&args->pod),
           GS_INT("nodes", args->node_count), GS_INT("candidates", kept));
    gs_codec_preemption_result(answer, args->nodes, (uint32_t)kept);
    return 0;
}

enum gs_answered gs_verb_preempt(struct gs_service *service, struct gs_request *request,
                                 struct gs_buf *answer, struct gs_error *err)
{
    struct gs_preemption_args args = {0};
    int result = gs_codec_preemption_args(service->config.names, request->body, &args, err);
    if (result == 0)
        result = preempt(service, &args, answer, err);
    gs_preemption_args_release(&args);
    return result < 0 ? GS_ANSWER_FAILED : GS_ANSWERED;
}
