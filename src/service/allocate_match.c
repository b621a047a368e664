/* SPDX-License-Identifier: Apache-2.0 */
/* Whose is this Allocate, and which GPUs does it get? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocate_internal.h"
#include "gpushare/codec/annotation.h"

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

/* The kubelet takes pods in one by one: names that are new to it mean another pod, unless the pod
 * that was begun is among them (its first call had no list). */
static bool has_moved_on(const struct gs_allocator *alloc,
                         const struct gs_allocate_request *request)
{
    bool news = false;
    for (size_t i = 0; i < request->known_count; i++) {
        const struct gs_known_pod *known = &request->known[i];
        if (was_met(alloc, gs_pod_name_hash(known->ns, known->name)))
            continue;
        news = true;
        if (alloc->current && strcmp(alloc->current->pod.name, known->name) == 0 &&
            strcmp(alloc->current->pod.ns, known->ns) == 0)
            return false;
    }
    return news;
}

/* Without memory nothing is met, and every pod looks new: worse guesses, never wrong answers. */
static void remember_met(struct gs_allocator *alloc, const struct gs_allocate_request *request)
{
    free(alloc->met);
    alloc->met_count = 0;
    alloc->met = calloc(request->known_count + 1, sizeof(*alloc->met));
    if (!alloc->met)
        return;
    for (size_t i = 0; i < request->known_count; i++)
        alloc->met[alloc->met_count++] =
            gs_pod_name_hash(request->known[i].ns, request->known[i].name);
    qsort(alloc->met, alloc->met_count, sizeof(*alloc->met), compare_hashes);
}

static bool asks_for(const struct claimant *claimant, size_t units)
{
    return claimant->done < claimant->request_count && claimant->requests[claimant->done] == units;
}

/* A pod that was not begun. The kubelet is taking in the newest pod it knows; where that does not
 * tell, the order of the binds does. */
static struct claimant *unbegun(const struct round *round)
{
    struct claimant *first = NULL, *newest = NULL;
    for (struct claimant *at = round->alloc->first; at; at = at->next) {
        if (at->done || !asks_for(at, round->request->id_count))
            continue;
        if (round->request->known && !known_entry(round->request, at))
            continue;
        if (!first)
            first = at;
        if (!was_met(round->alloc, gs_pod_name_hash(at->pod.ns, at->pod.name)))
            newest = at;
    }
    return round->request->known && newest ? newest : first;
}

/* The pod a call is for, or NULL. */
static struct claimant *match(const struct round *round)
{
    struct claimant *current = round->alloc->current;
    if (current && !round->moved_on && asks_for(current, round->request->id_count))
        return current;
    return unbegun(round);
}

/* All that was given in `from`'s name was `to`'s, which goes on there; `from` starts over. */
static bool hand_over(struct gs_allocator *alloc, struct claimant *from, struct claimant *to)
{
    gs_gpu_mask place = from->truth;
    for (struct call *at = alloc->calls; at; at = at->next) {
        if (at->owner == from)
            gs_call_set_owner(alloc, at, to);
    }
    to->done = from->done;
    from->done = 0;
    from->truth = 0;
    to->truth = 0;
    gs_claimant_charge(alloc, from, NULL);
    bool fits = gs_claimant_fits(alloc, to, place);
    to->truth = place;
    if (gs_claimant_charge(alloc, to, NULL) < 0)
        return false;
    gs_write_record(alloc, to, NULL, 0);
    return fits;
}

static bool begins_like(const struct claimant *whole, const struct claimant *part, uint32_t count)
{
    return whole->request_count >= count && part->request_count >= count &&
           memcmp(whole->requests, part->requests, count * sizeof(*whole->requests)) == 0;
}

/* No call in this pod's name was confirmed by the kubelet: it may have been another's. */
static bool is_guess(const struct gs_allocator *alloc, const struct claimant *claimant)
{
    for (const struct call *at = alloc->calls; at; at = at->next) {
        if (at->owner == claimant)
            return !at->confirmed;
    }
    return false;
}

