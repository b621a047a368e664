/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/index.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 16 };

void gs_index_release(struct gs_index *index)
{
    free(index->entries);
    *index = (struct gs_index){0};
}

/* Up to 7 bytes as one word; words of equal length differ when the bytes do. Copying a length that
 * the compiler does not know would cost more than all the rest. */
static uint64_t short_word(const unsigned char *at, size_t len)
{
    if (len >= 4) {
        uint32_t first, last;
        memcpy(&first, at, 4);
        memcpy(&last, at + len - 4, 4);
        return (uint64_t)first << 32 | last;
    }
    return len ? (uint64_t)at[0] << 16 | (uint64_t)at[len / 2] << 8 | at[len - 1] : 0;
}

static uint64_t word_at(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

static uint64_t secret, factor;

__attribute__((constructor)) static void draw_secret(void)
{
    arc4random_buf(&secret, sizeof(secret));
    arc4random_buf(&factor, sizeof(factor));
    factor |= 1;
}

/* Both halves of the product: with the lower one alone, what two words differ in would show at the
 * same bits whatever the factor is, and texts that collide could be made without knowing it. */
static uint64_t fold(uint64_t word)
{
    const unsigned __int128 product = (unsigned __int128)word * factor;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t gs_hash_bytes(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t hash = secret ^ (len * 0x9E3779B97F4A7C15u);
    size_t left = len;
    for (; left > 8; at += 8, left -= 8)
        hash = fold(hash ^ word_at(at));
    /* the last word may repeat bytes of the one before it */
    uint64_t tail = len >= 8 ? word_at(at + left - 8) : short_word(at, left);
    return fold(fold(hash ^ tail) ^ secret);
}

uint64_t gs_hash_lasting(const void *bytes, size_t len)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
    return hash;
}

static void place(struct gs_index *index, struct gs_index_entry entry)
{
    uint32_t at = entry.tag & index->mask;
    while (index->entries[at].slot_one)
        at = (at + 1) & index->mask;
    index->entries[at] = entry;
}

int gs_index_reserve(struct gs_index *index)
{
    uint32_t capacity = index->entries ? index->mask + 1 : 0;
    /* four fifths full, three neighbours are looked at for what is there, thirteen for what is not:
     * two lines of the cache */
    if (((uint64_t)index->count + 1) * 5 <= (uint64_t)capacity * 4)
        return 0;
    uint32_t wider = capacity ? capacity * 2 : FIRST_CAPACITY;
    if (wider < capacity)
        return -1;
    struct gs_index grown = {.mask = wider - 1, .count = index->count};
    grown.entries = calloc(wider, sizeof(*grown.entries));
    if (!grown.entries)
        return -1;
    for (uint32_t i = 0; i < capacity; i++) {
        if (index->entries[i].slot_one)
            place(&grown, index->entries[i]);
    }
    free(index->entries);
    *index = grown;
    return 0;
}

void gs_index_insert(struct gs_index *index, uint64_t hash, uint32_t slot)
{
    place(index, (struct gs_index_entry){(uint32_t)(hash >> 32), slot + 1});
    index->count++;
}

/* Closes the gap: pulls back every later entry of the run whose home allows it. */
static void close_gap(struct gs_index *index, uint32_t gap)
{
    for (uint32_t at = (gap + 1) & index->mask; index->entries[at].slot_one;
         at = (at + 1) & index->mask) {
        uint32_t home = index->entries[at].tag & index->mask;
        if (((at - home) & index->mask) >= ((at - gap) & index->mask)) {
            index->entries[gap] = index->entries[at];
            gap = at;
        }
    }
    index->entries[gap] = (struct gs_index_entry){0};
}

void gs_index_remove(struct gs_index *index, uint64_t hash, uint32_t slot)
{
    if (!index->entries)
        return;
    for (uint32_t at = (uint32_t)(hash >> 32) & index->mask; index->entries[at].slot_one;
         at = (at + 1) & index->mask) {
        if (index->entries[at].slot_one == slot + 1) {
            close_gap(index, at);
            index->count--;
            return;
        }
    }
}
