/* SPDX-License-Identifier: Apache-2.0 */
/* What became of a bind, whoever tells: the API's answer, the pod read back, or time. */
#include "service_internal.h"

#define LOOK_EVERY_NS (1 * GS_NS_PER_S)

/* One that is due for a look, namespaces in turn, and has its next a second later; NULL when none
 * is. */
static struct gs_bind_reservation *find_due(struct gs_service *service, bool queued, int64_t now_ns)
{
    struct gs_bind_reservations *binds = &service->bind_reservations;
    struct gs_bind_reservation *due = NULL;
    uint64_t least = 0;
    for (struct gs_bind_reservation *one = binds->all; one; one = one->hh.next) {
        const uint64_t turns = one->ns - binds->turn;
        if (one->queued == queued && one->next_look_ns <= now_ns &&
            (!due || turns < least || (turns == least && one->next_look_ns < due->next_look_ns))) {
            due = one;
            least = turns;
        }
    }
    if (!due)
        return NULL;
    binds->turn = due->ns + 1;
    due->next_look_ns = now_ns + LOOK_EVERY_NS;
    return due;
}

/* A pod whose bind was given up waits like any other: it may fit on any node, where it was refused
 * for that bind's sake, and where it is nominated it has its reservation again. A repetition has
 * begun before, or finds nothing to repeat. */
void gs_bind_undo_locked(struct gs_service *service, const char *uid)
{
    struct gs_claim claim;
    if (gs_ledger_find_claim(service->ledger, uid, &claim) && claim.state == GS_CLAIM_RESERVED) {
        const struct gs_node_view *view = gs_service_view(service, claim.node);
        const uint32_t slot = view ? view->slot : GS_INDEX_NONE;
        gs_ledger_undo(service->ledger, uid);
        gs_service_freed(service, slot, 0);
        gs_reservations_again(service, uid);
        gs_pending_anywhere(service->pending, uid, gs_service_now(service));
    }
    gs_bind_reservations_remove(service, uid);
}

void gs_bind_undo(struct gs_service *service, const char *uid)
{
    gs_service_write(service);
    gs_bind_undo_locked(service, uid);
    gs_service_unlock(service);
}

void gs_bind_expire_queue(struct gs_service *service, int64_t now_ns)
{
    const struct gs_bind_reservation *due;
    gs_service_write(service);
    while ((due = find_due(service, true, now_ns)))
        gs_bind_undo_locked(service, due->uid);
    gs_service_unlock(service);
}

/* Of a pod that is not bound: no request can bind it any more. */
static void expire(struct gs_service *service, const char *uid, int64_t now_ns)
{
    struct gs_claim claim;
    gs_service_write(service);
    const struct gs_bind_reservation *one = gs_bind_reservations_find(service, uid);
    GS_INVARIANT(!one || (gs_ledger_find_claim(service->ledger, uid, &claim) &&
                          claim.state == GS_CLAIM_RESERVED),
                 "an unresolved bind has a reservation");
    if (one && !one->repetitions && now_ns >= one->until_ns)
        gs_bind_undo_locked(service, uid);
    gs_service_unlock(service);
}

void gs_bind_settle(struct gs_service *service, int64_t now_ns)
{
    _cleanup_(gs_binding_args_release) struct gs_binding_args args = {0};
    struct gs_claim claim;
    gs_service_write(service);
    const struct gs_bind_reservation *due = find_due(service, false, now_ns);
    if (due && gs_ledger_find_claim(service->ledger, due->uid, &claim)) {
        args.ns = gs_arena_strdup(&args.arena, claim.ns);
        args.name = gs_arena_strdup(&args.arena, claim.name);
        args.uid = gs_arena_strdup(&args.arena, due->uid);
    }
    gs_service_unlock(service);
    if (!args.ns || !args.name || !args.uid)
        return;
    /* Bound: the ledger has it. Unknown: looked at again in a second. */
    const enum gs_bind_found found = gs_bind_read_back(service, &args);
    if (found == GS_BIND_POD_GONE)
        gs_bind_undo(service, args.uid);
    if (found == GS_BIND_UNBOUND)
        expire(service, args.uid, now_ns);
}

void gs_bind_confirm(struct gs_service *service, const struct gs_binding_args *args,
                     gs_gpu_mask gpus)
{
    struct gs_claim claim;
    gs_service_write(service);
    const bool known = gs_ledger_find_claim(service->ledger, args->uid, &claim);
    const bool shown = known && claim.state == GS_CLAIM_CONFIRMED; /* the watch was faster */
    const struct gs_node_view *view = gs_service_view(service, args->node);
    const uint32_t slot = view ? view->slot : GS_INDEX_NONE;
    gs_nominations_bound(service, slot);
    if (known && claim.also && gpus) {
        gs_ledger_place(service->ledger, args->uid, gpus);
        gs_service_freed(service, slot, 0);
    }
    gs_ledger_confirm(service->ledger, args->uid);
    if (known && !shown)
        gs_term_bound(service, args->uid);
    gs_bind_reservations_remove(service, args->uid);
    gs_service_unlock(service);
    gs_pending_accepted(service->pending, args->uid);
}

enum gs_bind_found gs_bind_read_back(struct gs_service *service, const struct gs_binding_args *args)
{
    const struct gs_kube *kube = &service->config.kube;
    _cleanup_(gs_pod_release) struct gs_pod pod = {0};
    struct gs_error err = {0};
    enum gs_bind_found found = GS_BIND_UNKNOWN;
    if (kube->ops->get_pod(kube->ctx, args->ns, args->name, &pod, &err) < 0) {
        if (err.code == GS_ENOENT)
            found = GS_BIND_POD_GONE;
    } else if (strcmp(pod.uid, args->uid) != 0 || gs_pod_terminal(&pod)) {
        found = GS_BIND_POD_GONE;
    } else if (!pod.node_name[0]) {
        found = GS_BIND_UNBOUND;
    } else {
        found = args->node && strcmp(pod.node_name, args->node) != 0 ? GS_BIND_ELSEWHERE
                                                                     : GS_BIND_BOUND;
        /* what the API shows is what counts, GPUs included */
        gs_sync_pod(service, &pod, true);
    }
    return found;
}
