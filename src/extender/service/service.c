/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

struct gs_service *gs_service_new(const struct gs_service_config *config, struct gs_error *err)
{
    struct gs_service *service = calloc(1, sizeof(*service));
    if (!service) {
        gs_fail_nomem(err);
        return NULL;
    }
    service->config = *config;
    atomic_init(&service->nominates, config->nominates);
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    /* a stream of filters must not hold up the watch */
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&service->lock, &attr);
    pthread_rwlockattr_destroy(&attr);
    pthread_mutex_init(&service->scratch_lock, NULL);
    service->gains.newest = GS_INDEX_NONE;
    service->eviction_waits.each_ns = GS_EVICTION_WAIT_NS;
    service->eviction_waits.budget_ns = GS_EVICTION_WAIT_BUDGET_NS;
    gs_term_init(&service->term);
    pthread_mutex_init(&service->patches.lock, NULL);
    service->pending = gs_pending_new();
    if (gs_cluster_init(&service->cluster, &gs_sync_owner, service, NULL) < 0 ||
        !service->pending) {
        gs_service_free(service);
        gs_fail_nomem(err);
        return NULL;
    }
    service->ledger = service->cluster.ledger;
    service->place = gs_cluster_place(&service->cluster, config->policy);
    return service;
}

void gs_service_free(struct gs_service *service)
{
    if (!service)
        return;
    while (service->scratch) {
        struct gs_scratch *scratch = service->scratch;
        service->scratch = scratch->next;
        gs_filter_args_release(&scratch->args);
        gs_arena_release(&scratch->arena);
        free(scratch);
    }
    gs_pending_free(service->pending);
    gs_patches_release(&service->patches);
    while (service->bind_reservations.all)
        gs_bind_reservations_remove(service, service->bind_reservations.all->uid);
    gs_gang_reservations_release(&service->gangs);
    free(service->nominated_nodes.nodes);
    gs_arena_release(&service->budgets.arena);
    gs_eviction_waits_release(&service->eviction_waits);
    gs_term_release(&service->term);
    gs_warnings_release(&service->warnings);
    gs_arena_release(&service->requeue.arena);
    free(service->requeue.due);
    free(service->gains.nodes);
    gs_cluster_release(&service->cluster);
    pthread_mutex_destroy(&service->scratch_lock);
    pthread_rwlock_destroy(&service->lock);
    free(service);
}

static bool make_room(struct gs_scratch *scratch, uint32_t count)
{
    if (scratch->cap > count)
        return true;
    const uint32_t cap = count + 64;
    struct gs_arena *arena = &scratch->arena;
    gs_arena_release(arena);
    scratch->cap = 0;
    scratch->found_id = 0;
    scratch->verdicts = gs_arena_calloc(arena, cap, sizeof(*scratch->verdicts));
    scratch->losses = gs_arena_calloc(arena, cap, sizeof(*scratch->losses));
    scratch->fits = gs_arena_calloc(arena, cap, sizeof(*scratch->fits));
    scratch->slots = gs_arena_calloc(arena, cap, sizeof(*scratch->slots));
    if (!scratch->verdicts || !scratch->losses || !scratch->fits || !scratch->slots)
        return false;
    scratch->cap = cap;
    return true;
}

struct gs_scratch *gs_scratch_take(struct gs_service *service, const struct gs_request *request,
                                   struct gs_error *err)
{
    pthread_mutex_lock(&service->scratch_lock);
    struct gs_scratch *scratch = service->scratch;
    if (scratch)
        service->scratch = scratch->next;
    pthread_mutex_unlock(&service->scratch_lock);
    if (!scratch && !(scratch = calloc(1, sizeof(*scratch)))) {
        gs_fail_nomem(err);
        return NULL;
    }
    int result = gs_codec_filter_args(service->config.names, request->body, &scratch->args, err);
    if (result == 0 && !make_room(scratch, gs_filter_args_count(&scratch->args)))
        result = gs_fail_nomem(err);
    if (result == 0)
        return scratch;
    gs_scratch_give(service, scratch);
    return NULL;
}

void gs_scratch_find_nodes(struct gs_scratch *scratch, const struct gs_ledger *ledger)
{
    const struct gs_filter_args *args = &scratch->args;
    uint64_t id = args->has_names ? args->names_id : 0;
    uint64_t epoch = gs_ledger_names_epoch(ledger);
    if (id && id == scratch->found_id && epoch == scratch->found_epoch)
        return;
    gs_ledger_find_nodes(ledger, gs_filter_args_names(args), gs_filter_args_count(args),
                         scratch->slots);
    scratch->found_id = id;
    scratch->found_epoch = epoch;
}

void gs_scratch_give(struct gs_service *service, struct gs_scratch *scratch)
{
    if (!scratch)
        return;
    pthread_mutex_lock(&service->scratch_lock);
    scratch->next = service->scratch;
    service->scratch = scratch;
    pthread_mutex_unlock(&service->scratch_lock);
}

bool gs_service_nodes_loaded(const struct gs_service *service)
{
    return atomic_load(&service->listed[GS_KIND_NODE]);
}

bool gs_service_loaded(const struct gs_service *service)
{
    return gs_service_nodes_loaded(service) && atomic_load(&service->listed[GS_KIND_POD]);
}

bool gs_service_ready(const struct gs_service *service, const char **ret_why)
{
    const char *why = NULL;
    if (!gs_service_nodes_loaded(service))
        why = "the list of nodes is not loaded yet";
    else if (!gs_service_loaded(service))
        why = "the list of pods is not loaded yet";
    else if (!atomic_load(&service->live[GS_KIND_NODE]))
        why = "the watch of nodes is interrupted";
    else if (!atomic_load(&service->live[GS_KIND_POD]))
        why = "the watch of pods is interrupted";
    if (ret_why)
        *ret_why = why ? why : "ready";
    return !why;
}

atomic_bool *gs_service_list_wanted(struct gs_service *service)
{
    return &service->term.list_wanted;
}

void gs_service_nominate(struct gs_service *service, bool nominates)
{
    atomic_store(&service->nominates, nominates);
}

bool gs_service_nominates(const struct gs_service *service)
{
    return atomic_load(&service->nominates);
}

void gs_service_withdraw(struct gs_service *service)
{
    atomic_store(&service->withdrawn, true);
    atomic_store(&service->nominations_out, 1); /* until a tick has looked */
}

uint32_t gs_service_nominations(const struct gs_service *service)
{
    return atomic_load(&service->nominations_out);
}

uint32_t gs_service_unresolved_binds(const struct gs_service *service)
{
    return atomic_load(&service->sent_binds) + atomic_load(&service->bind_reservations.unresolved);
}

bool gs_service_leads(const struct gs_service *service)
{
    return !service->config.election || gs_election_leads(service->config.election);
}

const char *gs_service_refuses(const struct gs_service *service)
{
    if (!gs_service_loaded(service))
        return "gpushare-extender is not ready: it is still loading nodes and pods";
    if (!gs_service_leads(service))
        return "gpushare-extender is on standby: another replica is the leader";
    if (!gs_term_caught_up(service))
        return "gpushare-extender is on standby until it has loaded the previous leader's binds";
    return NULL;
}
