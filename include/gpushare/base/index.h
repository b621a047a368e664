/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gpushare/base/slice.h"

/*
 * An open-addressing index from a 64-bit hash to a 32-bit slot number of somebody's array. 8 bytes
 * an entry, linear probing, deletion without tombstones. The caller keeps the keys and says whether
 * a slot is the one it means. Every hash must come from gs_hash_bytes() or gs_hash_text(): an entry
 * keeps its upper half, whose lower bits say where it lies. Not thread-safe; finds may run in
 * parallel.
 *
 *   static bool same(const void *ctx, uint32_t slot);        compares ctx's key with slot's
 *   uint32_t slot = gs_index_find(&index, hash, same, &key);  GS_INDEX_NONE when absent
 */
#define GS_INDEX_NONE UINT32_MAX

struct gs_index_entry {
    uint32_t tag;      /* upper half of the hash */
    uint32_t slot_one; /* slot + 1; 0: empty */
};

struct gs_index {
    struct gs_index_entry *entries;
    uint32_t mask; /* capacity - 1; 0 while there is none */
    uint32_t count;
};

typedef bool (*gs_index_same)(const void *ctx, uint32_t slot);

/* A zeroed struct is a valid empty index. */
void gs_index_release(struct gs_index *index);

/* Makes room for one more entry. -1: out of memory, nothing changed. */
int gs_index_reserve(struct gs_index *index);

/* After gs_index_reserve(); the key must not be in the index, slot < GS_INDEX_NONE. */
void gs_index_insert(struct gs_index *index, uint64_t hash, uint32_t slot);

/* Removes the entry of this slot; does nothing when it is not there. */
void gs_index_remove(struct gs_index *index, uint64_t hash, uint32_t slot);

/*
 * 64-bit hash of bytes, for this process alone: it depends on a secret that is drawn before main().
 * Names and lists of pods are their authors' words, and nobody can choose two that have one hash.
 * So texts of one hash are one text where only the hash is kept, but for chance.
 */
uint64_t gs_hash_bytes(const void *bytes, size_t len);

/* The same of a text's bytes. */
static inline uint64_t gs_hash_text(const char *text)
{
    return gs_hash_bytes(text, strlen(text));
}

static inline uint64_t gs_hash_slice(struct gs_slice slice)
{
    return gs_hash_bytes(slice.at, slice.len);
}

/* For qsort() and bsearch() of hashes. */
static inline int gs_hash_order(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

/* 64-bit FNV-1a of bytes, for what outlives the process: the same for ever. */
uint64_t gs_hash_lasting(const void *bytes, size_t len);

/* Has the memory fetched where a find of this hash begins: of many keys that are looked for, all
 * wait for their memory at the same time then, and not each after the other. */
static inline void gs_index_prefetch(const struct gs_index *index, uint64_t hash)
{
    if (index->entries)
        __builtin_prefetch(&index->entries[(uint32_t)(hash >> 32) & index->mask]);
}

static inline uint32_t gs_index_find(const struct gs_index *index, uint64_t hash,
                                     gs_index_same same, const void *ctx)
{
    if (!index->entries)
        return GS_INDEX_NONE;
    uint32_t tag = (uint32_t)(hash >> 32);
    for (uint32_t at = tag & index->mask;; at = (at + 1) & index->mask) {
        const struct gs_index_entry *entry = &index->entries[at];
        if (!entry->slot_one)
            return GS_INDEX_NONE;
        if (entry->tag == tag && same(ctx, entry->slot_one - 1))
            return entry->slot_one - 1;
    }
}

struct gs_index_key {
    const char *records;
    size_t size;
    const char *text;
    uint64_t hash;
};

static inline bool gs_index_same_record(const void *ctx, uint32_t slot)
{
    const struct gs_index_key *key = ctx;
    const char *record = key->records + slot * key->size;
    return key->text ? strcmp(*(char *const *)record, key->text) == 0
                     : *(const uint64_t *)record == key->hash;
}

/* The record, of `size` bytes each, that begins with a pointer to a text that begins with this one.
 */
static inline uint32_t gs_index_find_text(const struct gs_index *index, const void *records,
                                          size_t size, const char *text)
{
    const struct gs_index_key key = {records, size, text, 0};
    return gs_index_find(index, gs_hash_text(text), gs_index_same_record, &key);
}

/* The record that begins with this hash. */
static inline uint32_t gs_index_find_hash(const struct gs_index *index, const void *records,
                                          size_t size, uint64_t hash)
{
    const struct gs_index_key key = {records, size, NULL, hash};
    return gs_index_find(index, hash, gs_index_same_record, &key);
}
