/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before a container starts the kubelet says whose its ids are. Its environment can no longer
 * change, so the record follows: equal pods that were taken for each other exchange their records,
 * a pod without one gets it. Only when the truth would overfill a GPU is the start held back.
 */
#include <stdio.h>
#include <string.h>

#include "allocate_internal.h"

/* The call that was answered for these ids, and for whom; the newest one counts, because ids are
 * used again. */
static struct call *find_call(struct gs_allocator *alloc, uint64_t key, struct claimant **ret_owner,
                              struct orphan **ret_orphan)
{
    struct call *found = NULL;
    *ret_owner = NULL;
    *ret_orphan = NULL;
    for (struct claimant *at = alloc->first; at; at = at->next) {
        for (uint32_t i = 0; i < at->done; i++) {
            if (at->calls[i].gpus && at->calls[i].key == key) {
                found = &at->calls[i];
                *ret_owner = at;
            }
        }
    }
    for (struct orphan *at = alloc->orphans; !found && at; at = at->next) {
        if (at->call.key == key) {
            found = &at->call;
            *ret_orphan = at;
        }
    }
    return found;
}

static bool equal(const struct claimant *a, const struct claimant *b)
{
    return a->charge.units == b->charge.units && a->charge.gpu_count == b->charge.gpu_count &&
           a->request_count == b->request_count &&
           memcmp(a->requests, b->requests, a->request_count * sizeof(*a->requests)) == 0;
}

/* Their calls and places change owners; then both records are brought in line, the first patch
 * naming the partner so that every ledger moves both claims on that one event. */
static enum gs_start_result exchange(struct gs_allocator *alloc, struct claimant *owner,
                                     struct claimant *other, struct gs_error *err)
{
    gs_gpu_mask here = other->truth;
    gs_gpu_mask there = owner->truth ? owner->truth : gs_claimant_record(alloc, owner);
    struct call *calls = owner->calls;
    uint32_t done = owner->done;
    owner->calls = other->calls;
    owner->done = other->done;
    other->calls = calls;
    other->done = done;
    owner->truth = here;
    other->truth = there;
    if (gs_claimant_charge(alloc, owner, err) < 0 || gs_claimant_charge(alloc, other, err) < 0)
        return GS_START_HELD;
    if (here != there) {
        uint64_t first = gs_write_record(alloc, owner, other->pod.uid, 0);
        gs_write_record(alloc, other, NULL, first);
        alloc->stats.swaps++;
    }
    return GS_START_OK;
}

static enum gs_start_result hold_back(struct gs_allocator *alloc, struct claimant *owner,
                                      gs_gpu_mask before, struct gs_error *err)
{
    owner->truth = before;
    gs_claimant_charge(alloc, owner, NULL);
    alloc->stats.held++;
    gs_fail(err, GS_EBUSY,
            "the container was given a GPU whose memory belongs to other pods; its start is held "
            "back, delete the pod to have it placed anew");
    gs_write_event(alloc, owner, "GpuStartHeld", err ? err->msg : "held back");
    return GS_START_HELD;
}

/* The environment points to `gpus`: that is where the owner is, if its charge has room there. */
static enum gs_start_result move_record(struct gs_allocator *alloc, struct claimant *owner,
                                        gs_gpu_mask gpus, struct gs_error *err)
{
    gs_gpu_mask before = owner->truth;
    if (before == gpus)
        return GS_START_OK;
    owner->truth = gpus;
    if (gs_claimant_charge(alloc, owner, err) < 0 || gs_allocator_overfull(alloc, gpus))
        return hold_back(alloc, owner, before, err);
    gs_write_record(alloc, owner, NULL, 0);
    return GS_START_OK;
}

static void take_over(struct claimant *owner, const struct call *call)
{
    if (owner->done < owner->request_count)
        owner->calls[owner->done++] = *call;
}

enum gs_start_result gs_allocator_start(struct gs_allocator *alloc,
                                        const struct gs_start_request *request, bool listed,
                                        struct gs_error *err)
{
    struct claimant *owner_by_call, *owner;
    struct orphan *orphan;
    struct call *call =
        find_call(alloc, gs_call_key(request->ids, request->id_count), &owner_by_call, &orphan);
    if (!call || !request->name)
        return GS_START_OK; /* answered by an earlier run, or an init container: the record holds */
    owner = gs_claimant_named(alloc, request->ns, request->name);
    if (!owner)
        return listed ? GS_START_OK : GS_START_LIST_FIRST; /* a static pod has no API object yet */
    if (owner == owner_by_call) {
        call->started = true;
        return GS_START_OK;
    }
    call->started = true;
    if (owner_by_call && equal(owner, owner_by_call))
        return exchange(alloc, owner, owner_by_call, err);
    struct call taken = *call;
    if (orphan) {
        gs_orphan_drop(alloc, orphan);
    } else {
        owner_by_call->done = 0; /* its own calls are still to come */
        owner_by_call->truth = 0;
        gs_claimant_charge(alloc, owner_by_call, NULL);
        if (alloc->current == owner_by_call)
            alloc->current = NULL;
    }
    take_over(owner, &taken);
    return move_record(alloc, owner, taken.gpus, err);
}
