/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* *items (*cap of `size` bytes each, freed with free()) becomes an array of more than `index`, by
 * half more than needed, and what is new is zeroed. False: out of memory, and nothing changed. */
bool gs_array_reach(void *items, uint32_t *cap, uint32_t index, size_t size);

/* Generic part of a record array: how many slots, and which of them are unused. */
struct gs_pool {
    uint32_t count, cap;
    uint32_t *free, free_count;
};

/* Room for one more record in an array of `size`-byte records; -1: out of memory. */
int gs_pool_reserve(void *records, struct gs_pool *pool, size_t size);
uint32_t gs_pool_take(struct gs_pool *pool); /* after that */
void gs_pool_give(struct gs_pool *pool, uint32_t slot);

/* Each element of an array of so many, by a pointer with that name. */
#define GS_EACH_OF(item, list, count)                                                              \
    for (__typeof__(*(list)) *item = (list); item < (list) + (count); item++)
