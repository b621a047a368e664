/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "gpushare/base/splitmix.h"

/*
 * A fixed number of remembered results under 64-bit keys; a newer result takes the place of an
 * older one. Any number of threads may put and get without waiting: an entry's check word is key ^
 * results, so that an entry that two threads wrote at once, or that is being written, is not
 * recognised (the lockless transposition table of computer chess; Hyatt and Mann, 2002).
 *
 * The key stands for the thing: two things with the same 64 mixed bits would be confused. With the
 * 2^19 entries here that is one chance in 2^45 per look-up at most. Mixing is no secret: a key is
 * of numbers that are counted here (policy_kinds.h), or begins with a hash that is one (state.c).
 */
struct gs_memo_entry {
    _Atomic uint64_t check;
    _Atomic uint64_t first;
    _Atomic uint64_t second;
};

struct gs_memo {
    struct gs_memo_entry *entries;
    uint64_t mask;
};

struct gs_memo_value {
    uint64_t first;
    uint64_t second;
};

/* 1 << bits entries, whose pages take memory only once they are used. -1: out of memory. */
int gs_memo_init(struct gs_memo *memo, unsigned bits);
void gs_memo_release(struct gs_memo *memo);

/* key is never 0 and well mixed: see gs_mix_end(). place says where the result lies, modulo the
 * size: the key itself, or neighbours for what is asked for in a row. */
static inline bool gs_memo_get(const struct gs_memo *memo, uint64_t place, uint64_t key,
                               struct gs_memo_value *ret)
{
    const struct gs_memo_entry *entry = &memo->entries[place & memo->mask];
    uint64_t check = atomic_load_explicit(&entry->check, memory_order_relaxed);
    uint64_t first = atomic_load_explicit(&entry->first, memory_order_relaxed);
    uint64_t second = atomic_load_explicit(&entry->second, memory_order_relaxed);
    if ((check ^ first ^ second) != key)
        return false;
    *ret = (struct gs_memo_value){first, second};
    return true;
}

static inline void gs_memo_put(struct gs_memo *memo, uint64_t place, uint64_t key,
                               struct gs_memo_value value)
{
    struct gs_memo_entry *entry = &memo->entries[place & memo->mask];
    atomic_store_explicit(&entry->check, key ^ value.first ^ value.second, memory_order_relaxed);
    atomic_store_explicit(&entry->first, value.first, memory_order_relaxed);
    atomic_store_explicit(&entry->second, value.second, memory_order_relaxed);
}

/* Building a key: mix in word after word from GS_MIX_START or a hash on, then end. (Two words that
 * were only xored would make one key of many pairs.) */
#define GS_MIX_START ((uint64_t)0x2545F4914F6CDD1Du)

static inline uint64_t gs_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 32;
}

static inline uint64_t gs_mix_end(uint64_t hash)
{
    const uint64_t mixed = gs_splitmix_next(&hash);
    return mixed ? mixed : 1;
}
