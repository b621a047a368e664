/* SPDX-License-Identifier: Apache-2.0 */
/* Whose is this Allocate, and which GPUs does it get? */
#include <stdio.h>
#include <string.h>

#include "allocate_internal.h"
#include "gpushare/codec/annotation.h"

static const struct gs_known_pod *known_entry(const struct gs_allocate_request *request,
                                              const struct claimant *claimant)
{
    for (size_t i = 0; i < request->known_count; i++) {
        if (strcmp(request->known[i].name, claimant->pod.name) == 0 &&
            strcmp(request->known[i].ns, claimant->pod.ns) == 0)
            return &request->known[i];
    }
    return NULL;
}

/*
 * A pod that holds device ids although we have not answered for it was allocated by an earlier run
 * of this program: wholly, or up to the container that the ids account for. Init containers are
 * not listed by PodResources; they came first.
 */
static void recall_from_kubelet(struct gs_allocator *alloc, struct claimant *claimant,
                                const struct gs_known_pod *known)
{
    if (claimant->done || !known->units)
        return;
    uint64_t sum = 0;
    uint32_t done = 0;
    for (uint32_t i = 0, r = 0; i < claimant->pod.container_count; i++) {
        const struct gs_container *container = &claimant->pod.containers[i];
        if (!container->gpu_units)
            continue;
        if (container->kind == GS_CONTAINER_MAIN)
            sum += container->gpu_units;
        r++;
        if (sum <= known->units)
            done = r;
    }
    claimant->done = done;
    claimant->truth = gs_claimant_record(alloc, claimant);
    if (done == claimant->request_count && !claimant->pod.assigned)
        gs_write_assigned(alloc, claimant);
    else if (done < claimant->request_count)
        alloc->current = claimant;
}

static bool asks_for(const struct claimant *claimant, size_t units)
{
    return claimant->done < claimant->request_count && claimant->requests[claimant->done] == units;
}

/* The pod a call is for, or NULL. */
static struct claimant *match(struct gs_allocator *alloc, const struct gs_allocate_request *request)
{
    if (request->known) {
        for (struct claimant *at = alloc->first; at; at = at->next) {
            const struct gs_known_pod *known = known_entry(request, at);
            if (known)
                recall_from_kubelet(alloc, at, known);
        }
    }
    if (alloc->current && asks_for(alloc->current, request->id_count))
        return alloc->current;
    /* Whatever was begun was given up by the kubelet; pods are taken whole, from their start. */
    for (struct claimant *at = alloc->first; at; at = at->next) {
        if (at->done == 0 && asks_for(at, request->id_count) &&
            (!request->known || known_entry(request, at)))
            return at;
    }
    return NULL;
}

/*
 * Without the kubelet's word the last pod's calls may have been another's that starts alike: (4)
 * answered for a pod of (4), then (2) comes, and a pod of (4, 2) waits. Then the calls were that
 * pod's; the other one starts over, and the two exchange their places.
 */
static struct claimant *rematch(struct gs_allocator *alloc, size_t units)
{
    struct claimant *last = NULL;
    for (struct claimant *at = alloc->first; at; at = at->next) {
        if (at->done && at->done == at->request_count && at->calls[0].gpus && !at->calls[0].started)
            last = at;
    }
    for (struct claimant *at = alloc->first; last && at; at = at->next) {
        if (at->done || at->request_count <= last->done || at->requests[last->done] != units ||
            memcmp(at->requests, last->requests, last->done * sizeof(*at->requests)) != 0)
            continue;
        memcpy(at->calls, last->calls, last->done * sizeof(*at->calls));
        at->done = last->done;
        gs_gpu_mask place = gs_claimant_record(alloc, at);
        at->truth = last->truth;
        last->done = 0;
        last->truth = place;
        if (gs_claimant_charge(alloc, at, NULL) < 0 || gs_claimant_charge(alloc, last, NULL) < 0)
            return NULL;
        uint64_t first = gs_write_record(alloc, at, NULL, 0);
        gs_write_record(alloc, last, NULL, first);
        return at;
    }
    return NULL;
}

/* Room for a pod's whole charge, its own present claim not counted. */
static gs_gpu_mask best_fit(struct gs_allocator *alloc, const struct claimant *claimant)
{
    gs_ledger_remove(alloc->ledger, claimant->pod.uid, NULL);
    const struct gs_node_view *view = gs_allocator_view(alloc);
    struct gs_ask ask;
    gs_ask_of_pod(&ask, &claimant->pod);
    ask.units = claimant->charge.units;
    ask.gpu_count = claimant->charge.gpu_count;
    return view ? gs_pick_tightest(view, &ask) : 0;
}

