/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/annotation.h"
#include "service_internal.h"

#define ROUND_NS (2 * GS_NS_PER_S)

struct search {
    const struct gs_warnings *warnings;
    struct gs_arena arena;
    uint64_t turns;            /* as the turn of the pod's namespace comes */
    struct gs_event pod, node; /* message NULL: none */
};

void gs_warnings_release(struct gs_warnings *warnings)
{
    gs_recent_release(&warnings->unplaced);
    free(warnings->overfull);
    *warnings = (struct gs_warnings){0};
}

static bool consider_claim(void *ctx, const struct gs_claim *claim)
{
    struct search *search = ctx;
    struct gs_arena *arena = &search->arena;
    const struct gs_warnings *warnings = search->warnings;
    const uint64_t turns = gs_hash_text(claim->ns) - warnings->turn;
    if (claim->state != GS_CLAIM_CONFIRMED || !claim->unplaced ||
        (search->pod.message && turns >= search->turns) ||
        gs_recent_has(&warnings->unplaced, claim->uid))
        return true;
    gs_arena_reset(arena);
    search->turns = turns;
    search->pod = (struct gs_event){.kind = "Pod",
                                    .ns = gs_arena_strdup(arena, claim->ns),
                                    .name = gs_arena_strdup(arena, claim->name),
                                    .uid = gs_arena_strdup(arena, claim->uid),
                                    .reason = "GpuIndexInvalid"};
    if (search->pod.ns && search->pod.name && search->pod.uid)
        search->pod.message = gs_arena_printf(
            arena,
            "node %s: the pod has no valid GPU index. Its %u units are allocated on every GPU "
            "where it may run, until the device plugin reports its GPU",
            claim->node, claim->units);
    return true;
}

static void consider_node(void *ctx, const struct gs_service *service,
                          const struct gs_node_view *view)
{
    if (view->gpu_count)
        gs_ledger_each_claim(service->ledger, view->slot, consider_claim, ctx);
}

static gs_gpu_mask overfull_now(const struct gs_node_view *view)
{
    gs_gpu_mask mask = 0;
    for (uint32_t i = 0; view && i < view->gpu_count; i++) {
        if (view->gpus[i].used_units > view->gpus[i].total_units)
            mask |= GS_GPU_BIT(view->gpus[i].idx);
    }
    return mask;
}

/* What is over is forgotten, so that it is written about when it comes back. */
static void find_overfull(struct gs_warnings *warnings, const struct gs_ledger *ledger,
                          struct search *search)
{
    char gpus[GS_IDX_TEXT_BYTES];
    uint32_t slots = gs_ledger_slots(ledger);
    if (!gs_array_reach(&warnings->overfull, &warnings->overfull_cap, slots,
                        sizeof(*warnings->overfull)))
        return;
    for (uint32_t slot = 0; slot < slots; slot++) {
        gs_gpu_mask now = overfull_now(gs_ledger_view_at(ledger, slot));
        gs_gpu_mask fresh = now & ~warnings->overfull[slot];
        warnings->overfull[slot] &= now;
        if (!fresh || search->node.message)
            continue;
        warnings->overfull[slot] |= fresh;
        /* `kubectl describe node` looks for events whose UID is the node's name. */
        const char *name = gs_arena_strdup(&search->arena, gs_ledger_node_name(ledger, slot));
        search->node = (struct gs_event){
            .kind = "Node",
            .name = name,
            .uid = name,
            .reason = "GpuOvercommitted",
            .message = !name
                           ? NULL
                           : gs_arena_printf(&search->arena,
                                             "GPU %s has more memory allocated than it has: pods "
                                             "bypassed the extender, or its capacity was reduced. "
                                             "No new pods are scheduled there",
                                             gs_codec_idx_format(fresh, gpus))};
    }
}

static bool write_event(struct gs_service *service, struct gs_event *event)
{
    struct gs_error err = {0};
    const struct gs_kube *kube = &service->config.kube;
    event->warning = true;
    event->component = "gpushare-extender";
    gs_log(GS_LOG_WARN, event->reason, GS_STR("namespace", event->ns ? event->ns : ""),
           GS_STR("name", event->name), GS_STR("message", event->message));
    if (kube->ops->create_event(kube->ctx, event, &err) == 0)
        return true;
    gs_log(GS_LOG_WARN, "cannot write event", GS_STR("error", err.msg));
    return false;
}

void gs_warnings_tick(struct gs_service *service, int64_t now_ns)
{
    struct gs_warnings *warnings = &service->warnings;
    struct search search = {.warnings = warnings};
    struct gs_ledger_stats stats;
    if (now_ns < warnings->next_ns)
        return;
    warnings->next_ns = now_ns + ROUND_NS;
    gs_service_read(service);
    gs_ledger_stats(service->ledger, &stats);
    gs_service_unlock(service);
    if (stats.unplaced_claims)
        gs_service_each_node(service, consider_node, &search);
    gs_service_read(service);
    find_overfull(warnings, service->ledger, &search);
    gs_service_unlock(service);
    if (search.pod.message) {
        if (write_event(service, &search.pod))
            atomic_fetch_add(&warnings->unplaced_written, 1);
        /* Tried once: pods whose Event cannot be written must not keep others from theirs. */
        gs_recent_add(&warnings->unplaced, search.pod.uid);
        warnings->turn = gs_hash_text(search.pod.ns) + 1;
    }
    if (search.node.message)
        write_event(service, &search.node);
    gs_arena_release(&search.arena);
}
