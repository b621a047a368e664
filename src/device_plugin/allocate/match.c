/* SPDX-License-Identifier: Apache-2.0 */
/* Whose is this Allocate, and which GPUs does it get? */

#include "gpushare/codec/annotation.h"
#include "internal.h"

static bool asks_for(const struct claimant *claimant, size_t units)
{
    return claimant->done < claimant->request_count && claimant->requests[claimant->done] == units;
}

/*
 * The pod a call is for, or NULL: the one that was begun last, else in the order of the binds the
 * first that comes after all that were begun. Those before them the kubelet has mostly given up:
 * they count when the API was asked, and so do those that lost a call. Where that is wrong, the
 * kubelet's checkpoint says so before anything starts.
 */
static struct claimant *match(const struct gs_allocator *alloc,
                              const struct gs_allocate_request *request, bool recorded)
{
    const size_t units = request->id_count;
    struct claimant *first = NULL, *next = NULL, *begun = NULL;
    for (struct claimant *at = alloc->first; at; at = at->next) {
        const bool fits =
            !at->done && asks_for(at, units) && (!recorded || gs_claimant_record(alloc, at));
        first = first || !fits ? first : at;
        next = at->done ? NULL : next || !fits ? next : at;
        begun = at->done ? at : begun;
    }
    if (alloc->current && asks_for(alloc->current, units))
        next = alloc->current;
    else if (begun && asks_for(begun, units))
        next = begun;
    if (request->api == GS_API_NOT_ASKED)
        return next && next->lost ? NULL : next;
    return next ? next : first;
}

/*
 * A kubelet up to 1.27 that lost its checkpoint asks once more for pods that run: the next
 * container that it does not name gets its pod's GPUs as before. *ret_unclear: it may be that of
 * pods on different GPUs.
 */
static struct claimant *match_running(const struct gs_allocator *alloc,
                                      const struct gs_allocate_request *request, bool *ret_unclear)
{
    struct claimant *found = NULL;
    const bool asks = alloc->lost && request->told && !request->skips_running;
    *ret_unclear = false;
    for (struct claimant *at = alloc->first; at && asks; at = at->next) {
        const gs_gpu_mask place = gs_claimant_place(alloc, at);
        if (!gs_claimant_runs(at) || at->named >= at->request_count ||
            at->requests[at->named] != request->id_count || !place || (place & alloc->gone) ||
            gs_claimant_calls(alloc, at, false))
            continue;
        *ret_unclear |= found && gs_claimant_place(alloc, found) != place;
        found = at;
    }
    return found;
}

/* Room for a pod's whole charge, its own present claim not counted; of a pod with one GPU on
 * another than `avoided`, if that is not 0. */
static gs_gpu_mask best_fit(struct gs_allocator *alloc, const struct claimant *claimant,
                            gs_gpu_mask avoided)
{
    gs_ledger_remove(alloc->ledger, claimant->pod.uid, NULL);
    const struct gs_node_view *view = gs_allocator_view(alloc);
    struct gs_ask ask;
    gs_ask_of_pod(&ask, &claimant->pod);
    ask.units = claimant->charge.units;
    ask.gpu_count = claimant->charge.gpu_count;
    if (!avoided)
        return gs_pick_tightest(view, &ask);
    const gs_gpu_mask others = gs_fit_candidates(view, &ask) & ~avoided;
    return ask.gpu_count == 1 ? others & -others : 0;
}

/*
 * The kubelet up to 1.20 allocates anew for a pod that was removed while its container started
 * (devicemanager/manager.go, GetDeviceRunContainerOptions), and names those ids never again. What
 * nobody claims and the checkpoint at this very call does not name gives way where room lacks. So
 * does an answer that a kubelet did not get.
 */
static void drop_ghosts(struct gs_allocator *alloc)
{
    struct call *next;
    for (struct call *at = alloc->calls; at; at = next) {
        next = at->next;
        if (!at->owner && at->missed)
            gs_call_drop(alloc, at);
    }
}

/* The API and the kubelet were both heard, and agree: what is counted here is so. */
static bool is_sure(const struct gs_allocator *alloc, const struct gs_allocate_request *request)
{
    const struct call *at = alloc->calls;
    while (at && (at->owner || !gs_call_counts(at)))
        at = at->next;
    return !at && request->told && request->api == GS_API_ANSWERED;
}

/* Where a pod goes on that has no true record, or whose GPU went bad since it was bound: what fits,
 * else a bad GPU that is still there. What is not true does not say over how many GPUs either. */
static gs_gpu_mask elsewhere(struct gs_allocator *alloc, struct claimant *claimant,
                             gs_gpu_mask recorded)
{
    const uint32_t others = GS_GPUS_MAX - gs_pod_asked_gpus(&claimant->pod);
    if (!recorded)
        claimant->charge = gs_pod_charge_on(&claimant->pod, ~(gs_gpu_mask)0 >> others);
    const gs_gpu_mask gpus = best_fit(alloc, claimant, 0);
    return !gpus && recorded && !(recorded & alloc->gone) &&
                   gs_claimant_fits(alloc, claimant, recorded)
               ? recorded
               : gpus;
}

