/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/invariant.h"
#include "gpushare/model/budget.h"

struct uid_key {
    const struct gs_ledger *ledger;
    const char *uid;
};

static bool same_claim(const void *ctx, uint32_t slot)
{
    const struct uid_key *key = ctx;
    return strcmp(key->ledger->claims[slot]->is.uid, key->uid) == 0;
}

uint32_t gs_ledger_claim_slot(const struct gs_ledger *ledger, const char *uid)
{
    struct uid_key key = {ledger, uid};
    return gs_index_find(&ledger->by_claim, gs_hash_text(uid), same_claim, &key);
}

/* What a node has. */
struct gpus {
    gs_gpu_mask present;
    gs_gpu_mask large;      /* as large as the claim says that it needs */
    gs_gpu_mask could_hold; /* as large as the least that it may have there */
};

/* Of a claim that is not believed: the least that it may have on a GPU. */
static uint32_t least_units(const struct gs_claim *claim)
{
    const uint32_t gpus = claim->gpus_max > claim->gpu_count ? claim->gpus_max : claim->gpu_count;
    const uint32_t least = claim->total_units / gpus;
    return least < claim->units ? least : claim->units;
}

static struct gpus gpus_of(const struct gs_node_view *view, const struct gs_claim *claim)
{
    const uint32_t least = least_units(claim);
    struct gpus gpus = {0};
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const gs_gpu_mask bit = GS_GPU_BIT(view->gpus[i].idx);
        gpus.present |= bit;
        gpus.large |= view->gpus[i].total_units >= claim->units ? bit : 0;
        gpus.could_hold |= view->gpus[i].total_units >= least ? bit : 0;
    }
    return gpus;
}

/* Where a claim counts on a node that has these GPUs. */
static gs_gpu_mask effective(const struct gs_ledger_node *node, const struct gs_claim *claim,
                             bool *ret_unplaced)
{
    const struct gpus has = gpus_of(&node->view, claim);
    const gs_gpu_mask also = claim->also & has.present & ~claim->gpus;
    bool believed = claim->gpus && gs_gpu_mask_count(claim->gpus) == claim->gpu_count;
    if (!has.present) { /* not reported yet: nothing to contradict it, nothing to charge */
        *ret_unplaced = !believed;
        return 0;
    }
    believed = believed && !(claim->gpus & ~(claim->from_moved ? has.present : has.large));
    *ret_unplaced = !believed || also;
    if (believed)
        return claim->gpus | also;
    /* Where it is not is not known: it never leaves a GPU that may hold it. */
    const gs_gpu_mask charged = has.could_hold | (claim->gpus & has.present) | also;
    return charged ? charged : has.present;
}

/* Adds (sign 1) or takes (sign -1) a claim's charge on the accounts of its node. */
static void charge(struct gs_ledger *ledger, struct gs_ledger_claim *row, int sign)
{
    struct gs_node_view *view = &ledger->nodes[row->node].view;
    const struct gs_claim *claim = &row->is;
    gs_view_charge(view, claim->charged, sign * (int64_t)claim->units,
                   sign * (int32_t)claim->cores_pct);
    view->cpu_used_milli += sign * (int64_t)claim->cpu_milli;
    ledger->unplaced += (uint32_t)sign * claim->unplaced;
    ledger->reserved += (uint32_t)sign * (claim->state == GS_CLAIM_RESERVED);
}

static void count_in(struct gs_ledger *ledger, struct gs_ledger_claim *row)
{
    const struct gs_ledger_node *node = &ledger->nodes[row->node];
    bool unplaced;
    row->is.charged = effective(node, &row->is, &unplaced);
    row->is.unplaced = unplaced;
    GS_INVARIANT(row->is.units && (row->is.charged || !node->view.gpu_count),
                 "an allocation on a GPU node has at least one GPU");
    charge(ledger, row, 1);
}

static void count_out(struct gs_ledger *ledger, struct gs_ledger_claim *row)
{
    GS_INVARIANT(row->is.units && ledger->unplaced >= row->is.unplaced &&
                     ledger->reserved >= (row->is.state == GS_CLAIM_RESERVED),
                 "every removed allocation was counted when it was added");
    charge(ledger, row, -1);
}

