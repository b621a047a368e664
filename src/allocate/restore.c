/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an earlier run of the plugin answered, from the kubelet's own notes: it keeps every answer,
 * whole, under the pod's UID, and so knows more than the annotations, which may have waited to be
 * written when that run ended.
 */
#include "internal.h"

/* Notes of one pod's containers become calls; those that this run answered are there already. An
 * init container's ids, used again by a later one, are one call. Of a pod that nobody has told of
 * the ids count all the same: as long as no list says that it is gone, or the kubelet. */
static void take_note(struct gs_allocator *alloc, const struct gs_given *given)
{
    const struct gs_node_view *view = gs_allocator_view(alloc);
    struct claimant *owner = gs_claimant_of_cgroup(alloc, given->uid);
    const struct call *known = gs_call_find(alloc, given->key);
    if (!view || !given->gpus || (given->gpus & ~gs_view_present(view)) ||
        (known && (!known->noted || (known->owner && known->owner != owner))) ||
        (!owner && (known || alloc->had_list)))
        return;
    struct call *call = gs_call_add(alloc, given->key, owner, given->gpus, given->units, NULL);
    if (!call)
        return;
    call->noted = true;
    call->confirmed = owner != NULL;
    if (owner)
        owner->restored++;
}

/* It runs where its environment points to, whether there is room or not. What was given to a pod
 * that has not run may have been given on trust: it is judged when those are counted. */
static void place_running(struct gs_allocator *alloc, struct claimant *claimant)
{
    gs_gpu_mask gpus = gs_claimant_environment(alloc, claimant);
    if (!gs_claimant_runs(claimant))
        gs_claimant_give(claimant, 0);
    else if (gpus)
        gs_claimant_give(claimant, gpus);
    gs_claimant_charge(alloc, claimant, NULL);
}

static void judge(struct gs_allocator *alloc, struct claimant *claimant)
{
    gs_gpu_mask gpus = gs_claimant_environment(alloc, claimant);
    claimant->held = !gpus || !gs_claimant_fits(alloc, claimant, gpus);
    if (!claimant->held)
        gs_claimant_give(claimant, gpus);
    uint32_t done = claimant->restored > claimant->done ? claimant->restored : claimant->done;
    gs_claimant_set_done(alloc, claimant,
                         done < claimant->request_count ? done : claimant->request_count);
    gs_claimant_charge(alloc, claimant, NULL);
}

void gs_allocator_restore(struct gs_allocator *alloc, const struct gs_given *given, size_t count)
{
    for (size_t i = 0; i < count; i++)
        take_note(alloc, &given[i]);
    for (struct claimant *at = alloc->first; at; at = at->next) {
        if (at->restored)
            place_running(alloc, at);
    }
    for (struct claimant *at = alloc->first; at; at = at->next) {
        if (at->restored && !gs_claimant_runs(at))
            judge(alloc, at);
    }
    for (struct claimant *at = alloc->first; at; at = at->next) {
        if (at->restored && at->allocated && !gs_claimant_is_recorded(at))
            gs_write_record(alloc, at);
        at->restored = 0;
    }
}
