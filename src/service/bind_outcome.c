/* SPDX-License-Identifier: Apache-2.0 */
/* What became of a bind, whoever tells: the API's answer, the pod read back, or time. */
#include "bind.h"
#include "reservations.h"

#include "gpushare/base/invariant.h"
#include "gpushare/base/log.h"

/* A pod whose bind was given up waits like any other: it may fit on any node, where it was refused
 * for that bind's sake, and where it is nominated its place is held again. */
static void wait_again(struct gs_service *service, const char *uid)
{
    gs_reservations_again(service, uid);
    gs_pending_anywhere(service->pending, uid, gs_service_now(service));
}

/* Store locked for writing, so that a repetition has begun before or finds nothing to repeat. */
static void undo(struct gs_service *service, const char *uid)
{
    struct gs_ledger *ledger = service->store.cluster.ledger;
    struct gs_claim claim;
    gs_unresolved_binds_remove(&service->unresolved_binds, uid);
    if (!gs_ledger_find_claim(ledger, uid, &claim) || claim.state != GS_CLAIM_RESERVED)
        return;
    const struct gs_node_view *view = gs_store_view(&service->store, claim.node);
    uint32_t slot = view ? view->slot : GS_INDEX_NONE;
    gs_ledger_undo(ledger, uid);
    gs_store_freed(&service->store, slot, 0);
    wait_again(service, uid);
}

void gs_bind_undo(struct gs_service *service, const char *uid)
{
    gs_store_write(&service->store);
    undo(service, uid);
    gs_store_unlock(&service->store);
}

void gs_bind_expire(struct gs_service *service, const char *uid, int64_t now_ns)
{
    struct gs_claim claim;
    gs_store_write(&service->store);
    GS_INVARIANT(!gs_unresolved_binds_has(&service->unresolved_binds, uid) ||
                     (gs_ledger_find_claim(service->store.cluster.ledger, uid, &claim) &&
                      claim.state == GS_CLAIM_RESERVED),
                 "an unresolved bind has a reservation");
    if (gs_unresolved_binds_over(&service->unresolved_binds, uid, now_ns))
        undo(service, uid);
    gs_store_unlock(&service->store);
}

void gs_bind_expire_queue(struct gs_service *service, int64_t now_ns)
{
    const char *uid;
    gs_store_write(&service->store);
    while ((uid = gs_unresolved_binds_due(&service->bind_queue, now_ns))) {
        undo(service, uid);
        gs_unresolved_binds_remove(&service->bind_queue, uid);
    }
    gs_store_unlock(&service->store);
}

void gs_bind_confirm(struct gs_service *service, const struct gs_binding_args *args,
                     gs_gpu_mask gpus)
{
    struct gs_store *store = &service->store;
    struct gs_claim claim;
    gs_store_write(store);
    bool known = gs_ledger_find_claim(store->cluster.ledger, args->uid, &claim);
    bool shown = known && claim.state == GS_CLAIM_CONFIRMED; /* the watch was faster */
    const struct gs_node_view *node = gs_store_view(store, args->node);
    if (node)
        gs_nominations_bound(service, node->slot);
    if (known && claim.also && gpus) {
        const struct gs_node_view *view = gs_store_view(store, claim.node);
        gs_ledger_place(store->cluster.ledger, args->uid, gpus);
        gs_store_freed(store, view ? view->slot : GS_INDEX_NONE, 0);
    }
    gs_ledger_confirm(store->cluster.ledger, args->uid);
    if (known && !shown)
        gs_term_bound(service, args->uid);
    gs_unresolved_binds_remove(&service->unresolved_binds, args->uid);
    gs_store_unlock(store);
    gs_pending_accepted(service->pending, args->uid);
}

enum gs_bind_found gs_bind_read_back(struct gs_service *service, const char *ns, const char *name,
                                     const char *uid, const char *node, struct gs_error *err)
{
    const struct gs_kube *kube = &service->config.kube;
    struct gs_pod pod = {0};
    enum gs_bind_found found = GS_BIND_UNKNOWN;
    if (kube->ops->get_pod(kube->ctx, ns, name, &pod, err) < 0) {
        if (err->code == GS_ENOENT)
            found = GS_BIND_POD_GONE;
    } else if (strcmp(pod.uid, uid) != 0 || gs_pod_terminal(&pod)) {
        found = GS_BIND_POD_GONE;
    } else if (!pod.node_name[0]) {
        found = GS_BIND_UNBOUND;
    } else {
        found = node && strcmp(pod.node_name, node) != 0 ? GS_BIND_ELSEWHERE : GS_BIND_BOUND;
        /* what the API shows is what counts, GPUs included */
        gs_sync_pod(service, &pod);
    }
    gs_pod_release(&pod);
    return found;
}