void gs_ledger_recount_node(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_node *node = &ledger->nodes[slot];
    for (uint32_t i = 0; i < node->view.gpu_count; i++) {
        struct gs_gpu_state *gpu = &node->view.gpus[i];
        gpu->used_units = 0;
        gpu->pods = 0;
        gpu->free_units = gpu->total_units;
        gpu->used_cores_pct = 0;
        gpu->free_cores_pct = GS_CORES_PCT;
    }
    for (uint32_t at = node->first_claim; at != GS_INDEX_NONE; at = ledger->claims[at]->next) {
        ledger->claims[at]->is.charged = 0; /* its GPUs have nothing of it any more */
        count_out(ledger, ledger->claims[at]);
        count_in(ledger, ledger->claims[at]);
    }
    gs_ledger_node_touch(ledger, node);
}

static void link_claim(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_claim *claim = ledger->claims[slot];
    struct gs_ledger_node *node = &ledger->nodes[claim->node];
    claim->prev = GS_INDEX_NONE;
    claim->next = node->first_claim;
    if (claim->next != GS_INDEX_NONE)
        ledger->claims[claim->next]->prev = slot;
    node->first_claim = slot;
}

static void unlink_claim(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_claim *claim = ledger->claims[slot];
    if (claim->next != GS_INDEX_NONE)
        ledger->claims[claim->next]->prev = claim->prev;
    if (claim->prev != GS_INDEX_NONE)
        ledger->claims[claim->prev]->next = claim->next;
    else
        ledger->nodes[claim->node].first_claim = claim->next;
}

void gs_ledger_claim_drop(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_claim *claim = ledger->claims[slot];
    uint32_t node = claim->node;
    count_out(ledger, claim);
    unlink_claim(ledger, slot);
    gs_index_remove(&ledger->by_claim, gs_hash_text(claim->is.uid), slot);
    free((void *)claim->is.labels);
    free(claim);
    ledger->claims[slot] = NULL;
    gs_pool_give(&ledger->claim_pool, slot);
    gs_ledger_node_touch(ledger, &ledger->nodes[node]);
    gs_ledger_node_tidy(ledger, node);
}

/* It is on these GPUs and nowhere else, its whole memory divided among them. */
static void put_on(struct gs_claim *claim, gs_gpu_mask gpus)
{
    claim->gpus = gpus;
    claim->also = 0;
    claim->gpu_count = gs_gpu_mask_count(gpus);
    claim->units = gs_units_each(claim->total_units, claim->gpu_count);
}

/* Follows the node's list of moved pods. */
static void follow_moved(const struct gs_ledger *ledger, struct gs_ledger_claim *claim)
{
    const struct gs_ledger_node *node = &ledger->nodes[claim->node];
    const struct gs_moved *moved = gs_moved_find(node->moved, node->moved_count, claim->is.uid);
    if (!moved || !moved->gpus)
        return;
    put_on(&claim->is, moved->gpus);
    claim->is.from_moved = true;
}

void gs_ledger_follow_moved(struct gs_ledger *ledger, uint32_t slot)
{
    uint32_t at = ledger->nodes[slot].first_claim;
    for (; at != GS_INDEX_NONE; at = ledger->claims[at]->next)
        follow_moved(ledger, ledger->claims[at]);
}

/* caller frees. Without memory for them it is under no budget until they change. */
static struct gs_labels *copy_labels(const struct gs_labels *labels)
{
    const size_t bytes = labels ? sizeof(*labels) + labels->count * sizeof(labels->all[0]) : 0;
    struct gs_labels *copy = bytes ? malloc(bytes) : NULL;
    return copy ? memcpy(copy, labels, bytes) : NULL;
}

/* Takes over what may change over a claim's life; links and accounts are the caller's. */
static void fill(struct gs_ledger *ledger, struct gs_ledger_claim *to, const struct gs_claim *from,
                 uint32_t node)
{
    const uint64_t total =
        from->total_units ? from->total_units : (uint64_t)from->units * from->gpu_count;
    struct gs_claim is = *from;
    is.uid = to->is.uid;
    is.ns = to->is.ns;
    is.name = to->is.name;
    is.node = ledger->nodes[node].name;
    is.total_units = total < UINT32_MAX ? (uint32_t)total : UINT32_MAX;
    is.cores_pct = is.cores_pct < GS_CORES_PCT ? is.cores_pct : GS_CORES_PCT;
    is.labels = copy_labels(from->labels);
    is.seen = true;
    free((void *)to->is.labels);
    to->is = is;
    to->node = node;
}

