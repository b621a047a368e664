/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where pods are, written where their owners cannot write: on the node. And their own records,
 * which owners can write, put right when they drift.
 */
#include <string.h>

#include "gpushare/codec/moved.h"
#include "internal.h"

/* A record that somebody writes over again and again is not fought for in every event. */
#define AGAIN_NS (3 * GS_NS_PER_S)

bool gs_claimant_is_recorded(const struct claimant *claimant)
{
    const struct gs_pod *pod = &claimant->pod;
    return pod->recorded == GS_RECORDED_VALID && pod->recorded_gpus == claimant->allocated &&
           !pod->idx_missing && /* older readers look at nothing else */
           (pod->allocation != GS_RECORDED_VALID || pod->allocation_gpus == claimant->allocated);
}

bool gs_claimant_move_is_written(const struct gs_allocator *alloc, const struct claimant *claimant)
{
    return !claimant->moved || claimant->moved_at <= alloc->moved_written;
}

void gs_claimant_note_move(struct gs_allocator *alloc, struct claimant *claimant, bool drifted)
{
    bool needed = claimant->moved || drifted || claimant->allocated != claimant->bound ||
                  (alloc->names_early && claimant->early);
    if (!claimant->allocated || !needed || claimant->moved == claimant->allocated)
        return;
    claimant->moved = claimant->allocated;
    claimant->moved_at = ++alloc->moved_state;
}

void gs_claimant_put_right(struct gs_allocator *alloc, struct claimant *claimant)
{
    bool whole =
        claimant->allocated && !claimant->held && claimant->done == claimant->request_count;
    if (!whole || gs_claimant_is_recorded(claimant))
        return;
    gs_claimant_note_move(alloc, claimant, true);
    if (gs_record_is_queued(alloc, claimant->pod.uid))
        return;
    if (claimant->record_ns && gs_allocator_now_ns(alloc) - claimant->record_ns < AGAIN_NS)
        return;
    claimant->record_ns = gs_allocator_now_ns(alloc);
    gs_write_record(alloc, claimant);
}

void gs_allocator_put_right(struct gs_allocator *alloc)
{
    for (struct claimant *at = alloc->first; at; at = at->next)
        gs_claimant_put_right(alloc, at);
}

/* ---- the annotation ---- */

/* What it says is on the node already. Where no environment is known it is believed. */
static void take(struct gs_allocator *alloc, struct claimant *claimant, gs_gpu_mask gpus)
{
    bool asked = gs_claimant_owns_calls(alloc, claimant);
    claimant->moved = gpus;
    claimant->moved_at = 0;
    gs_claimant_give(claimant, claimant->allocated && !asked ? gpus : claimant->allocated);
}

void gs_claimant_take_entry(struct gs_allocator *alloc, struct claimant *claimant)
{
    for (uint32_t i = 0; i < alloc->earlier_count; i++) {
        if (strcmp(alloc->earlier[i].uid, claimant->pod.uid) == 0)
            take(alloc, claimant, alloc->earlier[i].gpus);
    }
}

int gs_allocator_moved_earlier(struct gs_allocator *alloc, const struct gs_moved *moved,
                               uint32_t count, bool written_before, struct gs_error *err)
{
    gs_arena_release(&alloc->earlier_texts);
    alloc->names_early = !written_before;
    alloc->earlier_count = 0;
    alloc->earlier = gs_arena_calloc(&alloc->earlier_texts, count + 1, sizeof(*moved));
    for (uint32_t i = 0; i < count && alloc->earlier; i++) {
        const char *uid = gs_arena_strdup(&alloc->earlier_texts, moved[i].uid);
        if (uid)
            alloc->earlier[alloc->earlier_count++] = (struct gs_moved){uid, moved[i].gpus};
    }
    if (alloc->earlier_count < count)
        return gs_fail_nomem(err);
    alloc->moved_state++; /* of pods that are gone an entry may be there */
    for (struct claimant *at = alloc->first; at; at = at->next) {
        if (at->moved)
            continue;
        gs_claimant_take_entry(alloc, at);
        if (gs_claimant_charge(alloc, at, err) < 0)
            return -1;
    }
    return 0;
}

bool gs_allocator_moved_due(const struct gs_allocator *alloc)
{
    return alloc->moved_state != alloc->moved_written;
}

/* In the order in which it is read, so that texts can be compared. */
uint64_t gs_allocator_moved_print(const struct gs_allocator *alloc, struct gs_buf *out)
{
    struct gs_moved entries[GS_MOVED_MAX];
    size_t count = 0;
    for (const struct claimant *at = alloc->first; at && count < GS_MOVED_MAX; at = at->next) {
        if (at->moved)
            entries[count++] = (struct gs_moved){at->pod.uid, at->moved};
    }
    gs_moved_sort(entries, count);
    gs_codec_moved_encode(out, entries, count);
    return alloc->moved_state;
}

void gs_allocator_moved_written(struct gs_allocator *alloc, uint64_t state)
{
    if (state > alloc->moved_written)
        alloc->moved_written = state;
}
