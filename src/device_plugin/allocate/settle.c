/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet says whose ids are whose. A container's environment can no longer change, so the
 * record follows: equal pods that were taken for each other exchange their records, a pod without
 * one gets it. Only when it would overfill a GPU is a start blocked.
 */
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* Readings at an Allocate that do not name a call before it is taken for over. The first may have
 * come before the kubelet wrote down what was answered: up to 1.20 it calls twice at a time. */
enum { MISSES = 2, API_UID_LEN = 36 };

void gs_claimant_set_done(struct gs_allocator *alloc, struct claimant *claimant, uint32_t done)
{
    claimant->done = done;
    gs_claimant_give(claimant, gs_claimant_place(alloc, claimant));
    if (done < claimant->request_count) {
        alloc->current = claimant;
        return;
    }
    if (alloc->current == claimant)
        alloc->current = NULL;
    gs_write_record(alloc, claimant);
}

/* They ask for the same, container by container. */
static bool ask_the_same(const struct claimant *a, const struct claimant *b)
{
    return a->charge.units == b->charge.units && a->charge.gpu_count == b->charge.gpu_count &&
           a->request_count == b->request_count &&
           memcmp(a->requests, b->requests, a->request_count * sizeof(*a->requests)) == 0;
}

static void exchange_calls(struct gs_allocator *alloc, struct claimant *owner,
                           struct claimant *other)
{
    for (struct call *at = alloc->calls; at; at = at->next) {
        if (at->owner == owner)
            gs_call_set_owner(alloc, at, other);
        else if (at->owner == other)
            gs_call_set_owner(alloc, at, owner);
    }
    if (alloc->current == owner || alloc->current == other)
        alloc->current = alloc->current == owner ? other : owner;
}

static void tell_exchange(struct gs_allocator *alloc, struct claimant *claimant)
{
    gs_write_record(alloc, claimant);
    gs_write_event(alloc, claimant, false, "GpuAllocationSwapped",
                   "the kubelet started this pod on the GPU of an equal pod: the GPU allocations "
                   "of the two pods were swapped");
}

/* Their calls and places change owners; both entries of gpu-reassigned go to the node in one patch,
 * so that every ledger moves both claims on one event, then the records follow. */
static void exchange(struct gs_allocator *alloc, struct claimant *owner, struct claimant *other)
{
    gs_gpu_mask here = gs_claimant_place(alloc, other);
    gs_gpu_mask there = gs_claimant_place(alloc, owner);
    exchange_calls(alloc, owner, other);
    gs_claimant_give(owner, here);
    gs_claimant_give(other, there);
    gs_claimant_charge(alloc, owner, NULL);
    gs_claimant_charge(alloc, other, NULL);
    if (here == there)
        return;
    alloc->stats.swaps++;
    tell_exchange(alloc, owner);
    if (there)
        tell_exchange(alloc, other);
}

gs_gpu_mask gs_claimant_environment(const struct gs_allocator *alloc,
                                    const struct claimant *claimant)
{
    gs_gpu_mask gpus = 0;
    const struct gs_pod *pod = &claimant->pod;
    const uint32_t asked = pod->count_kind == GS_COUNT_VALID ? pod->gpu_count : 1;
    for (const struct call *at = alloc->calls; at; at = at->next) {
        if (at->owner != claimant)
            continue;
        if (gpus && gpus != at->gpus)
            return 0;
        gpus = at->gpus;
    }
    const uint32_t count = gs_gpu_mask_count(gpus);
    const bool valid = count == claimant->charge.gpu_count || count == asked;
    return gs_claimant_runs(claimant) || valid ? gpus : 0;
}

void gs_claimant_follow_environment(struct gs_allocator *alloc, struct claimant *owner)
{
    gs_gpu_mask gpus = gs_claimant_environment(alloc, owner);
    owner->held = !gpus || !(gs_claimant_runs(owner) || gs_claimant_fits(alloc, owner, gpus));
    if (owner->held && gpus)
        return;
    gs_claimant_give(owner, gpus);
    gs_claimant_charge(alloc, owner, NULL);
    if (!owner->held)
        gs_write_record(alloc, owner);
}

