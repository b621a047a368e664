/* SPDX-License-Identifier: Apache-2.0 */
/* What happens without being asked: each part ten times a second, in a thread of its own. */
#include "service_internal.h"

#define AUDIT_EVERY_NS   (30 * GS_NS_PER_S)
#define REFRESH_EVERY_NS (1 * GS_NS_PER_S)
#define COMPARE_EVERY_NS (300 * GS_NS_PER_S)

/* Tables of rollout: built off the request path. */
static void refresh(struct gs_service *service, int64_t now_ns)
{
    struct gs_error err = {0};
    if (now_ns < service->next_refresh_ns)
        return;
    service->next_refresh_ns = now_ns + REFRESH_EVERY_NS;
    gs_service_read(service);
    gs_policies_supply(service->cluster.policies, service->ledger);
    gs_service_unlock(service);
    if (gs_policies_refresh_due(service->cluster.policies) &&
        gs_policies_refresh(service->cluster.policies, &err) < 0)
        gs_log(GS_LOG_WARN, "cannot refresh placement tables", GS_STR("error", err.msg));
}

static void audit_node(void *ctx, const struct gs_service *service, const struct gs_node_view *view)
{
    uint32_t *differing = ctx;
    *differing += gs_ledger_audit(service->ledger, view->slot);
}

static void audit(struct gs_service *service, int64_t now_ns)
{
    if (now_ns < service->next_audit_ns)
        return;
    service->next_audit_ns = now_ns + AUDIT_EVERY_NS;
    uint32_t differing = 0;
    struct gs_pending_stats pending;
    gs_pending_stats(service->pending, now_ns, &pending);
    if (pending.dropped > service->dropped)
        gs_log(
            GS_LOG_WARN,
            "the table of pending pods is full: pods of the namespace that has most are not kept",
            GS_INT("pods", pending.dropped - service->dropped));
    service->dropped = pending.dropped;
    gs_service_each_node(service, audit_node, &differing);
    atomic_store(&service->drift, differing);
    if (differing)
        gs_log(GS_LOG_ERROR, "ledger totals differ from the sum of allocations",
               GS_INT("gpus", differing));
}

/* The watch keeps ledger and API server equal. Whether it has is seen by a list of all pods, which
 * also repairs what differs: sync.c. */
static void compare(struct gs_service *service, int64_t now_ns)
{
    const int64_t set_ns = service->config.reconcile_ns;
    const bool begun = service->next_compare_ns != 0;
    if (!gs_service_ready(service, NULL))
        return;
    if (now_ns < service->next_compare_ns)
        return;
    service->next_compare_ns = now_ns + (set_ns ? set_ns : COMPARE_EVERY_NS);
    if (!begun)
        return;
    atomic_store(&service->compares, true);
    gs_term_want_list(service, now_ns, NULL);
}

static void requeue(struct gs_service *service, int64_t now_ns, bool answers)
{
    if (answers && !service->answered)
        gs_pending_anywhere(service->pending, NULL, now_ns);
    service->answered = answers;
    gs_nominations_tick(service, now_ns);
    if (answers)
        gs_requeue_tick(service, now_ns);
}

void gs_service_tick_part(struct gs_service *service, enum gs_tick part)
{
    const int64_t now_ns = gs_service_now(service);
    const bool answers = !gs_service_refuses(service);
    if (part == GS_TICK_TERM)
        gs_term_tick(service);
    if (part == GS_TICK_CLOCK) {
        gs_bind_expire_queue(service, now_ns);
        gs_gang_reservations_tick(service, now_ns);
        if (answers) {
            refresh(service, now_ns);
            audit(service, now_ns);
        }
    }
    if (part == GS_TICK_REQUEUE)
        requeue(service, now_ns, answers);
    if (part == GS_TICK_PATCH)
        gs_patches_tick(service);
    if (part == GS_TICK_SETTLE && atomic_load(&service->bind_reservations.unresolved))
        gs_bind_settle(service, now_ns);
    if (part == GS_TICK_COMPARE) /* a standby's ledger shall be right when it leads */
        compare(service, now_ns);
    if (part == GS_TICK_COMPARE && answers)
        gs_warnings_tick(service, now_ns);
}
