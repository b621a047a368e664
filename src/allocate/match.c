/* SPDX-License-Identifier: Apache-2.0 */
/* Whose is this Allocate, and which GPUs does it get? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/codec/annotation.h"
#include "internal.h"

/* What the kubelet's list tells about the call in hand. */
struct round {
    struct gs_allocator *alloc;
    const struct gs_allocate_request *request;
    bool moved_on; /* pods came since the last call: the one before them is finished or given up */
};

static int compare_hashes(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static bool was_met(const struct gs_allocator *alloc, uint64_t hash)
{
    return alloc->met_count &&
           bsearch(&hash, alloc->met, alloc->met_count, sizeof(hash), compare_hashes) != NULL;
}

static const struct gs_observed_pod *observed_entry(const struct gs_allocate_request *request,
                                                    const struct claimant *claimant)
{
    for (size_t i = 0; i < request->observed_count; i++) {
        if (strcmp(request->observed[i].name, claimant->pod.name) == 0 &&
            strcmp(request->observed[i].ns, claimant->pod.ns) == 0)
            return &request->observed[i];
    }
    return NULL;
}

/* The kubelet knows a pod of this name, without devices: one that has some is an older one. */
static bool is_listed_bare(const struct gs_allocate_request *request,
                           const struct claimant *claimant)
{
    const struct gs_observed_pod *observed = observed_entry(request, claimant);
    return observed && !observed->key_count;
}

/* The kubelet takes pods in one by one: names that are new to it mean another pod, unless the pod
 * that was begun is among them (its first call had no list). */
static bool has_moved_on(const struct gs_allocator *alloc,
                         const struct gs_allocate_request *request)
{
    bool news = false;
    for (size_t i = 0; i < request->observed_count; i++) {
        const struct gs_observed_pod *observed = &request->observed[i];
        if (was_met(alloc, gs_pod_name_hash(observed->ns, observed->name)))
            continue;
        news = true;
        if (alloc->current && strcmp(alloc->current->pod.name, observed->name) == 0 &&
            strcmp(alloc->current->pod.ns, observed->ns) == 0)
            return false;
    }
    return news;
}

/* Without memory nothing is met, and every pod looks new: worse guesses, never wrong answers. */
static void remember_met(struct gs_allocator *alloc, const struct gs_allocate_request *request)
{
    free(alloc->met);
    alloc->met_count = 0;
    alloc->met = calloc(request->observed_count + 1, sizeof(*alloc->met));
    if (!alloc->met)
        return;
    for (size_t i = 0; i < request->observed_count; i++)
        alloc->met[alloc->met_count++] =
            gs_pod_name_hash(request->observed[i].ns, request->observed[i].name);
    qsort(alloc->met, alloc->met_count, sizeof(*alloc->met), compare_hashes);
}

static bool asks_for(const struct claimant *claimant, size_t units)
{
    return claimant->done < claimant->request_count && claimant->requests[claimant->done] == units;
}

/*
 * A pod that was not begun. With the kubelet's list it is one that came since the last call, the
 * newest of them: what came before it is finished or given up. Without, the order of the binds
 * decides. seen_before: take any that the kubelet knows, as a last resort.
 */
static struct claimant *unbegun(const struct round *round, bool seen_before)
{
    struct claimant *found = NULL;
    for (struct claimant *at = round->alloc->first; at; at = at->next) {
        if (at->done || !asks_for(at, round->request->id_count))
            continue;
        if (!round->request->observed)
            return at;
        if (is_listed_bare(round->request, at) &&
            (seen_before || !was_met(round->alloc, gs_pod_name_hash(at->pod.ns, at->pod.name))))
            found = at;
    }
    return found;
}

/* The pod a call is for, or NULL. */
static struct claimant *match(const struct round *round)
{
    struct claimant *current = round->alloc->current;
    if (current && !round->moved_on && asks_for(current, round->request->id_count))
        return current;
    return unbegun(round, false);
}

/* The kubelet has taken a pod in that the watch has not shown: the call may be for that one. */
static bool has_strangers(const struct round *round)
{
    for (size_t i = 0; round->moved_on && i < round->request->observed_count; i++) {
        const struct gs_observed_pod *observed = &round->request->observed[i];
        uint64_t hash = gs_pod_name_hash(observed->ns, observed->name);
        if (!was_met(round->alloc, hash) && !gs_other_pod_named(round->alloc, hash) &&
            !gs_claimant_named(round->alloc, observed->ns, observed->name))
            return true;
    }
    return false;
}

/* How many new pods the call may be for. */
static uint32_t candidates(const struct round *round)
{
    uint32_t count = 0;
    for (const struct claimant *at = round->alloc->first; round->moved_on && at; at = at->next)
        count += !at->done && asks_for(at, round->request->id_count) &&
                 is_listed_bare(round->request, at) &&
                 !was_met(round->alloc, gs_pod_name_hash(at->pod.ns, at->pod.name));
    return count;
}

/* A container of that size was answered for, but the kubelet has yet to hear of all the pod's
 * devices: it takes just this pod in, and one of the answers was another's. */
static bool is_taken_in(const struct round *round, const struct claimant *claimant)
{
    const struct gs_observed_pod *observed = observed_entry(round->request, claimant);
    uint32_t units = 0;
    bool answered = false;
    for (uint32_t i = 0; i < claimant->done; i++)
        answered = answered || claimant->requests[i] == round->request->id_count;
    for (uint32_t i = 0; i < claimant->pod.container_count; i++) {
        const struct gs_container *container = &claimant->pod.containers[i];
        if (container->kind != GS_CONTAINER_INIT) /* they are not listed */
            units += container->gpu_units;
    }
    return observed && answered && observed->units < units &&
           claimant->pod.phase == GS_PHASE_PENDING;
}

/*
 * Whose turn was answered to somebody else: to a pod that was deleted before the kubelet took it
 * in, or while its container started, for which the kubelet up to 1.20 allocates anew (see below).
 * The answer is the same GPU once more, and the pod's start settles which ids are its.
 */
static struct claimant *once_more(const struct round *round)
{
    struct claimant *found = NULL;
    for (struct claimant *at = round->alloc->first; at; at = at->next) {
        if (is_taken_in(round, at))
            found = at;
    }
    return found;
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
    return gs_pick_tightest(view, &ask);
}

/*
 * The kubelet up to 1.20 allocates anew for a pod that was removed while its container started
 * (devicemanager/manager.go, GetDeviceRunContainerOptions), and names those ids never again. What
 * nobody claims and the list of this very call does not name gives way to a pod that the extender
 * placed.
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

/* The API and the kubelet were both heard: what is counted here is so. */
static bool is_sure(const struct gs_allocate_request *request)
{
    return request->observed && request->api == GS_API_ANSWERED;
}

/* Where a pod goes on that has no true record, or whose GPU went bad since it was bound: what fits,
 * else a bad GPU that is still there. */
static gs_gpu_mask elsewhere(struct gs_allocator *alloc, const struct claimant *claimant,
                             gs_gpu_mask recorded)
{
    gs_gpu_mask gpus = best_fit(alloc, claimant);
    bool stays =
        recorded && !(recorded & alloc->gone) && gs_claimant_fits(alloc, claimant, recorded);
    return gpus || !stays ? gpus : recorded;
}

/*
 * Decides a pod's GPUs at its first call. The record counts, unless it cannot be true: then the
 * pod came without the extender, or somebody forged it, and it gets what fits. An error is for
 * good, a start that is held back is not: without room anywhere, and while that may be because
 * somebody did not tell of a pod's end, the record is believed as far as the container's start.
 */
static bool decide(struct gs_allocator *alloc, struct claimant *claimant,
                   const struct gs_allocate_request *request, struct gs_error *err)
{
    gs_gpu_mask recorded = gs_claimant_record(alloc, claimant);
    if (claimant->allocated)
        return true;
    if (recorded && !gs_claimant_fits(alloc, claimant, recorded))
        drop_ghosts(alloc);
    if (recorded && !(recorded & alloc->sick) && gs_claimant_fits(alloc, claimant, recorded)) {
        gs_claimant_give(claimant, recorded);
    } else {
        gs_claimant_give(claimant, elsewhere(alloc, claimant, recorded));
        claimant->held =
            !claimant->allocated && recorded && !(recorded & alloc->gone) && !is_sure(request);
        if (claimant->held)
            gs_claimant_give(claimant, recorded);
        if (!claimant->allocated) {
            gs_claimant_charge(alloc, claimant, err);
            return false;
        }
        if (claimant->allocated != recorded)
            gs_write_record(alloc, claimant);
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

/* A patient caller asks the API once more. */
static enum gs_allocate_result no_room(struct gs_allocator *alloc, const struct claimant *claimant,
                                       const struct gs_allocate_request *request,
                                       struct gs_error *err)
{
    bool gone = claimant && (gs_claimant_record(alloc, claimant) & alloc->gone);
    if (request->patient && request->api == GS_API_TIMEOUT)
        return GS_ALLOCATE_LIST_FIRST;
    alloc->stats.no_room++;
    gs_fail(err, GS_EBUSY, "%sno GPU on this node has that much left",
            gone ? "the GPU that this pod was bound to is gone and " : "");
    return GS_ALLOCATE_NO_ROOM;
}

/*
 * A call that no pod claims: a static pod, mostly. Right after another such call it may be the
 * same pod's next container, whose GPU must be the same: surely so when the kubelet has taken no
 * pod in since.
 */
static gs_gpu_mask fit_unclaimed(const struct round *round, const struct gs_ask *ask)
{
    struct gs_allocator *alloc = round->alloc;
    const struct gs_node_view *view = gs_allocator_view(alloc);
    gs_gpu_mask beside = 0;
    if (alloc->calls && !alloc->calls->owner && !alloc->calls->noted && !round->moved_on) {
        beside = gs_fit_candidates(view, ask) & alloc->calls->gpus;
        if (beside || round->request->observed)
            return beside;
    }
    return gs_pick_tightest(view, ask);
}

static enum gs_allocate_result give_unclaimed(const struct round *round,
                                              struct gs_allocate_answer *ret, struct gs_error *err)
{
    struct gs_allocator *alloc = round->alloc;
    const struct gs_allocate_request *request = round->request;
    const struct gs_ask ask = {.units = (uint32_t)request->id_count, .gpu_count = 1};
    gs_gpu_mask gpus = fit_unclaimed(round, &ask);
    if (!gpus)
        return no_room(alloc, NULL, request, err);
    uint64_t key = gs_allocate_key(request->ids, request->id_count);
    struct call *call = gs_call_add(alloc, key, NULL, gpus, ask.units, err);
    if (!call)
        return GS_ALLOCATE_FAILED;
    call->listed = request->api == GS_API_ANSWERED;
    if (round->moved_on || !request->observed) /* else the kubelet is inside that pod still */
        alloc->current = NULL;
    alloc->stats.unclaimed++;
    alloc->stats.allocated++;
    fill(alloc, gpus, ask.units, request->id_count, ret);
    return GS_ALLOCATE_DONE;
}

/* The compute of the container that a call is for: of the next one; of a call that is answered once
 * more, of the first of that size. */
static uint32_t cores_of(const struct claimant *claimant, uint32_t units, bool again)
{
    uint32_t asking = 0;
    for (uint32_t i = 0; i < claimant->pod.container_count; i++) {
        const struct gs_container *container = &claimant->pod.containers[i];
        if (!container->gpu_units)
            continue;
        if (again ? container->gpu_units == units : asking == claimant->done)
            return container->cores_pct;
        asking++;
    }
    return 0;
}

static enum gs_allocate_result give(struct gs_allocator *alloc, struct claimant *claimant,
                                    bool again, const struct gs_allocate_request *request,
                                    struct gs_allocate_answer *ret, struct gs_error *err)
{
    struct gs_error why = {0};
    if (again && !gs_claimant_owns_calls(alloc, claimant, false))
        gs_claimant_give(claimant, 0); /* its record alone says that it was given these */
    if (!decide(alloc, claimant, request, &why)) {
        if (why.code == GS_OK)
            return no_room(alloc, claimant, request, err);
        gs_fail(err, why.code, "%s", why.msg);
        return GS_ALLOCATE_FAILED;
    }
    uint64_t key = gs_allocate_key(request->ids, request->id_count);
    uint32_t cores_pct = cores_of(claimant, (uint32_t)request->id_count, again);
    if (!gs_call_add(alloc, key, claimant, claimant->allocated, (uint32_t)request->id_count, err))
        return GS_ALLOCATE_FAILED;
    claimant->done += !again;
    bool last = claimant->done == claimant->request_count;
    alloc->current = last ? NULL : claimant;
    if (last && !claimant->pod.assigned)
        gs_write_assigned(alloc, claimant);
    alloc->stats.allocated++;
    fill(alloc, claimant->allocated, claimant->charge.units * claimant->charge.gpu_count,
         request->id_count, ret);
    ret->own_shm = claimant->pod.own_shm;
    ret->cores_pct = cores_pct;
    snprintf(ret->owner, sizeof(ret->owner), "%s/%s", claimant->pod.ns, claimant->pod.name);
    return GS_ALLOCATE_DONE;
}

/* What the extender recorded seems to be full: pods may have ended that are still known here. */
static bool doubtful(const struct gs_allocator *alloc, const struct claimant *claimant)
{
    gs_gpu_mask recorded = gs_claimant_record(alloc, claimant);
    return !claimant->allocated && recorded && !gs_claimant_fits(alloc, claimant, recorded);
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
    if (request->observed)
        gs_allocator_observe(alloc, request->observed, request->observed_count);
    const struct round round = {alloc, request, request->observed && has_moved_on(alloc, request)};
    struct claimant *claimant = match(&round);
    if (request->api == GS_API_NOT_ASKED &&
        (!claimant || candidates(&round) > 1 || doubtful(alloc, claimant) || has_strangers(&round)))
        return GS_ALLOCATE_LIST_FIRST;
    if (!claimant) /* met at the call of a pod that was removed, perhaps */
        claimant = unbegun(&round, true);
    bool again = !claimant && (claimant = once_more(&round));
    enum gs_allocate_result result = claimant ? give(alloc, claimant, again, request, ret, err)
                                              : give_unclaimed(&round, ret, err);
    if (request->observed && result != GS_ALLOCATE_LIST_FIRST)
        remember_met(alloc, request);
    return result;
}
