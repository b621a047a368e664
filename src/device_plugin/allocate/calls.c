/* SPDX-License-Identifier: Apache-2.0 */
/* The answered calls: ids, what they were given, whose they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

uint64_t gs_allocate_key(const char *const *ids, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += gs_hash_text(ids[i]);
    return sum;
}

static void discharge(struct gs_allocator *alloc, struct call *call)
{
    if (call->uid[0])
        gs_ledger_remove(alloc->ledger, call->uid, NULL);
    call->uid[0] = '\0';
}

void gs_call_drop(struct gs_allocator *alloc, struct call *call)
{
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    discharge(alloc, call);
    gs_recent_release(&alloc->stranger_ids); /* its IDs may come again, and count */
    free(call);
}

void gs_calls_free(struct gs_allocator *alloc)
{
    while (alloc->calls)
        gs_call_drop(alloc, alloc->calls);
}

uint32_t gs_call_share(const struct call *call)
{
    return gs_units_each(call->units, gs_gpu_mask_count(call->gpus));
}

/* The ledger shall count a call that no pod stands for. */
static int charge(struct gs_allocator *alloc, struct call *call, struct gs_error *err)
{
    snprintf(call->uid, sizeof(call->uid), "unclaimed-%llu",
             (unsigned long long)++alloc->claim_number);
    const struct gs_claim claim = {
        .uid = call->uid,
        .node = alloc->config.node,
        .gpus = call->gpus,
        .units = gs_call_share(call),
        .gpu_count = gs_gpu_mask_count(call->gpus),
    };
    return claim.units ? gs_ledger_set_claim(alloc->ledger, &claim, err) : 0;
}

void gs_call_set_owner(struct gs_allocator *alloc, struct call *call, struct claimant *owner)
{
    call->owner = owner;
    discharge(alloc, call); /* a pod is charged as a whole */
}

void gs_call_charge(struct gs_allocator *alloc, struct call *call, bool alone)
{
    discharge(alloc, call);
    if (alone)
        charge(alloc, call, NULL);
}

struct call *gs_call_add(struct gs_allocator *alloc, uint64_t key, struct claimant *owner,
                         gs_gpu_mask gpus, uint32_t units, struct gs_error *err)
{
    struct call *call = calloc(1, sizeof(*call));
    if (!call) {
        gs_fail_nomem(err);
        return NULL;
    }
    *call = (struct call){.owner = owner,
                          .key = key,
                          .gpus = gpus,
                          .units = units,
                          .next = alloc->calls,
                          .link = &alloc->calls};
    if (!owner && charge(alloc, call, err) < 0) {
        free(call);
        return NULL;
    }
    if (call->next)
        call->next->link = &call->next;
    alloc->calls = call;
    return call;
}

void gs_calls_leave(struct gs_allocator *alloc, const struct claimant *gone)
{
    struct call *next;
    for (struct call *at = alloc->calls; at; at = next) {
        next = at->next;
        if (at->owner != gone)
            continue;
        if (at->pod[0])
            gs_call_drop(alloc, at);
        else
            gs_call_set_owner(alloc, at, NULL);
    }
}
