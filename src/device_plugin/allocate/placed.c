/* SPDX-License-Identifier: Apache-2.0 */
/* The pods that have their GPUs, for what limits them. */
#include "internal.h"

#include <string.h>

const char *gs_claimant_cgroup(const struct claimant *claimant)
{
    const struct gs_pod *pod = &claimant->pod;
    return pod->static_uid[0] ? pod->static_uid : pod->uid;
}

struct claimant *gs_claimant_of_cgroup(const struct gs_allocator *alloc, const char *uid)
{
    struct claimant *at = alloc->first;
    while (at && strcmp(gs_claimant_cgroup(at), uid) != 0)
        at = at->next;
    return at;
}

/* Init containers run one after the other, each beside the sidecars. */
static uint32_t containers_at_a_time(const struct gs_pod *pod)
{
    uint32_t count[GS_CONTAINER_MAIN + 1] = {0};
    for (uint32_t i = 0; i < pod->container_count; i++)
        count[pod->containers[i].kind] += pod->containers[i].gpu_units > 0;
    uint32_t init = count[GS_CONTAINER_INIT] ? 1 : 0, main = count[GS_CONTAINER_MAIN];
    return count[GS_CONTAINER_SIDECAR] + (main > init ? main : init);
}

static bool describe(const struct gs_allocator *alloc, const struct claimant *claimant,
                     struct gs_placed *ret)
{
    gs_gpu_mask gpus = gs_claimant_place(alloc, claimant);
    if (!gpus)
        return false;
    const struct gs_pod *pod = &claimant->pod;
    *ret = (struct gs_placed){.ns = pod->ns,
                              .name = pod->name,
                              .uid = pod->uid,
                              .owner = pod->owner,
                              .cgroup_uid = gs_claimant_cgroup(claimant),
                              .qos = pod->qos,
                              .gpus = gpus,
                              .units = gs_pod_charge_on(pod, gpus).units,
                              .containers = containers_at_a_time(pod),
                              .enforce_required = pod->enforce_required,
                              .sets_mps = pod->sets_mps,
                              .given = claimant->done > 0,
                              .runs = (claimant->early && claimant->done > 0) ||
                                      gs_claimant_runs(claimant)};
    return true;
}

/* Anybody who may name a node may make a mirror of a static pod, until the kubelet deletes it. */
static bool has_namesake_before(const struct gs_allocator *alloc, const struct claimant *claimant)
{
    return claimant->pod.static_uid[0] &&
           gs_claimant_of_cgroup(alloc, claimant->pod.static_uid) != claimant;
}

void gs_allocator_each_placed(const struct gs_allocator *alloc,
                              void (*each)(void *ctx, const struct gs_placed *pod), void *ctx)
{
    struct gs_placed placed;
    for (const struct claimant *at = alloc->first; at; at = at->next)
        if (!has_namesake_before(alloc, at) && describe(alloc, at, &placed))
            each(ctx, &placed);
}

bool gs_allocator_starting(const struct gs_allocator *alloc, const struct gs_start_request *request,
                           size_t number, struct gs_placed *ret)
{
    const uint64_t key = gs_allocate_key(request->ids, request->id_count);
    const struct call *call = alloc->calls;
    while (call && (call->key != key || !gs_call_counts(call) || number--))
        call = call->next;
    *ret = (struct gs_placed){.cgroup_uid = ""};
    if (call && !call->owner) {
        ret->cgroup_uid = call->pod;
        ret->gpus = call->gpus;
    } else if (call) {
        describe(alloc, call->owner, ret);
    }
    return call != NULL;
}

void gs_allocator_warn(struct gs_allocator *alloc, const char *uid, bool owner_too,
                       const char *reason, const char *message)
{
    const struct claimant *claimant = gs_claimant_of_cgroup(alloc, uid);
    if (!claimant || gs_event_is_queued(alloc, claimant->pod.uid, reason))
        return;
    gs_write_event(alloc, claimant, true, reason, message);
    if (owner_too)
        gs_write_owner_event(alloc, claimant, reason, message);
}