/* Decides a pod's GPUs at its first call. The record counts, unless it cannot be true: then the
 * pod came without the extender, or somebody forged it, and it gets what fits. */
static bool decide(struct gs_allocator *alloc, struct claimant *claimant, struct gs_error *err)
{
    gs_gpu_mask recorded = gs_claimant_record(alloc, claimant);
    if (claimant->truth)
        return true;
    if (recorded && !gs_allocator_overfull(alloc, recorded)) {
        claimant->truth = recorded;
    } else {
        claimant->truth = best_fit(alloc, claimant);
        if (!claimant->truth) {
            gs_claimant_charge(alloc, claimant, err);
            return false;
        }
        gs_write_record(alloc, claimant, NULL, 0);
    }
    return gs_claimant_charge(alloc, claimant, err) == 0;
}

static void fill(const struct gs_allocator *alloc, gs_gpu_mask gpus, uint32_t pod_units,
                 size_t units, struct gs_allocate_answer *ret)
{
    *ret = (struct gs_allocate_answer){
        .gpus = gpus,
        .dev_units = gs_allocator_gpu_size(alloc, gpus),
        .pod_units = pod_units,
        .units = (uint32_t)units,
    };
    gs_codec_idx_format(gpus, ret->idx);
}

static enum gs_allocate_result no_room(struct gs_allocator *alloc, struct gs_error *err)
{
    alloc->stats.no_room++;
    gs_fail(err, GS_EBUSY, "no GPU on this node has that much left");
    return GS_ALLOCATE_NO_ROOM;
}

/* A call that no pod claims: a static pod, mostly. Stays beside the call before it when that was
 * of the same kind, so that the containers of one such pod end up together. */
static enum gs_allocate_result give_unclaimed(struct gs_allocator *alloc,
                                              const struct gs_allocate_request *request,
                                              struct gs_allocate_answer *ret, struct gs_error *err)
{
    const struct gs_node_view *view = gs_allocator_view(alloc);
    const struct gs_ask ask = {.units = (uint32_t)request->id_count, .gpu_count = 1};
    gs_gpu_mask gpus = 0;
    if (alloc->last_was_orphan && alloc->orphans)
        gpus = gs_fit_candidates(view, &ask) & alloc->orphans->call.gpus;
    if (!gpus)
        gpus = gs_pick_tightest(view, &ask);
    if (!gpus)
        return no_room(alloc, err);
    struct call call = {.key = gs_call_key(request->ids, request->id_count), .gpus = gpus};
    if (!gs_orphan_add(alloc, call, ask.units, true, err))
        return GS_ALLOCATE_FAILED;
    alloc->last_was_orphan = true;
    alloc->stats.unclaimed++;
    alloc->stats.allocated++;
    fill(alloc, gpus, ask.units, request->id_count, ret);
    return GS_ALLOCATE_DONE;
}

enum gs_allocate_result gs_allocator_allocate(struct gs_allocator *alloc,
                                              const struct gs_allocate_request *request,
                                              struct gs_allocate_answer *ret, struct gs_error *err)
{
    const struct gs_node_view *view = gs_allocator_view(alloc);
    if (!view || !view->gpu_count) {
        gs_fail(err, GS_ENOTREADY, "this node has no usable GPU");
        return GS_ALLOCATE_FAILED;
    }
    struct claimant *claimant = match(alloc, request);
    if (!claimant && !request->listed)
        return GS_ALLOCATE_LIST_FIRST;
    if (!claimant && !request->known)
        claimant = rematch(alloc, request->id_count);
    if (!claimant)
        return give_unclaimed(alloc, request, ret, err);
    alloc->last_was_orphan = false;
    struct gs_error why = {0};
    if (!decide(alloc, claimant, &why)) {
        if (why.code == GS_OK)
            return no_room(alloc, err);
        gs_fail(err, why.code, "%s", why.msg);
        return GS_ALLOCATE_FAILED;
    }
    claimant->calls[claimant->done++] = (struct call){
        .key = gs_call_key(request->ids, request->id_count),
        .gpus = claimant->truth,
    };
    bool last = claimant->done == claimant->request_count;
    alloc->current = last ? NULL : claimant;
    if (last && !claimant->pod.assigned)
        gs_write_assigned(alloc, claimant);
    alloc->stats.allocated++;
    fill(alloc, claimant->truth, claimant->charge.units * claimant->charge.gpu_count,
         request->id_count, ret);
    snprintf(ret->owner, sizeof(ret->owner), "%s/%s", claimant->pod.ns, claimant->pod.name);
    return GS_ALLOCATE_DONE;
}