uint32_t gs_claimant_calls(const struct gs_allocator *alloc, const struct claimant *claimant,
                           bool named)
{
    uint32_t count = 0;
    for (const struct call *at = alloc->calls; at; at = at->next)
        count += at->owner == claimant && !at->pod[0] != named;
    return count;
}

bool gs_claimant_owns_calls(const struct gs_allocator *alloc, const struct claimant *claimant)
{
    return gs_claimant_calls(alloc, claimant, true) || gs_claimant_calls(alloc, claimant, false);
}

bool gs_claimant_is_torn(const struct gs_allocator *alloc, const struct claimant *claimant)
{
    return gs_claimant_owns_calls(alloc, claimant) && !gs_claimant_environment(alloc, claimant);
}

/* As many of its containers were allocated as the checkpoint names, or named before the pod ended
 * there, and those that it cannot name yet. */
static void recount(struct gs_allocator *alloc, struct claimant *claimant)
{
    const uint32_t noted = gs_claimant_calls(alloc, claimant, true);
    uint32_t done = gs_claimant_calls(alloc, claimant, false) +
                    (noted > claimant->named ? noted : claimant->named);
    if (gs_claimant_runs(claimant) || done > claimant->request_count)
        done = claimant->request_count;
    if (done == claimant->done)
        return;
    if (done)
        gs_claimant_set_done(alloc, claimant, done);
    else
        gs_claimant_give(claimant, 0);
    claimant->done = done;
    gs_claimant_charge(alloc, claimant, NULL);
}

/* A call in this pod's name was not its. */
static void lose_call(struct gs_allocator *alloc, struct claimant *loser)
{
    if (!gs_claimant_owns_calls(alloc, loser))
        gs_claimant_give(loser, 0); /* its own calls are still to come */
    gs_claimant_charge(alloc, loser, NULL);
    if (alloc->current == loser)
        alloc->current = NULL;
}

/* An equal pod that is recorded where a call of this one went before it was known, and that is not
 * allocated yet; NULL: none, or the call went where the pod is recorded. */
static struct claimant *find_displaced(struct gs_allocator *alloc, const struct claimant *owner,
                                       gs_gpu_mask gpus)
{
    const gs_gpu_mask recorded = gs_claimant_record(alloc, owner);
    struct claimant *at = recorded && recorded != gpus ? alloc->first : NULL;
    while (at && (at->done || gs_claimant_place(alloc, at) != gpus || !ask_the_same(at, owner)))
        at = at->next;
    return at;
}

/* One call that was answered in another's name, or in nobody's, is the owner's. */
static void adopt(struct gs_allocator *alloc, struct claimant *owner, struct call *call)
{
    struct claimant *other = call->owner ? call->owner : find_displaced(alloc, owner, call->gpus);
    if (other && ask_the_same(owner, other) && !gs_claimant_calls(alloc, owner, true) &&
        !gs_claimant_calls(alloc, other, true)) {
        gs_call_set_owner(alloc, call, other);
        exchange(alloc, owner, other);
        return;
    }
    gs_call_set_owner(alloc, call, owner);
    if (other)
        lose_call(alloc, other);
    gs_claimant_follow_environment(alloc, owner);
    if (other)
        other->yields = owner->held;
}

/* It is of a pod that is not known here (yet): a static pod before its mirror is seen, or one of
 * which the watch is late. Or of none. */
static void leave_to_stranger(struct gs_allocator *alloc, struct call *call, uint32_t units)
{
    struct claimant *loser = call->owner;
    call->units = units;
    gs_call_set_owner(alloc, call, NULL);
    gs_call_charge(alloc, call, true);
    if (loser)
        lose_call(alloc, loser);
}

/* The kubelet's checkpoint may have tens of thousands. */
static struct call *take_unseen(struct gs_allocator *alloc, uint64_t key, const char *pod)
{
    struct call **at = &alloc->unseen[key % UNSEEN_MAX], *call;
    while ((call = *at) && (call->key != key || strcmp(call->pod, pod) != 0))
        at = &call->unseen;
    if (call)
        *at = call->unseen;
    return call;
}