/*
 * Decides a pod's GPUs at its first call. The record counts, unless it cannot be true: then the
 * pod came without the extender, or somebody forged it, and it gets what fits. An error is for
 * good, a start that is blocked is not: without room anywhere, and while that may be because
 * somebody did not tell of a pod's end, the record is believed as far as the container's start.
 */
static bool decide(struct gs_allocator *alloc, struct claimant *claimant,
                   const struct gs_allocate_request *request, struct gs_error *err)
{
    gs_gpu_mask recorded = gs_claimant_record(alloc, claimant);
    const gs_gpu_mask begun = gs_claimant_environment(alloc, claimant);
    if (begun && begun != claimant->allocated) {
        /* by a call that was taken for another pod's: room may come, another GPU not */
        claimant->held = !gs_claimant_fits(alloc, claimant, begun);
        gs_claimant_give(claimant, begun);
    }
    if (claimant->allocated)
        return gs_claimant_charge(alloc, claimant, err) == 0;
    if (recorded && !gs_claimant_fits(alloc, claimant, recorded))
        drop_ghosts(alloc);
    if (recorded && !(recorded & alloc->sick) && gs_claimant_fits(alloc, claimant, recorded)) {
        gs_gpu_mask other = claimant->yields ? best_fit(alloc, claimant, recorded) : 0;
        gs_claimant_give(claimant, other ? other : recorded);
    } else {
        gs_claimant_give(claimant, elsewhere(alloc, claimant, recorded));
        claimant->held = !claimant->allocated && recorded && !(recorded & alloc->gone) &&
                         !is_sure(alloc, request);
        if (claimant->held)
            gs_claimant_give(claimant, recorded);
        if (!claimant->allocated) {
            gs_claimant_charge(alloc, claimant, err);
            return false;
        }
    }
    if (claimant->allocated != recorded)
        gs_write_record(alloc, claimant);
    gs_claimant_note_move(alloc, claimant, claimant->early); /* edited while no plugin ran? */
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
        .ns = "",
        .name = "unknown",
    };
    gs_codec_idx_format(gpus, ret->idx);
}

/* A patient caller asks the API once more. */
static enum gs_allocate_result no_room(struct gs_allocator *alloc, const struct claimant *claimant,
                                       const struct gs_allocate_request *request,
                                       struct gs_error *err)
{
    bool gone = claimant && (gs_claimant_record(alloc, claimant) & alloc->gone);
    if (request->patient && request->api == GS_API_TIMEOUT)
        return GS_ALLOCATE_LIST_FIRST;
    alloc->stats.no_room++;
    gs_fail(err, GS_EBUSY, "%sno GPU on this node has enough free memory",
            gone ? "the GPU that this pod was bound to was removed, and " : "");
    return GS_ALLOCATE_NO_ROOM;
}

/*
 * A call that no pod claims. Where the API was asked it is a static pod's, mostly, whose next
 * containers have to be on the same GPU: the one with most room. Else it is of a pod that was bound
 * meanwhile: the tightest leaves room for the others. Right after another such call it may
 * be that pod's next container: IDs that it has from an init container count once. Where nothing
 * fits, and the API does not say who has ended, it gets its GPU on trust.
 */
static gs_gpu_mask fit_unclaimed(const struct gs_allocator *alloc, struct gs_ask *ask,
                                 const struct gs_allocate_request *request)
{
    const struct gs_node_view *view = gs_allocator_view(alloc);
    const struct call *at = alloc->calls;
    const gs_gpu_mask last = at && at->uid[0] && !at->owner ? at->gpus : 0;
    ask->units = 0;
    for (size_t i = 0; i < request->id_count; i++)
        ask->units += !gs_recent_has(&alloc->stranger_ids, request->ids[i]);
    gs_gpu_mask fits = gs_fit_candidates(view, ask) & last;
    if (fits)
        return fits;
    ask->units = (uint32_t)request->id_count;
    fits = gs_fit_candidates(view, ask);
    const bool trusts = !fits && request->api == GS_API_TIMEOUT && !request->patient;
    const struct gs_gpu_state *most = NULL;
    if (trusts)
        fits = gs_fit_candidates(view, &(struct gs_ask){.gpu_count = 1});
    if (fits & last)
        return fits & last;
    if (request->api != GS_API_ANSWERED && !trusts)
        return gs_pick_tightest(view, ask);
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        if ((fits & GS_GPU_BIT(gpu->idx)) && gpu->total_units >= ask->units &&
            (!most || gpu->used_units + most->total_units < most->used_units + gpu->total_units))
            most = gpu;
    }
    return most ? GS_GPU_BIT(most->idx) : 0;
}

