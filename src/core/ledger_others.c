/* SPDX-License-Identifier: Apache-2.0 */
/* Pods without GPU memory: only their CPU on GPU nodes, in 32 bytes each. */
#include "ledger_internal.h"

#include <string.h>

struct uid_bits {
    uint64_t hi, lo;
};

/* `len` lower-case hexadecimal digits behind those before; false: they are none. No branch on any
 * of them: half a million UIDs are read in a row when lists are loaded. */
static inline bool add_digits(uint64_t *bits, const char *at, size_t len)
{
    unsigned odd = 0;
    for (size_t i = 0; i < len; i++) {
        const unsigned c = (unsigned char)at[i];
        odd |= (c - '0' > 9) & (c - 'a' > 5);
        *bits = *bits << 4 | ((c & 0xf) + (c >> 6) * 9);
    }
    return !odd;
}

/* A UUID as API servers write it is its 128 bits; any other text two different hashes of it. */
static struct uid_bits bits_of(const char *uid)
{
    struct uid_bits bits = {0};
    const size_t len = strlen(uid);
    if (len == 36 && uid[8] == '-' && uid[13] == '-' && uid[18] == '-' && uid[23] == '-' &&
        add_digits(&bits.hi, uid, 8) && add_digits(&bits.hi, uid + 9, 4) &&
        add_digits(&bits.hi, uid + 14, 4) && add_digits(&bits.lo, uid + 19, 4) &&
        add_digits(&bits.lo, uid + 24, 12))
        return bits;
    return (struct uid_bits){gs_hash_lasting(uid, len), gs_hash_bytes(uid, len)};
}

static uint64_t hash_bits(struct uid_bits bits)
{
    return gs_hash_bytes(&bits, sizeof(bits));
}

struct other_key {
    const struct gs_ledger *ledger;
    struct uid_bits bits;
};

static bool same_other(const void *ctx, uint32_t slot)
{
    const struct other_key *key = ctx;
    const struct gs_ledger_other *other = &key->ledger->others[slot];
    return other->uid_hi == key->bits.hi && other->uid_lo == key->bits.lo;
}

static void add_cpu(struct gs_ledger *ledger, uint32_t node, int64_t cpu_milli)
{
    ledger->nodes[node].view.cpu_used_milli += cpu_milli;
    gs_ledger_node_touch(ledger, &ledger->nodes[node]);
}

static void drop_other(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_other *other = &ledger->others[slot];
    uint32_t node = other->node;
    gs_index_remove(&ledger->by_other, hash_bits((struct uid_bits){other->uid_hi, other->uid_lo}),
                    slot);
    add_cpu(ledger, node, -(int64_t)other->cpu_milli);
    *other = (struct gs_ledger_other){.node = GS_INDEX_NONE};
    gs_pool_give(&ledger->other_pool, slot);
    ledger->nodes[node].others--;
    gs_ledger_node_tidy(ledger, node);
}

bool gs_ledger_remove_other(struct gs_ledger *ledger, const char *uid)
{
    if (!ledger->by_other.count)
        return false;
    struct other_key key = {ledger, bits_of(uid)};
    uint32_t slot = gs_index_find(&ledger->by_other, hash_bits(key.bits), same_other, &key);
    if (slot == GS_INDEX_NONE)
        return false;
    drop_other(ledger, slot);
    return true;
}

int gs_ledger_set_other(struct gs_ledger *ledger, const char *uid, const char *node_name,
                        int64_t cpu_milli, struct gs_error *err)
{
    uint32_t node = gs_ledger_node_slot(ledger, gs_slice_of(node_name));
    if (node == GS_INDEX_NONE || !ledger->nodes[node].view.gpu_count) {
        gs_ledger_remove_other(ledger, uid);
        return 0;
    }
    struct other_key key = {ledger, bits_of(uid)};
    uint64_t hash = hash_bits(key.bits);
    uint32_t cpu = cpu_milli < 0 ? 0 : cpu_milli > INT32_MAX ? INT32_MAX : (uint32_t)cpu_milli;
    uint32_t slot = gs_index_find(&ledger->by_other, hash, same_other, &key);
    if (slot != GS_INDEX_NONE && ledger->others[slot].node == node) {
        struct gs_ledger_other *old = &ledger->others[slot];
        int64_t change = (int64_t)cpu - (int64_t)old->cpu_milli;
        old->cpu_milli = cpu & INT32_MAX;
        old->seen = 1;
        if (change)
            add_cpu(ledger, node, change);
        return 0;
    }
    if (gs_index_reserve(&ledger->by_other) < 0 ||
        gs_pool_reserve(&ledger->others, &ledger->other_pool, sizeof(*ledger->others)) < 0)
        return gs_fail_nomem(err);
    if (slot != GS_INDEX_NONE)
        drop_other(ledger, slot);
    slot = gs_pool_take(&ledger->other_pool);
    ledger->others[slot] =
        (struct gs_ledger_other){key.bits.hi, key.bits.lo, node, cpu & INT32_MAX, 1};
    gs_index_insert(&ledger->by_other, hash, slot);
    ledger->nodes[node].others++;
    add_cpu(ledger, node, cpu);
    return 0;
}

void gs_ledger_sweep_others(struct gs_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->other_pool.count; i++) {
        if (ledger->others[i].node != GS_INDEX_NONE && !ledger->others[i].seen)
            drop_other(ledger, i);
    }
}

void gs_ledger_forget_others(struct gs_ledger *ledger, uint32_t slot)
{
    for (uint32_t i = 0; ledger->nodes[slot].others && i < ledger->other_pool.count; i++) {
        if (ledger->others[i].node != slot)
            continue;
        ledger->nodes[slot].others++; /* keep the record from being given back under us */
        drop_other(ledger, i);
        ledger->nodes[slot].others--;
    }
}
