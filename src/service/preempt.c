/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/log.h"
#include "gpushare/core/eviction.h"
#include "service_internal.h"

static const char *const *uids_of(const struct gs_victims *node, struct gs_arena *arena)
{
    const char **uids = gs_arena_calloc(arena, node->pod_count, sizeof(*uids));
    for (uint32_t i = 0; uids && i < node->pod_count; i++)
        uids[i] = node->pods[i].uid;
    return uids;
}

/* Proposed victims stay as they are: they may be needed for CPU, ports or sums that are not seen
 * here. The added ones follow. */
static int with_added(struct gs_victims *node, const char *const *added, size_t count,
                      struct gs_arena *arena)
{
    struct gs_victim *pods = gs_arena_calloc(arena, (size_t)node->pod_count + count, sizeof(*pods));
    if (!pods)
        return -1;
    if (node->pod_count)
        memcpy(pods, node->pods, node->pod_count * sizeof(*pods));
    for (size_t i = 0; i < count; i++)
        pods[node->pod_count + i] = (struct gs_victim){.uid = added[i]};
    node->pods = pods;
    node->pod_count += (uint32_t)count;
    return 0;
}

/* Keeps the nodes where eviction helps, in place; returns how many, or -1 when out of memory. */
static int64_t keep_useful(struct gs_service *service, const struct gs_ask *ask,
                           struct gs_preemption_args *args)
{
    const struct gs_ledger *ledger = service->store.ledger;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < args->node_count; i++) {
        struct gs_victims *node = &args->nodes[i];
        const struct gs_node_view *view = gs_ledger_view(ledger, gs_slice_of(node->node));
        if (!view)
            continue;
        const char *const *uids = uids_of(node, &args->arena), *const *added = NULL;
        size_t count = 0;
        enum gs_eviction plan = uids ? gs_plan_eviction(ledger, view, ask, uids, node->pod_count,
                                                        &args->arena, &added, &count)
                                     : GS_EVICTION_NO_MEMORY;
        if (plan == GS_EVICTION_NO_MEMORY ||
            (plan == GS_EVICTION_FITS && with_added(node, added, count, &args->arena) < 0))
            return -1;
        if (plan == GS_EVICTION_FITS)
            args->nodes[kept++] = *node;
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
    } else if (ask.units) {
        gs_store_read(&service->store);
        kept = keep_useful(service, &ask, args);
        gs_store_unlock(&service->store);
    }
    if (kept < 0)
        return gs_fail_nomem(err);
    gs_log(GS_LOG_INFO, "preemption", GS_STR("pod", args->pod.name),
           GS_STR("namespace", args->pod.ns), GS_INT("nodes", args->node_count),
           GS_INT("useful", kept));
    gs_codec_preemption_result(answer, args->nodes, (uint32_t)kept);
    return gs_buf_failed(answer) ? gs_fail(err, GS_ENOMEM, "the answer does not fit") : 0;
}

int gs_service_preempt(struct gs_service *service, const char *body, size_t len,
                       struct gs_buf *answer, struct gs_error *err)
{
    int64_t start_ns = gs_clock_now_ns(service->config.clock);
    struct gs_preemption_args args = {0};
    int result =
        gs_codec_preemption_args(service->config.names, (struct gs_slice){body, len}, &args, err);
    if (result == 0)
        result = preempt(service, &args, answer, err);
    gs_preemption_args_release(&args);
    gs_meter_add(&service->meters[GS_VERB_PREEMPT],
                 gs_clock_now_ns(service->config.clock) - start_ns, result < 0);
    return result;
}