/*
 * Without the kubelet's word a pod's calls may have been another's that starts alike:
 *   (4) was given in the name of a pod of (4), then 2 comes, and a pod of (4, 2) waits;
 *   (4) was given in the name of a pod of (4, 2), then 4 comes, and a pod of (4) waits.
 * Then the calls were the waiting pod's, and the other one starts over. Returns the pod that the
 * call in hand is for, or NULL; *ret_room: whether there is room for it where it was begun.
 */
static struct claimant *rematch(struct gs_allocator *alloc, size_t units, bool *ret_room)
{
    struct claimant *last = alloc->calls ? alloc->calls->owner : NULL;
    if (!last || !is_guess(alloc, last))
        return NULL;
    for (struct claimant *at = alloc->first; at; at = at->next) {
        if (at->done || at == last || !begins_like(at, last, last->done))
            continue;
        if (at->request_count > last->done && at->requests[last->done] == units) {
            *ret_room = hand_over(alloc, last, at);
            return at;
        }
        if (at->request_count == last->done && last->done < last->request_count &&
            last->requests[0] == units) {
            hand_over(alloc, last, at);
            gs_write_assigned(alloc, at);
            *ret_room = true;
            return last;
        }
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
    return gs_pick_tightest(view, &ask);
}

/* Decides a pod's GPUs at its first call. The record counts, unless it cannot be true: then the
 * pod came without the extender, or somebody forged it, and it gets what fits. */
static bool decide(struct gs_allocator *alloc, struct claimant *claimant, struct gs_error *err)
{
    gs_gpu_mask recorded = gs_claimant_record(alloc, claimant);
    if (claimant->truth)
        return true;
    if (recorded && gs_claimant_fits(alloc, claimant, recorded)) {
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
    if (alloc->last_ownerless && alloc->calls && !alloc->calls->owner && !round->moved_on) {
        beside = gs_fit_candidates(view, ask) & alloc->calls->gpus;
        if (beside || round->request->known)
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
        return no_room(alloc, err);
    uint64_t key = gs_allocate_key(request->ids, request->id_count);
    if (!gs_call_add(alloc, key, NULL, gpus, ask.units, err))
        return GS_ALLOCATE_FAILED;
    alloc->last_ownerless = true;
    alloc->current = NULL;
    alloc->stats.unclaimed++;
    alloc->stats.allocated++;
    fill(alloc, gpus, ask.units, request->id_count, ret);
    return GS_ALLOCATE_DONE;
}

static enum gs_allocate_result give(struct gs_allocator *alloc, struct claimant *claimant,
                                    const struct gs_allocate_request *request,
                                    struct gs_allocate_answer *ret, struct gs_error *err)
{
    struct gs_error why = {0};
    alloc->last_ownerless = false;
    if (!decide(alloc, claimant, &why)) {
        if (why.code == GS_OK)
            return no_room(alloc, err);
        gs_fail(err, why.code, "%s", why.msg);
        return GS_ALLOCATE_FAILED;
    }
    uint64_t key = gs_allocate_key(request->ids, request->id_count);
    if (!gs_call_add(alloc, key, claimant, claimant->truth, (uint32_t)request->id_count, err))
        return GS_ALLOCATE_FAILED;
    bool last = ++claimant->done == claimant->request_count;
    alloc->current = last ? NULL : claimant;
    if (last && !claimant->pod.assigned)
        gs_write_assigned(alloc, claimant);
    alloc->stats.allocated++;
    fill(alloc, claimant->truth, claimant->charge.units * claimant->charge.gpu_count,
         request->id_count, ret);
    snprintf(ret->owner, sizeof(ret->owner), "%s/%s", claimant->pod.ns, claimant->pod.name);
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
    if (request->known)
        gs_allocator_known(alloc, request->known, request->known_count);
    const struct round round = {alloc, request, request->known && has_moved_on(alloc, request)};
    bool room = true;
    struct claimant *claimant = match(&round);
    if (!claimant && !request->listed)
        return GS_ALLOCATE_LIST_FIRST;
    if (!claimant && !round.moved_on)
        claimant = rematch(alloc, request->id_count, &room);
    if (request->known)
        remember_met(alloc, request);
    if (!room)
        return no_room(alloc, err);
    return claimant ? give(alloc, claimant, request, ret, err) : give_unclaimed(&round, ret, err);
}
