/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet says whose ids are whose. A container's environment can no longer change, so the
 * record follows: equal pods that were taken for each other exchange their records, a pod without
 * one gets it. Only when it would overfill a GPU is a start held back.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "internal.h"

/* Lists in a row that do not name a call's ids before it is taken for over. One is not enough: a
 * list may have begun before the kubelet wrote down what we answered. */
enum { MISSES = 3 };

void gs_claimant_set_done(struct gs_allocator *alloc, struct claimant *claimant, uint32_t done)
{
    claimant->done = done;
    if (!claimant->allocated)
        gs_claimant_give(claimant, gs_claimant_record(alloc, claimant));
    if (done < claimant->request_count) {
        alloc->current = claimant;
        return;
    }
    if (alloc->current == claimant)
        alloc->current = NULL;
    if (claimant->allocated && !claimant->pod.assigned)
        gs_write_assigned(alloc, claimant);
}

/* How many of a pod's requests the units account for that its containers and sidecars hold. Init
 * containers that end are not listed. */
static uint32_t requests_done(const struct claimant *claimant, uint32_t units)
{
    uint64_t sum = 0;
    uint32_t done = 0;
    for (uint32_t i = 0, r = 0; i < claimant->pod.container_count; i++) {
        const struct gs_container *container = &claimant->pod.containers[i];
        if (!container->gpu_units)
            continue;
        if (container->kind != GS_CONTAINER_INIT)
            sum += container->gpu_units;
        r++;
        if (sum <= units)
            done = r;
    }
    return done;
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
    uint32_t done = owner->done;
    owner->done = other->done;
    other->done = done;
    if (alloc->current == owner || alloc->current == other)
        alloc->current = alloc->current == owner ? other : owner;
}

static void tell_exchange(struct gs_allocator *alloc, struct claimant *claimant)
{
    gs_write_event(alloc, claimant, gs_write_record(alloc, claimant), false, "GpuRecordChanged",
                   "the kubelet gave this pod the GPU that an equal pod was bound to: the records "
                   "of both were exchanged");
}

/* Their calls and places change owners; both entries of gpu-moved go to the node in one patch, so
 * that every ledger moves both claims on one event, then the records follow. */
static void exchange(struct gs_allocator *alloc, struct claimant *owner, struct claimant *other)
{
    gs_gpu_mask here = other->allocated;
    gs_gpu_mask there = owner->allocated ? owner->allocated : gs_claimant_record(alloc, owner);
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
    for (const struct call *at = alloc->calls; at; at = at->next) {
        if (at->owner != claimant)
            continue;
        if (gpus && gpus != at->gpus)
            return 0;
        gpus = at->gpus;
    }
    return gs_claimant_runs(claimant) || gs_gpu_mask_count(gpus) == claimant->charge.gpu_count
               ? gpus
               : 0;
}

void gs_claimant_follow_environment(struct gs_allocator *alloc, struct claimant *owner)
{
    gs_gpu_mask gpus = gs_claimant_environment(alloc, owner);
    owner->held = !gpus || !(gs_claimant_runs(owner) || gs_claimant_fits(alloc, owner, gpus));
    if (owner->held)
        return;
    gs_claimant_give(owner, gpus);
    gs_claimant_charge(alloc, owner, NULL);
    if (!gs_claimant_is_recorded(owner))
        gs_write_record(alloc, owner);
    if (owner->done == owner->request_count && !owner->pod.assigned)
        gs_write_assigned(alloc, owner);
}

bool gs_claimant_owns_calls(const struct gs_allocator *alloc, const struct claimant *claimant,
                            bool confirmed)
{
    for (const struct call *at = alloc->calls; at; at = at->next) {
        if (at->owner == claimant && (at->confirmed || !confirmed))
            return true;
    }
    return false;
}

/* A call in this pod's name was not its. */
static void lose_call(struct gs_allocator *alloc, struct claimant *loser)
{
    uint32_t left = 0;
    for (const struct call *at = alloc->calls; at; at = at->next)
        left += at->owner == loser;
    if (loser->done > left) /* one may have been answered twice in its name */
        loser->done--;
    if (!left) {
        loser->done = 0; /* its own calls are still to come */
        gs_claimant_give(loser, 0);
    }
    gs_claimant_charge(alloc, loser, NULL);
    if (alloc->current == loser)
        alloc->current = NULL;
}

