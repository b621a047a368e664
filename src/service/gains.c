/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

void gs_gains_init(struct gs_gains *gains)
{
    gains->newest = GS_INDEX_NONE;
    pthread_mutex_init(&gains->lock, NULL);
    gs_clock_cond_init(&gains->changed);
}

void gs_gains_release(struct gs_gains *gains)
{
    free(gains->nodes);
    pthread_mutex_destroy(&gains->lock);
    pthread_cond_destroy(&gains->changed);
}

bool gs_gains_wait(struct gs_gains *gains, uint64_t epoch, int64_t until_ns)
{
    const struct timespec until = gs_clock_wait_until(until_ns);
    int error = 0;
    pthread_mutex_lock(&gains->lock);
    while (gains->seen <= epoch && error == 0)
        error = pthread_cond_timedwait(&gains->changed, &gains->lock, &until);
    bool freed = gains->seen > epoch;
    pthread_mutex_unlock(&gains->lock);
    return freed;
}

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
    pthread_mutex_lock(&gains->lock);
    gains->seen = gains->frees;
    pthread_cond_broadcast(&gains->changed);
    pthread_mutex_unlock(&gains->lock);
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
