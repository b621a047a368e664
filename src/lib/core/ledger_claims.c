/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger_internal.h"

#include <stdio.h>

#include "gpushare/base/invariant.h"
#include "gpushare/model/budget.h"

uint32_t gs_ledger_claim_slot(const struct gs_ledger *ledger, const char *uid)
{
    return gs_index_find_text(&ledger->by_claim, ledger->claims, sizeof(*ledger->claims), uid);
}

/* What a node has. */
struct gpus {
    gs_gpu_mask present;
    gs_gpu_mask large;      /* as large as the claim says that it needs */
    gs_gpu_mask could_hold; /* as large as the least that it may have there */
};

/* Of a claim that is not believed: the least that it may have on a GPU. */
static uint32_t least_units(const struct gs_claim_body *claim)
{
    const uint32_t gpus = claim->gpus_max > claim->gpu_count ? claim->gpus_max : claim->gpu_count;
    const uint32_t least = claim->total_units / gpus;
    return least < claim->units ? least : claim->units;
}

static struct gpus gpus_of(const struct gs_node_view *view, const struct gs_claim_body *claim)
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
static gs_gpu_mask effective(const struct gs_ledger_node *node, const struct gs_claim_body *claim,
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
static void charge(struct gs_ledger_node *node, const struct gs_claim_body *claim, int sign)
{
    gs_view_charge(&node->view, claim->charged, claim->each, sign);
    node->view.cpu_used_milli += sign * (int64_t)claim->cpu_milli;
}

static void count_in(struct gs_ledger *ledger, struct gs_claim_body *claim)
{
    struct gs_ledger_node *node = &ledger->nodes[claim->slot];
    claim->charged = effective(node, claim, &claim->unplaced);
    GS_INVARIANT(claim->units && (claim->charged || !node->view.gpu_count),
                 "an allocation on a GPU node has at least one GPU");
    ledger->unplaced += claim->unplaced;
    ledger->reserved += claim->state == GS_CLAIM_RESERVED;
    charge(node, claim, 1);
}

static void count_out(struct gs_ledger *ledger, struct gs_claim_body *claim)
{
    const bool reserved = claim->state == GS_CLAIM_RESERVED;
    GS_INVARIANT(claim->units && ledger->unplaced >= claim->unplaced &&
                     ledger->reserved >= reserved,
                 "every removed allocation was counted when it was added");
    charge(&ledger->nodes[claim->slot], claim, -1);
    ledger->unplaced -= claim->unplaced;
    ledger->reserved -= reserved;
    claim->charged = 0;
}

void gs_ledger_recount_node(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_node *node = &ledger->nodes[slot];
    gs_view_clear(&node->view);
    for (uint32_t at = node->first_claim; at != GS_INDEX_NONE; at = ledger->claims[at].next) {
        struct gs_claim_body *claim = &ledger->claims[at].is;
        ledger->unplaced -= claim->unplaced;
        ledger->reserved -= claim->state == GS_CLAIM_RESERVED;
        node->view.cpu_used_milli -= claim->cpu_milli; /* count_in adds it again */
        count_in(ledger, claim);
    }
    gs_ledger_node_touch(ledger, node);
}

static void link_claim(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_claim *claim = &ledger->claims[slot];
    struct gs_ledger_node *node = &ledger->nodes[claim->is.slot];
    claim->prev = GS_INDEX_NONE;
    claim->next = node->first_claim;
    if (claim->next != GS_INDEX_NONE)
        ledger->claims[claim->next].prev = slot;
    node->first_claim = slot;
}

static void unlink_claim(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_claim *claim = &ledger->claims[slot];
    if (claim->next != GS_INDEX_NONE)
        ledger->claims[claim->next].prev = claim->prev;
    if (claim->prev != GS_INDEX_NONE)
        ledger->claims[claim->prev].next = claim->next;
    else
        ledger->nodes[claim->is.slot].first_claim = claim->next;
}

void gs_ledger_claim_drop(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_claim *claim = &ledger->claims[slot];
    uint32_t node = claim->is.slot;
    count_out(ledger, &claim->is);
    unlink_claim(ledger, slot);
    gs_index_remove(&ledger->by_claim, gs_hash_text(claim->text), slot);
    free(claim->text);
    free((void *)claim->is.labels);
    *claim = (struct gs_ledger_claim){0};
    gs_pool_give(&ledger->claim_pool, slot);
    gs_ledger_node_touch(ledger, &ledger->nodes[node]);
    gs_ledger_node_tidy(ledger, node);
}

void gs_claim_move(struct gs_claim_body *claim, gs_gpu_mask gpus)
{
    claim->gpus = gpus;
    claim->also = 0;
    claim->gpu_count = gs_gpu_mask_count(gpus);
    claim->units = gs_units_each(claim->total_units, claim->gpu_count);
}

/* Follows the node's list of moved pods. */
static void follow_moved(const struct gs_ledger *ledger, struct gs_ledger_claim *claim)
{
    const struct gs_ledger_node *node = &ledger->nodes[claim->is.slot];
    const uint64_t uid = gs_hash_text(claim->text);
    const struct gs_ledger_moved *moved =
        node->moved_count
            ? bsearch(&uid, node->moved, node->moved_count, sizeof(*moved), gs_hash_order)
            : NULL;
    if (!moved || !moved->gpus)
        return;
    gs_claim_move(&claim->is, moved->gpus);
    claim->is.from_moved = true;
}

void gs_ledger_follow_moved(struct gs_ledger *ledger, uint32_t slot)
{
    uint32_t at = ledger->nodes[slot].first_claim;
    for (; at != GS_INDEX_NONE; at = ledger->claims[at].next)
        follow_moved(ledger, &ledger->claims[at]);
}

static uint32_t total_of(const struct gs_claim_body *claim)
{
    const uint64_t total =
        claim->total_units ? claim->total_units : (uint64_t)claim->units * claim->gpu_count;
    return total < UINT32_MAX ? (uint32_t)total : UINT32_MAX;
}

/* Without memory for them it is under no budget until they change. */
static struct gs_labels *copy_labels(const struct gs_labels *labels)
{
    const size_t bytes = labels ? sizeof(*labels) + labels->count * sizeof(labels->all[0]) : 0;
    struct gs_labels *copy = bytes ? malloc(bytes) : NULL;
    return copy ? memcpy(copy, labels, bytes) : NULL;
}

/* What is said of it, on this node, becomes so; not counted. */
static void fill(const struct gs_ledger *ledger, struct gs_ledger_claim *to,
                 const struct gs_claim *from, uint32_t node)
{
    const struct gs_labels *before = to->is.labels; /* perhaps those */
    to->is = from->body;
    to->is.labels = copy_labels(from->labels);
    to->is.slot = node;
    to->is.total_units = total_of(&from->body);
    if (to->is.cores_pct > GS_CORES_PCT)
        to->is.cores_pct = GS_CORES_PCT;
    to->is.seen = true;
    free((void *)before);
    follow_moved(ledger, to);
}

/* A slot with the names alone; GS_INDEX_NONE: no memory. */
static uint32_t add_claim(struct gs_ledger *ledger, const struct gs_claim *claim)
{
    const char *ns = claim->ns ? claim->ns : "", *name = claim->name ? claim->name : "";
    const size_t uid_bytes = strlen(claim->uid) + 1, ns_bytes = strlen(ns) + 1;
    _cleanup_free_ char *text = malloc(uid_bytes + ns_bytes + strlen(name) + 1);
    if (!text || gs_index_reserve(&ledger->by_claim) < 0 ||
        gs_pool_reserve(&ledger->claims, &ledger->claim_pool, sizeof(*ledger->claims)) < 0)
        return GS_INDEX_NONE;
    memcpy(mempcpy(mempcpy(text, claim->uid, uid_bytes), ns, ns_bytes), name, strlen(name) + 1);
    const uint32_t slot = gs_pool_take(&ledger->claim_pool);
    ledger->claims[slot] = (struct gs_ledger_claim){.text = gs_steal(&text)};
    gs_index_insert(&ledger->by_claim, gs_hash_text(claim->uid), slot);
    return slot;
}

int gs_ledger_set_claim(struct gs_ledger *ledger, const struct gs_claim *claim,
                        struct gs_error *err)
{
    if (!claim->uid || !claim->uid[0] || !claim->node || !claim->node[0] || !claim->units ||
        !claim->gpu_count || claim->gpu_count > GS_GPUS_MAX || claim->gpus_max > GS_GPUS_MAX)
        return gs_fail(err, GS_EINVAL, "an allocation needs a UID, a node, units and 1 to %d GPUs",
                       GS_GPUS_MAX);
    const uint32_t node = gs_ledger_node_need(ledger, claim->node);
    if (node == GS_INDEX_NONE)
        return gs_fail_nomem(err);
    uint32_t slot = gs_ledger_claim_slot(ledger, claim->uid), before = node;
    if (slot != GS_INDEX_NONE) {
        before = ledger->claims[slot].is.slot;
        count_out(ledger, &ledger->claims[slot].is);
        unlink_claim(ledger, slot);
    } else if ((slot = add_claim(ledger, claim)) == GS_INDEX_NONE) {
        gs_ledger_node_tidy(ledger, node);
        return gs_fail_nomem(err);
    }
    fill(ledger, &ledger->claims[slot], claim, node);
    link_claim(ledger, slot);
    count_in(ledger, &ledger->claims[slot].is);
    gs_ledger_node_touch(ledger, &ledger->nodes[node]);
    if (before != node) {
        gs_ledger_node_touch(ledger, &ledger->nodes[before]);
        gs_ledger_node_tidy(ledger, before);
    }
    gs_ledger_remove_other(ledger, claim->uid);
    gs_ledger_release_hold(ledger, claim->uid); /* last: the UID may be borrowed from the hold */
    return 0;
}

void gs_ledger_place(struct gs_ledger *ledger, const char *uid, gs_gpu_mask gpus)
{
    uint32_t slot = gs_ledger_claim_slot(ledger, uid);
    if (slot == GS_INDEX_NONE || ledger->claims[slot].is.from_moved || !gpus)
        return;
    struct gs_claim_body *claim = &ledger->claims[slot].is;
    count_out(ledger, claim);
    gs_claim_move(claim, gpus);
    count_in(ledger, claim);
    gs_ledger_node_touch(ledger, &ledger->nodes[claim->slot]);
}

bool gs_ledger_confirm(struct gs_ledger *ledger, const char *uid)
{
    uint32_t slot = gs_ledger_claim_slot(ledger, uid);
    if (slot == GS_INDEX_NONE)
        return false;
    struct gs_claim_body *claim = &ledger->claims[slot].is;
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
    if (ret_slot)
        *ret_slot = ledger->claims[slot].is.slot;
    gs_ledger_claim_drop(ledger, slot);
    return true;
}

bool gs_ledger_undo(struct gs_ledger *ledger, const char *uid)
{
    uint32_t slot = gs_ledger_claim_slot(ledger, uid);
    if (slot == GS_INDEX_NONE || ledger->claims[slot].is.state != GS_CLAIM_RESERVED)
        return false;
    gs_ledger_claim_drop(ledger, slot);
    return true;
}

static struct gs_claim claim_out(const struct gs_ledger *ledger, uint32_t slot)
{
    const struct gs_ledger_claim *from = &ledger->claims[slot];
    const char *ns = from->text + strlen(from->text) + 1;
    return (struct gs_claim){.uid = from->text,
                             .ns = ns,
                             .name = ns + strlen(ns) + 1,
                             .node = ledger->nodes[from->is.slot].name.at,
                             .body = from->is};
}

bool gs_ledger_find_claim(const struct gs_ledger *ledger, const char *uid, struct gs_claim *ret)
{
    uint32_t slot = gs_ledger_claim_slot(ledger, uid);
    if (slot == GS_INDEX_NONE)
        return false;
    *ret = claim_out(ledger, slot);
    return true;
}

void gs_ledger_each_claim(const struct gs_ledger *ledger, uint32_t slot,
                          bool (*each)(void *ctx, const struct gs_claim *claim), void *ctx)
{
    uint32_t at = ledger->nodes[slot].first_claim;
    for (; at != GS_INDEX_NONE; at = ledger->claims[at].next) {
        const struct gs_claim claim = claim_out(ledger, at);
        if (!each(ctx, &claim))
            return;
    }
}

void gs_ledger_each(const struct gs_ledger *ledger,
                    bool (*each)(void *ctx, const struct gs_claim *claim), void *ctx)
{
    for (uint32_t i = 0; i < ledger->claim_pool.count; i++) {
        if (!ledger->claims[i].text)
            continue;
        const struct gs_claim claim = claim_out(ledger, i);
        if (!each(ctx, &claim))
            return;
    }
}

void gs_ledger_begin_pods(struct gs_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->claim_pool.count; i++) {
        ledger->claims[i].is.seen = false;
        ledger->claims[i].is.revision = 0; /* a restored API server counts from less: believe it */
    }
    for (uint32_t i = 0; i < ledger->other_pool.count; i++)
        ledger->others[i].seen = 0;
    for (uint32_t i = 0; i < ledger->hold_pool.count; i++)
        ledger->holds[i].seen = false;
}

uint32_t gs_ledger_sweep_pods(struct gs_ledger *ledger)
{
    uint32_t gone = 0;
    for (uint32_t i = 0; i < ledger->claim_pool.count; i++) {
        const struct gs_ledger_claim *claim = &ledger->claims[i];
        if (!claim->text || claim->is.seen || claim->is.state == GS_CLAIM_RESERVED)
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
    struct gs_gpu_state gpus[GS_GPUS_MAX];
    uint32_t differing = 0;
    bool unplaced;
    if (!node->present)
        return 0;
    struct gs_node_view counted = gs_view_copy(&node->view, gpus);
    gs_view_clear(&counted);
    for (uint32_t at = node->first_claim; at != GS_INDEX_NONE; at = ledger->claims[at].next)
        gs_view_charge(&counted, effective(node, &ledger->claims[at].is, &unplaced),
                       ledger->claims[at].is.each, 1);
    for (uint32_t i = 0; i < counted.gpu_count; i++) {
        const struct gs_gpu_state *is = &node->view.gpus[i], *was = &gpus[i];
        differing += is->used_units != was->used_units || is->pods != was->pods ||
                     is->used_cores_pct != was->used_cores_pct;
    }
    return differing;
}