/* An earlier run's answer. That of an unknown pod counts until a list or the kubelet shows that the
 * pod has ended. No list has a static pod: its UID is none of the API server's. An ended pod's is
 * kept, so that its entry is not taken for that of a later call with the same IDs. */
static struct call *note(struct gs_allocator *alloc, const struct gs_given *given,
                         struct claimant *owner)
{
    const struct gs_node_view *view = gs_allocator_view(alloc);
    if (!view || !given->gpus || (given->gpus & ~gs_view_present(view)))
        return NULL;
    struct call *call = gs_call_add(alloc, given->key, owner, given->gpus, given->units, NULL);
    if (call && owner)
        owner->restored = true;
    else if (call)
        call->earlier = strlen(given->uid) == API_UID_LEN;
    return call;
}

/* The same ids under another UID are another call. */
static void read_entry(struct gs_allocator *alloc, const struct gs_given *given)
{
    struct claimant *owner = gs_claimant_of_cgroup(alloc, given->uid);
    if (!owner && gs_recent_has(&alloc->ended, given->uid)) /* the kubelet is late */
        return;
    struct call *call = take_unseen(alloc, given->key, given->uid);
    if (!call)
        call = take_unseen(alloc, given->key, "");
    if (!call)
        call = note(alloc, given, owner);
    if (owner)
        owner->named++;
    if (!call)
        return;
    call->seen = true;
    if (owner && call->owner != owner)
        adopt(alloc, owner, call);
    else if (!owner && call->earlier && alloc->had_list)
        gs_call_charge(alloc, call, false);
    else if (!owner)
        leave_to_stranger(alloc, call, given->units);
    snprintf(call->pod, sizeof(call->pod), "%s", given->uid);
}

/* Without owner, what the kubelet does not hold any more is over. */
static void count_misses(struct gs_allocator *alloc, bool at_allocate)
{
    struct call *next;
    for (struct call *at = alloc->calls; at; at = next) {
        next = at->next;
        if (at->seen || (at->pod[0] ? at->owner != NULL : !at_allocate))
            continue;
        struct claimant *loser = at->owner;
        if (loser) {
            gs_call_set_owner(alloc, at, NULL);
            lose_call(alloc, loser);
            loser->lost = true;
        }
        if (at->pod[0] || ++at->missed >= MISSES)
            gs_call_drop(alloc, at);
    }
}

/* What was given to a pod that has not run may have been given on trust: it is judged when those
 * that run are counted. */
static void judge_restored(struct gs_allocator *alloc)
{
    for (struct claimant *at = alloc->first; at; at = at->next) {
        if (at->restored && !gs_claimant_runs(at)) {
            gs_claimant_give(at, 0);
            gs_claimant_charge(alloc, at, NULL);
        } else if (at->restored) {
            gs_claimant_follow_environment(alloc, at);
        }
    }
    for (struct claimant *at = alloc->first; at; at = at->next) {
        if (at->restored && !gs_claimant_runs(at))
            gs_claimant_follow_environment(alloc, at);
        at->restored = false;
    }
}

void gs_allocator_observe(struct gs_allocator *alloc, const struct gs_given *given, size_t count,
                          bool at_allocate)
{
    struct call *oldest = NULL;
    memset(alloc->unseen, 0, sizeof(alloc->unseen));
    for (struct call *at = alloc->calls; at; at = at->next) {
        at->seen = false;
        at->unseen = oldest;
        oldest = at;
    }
    while (oldest) { /* the newest comes first there, too */
        struct call *at = oldest, **place = &alloc->unseen[at->key % UNSEEN_MAX];
        oldest = at->unseen;
        at->unseen = *place;
        *place = at;
    }
    for (struct claimant *at = alloc->first; at; at = at->next)
        at->named = 0;
    for (size_t i = 0; i < count; i++)
        read_entry(alloc, &given[i]);
    count_misses(alloc, at_allocate);
    judge_restored(alloc);
    bool lacks = false;
    for (struct claimant *at = alloc->first; at; at = at->next) {
        lacks |= gs_claimant_runs(at) && at->named < at->request_count;
        recount(alloc, at);
    }
    alloc->lost = lacks && (alloc->lost || !count);
}

