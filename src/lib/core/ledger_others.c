/* SPDX-License-Identifier: Apache-2.0 */
/* Pods without GPU memory: only their CPU on GPU nodes, in 24 bytes each. */
#include "ledger_internal.h"

static uint32_t find_other(const struct gs_ledger *ledger, uint64_t uid)
{
    return gs_index_find_hash(&ledger->by_other, ledger->others, sizeof(*ledger->others), uid);
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
    gs_index_remove(&ledger->by_other, other->uid, slot);
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
    uint32_t slot = find_other(ledger, gs_hash_text(uid));
    if (slot == GS_INDEX_NONE)
        return false;
    drop_other(ledger, slot);
    return true;
}

int gs_ledger_set_other(struct gs_ledger *ledger, const char *uid, const char *node_name,
                        int64_t cpu_milli, struct gs_error *err)
{
    uint32_t node = gs_ledger_node_slot(ledger, node_name);
    if (node == GS_INDEX_NONE || !ledger->nodes[node].view.gpu_count) {
        gs_ledger_remove_other(ledger, uid);
        return 0;
    }
    const uint64_t hash = gs_hash_text(uid);
    uint32_t cpu = cpu_milli < 0 ? 0 : cpu_milli > INT32_MAX ? INT32_MAX : (uint32_t)cpu_milli;
    uint32_t slot = find_other(ledger, hash);
    if (slot != GS_INDEX_NONE && ledger->others[slot].node == node &&
        ledger->others[slot].cpu_milli == cpu) {
        ledger->others[slot].seen = 1;
        return 0;
    }
    if (gs_index_reserve(&ledger->by_other) < 0 ||
        gs_pool_reserve(&ledger->others, &ledger->other_pool, sizeof(*ledger->others)) < 0)
        return gs_fail_nomem(err);
    if (slot != GS_INDEX_NONE)
        drop_other(ledger, slot);
    slot = gs_pool_take(&ledger->other_pool);
    ledger->others[slot] = (struct gs_ledger_other){hash, node, cpu & INT32_MAX, 1};
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