/* A record with texts and nothing else, for a pod that has none; GS_INDEX_NONE: out of memory. */
static uint32_t new_claim(struct gs_ledger *ledger, const struct gs_claim *claim)
{
    struct gs_claim is = {.uid = claim->uid, .ns = claim->ns, .name = claim->name};
    const char **const texts[] = {&is.uid, &is.ns, &is.name};
    if (gs_index_reserve(&ledger->by_claim) < 0 ||
        gs_pool_reserve(&ledger->claims, &ledger->claim_pool, sizeof(*ledger->claims)) < 0)
        return GS_INDEX_NONE;
    struct gs_ledger_claim *record = gs_ledger_record(sizeof(*record), texts, 3);
    if (!record)
        return GS_INDEX_NONE;
    uint32_t slot = gs_pool_take(&ledger->claim_pool);
    record->is = is;
    ledger->claims[slot] = record;
    gs_index_insert(&ledger->by_claim, gs_hash_text(is.uid), slot);
    return slot;
}

int gs_ledger_set_claim(struct gs_ledger *ledger, const struct gs_claim *claim,
                        struct gs_error *err)
{
    if (!claim->uid || !claim->uid[0] || !claim->node || !claim->node[0] || !claim->units ||
        !claim->gpu_count || claim->gpu_count > GS_GPUS_MAX || claim->gpus_max > GS_GPUS_MAX)
        return gs_fail(err, GS_EINVAL, "an allocation needs a UID, a node, units and 1 to %d GPUs",
                       GS_GPUS_MAX);
    uint32_t node = gs_ledger_node_need(ledger, gs_slice_of(claim->node)), old_node = node;
    if (node == GS_INDEX_NONE)
        return gs_fail_nomem(err);
    uint32_t slot = gs_ledger_claim_slot(ledger, claim->uid);
    if (slot != GS_INDEX_NONE) {
        old_node = ledger->claims[slot]->node;
        count_out(ledger, ledger->claims[slot]);
        unlink_claim(ledger, slot);
    } else if ((slot = new_claim(ledger, claim)) == GS_INDEX_NONE) {
        gs_ledger_node_tidy(ledger, node);
        return gs_fail_nomem(err);
    }
    fill(ledger, ledger->claims[slot], claim, node);
    follow_moved(ledger, ledger->claims[slot]);
    link_claim(ledger, slot);
    count_in(ledger, ledger->claims[slot]);
    gs_ledger_node_touch(ledger, &ledger->nodes[node]);
    if (old_node != node) {
        gs_ledger_node_touch(ledger, &ledger->nodes[old_node]);
        gs_ledger_node_tidy(ledger, old_node);
    }
    gs_ledger_remove_other(ledger, claim->uid);
    gs_ledger_release_hold(ledger, claim->uid); /* last: the UID may be borrowed from the hold */
    return 0;
}

void gs_ledger_place(struct gs_ledger *ledger, const char *uid, gs_gpu_mask gpus)
{
    uint32_t slot = gs_ledger_claim_slot(ledger, uid);
    if (slot == GS_INDEX_NONE || ledger->claims[slot]->is.from_moved || !gpus)
        return;
    struct gs_ledger_claim *claim = ledger->claims[slot];
    count_out(ledger, claim);
    put_on(&claim->is, gpus);
    count_in(ledger, claim);
    gs_ledger_node_touch(ledger, &ledger->nodes[claim->node]);
}

bool gs_ledger_confirm(struct gs_ledger *ledger, const char *uid)
{
    uint32_t slot = gs_ledger_claim_slot(ledger, uid);
    if (slot == GS_INDEX_NONE)
        return false;
    struct gs_claim *claim = &ledger->claims[slot]->is;
    ledger->reserved -= claim->state == GS_CLAIM_RESERVED;
    claim->state = GS_CLAIM_CONFIRMED;
    claim->seen = true; /* a list that began before the bind does not know the pod yet */
    return true;
}

