/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/array.h"

#include <stdlib.h>
#include <string.h>

bool gs_array_reach(void *items, uint32_t *cap, uint32_t index, size_t size)
{
    if (index < *cap)
        return true;
    const uint32_t wanted = index + index / 2 + 16;
    char *wider = wanted > index ? reallocarray(*(void **)items, wanted, size) : NULL;
    if (!wider)
        return false;
    memset(wider + *cap * size, 0, (wanted - *cap) * size);
    *(void **)items = wider;
    *cap = wanted;
    return true;
}

/* pool->free is not zeroed: pages that were never written take no memory. */
int gs_pool_reserve(void *records, struct gs_pool *pool, size_t size)
{
    uint32_t cap = pool->cap;
    if (!gs_array_reach(records, &cap, pool->count, size))
        return -1;
    uint32_t *wider = cap > pool->cap ? reallocarray(pool->free, cap, sizeof(*wider)) : pool->free;
    if (!wider)
        return -1;
    pool->free = wider;
    pool->cap = cap;
    return 0;
}

uint32_t gs_pool_take(struct gs_pool *pool)
{
    return pool->free_count ? pool->free[--pool->free_count] : pool->count++;
}

void gs_pool_give(struct gs_pool *pool, uint32_t slot)
{
    pool->free[pool->free_count++] = slot;
}
