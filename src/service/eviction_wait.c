/* SPDX-License-Identifier: Apache-2.0 */
#include "eviction_wait.h"

#include <stdlib.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/index.h"

void gs_eviction_waits_init(struct gs_eviction_waits *eviction_waits)
{
    *eviction_waits = (struct gs_eviction_waits){.each_ns = GS_EVICTION_WAIT_NS,
                                                 .budget_ns = GS_EVICTION_WAIT_BUDGET_NS};
    pthread_mutex_init(&eviction_waits->lock, NULL);
}

void gs_eviction_waits_release(struct gs_eviction_waits *eviction_waits)
{
    for (uint32_t i = 0; i < GS_EVICTION_WAITS_MAX; i++)
        free(eviction_waits->items[i].nodes);
    pthread_mutex_destroy(&eviction_waits->lock);
}

static uint64_t hash_text(struct gs_slice text)
{
    return gs_hash_bytes(text.at, text.len);
}

static struct gs_eviction_wait *find(struct gs_eviction_waits *eviction_waits, uint64_t pod)
{
    for (uint32_t i = 0; i < GS_EVICTION_WAITS_MAX; i++) {
        if (eviction_waits->items[i].count && eviction_waits->items[i].pod == pod)
            return &eviction_waits->items[i];
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Ascending, each once; returns how many are left. */
static uint32_t sort_once(uint64_t *hashes, uint32_t count)
{
    uint32_t kept = 0;
    qsort(hashes, count, sizeof(*hashes), by_value);
    for (uint32_t i = 0; i < count; i++) {
        if (!kept || hashes[kept - 1] != hashes[i])
            hashes[kept++] = hashes[i];
    }
    return kept;
}

void gs_eviction_waits_add(struct gs_eviction_waits *eviction_waits, const char *uid,
                           const struct gs_victims *nodes, uint32_t count)
{
    uint64_t pod = hash_text(gs_slice_of(uid));
    uint64_t *hashes = count ? calloc(count, sizeof(*hashes)) : NULL;
    if (!hashes)
        return;
    for (uint32_t i = 0; i < count; i++)
        hashes[i] = hash_text(gs_slice_of(nodes[i].node));
    count = sort_once(hashes, count);
    pthread_mutex_lock(&eviction_waits->lock);
    struct gs_eviction_wait *item = find(eviction_waits, pod);
    if (!item)
        item = &eviction_waits->items[eviction_waits->next++ % GS_EVICTION_WAITS_MAX];
    free(item->nodes);
    *item = (struct gs_eviction_wait){pod, hashes, count, eviction_waits->budget_ns};
    pthread_mutex_unlock(&eviction_waits->lock);
}

static bool names_one(const struct gs_eviction_wait *item, const struct gs_slice *names,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t name = hash_text(names[i]);
        if (bsearch(&name, item->nodes, item->count, sizeof(name), by_value))
            return true;
    }
    return false;
}

/* How long may be waited; 0 when there is nothing to wait for. */
static int64_t patience(struct gs_eviction_waits *eviction_waits, uint64_t pod,
                        const struct gs_slice *names, uint32_t count)
{
    pthread_mutex_lock(&eviction_waits->lock);
    const struct gs_eviction_wait *item = find(eviction_waits, pod);
    int64_t left_ns =
        item && item->left_ns > 0 && names_one(item, names, count) ? item->left_ns : 0;
    pthread_mutex_unlock(&eviction_waits->lock);
    return left_ns;
}

bool gs_eviction_waits_due(struct gs_eviction_waits *eviction_waits, const char *uid,
                           const struct gs_slice *names, uint32_t count)
{
    return patience(eviction_waits, hash_text(gs_slice_of(uid)), names, count) > 0;
}

static void spend(struct gs_eviction_waits *eviction_waits, uint64_t pod, int64_t spent_ns)
{
    pthread_mutex_lock(&eviction_waits->lock);
    struct gs_eviction_wait *item = find(eviction_waits, pod);
    if (item)
        item->left_ns -= spent_ns;
    eviction_waits->waiters--;
    pthread_mutex_unlock(&eviction_waits->lock);
}

/* Workers that wait bind nobody. spend() ends it. */
static bool begin_wait(struct gs_eviction_waits *eviction_waits)
{
    pthread_mutex_lock(&eviction_waits->lock);
    bool room = eviction_waits->waiters < GS_EVICTION_WAITERS_MAX;
    eviction_waits->waiters += room;
    eviction_waits->waits += room;
    pthread_mutex_unlock(&eviction_waits->lock);
    return room;
}

bool gs_eviction_waits_wait(struct gs_eviction_waits *eviction_waits, struct gs_store *store,
                            const char *uid, const struct gs_slice *names, uint32_t count,
                            uint64_t epoch, int64_t *left_ns)
{
    uint64_t pod = hash_text(gs_slice_of(uid));
    int64_t budget_ns = *left_ns > 0 ? patience(eviction_waits, pod, names, count) : 0;
    if (!budget_ns || !begin_wait(eviction_waits))
        return false;
    /* the machine's own time: threads are what is waited for */
    const struct gs_clock *clock = gs_clock_system();
    int64_t start_ns = gs_clock_now_ns(clock);
    int64_t longest_ns = budget_ns < *left_ns ? budget_ns : *left_ns;
    bool freed = gs_store_wait_freed(store, epoch, start_ns + longest_ns);
    int64_t spent_ns = gs_clock_now_ns(clock) - start_ns;
    *left_ns -= spent_ns;
    spend(eviction_waits, pod, spent_ns);
    return freed;
}