void gs_claimant_inherit(struct gs_allocator *alloc, struct claimant *claimant)
{
    const char *pod = gs_claimant_cgroup(claimant);
    for (struct call *at = alloc->calls; at; at = at->next) {
        if (at->owner || strcmp(at->pod, pod) != 0)
            continue;
        if (!claimant->named++)
            adopt(alloc, claimant, at);
        else
            gs_call_set_owner(alloc, at, claimant);
    }
    if (claimant->named > 1)
        gs_claimant_follow_environment(alloc, claimant);
    recount(alloc, claimant);
}

static const char full[] =
    "start blocked: a container of this pod was assigned a GPU whose memory is now allocated "
    "to other pods; it starts when that memory is free, or delete the pod to reschedule it";
static const char torn[] =
    "start blocked: the containers of this pod were assigned different GPUs, or another number of "
    "GPUs than gpu-count requests (a static pod always gets one); delete the pod to reschedule it";

/* Room helps a pod whose containers are all on as many GPUs as it asks for. Another number of them
 * is a static pod's: when the kubelet asks for one there is no object that could say gpu-count. */
static enum gs_start_result hold_back(struct gs_allocator *alloc, struct claimant *owner,
                                      struct gs_error *err)
{
    const char *why = gs_claimant_is_torn(alloc, owner) ? torn : full;
    alloc->stats.held++;
    if (!owner->held_said)
        gs_write_event(alloc, owner, true, "GpuStartBlocked", why);
    owner->held_said = true;
    gs_fail(err, GS_EBUSY, "%s", why);
    return GS_START_HELD;
}

/* Nobody may tell whether it has run, nor what was given on trust beside it. */
static enum gs_start_result start_stranger(struct gs_allocator *alloc, const struct call *call,
                                           struct gs_error *err)
{
    const struct gs_node_view *view = gs_allocator_view(alloc);
    for (const struct call *at = alloc->calls; at && call->pod[0]; at = at->next) {
        if (strcmp(at->pod, call->pod) == 0 && at->gpus != call->gpus) {
            gs_fail(err, GS_EBUSY, "%s", torn);
            return GS_START_HELD;
        }
    }
    for (uint32_t i = 0; view && i < view->gpu_count; i++) {
        if ((call->gpus & GS_GPU_BIT(view->gpus[i].idx)) &&
            view->gpus[i].used_units > view->gpus[i].total_units) {
            gs_fail(err, GS_EBUSY, "%s", full);
            return GS_START_HELD;
        }
    }
    return GS_START_OK;
}

static enum gs_start_result start(struct gs_allocator *alloc, const struct call *call,
                                  const struct gs_start_request *request, struct gs_error *err)
{
    struct claimant *owner = call->owner;
    if (owner && (owner->held || gs_claimant_environment(alloc, owner) != owner->allocated))
        gs_claimant_follow_environment(alloc, owner);
    if ((!owner || owner->held) && !request->listed)
        return GS_START_LIST_FIRST; /* who is in the way may be gone */
    if (!owner)
        return start_stranger(alloc, call, err);
    if (owner->held)
        return hold_back(alloc, owner, err);
    gs_claimant_put_right(alloc, owner);
    return request->write_tried || gs_claimant_move_is_written(alloc, owner) ? GS_START_OK
                                                                             : GS_START_WRITE_FIRST;
}

/* Whichever of the pods with these ids it is that starts, mostly there is one. */
enum gs_start_result gs_allocator_start(struct gs_allocator *alloc,
                                        const struct gs_start_request *request,
                                        struct gs_error *err)
{
    uint64_t key = gs_allocate_key(request->ids, request->id_count);
    enum gs_start_result result = GS_START_OK;
    bool known = request->listed;
    for (const struct call *at = alloc->calls; at && result == GS_START_OK; at = at->next) {
        if (at->key != key || !gs_call_counts(at))
            continue;
        known = true;
        result = start(alloc, at, request, err);
    }
    return known ? result : GS_START_LIST_FIRST;
}
