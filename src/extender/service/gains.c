/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

static void make_newest(struct gs_gains *gains, uint32_t slot)
{
    struct gs_gain *all = gains->nodes, *gain = &all[slot];
    if (gains->newest == slot)
        return;
    if (gain->at) {
        all[gain->newer].older = gain->older;
        if (gain->older != GS_INDEX_NONE)
            all[gain->older].newer = gain->newer;
    }
    gain->older = gains->newest;
    gain->newer = GS_INDEX_NONE;
    if (gains->newest != GS_INDEX_NONE)
        all[gains->newest].newer = slot;
    gains->newest = slot;
}

uint32_t gs_gains_after(const struct gs_gains *gains, uint64_t epoch, int64_t *work)
{
    uint32_t slot = gains->newest, found = GS_INDEX_NONE;
    for (; slot != GS_INDEX_NONE && gains->nodes[slot].at > epoch; --*work) {
        found = slot;
        slot = gains->nodes[slot].older;
    }
    return found;
}

void gs_gains_note(struct gs_gains *gains, uint32_t slot, uint64_t owner)
{
    gains->frees++;
    /* without memory nobody is requeued for this node; kube-scheduler's own flush remains */
    if (slot == GS_INDEX_NONE ||
        !gs_array_reach(&gains->nodes, &gains->cap, slot, sizeof(*gains->nodes)))
        return;
    make_newest(gains, slot);
    struct gs_gain *gain = &gains->nodes[slot];
    gain->before = owner == gain->owner ? gain->before : gain->at;
    gain->owner = owner;
    gain->at = gains->frees;
}
