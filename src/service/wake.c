/* SPDX-License-Identifier: Apache-2.0 */
/* What happens without being asked, ten times a second. */
#include "bind.h"
#include "gpushare/base/log.h"

#define AUDIT_EVERY_NS   (30 * GS_NS_PER_S)
#define REFRESH_EVERY_NS (1 * GS_NS_PER_S)

/* Asks the API what became of a bind without an answer. */
static void settle_open_bind(struct gs_service *service, int64_t now_ns)
{
    struct gs_open_bind entry;
    struct gs_error err = {0};
    gs_store_write(&service->store);
    bool due = gs_open_binds_due(service->open_binds, now_ns, &entry);
    gs_store_unlock(&service->store);
    if (!due)
        return;
    switch (gs_bind_read_back(service, entry.ns, entry.name, entry.uid, NULL, &err)) {
    case GS_BIND_BOUND:
    case GS_BIND_ELSEWHERE:
        break; /* the ledger has it: it is open no more */
    case GS_BIND_POD_GONE:
        gs_bind_undo(service, entry.uid);
        break;
    case GS_BIND_UNBOUND:
        gs_bind_expire(service, entry.uid, now_ns);
        break;
    case GS_BIND_UNKNOWN:
        break; /* looked at again in a second */
    }
    gs_open_bind_release(&entry);
}

/* Tables of fgd and rollout: built off the request path. */
static void refresh(struct gs_service *service, int64_t now_ns)
{
    struct gs_error err = {0};
    if (now_ns < service->next_refresh_ns)
        return;
    service->next_refresh_ns = now_ns + REFRESH_EVERY_NS;
    gs_store_read(&service->store);
    gs_policies_supply(service->store.cluster.policies, service->store.cluster.ledger);
    gs_store_unlock(&service->store);
    if (gs_policies_refresh_due(service->store.cluster.policies) &&
        gs_policies_refresh(service->store.cluster.policies, &err) < 0)
        gs_log(GS_LOG_WARN, "placement tables not refreshed", GS_STR("why", err.msg));
}

static void audit_node(void *ctx, const struct gs_store *store, const struct gs_node_view *view)
{
    uint32_t *differing = ctx;
    *differing += gs_ledger_audit(store->cluster.ledger, view->slot);
}

static void audit(struct gs_service *service, int64_t now_ns)
{
    if (now_ns < service->next_audit_ns)
        return;
    service->next_audit_ns = now_ns + AUDIT_EVERY_NS;
    uint32_t differing = 0;
    gs_store_each_node(&service->store, audit_node, &differing);
    atomic_store(&service->drift, differing);
    if (differing)
        gs_log(GS_LOG_ERROR, "the ledger's totals differ from its claims",
               GS_INT("gpus", differing));
}

void gs_service_tick(struct gs_service *service)
{
    int64_t now_ns = gs_clock_now_ns(service->config.clock);
    bool answers = !gs_service_refuses(service);
    if (answers && !service->answered)
        gs_pending_all_wait(service->pending, now_ns);
    service->answered = answers;
    gs_bind_expire_arrivals(service, now_ns);
    if (gs_service_loaded(service)) { /* a standby's ledger shall be right when it leads */
        gs_reconcile_tick(service, now_ns);
        gs_new_nodes_tick(service, now_ns);
        if (gs_open_binds_count(service->open_binds))
            settle_open_bind(service, now_ns);
    }
    if (!answers)
        return;
    gs_offers_tick(service, now_ns);
    gs_waker_tick(service, now_ns);
    gs_warnings_tick(service, now_ns);
    refresh(service, now_ns);
    audit(service, now_ns);
}