static enum gs_allocate_result give_unclaimed(struct gs_allocator *alloc,
                                              const struct gs_allocate_request *request,
                                              struct gs_allocate_answer *ret, struct gs_error *err)
{
    struct gs_ask ask = {.gpu_count = 1};
    gs_gpu_mask gpus = fit_unclaimed(alloc, &ask, request);
    if (!gpus) {
        drop_ghosts(alloc);
        gpus = fit_unclaimed(alloc, &ask, request);
    }
    if (!gpus)
        return no_room(alloc, NULL, request, err);
    for (size_t i = 0; i < request->id_count; i++)
        gs_recent_add(&alloc->stranger_ids, request->ids[i]);
    uint64_t key = gs_allocate_key(request->ids, request->id_count);
    if (!gs_call_add(alloc, key, NULL, gpus, ask.units, err))
        return GS_ALLOCATE_FAILED;
    alloc->current = NULL;
    alloc->stats.unclaimed++;
    alloc->stats.allocated++;
    fill(alloc, gpus, (uint32_t)request->id_count, request->id_count, ret);
    return GS_ALLOCATE_DONE;
}

/* The compute of the container that a call is for: the next one. */
static uint32_t cores_of(const struct claimant *claimant)
{
    uint32_t asking = 0;
    for (uint32_t i = 0; i < claimant->pod.container_count; i++) {
        const struct gs_container *container = &claimant->pod.containers[i];
        if (container->gpu_units && asking++ == claimant->done)
            return container->cores_pct;
    }
    return 0;
}

static enum gs_allocate_result give(struct gs_allocator *alloc, struct claimant *claimant,
                                    const struct gs_allocate_request *request,
                                    struct gs_allocate_answer *ret, struct gs_error *err)
{
    struct gs_error why = {0};
    if (!decide(alloc, claimant, request, &why)) {
        if (why.code == GS_OK)
            return no_room(alloc, claimant, request, err);
        gs_fail(err, why.code, "%s", why.msg);
        return GS_ALLOCATE_FAILED;
    }
    uint64_t key = gs_allocate_key(request->ids, request->id_count);
    uint32_t cores_pct = cores_of(claimant);
    if (!gs_call_add(alloc, key, claimant, claimant->allocated, (uint32_t)request->id_count, err))
        return GS_ALLOCATE_FAILED;
    claimant->done++;
    claimant->lost = false;
    bool last = claimant->done == claimant->request_count;
    alloc->current = last ? NULL : claimant;
    if (last)
        gs_write_record(alloc, claimant);
    alloc->stats.unclaimed += !claimant->bound;
    alloc->stats.allocated++;
    fill(alloc, claimant->allocated, claimant->charge.units * claimant->charge.gpu_count,
         request->id_count, ret);
    ret->own_shm = claimant->pod.own_shm;
    ret->cores_pct = cores_pct;
    ret->ns = claimant->pod.ns;
    ret->name = claimant->pod.name;
    return GS_ALLOCATE_DONE;
}

enum gs_allocate_result gs_allocator_allocate(struct gs_allocator *alloc,
                                              const struct gs_allocate_request *request,
                                              struct gs_allocate_answer *ret, struct gs_error *err)
{
    const struct gs_node_view *view = gs_allocator_view(alloc);
    if (!view || !view->gpu_count) {
        gs_fail(err, GS_ENOTREADY, "this node has no GPU to allocate");
        return GS_ALLOCATE_FAILED;
    }
    bool unclear;
    struct claimant *lost = match_running(alloc, request, &unclear), *claimant = lost;
    /* A pod that bypassed the extender does not take others' calls. */
    if (!claimant && request->api != GS_API_NOT_ASKED)
        claimant = match(alloc, request, true);
    claimant = claimant ? claimant : match(alloc, request, false);
    const gs_gpu_mask recorded = claimant ? gs_claimant_record(alloc, claimant) : 0;
    /* What the extender recorded may seem full: pods may have ended that are still known here. */
    if (request->api == GS_API_NOT_ASKED &&
        (lost || !(claimant && (claimant->allocated ||
                                (recorded && gs_claimant_fits(alloc, claimant, recorded))))))
        return GS_ALLOCATE_LIST_FIRST;
    if (unclear) {
        gs_fail(err, GS_ENOTREADY,
                "the kubelet lost its checkpoint, and pods that request as much run on different "
                "GPUs: it is unknown which of them this is");
        return GS_ALLOCATE_FAILED;
    }
    if (lost) {
        lost->done = lost->named;
        gs_claimant_give(lost, gs_claimant_place(alloc, lost));
    }
    return claimant ? give(alloc, claimant, request, ret, err)
                    : give_unclaimed(alloc, request, ret, err);
}