/* One call that was answered in another's name, or in nobody's, is the owner's. */
static void adopt(struct gs_allocator *alloc, struct claimant *owner, struct call *call)
{
    struct claimant *other = call->owner;
    if (other && ask_the_same(owner, other) && !gs_claimant_owns_calls(alloc, owner, true) &&
        !gs_claimant_owns_calls(alloc, other, true)) {
        exchange(alloc, owner, other);
        return;
    }
    gs_call_set_owner(alloc, call, owner);
    if (owner->done < owner->request_count)
        owner->done++;
    if (other)
        lose_call(alloc, other);
    gs_claimant_follow_environment(alloc, owner);
}

/* The kubelet names a pod that is not known here (yet): a static pod before its mirror is seen, or
 * one of which the watch is late. */
static void leave_to_stranger(struct gs_allocator *alloc, struct call *call, uint64_t pod_hash)
{
    struct claimant *loser = call->owner;
    if (!loser && call->pod_hash == pod_hash)
        return;
    if (loser || !call->uid[0])
        gs_call_disown(alloc, call, pod_hash);
    call->pod_hash = pod_hash;
    if (loser)
        lose_call(alloc, loser);
}

static bool names(const struct gs_observed_pod *observed, uint64_t key)
{
    for (size_t k = 0; k < observed->key_count; k++) {
        if (observed->keys[k] == key)
            return true;
    }
    return false;
}

/*
 * The kubelet names a pod's ids by its name, which may have been an older pod's: one whose call was
 * taken for it and that is gone, or one that was gone when the kubelet took it in, so that nobody
 * claimed the call. (A static pod is claimed by its mirror, which comes later and has no record.)
 */
static bool is_namesakes(const struct call *call, const struct claimant *claimant, uint64_t name)
{
    if (call->owner)
        return false;
    return call->was_hash == name || (claimant && call->listed && call->moment < claimant->since &&
                                      claimant->pod.recorded == GS_RECORDED_VALID);
}

/* Returns whether any of the ids were answered for by this run. */
static bool settle_pod(struct gs_allocator *alloc, const struct gs_observed_pod *observed,
                       struct claimant *claimant)
{
    bool ours = false;
    uint64_t hash = gs_pod_name_hash(observed->ns, observed->name);
    for (size_t k = 0; k < observed->key_count; k++) {
        struct call *call = gs_call_find(alloc, observed->keys[k]);
        if (!call)
            continue;
        ours = true;
        if (is_namesakes(call, claimant, hash))
            continue;
        if (!claimant) {
            leave_to_stranger(alloc, call, hash);
            continue;
        }
        if (call->owner != claimant)
            adopt(alloc, claimant, call);
        call->confirmed = true;
    }
    return ours;
}

/* Calls without owner that the kubelet does not hold any more are over. */
static void count_misses(struct gs_allocator *alloc, const struct gs_observed_pod *observed,
                         size_t count)
{
    struct call *next;
    for (struct call *at = alloc->calls; at; at = at->next)
        at->missed += !at->owner;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < observed[i].key_count; k++) {
            struct call *call = gs_call_find(alloc, observed[i].keys[k]);
            if (call)
                call->missed = 0;
        }
    }
    for (struct call *at = alloc->calls; at; at = next) {
        next = at->next;
        if (at->missed >= MISSES)
            gs_call_drop(alloc, at);
    }
}

void gs_allocator_observe(struct gs_allocator *alloc, const struct gs_observed_pod *observed,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!observed[i].key_count)
            continue;
        struct claimant *claimant = gs_claimant_named(alloc, observed[i].ns, observed[i].name);
        bool ours = settle_pod(alloc, &observed[i], claimant);
        if (claimant && claimant->early && !ours && !claimant->done) {
            gs_claimant_set_done(alloc, claimant, requests_done(claimant, observed[i].units));
            gs_claimant_charge(alloc, claimant, NULL);
        }
    }
    count_misses(alloc, observed, count);
}