bool gs_ledger_remove(struct gs_ledger *ledger, const char *uid, uint32_t *ret_slot)
{
    gs_ledger_remove_other(ledger, uid);
    uint32_t slot = gs_ledger_claim_slot(ledger, uid);
    if (slot == GS_INDEX_NONE) {
        gs_ledger_release_hold(ledger, uid); /* a pod with a claim has none */
        return false;
    }
    uint32_t node = ledger->claims[slot]->node;
    if (ret_slot)
        *ret_slot = ledger->nodes[node].present ? node : GS_INDEX_NONE;
    gs_ledger_claim_drop(ledger, slot);
    return true;
}

bool gs_ledger_undo(struct gs_ledger *ledger, const char *uid)
{
    uint32_t slot = gs_ledger_claim_slot(ledger, uid);
    if (slot == GS_INDEX_NONE || ledger->claims[slot]->is.state != GS_CLAIM_RESERVED)
        return false;
    gs_ledger_claim_drop(ledger, slot);
    return true;
}

bool gs_ledger_find_claim(const struct gs_ledger *ledger, const char *uid, struct gs_claim *ret)
{
    uint32_t slot = gs_ledger_claim_slot(ledger, uid);
    if (slot == GS_INDEX_NONE)
        return false;
    *ret = ledger->claims[slot]->is;
    return true;
}

void gs_ledger_each_claim(const struct gs_ledger *ledger, uint32_t slot,
                          bool (*each)(void *ctx, const struct gs_claim *claim), void *ctx)
{
    uint32_t at = ledger->nodes[slot].first_claim;
    while (at != GS_INDEX_NONE && each(ctx, &ledger->claims[at]->is))
        at = ledger->claims[at]->next;
}

void gs_ledger_each(const struct gs_ledger *ledger,
                    bool (*each)(void *ctx, const struct gs_claim *claim), void *ctx)
{
    for (uint32_t i = 0; i < ledger->claim_pool.count; i++) {
        if (ledger->claims[i] && !each(ctx, &ledger->claims[i]->is))
            return;
    }
}

void gs_ledger_begin_pods(struct gs_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->claim_pool.count; i++) {
        if (!ledger->claims[i])
            continue;
        ledger->claims[i]->is.seen = false;
        ledger->claims[i]->is.revision = 0; /* a restored API server counts from less: believe it */
    }
    for (uint32_t i = 0; i < ledger->other_pool.count; i++)
        ledger->others[i].seen = 0;
    for (uint32_t i = 0; i < ledger->hold_pool.count; i++) {
        if (ledger->holds[i])
            ledger->holds[i]->seen = false;
    }
}

uint32_t gs_ledger_sweep_pods(struct gs_ledger *ledger)
{
    uint32_t gone = 0;
    for (uint32_t i = 0; i < ledger->claim_pool.count; i++) {
        const struct gs_ledger_claim *claim = ledger->claims[i];
        if (!claim || claim->is.seen || claim->is.state == GS_CLAIM_RESERVED)
            continue;
        gs_ledger_claim_drop(ledger, i);
        gone++;
    }
    gs_ledger_sweep_others(ledger);
    gs_ledger_sweep_holds(ledger);
    return gone;
}

uint32_t gs_ledger_audit(const struct gs_ledger *ledger, uint32_t slot)
{
    const struct gs_ledger_node *node = &ledger->nodes[slot];
    uint64_t used[GS_GPUS_MAX] = {0};
    uint32_t pods[GS_GPUS_MAX] = {0}, cores_pct[GS_GPUS_MAX] = {0}, differing = 0;
    if (!node->name)
        return 0;
    for (uint32_t at = node->first_claim; at != GS_INDEX_NONE; at = ledger->claims[at]->next) {
        bool unplaced;
        uint32_t idx;
        const struct gs_claim *claim = &ledger->claims[at]->is;
        GS_FOR_EACH_GPU (idx, effective(node, claim, &unplaced)) {
            used[idx] += claim->units;
            cores_pct[idx] += claim->cores_pct;
            pods[idx]++;
        }
    }
    for (uint32_t i = 0; i < node->view.gpu_count; i++) {
        const struct gs_gpu_state *gpu = &node->view.gpus[i];
        differing += used[gpu->idx] != gpu->used_units || pods[gpu->idx] != gpu->pods ||
                     cores_pct[gpu->idx] != gpu->used_cores_pct;
    }
    return differing;
}
