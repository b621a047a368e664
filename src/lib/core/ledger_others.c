/* SPDX-License-Identifier: Apache-2.0 */
/* Pods without GPU memory: only their CPU, in 24 bytes each. */
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

static void leave_node(struct gs_ledger *ledger, const struct gs_ledger_other *other)
{
    add_cpu(ledger, other->node, -(int64_t)other->cpu_milli);
    ledger->nodes[other->node].others--;
    gs_ledger_node_tidy(ledger, other->node);
}

static void drop_other(struct gs_ledger *ledger, uint32_t slot)
{
    const struct gs_ledger_other other = ledger->others[slot];
    gs_index_remove(&ledger->by_other, other.uid, slot);
    ledger->others[slot] = (struct gs_ledger_other){.node = GS_INDEX_NONE};
    gs_pool_give(&ledger->other_pool, slot);
    leave_node(ledger, &other);
}

/* On no node yet. */
static uint32_t add_other(struct gs_ledger *ledger, uint64_t hash)
{
    if (gs_index_reserve(&ledger->by_other) < 0 ||
        gs_pool_reserve(&ledger->others, &ledger->other_pool, sizeof(*ledger->others)) < 0)
        return GS_INDEX_NONE;
    const uint32_t slot = gs_pool_take(&ledger->other_pool);
    ledger->others[slot] = (struct gs_ledger_other){.uid = hash, .node = GS_INDEX_NONE};
    gs_index_insert(&ledger->by_other, hash, slot);
    return slot;
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
    const uint64_t hash = gs_hash_text(uid);
    const uint32_t cpu = cpu_milli < 0           ? 0
                         : cpu_milli > INT32_MAX ? INT32_MAX
                                                 : (uint32_t)cpu_milli;
    const uint32_t node = gs_ledger_node_need(ledger, node_name);
    if (node == GS_INDEX_NONE)
        return gs_fail_nomem(err);
    uint32_t slot = find_other(ledger, hash);
    if (slot == GS_INDEX_NONE && (slot = add_other(ledger, hash)) == GS_INDEX_NONE) {
        gs_ledger_node_tidy(ledger, node);
        return gs_fail_nomem(err);
    }
    const struct gs_ledger_other before = ledger->others[slot];
    ledger->others[slot] = (struct gs_ledger_other){hash, node, cpu & INT32_MAX, 1};
    if (before.node == node && before.cpu_milli == cpu)
        return 0;
    ledger->nodes[node].others++;
    add_cpu(ledger, node, cpu);
    if (before.node != GS_INDEX_NONE)
        leave_node(ledger, &before);
    return 0;
}

void gs_ledger_sweep_others(struct gs_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->other_pool.count; i++) {
        if (ledger->others[i].node != GS_INDEX_NONE && !ledger->others[i].seen)
            drop_other(ledger, i);
    }
}
