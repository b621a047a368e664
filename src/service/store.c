/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

enum { NODES_PER_LOOK = 128 };

int gs_store_init(struct gs_store *store, const struct gs_cluster_owner *owner, void *ctx)
{
    *store = (struct gs_store){.newest = GS_INDEX_NONE};
    int result = gs_cluster_init(&store->cluster, owner, ctx, NULL);
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    /* a stream of filters must not keep the watch from being heard */
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&store->lock, &attr);
    pthread_rwlockattr_destroy(&attr);
    pthread_mutex_init(&store->gain_lock, NULL);
    gs_clock_cond_init(&store->gain);
    if (result < 0)
        gs_store_release(store);
    return result;
}

void gs_store_release(struct gs_store *store)
{
    gs_cluster_release(&store->cluster);
    free(store->gained);
    pthread_rwlock_destroy(&store->lock);
    pthread_mutex_destroy(&store->gain_lock);
    pthread_cond_destroy(&store->gain);
}

void gs_store_read(const struct gs_store *store)
{
    pthread_rwlock_rdlock((pthread_rwlock_t *)&store->lock);
}

void gs_store_write(struct gs_store *store)
{
    pthread_rwlock_wrlock(&store->lock);
}

void gs_store_unlock(const struct gs_store *store)
{
    pthread_rwlock_unlock((pthread_rwlock_t *)&store->lock);
}

void gs_store_each_node(const struct gs_store *store, gs_store_node_fn *fn, void *ctx)
{
    for (uint32_t slot = 0, end = 1; slot < end;) {
        gs_store_read(store);
        end = gs_ledger_slots(store->cluster.ledger);
        for (uint32_t i = 0; i < NODES_PER_LOOK && slot < end; i++, slot++) {
            const struct gs_node_view *view = gs_ledger_view_at(store->cluster.ledger, slot);
            if (view)
                fn(ctx, store, view);
        }
        gs_store_unlock(store);
    }
}

static void tell_gain(struct gs_store *store)
{
    pthread_mutex_lock(&store->gain_lock);
    store->gains = store->frees;
    pthread_cond_broadcast(&store->gain);
    pthread_mutex_unlock(&store->gain_lock);
}

bool gs_store_wait_freed(struct gs_store *store, uint64_t epoch, int64_t until_ns)
{
    const struct timespec until = gs_clock_wait_until(until_ns);
    int error = 0;
    pthread_mutex_lock(&store->gain_lock);
    while (store->gains <= epoch && error == 0)
        error = pthread_cond_timedwait(&store->gain, &store->gain_lock, &until);
    bool freed = store->gains > epoch;
    pthread_mutex_unlock(&store->gain_lock);
    return freed;
}

static void make_newest(struct gs_store *store, uint32_t slot)
{
    struct gs_gain *all = store->gained, *gain = &all[slot];
    if (store->newest == slot)
        return;
    if (gain->at) {
        all[gain->newer].older = gain->older;
        if (gain->older != GS_INDEX_NONE)
            all[gain->older].newer = gain->newer;
    }
    gain->older = store->newest;
    gain->newer = GS_INDEX_NONE;
    if (store->newest != GS_INDEX_NONE)
        all[store->newest].newer = slot;
    store->newest = slot;
}

uint32_t gs_store_gain_after(const struct gs_store *store, uint64_t epoch, int64_t *work)
{
    uint32_t slot = store->newest, found = GS_INDEX_NONE;
    for (; slot != GS_INDEX_NONE && store->gained[slot].at > epoch; --*work) {
        found = slot;
        slot = store->gained[slot].older;
    }
    return found;
}

void gs_store_freed(struct gs_store *store, uint32_t slot, uint64_t owner)
{
    store->frees++;
    tell_gain(store);
    if (slot == GS_INDEX_NONE)
        return;
    if (!gs_array_reach(&store->gained, &store->gained_cap, slot, sizeof(*store->gained)))
        return; /* nobody is requeued for this node; kube-scheduler's own flush remains */
    make_newest(store, slot);
    struct gs_gain *gain = &store->gained[slot];
    gain->before = owner == gain->owner ? gain->before : gain->at;
    gain->owner = owner;
    gain->at = store->frees;
}