void gs_allocator_confirm(struct gs_allocator *alloc, const struct gs_given *given)
{
    struct claimant *claimant = gs_claimant_of_cgroup(alloc, given->uid);
    struct call *call = gs_call_find(alloc, given->key);
    if (!claimant || !call)
        return;
    if (call->owner != claimant)
        adopt(alloc, claimant, call);
    call->confirmed = true;
}

void gs_claimant_inherit(struct gs_allocator *alloc, struct claimant *claimant)
{
    uint64_t hash = gs_pod_name_hash(claimant->pod.ns, claimant->pod.name);
    for (struct call *at = alloc->calls; at; at = at->next) {
        if (at->owner || at->pod_hash != hash || is_namesakes(at, claimant, hash))
            continue;
        adopt(alloc, claimant, at);
        at->confirmed = true;
    }
}

/* Room helps a pod whose containers are all on as many GPUs as it asks for. Another number of them
 * is a static pod's: when the kubelet asks for one there is no object that could say gpu-count. */
static enum gs_start_result hold_back(struct gs_allocator *alloc, struct claimant *owner,
                                      struct gs_error *err)
{
    static const char full[] =
        "a container of this pod was given a GPU whose memory belongs to other pods by now; its "
        "start is held back until there is room, or delete the pod to have it placed anew";
    static const char torn[] =
        "the containers of this pod were given different GPUs, or another number of them than "
        "gpu-count asks for (a static pod always gets one): it can never start here, delete it to "
        "have it placed anew";
    const char *why =
        gs_claimant_owns_calls(alloc, owner, false) && !gs_claimant_environment(alloc, owner)
            ? torn
            : full;
    alloc->stats.held++;
    if (!owner->held_said)
        gs_write_event(alloc, owner, 0, true, "GpuStartHeld", why);
    owner->held_said = true;
    gs_fail(err, GS_EBUSY, "%s", why);
    return GS_START_HELD;
}

/* An earlier run's answer, of which nothing is left but the record: it may have been given on
 * trust, so a pod that has not run needs room there. */
static void believe_record(const struct gs_allocator *alloc, struct claimant *owner)
{
    gs_gpu_mask place = gs_claimant_place(alloc, owner);
    owner->held = !gs_claimant_runs(owner) && place && !gs_claimant_fits(alloc, owner, place);
}

/* The pod that the kubelet names for these ids. */
static const struct gs_observed_pod *owner_of(const struct gs_start_request *request, uint64_t key)
{
    for (size_t i = 0; i < request->observed_count; i++) {
        if (names(&request->observed[i], key))
            return &request->observed[i];
    }
    return NULL;
}

/* An init container is not listed by older kubelets, but its pod's other calls have put it right.
 */
struct claimant *gs_claimant_starting(struct gs_allocator *alloc,
                                      const struct gs_start_request *request, bool *ret_named)
{
    uint64_t key = gs_allocate_key(request->ids, request->id_count);
    const struct gs_observed_pod *observed = owner_of(request, key);
    struct call *call = gs_call_find(alloc, key);
    *ret_named = observed != NULL;
    if (observed)
        return gs_claimant_named(alloc, observed->ns, observed->name);
    return call ? call->owner : NULL;
}

enum gs_start_result gs_allocator_start(struct gs_allocator *alloc,
                                        const struct gs_start_request *request,
                                        struct gs_error *err)
{
    uint64_t key = gs_allocate_key(request->ids, request->id_count);
    if (request->observed)
        gs_allocator_observe(alloc, request->observed, request->observed_count);
    bool named;
    struct claimant *owner = gs_claimant_starting(alloc, request, &named);
    struct call *call = gs_call_find(alloc, key);
    if (named && !owner && !request->listed)
        return GS_START_LIST_FIRST;
    if (!owner)
        return GS_START_OK; /* a static pod without an API object, or an earlier run's answer */
    if (!call)
        believe_record(alloc, owner);
    else if (owner->held || gs_claimant_environment(alloc, owner) != owner->allocated)
        gs_claimant_follow_environment(alloc, owner);
    if (owner->held && !request->listed)
        return GS_START_LIST_FIRST; /* who is in the way may be gone */
    if (owner->held)
        return hold_back(alloc, owner, err);
    gs_claimant_put_right(alloc, owner);
    return request->write_tried || gs_claimant_move_is_written(alloc, owner) ? GS_START_OK
                                                                             : GS_START_WRITE_FIRST;
}
