/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

/* waiter NULL: nothing is known of the pod but its object. */
static const char *node_of(const struct gs_waiter *waiter, const struct gs_pod *pod)
{
    if (waiter && waiter->freed)
        return waiter->freed;
    return pod->nominated_node[0] || !waiter ? pod->nominated_node : waiter->node;
}

int gs_reservations_follow(void *ctx, const struct gs_pod *pod, struct gs_error *err)
{
    struct gs_service *service = ctx;
    const char *nominated = pod->nominated_node;
    struct gs_waiter *waiter = gs_pending_lock(service->pending, pod->uid);
    const bool renominated =
        waiter && nominated[0] && strcmp(nominated, waiter->pod.nominated_node) != 0;
    if (renominated)
        free(gs_steal(&waiter->freed));
    int result = gs_reservations_set(service, pod, node_of(waiter, pod), 0, err);
    gs_pending_unlock(service->pending, waiter);
    if (renominated)
        gs_eviction_waits_settle(service, pod->uid, nominated);
    return result;
}

/* For a pod that the watch showed, after its nomination changed; the table is locked. */
static void update(struct gs_service *service, const struct gs_waiter *waiter)
{
    if (waiter && waiter->shown) /* no memory: as it was until its next event */
        (void)gs_reservations_set(service, &waiter->pod, node_of(waiter, &waiter->pod), 0, NULL);
}

void gs_reservations_again(struct gs_service *service, const char *uid)
{
    struct gs_waiter *waiter = gs_pending_lock(service->pending, uid);
    update(service, waiter);
    gs_pending_unlock(service->pending, waiter);
}

int gs_reservations_set(struct gs_service *service, const struct gs_pod *pod, const char *node,
                        gs_gpu_mask gpus, struct gs_error *err)
{
    struct gs_ledger *ledger = service->ledger;
    struct gs_hold wanted = {.node = node, .gpus = gpus};
    const struct gs_hold *hold = gs_ledger_find_hold(ledger, pod->uid);
    if (!gpus && hold && hold->gpus)
        return 0; /* a gang's comes first */
    const struct gs_hold before = hold ? *hold : (struct gs_hold){.slot = GS_INDEX_NONE};
    const uint64_t asked = gs_ask_hash(&before.ask);
    gs_ask_of_pod(&wanted.ask, pod);
    if (gs_ledger_hold(ledger, &wanted, err) < 0)
        return -1;
    hold = gs_ledger_find_hold(ledger, pod->uid);
    const bool same = hold && hold->slot == before.slot && hold->gpus == before.gpus &&
                      gs_ask_hash(&hold->ask) == asked;
    if (before.slot != GS_INDEX_NONE && !same) /* also for other GPUs of its node */
        gs_service_freed(service, before.slot, gs_hash_text(pod->uid));
    return 0;
}

void gs_reservations_end_nomination(struct gs_service *service, struct gs_waiter *waiter)
{
    free(gs_steal(&waiter->node));
    waiter->failed = false;
    update(service, waiter);
    waiter->slot = GS_INDEX_NONE;
    waiter->anywhere = true;
}

bool gs_reservations_freed(struct gs_service *service, const char *uid, const char *node)
{
    struct gs_waiter *waiter = gs_pending_lock(service->pending, uid);
    const bool shown = waiter && waiter->shown;
    if (shown && (!waiter->freed || strcmp(waiter->freed, node) != 0)) {
        free(waiter->freed);
        waiter->freed = strdup(node);
        waiter->freed_ns = gs_service_now(service);
        gs_reservations_end_nomination(service, waiter);
        gs_log(GS_LOG_INFO, "freed memory reserved", GS_POD_FIELDS(&waiter->pod),
               GS_STR("node", node));
    }
    gs_pending_unlock(service->pending, waiter);
    return shown;
}

/* --- binds --- */

struct gs_bind_reservation *gs_bind_reservations_find(const struct gs_service *service,
                                                      const char *uid)
{
    struct gs_bind_reservation *one;
    HASH_FIND_STR(service->bind_reservations.all, uid, one);
    return one;
}

bool gs_bind_is_unresolved(const struct gs_service *service, const char *uid)
{
    const struct gs_bind_reservation *one = gs_bind_reservations_find(service, uid);
    return one && !one->queued;
}

bool gs_bind_reservations_add(struct gs_service *service, const struct gs_binding_args *args,
                              bool queued, int64_t look_ns, int64_t until_ns)
{
    struct gs_bind_reservations *binds = &service->bind_reservations;
    struct gs_bind_reservation *one = gs_bind_reservations_find(service, args->uid);
    if (!one) {
        const size_t bytes = strlen(args->uid) + 1;
        one = calloc(1, sizeof(*one) + bytes);
        if (!one)
            return false;
        memcpy(one->uid, args->uid, bytes);
        HASH_ADD_STR(binds->all, uid, one);
        if (!one->hh.tbl) {
            free(one);
            return false;
        }
        one->ns = gs_hash_text(args->ns);
        one->queued = queued;
        atomic_fetch_add(&binds->unresolved, !queued);
    }
    one->next_look_ns = look_ns;
    one->until_ns = one->until_ns > until_ns ? one->until_ns : until_ns;
    return true;
}

void gs_bind_reservations_remove(struct gs_service *service, const char *uid)
{
    struct gs_bind_reservations *binds = &service->bind_reservations;
    struct gs_bind_reservation *one = gs_bind_reservations_find(service, uid);
    if (!one)
        return;
    HASH_DEL(binds->all, one);
    atomic_fetch_sub(&binds->unresolved, !one->queued);
    free(one);
}
