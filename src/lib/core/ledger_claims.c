/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/invariant.h"
#include "gpushare/model/budget.h"

uint32_t gs_ledger_claim_slot(const struct gs_ledger *ledger, const char *uid)
{
    return gs_ledger_find(&ledger->by_claim, ledger->claims, sizeof(*ledger->claims), uid);
}

/* What a node has. */
struct gpus {
    gs_gpu_mask present;
    gs_gpu_mask large;      /* as large as the claim says that it needs */
    gs_gpu_mask could_hold; /* as large as the least that it may have there */
};

/* Of a claim that is not believed: the least that it may have on a GPU. */
static uint32_t least_units(const struct gs_ledger_claim *claim)
{
    const uint32_t gpus = claim->gpus_max > claim->gpu_count ? claim->gpus_max : claim->gpu_count;
    const uint32_t least = claim->total_units / gpus;
    return least < claim->units ? least : claim->units;
}

static struct gpus gpus_of(const struct gs_node_view *view, const struct gs_ledger_claim *claim)
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
static gs_gpu_mask effective(const struct gs_ledger_node *node, const struct gs_ledger_claim *claim,
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
static void charge(struct gs_ledger_node *node, const struct gs_ledger_claim *claim, int sign)
{
    gs_view_charge(&node->view, claim->charged, claim->each, sign);
    node->view.cpu_used_milli += sign * (int64_t)claim->cpu_milli;
}

static void count_in(struct gs_ledger *ledger, struct gs_ledger_claim *claim)
{
    struct gs_ledger_node *node = &ledger->nodes[claim->node];
    claim->charged = effective(node, claim, &claim->unplaced);
    GS_INVARIANT(claim->units && (claim->charged || !node->view.gpu_count),
                 "an allocation on a GPU node has at least one GPU");
    ledger->unplaced += claim->unplaced;
    ledger->reserved += claim->state == GS_CLAIM_RESERVED;
    charge(node, claim, 1);
}

static void count_out(struct gs_ledger *ledger, struct gs_ledger_claim *claim)
{
    const bool reserved = claim->state == GS_CLAIM_RESERVED;
    GS_INVARIANT(claim->units && ledger->unplaced >= claim->unplaced &&
                     ledger->reserved >= reserved,
                 "every removed allocation was counted when it was added");
    charge(&ledger->nodes[claim->node], claim, -1);
    ledger->unplaced -= claim->unplaced;
    ledger->reserved -= reserved;
    claim->charged = 0;
}

void gs_ledger_recount_node(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_node *node = &ledger->nodes[slot];
    gs_view_clear(&node->view);
    for (uint32_t at = node->first_claim; at != GS_INDEX_NONE; at = ledger->claims[at].next) {
        struct gs_ledger_claim *claim = &ledger->claims[at];
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
    struct gs_ledger_node *node = &ledger->nodes[claim->node];
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
        ledger->nodes[claim->node].first_claim = claim->next;
}

void gs_ledger_claim_drop(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_claim *claim = &ledger->claims[slot];
    uint32_t node = claim->node;
    count_out(ledger, claim);
    unlink_claim(ledger, slot);
    gs_index_remove(&ledger->by_claim, gs_hash_text(claim->text), slot);
    free(claim->text);
    free(claim->labels);
    *claim = (struct gs_ledger_claim){0};
    gs_pool_give(&ledger->claim_pool, slot);
    gs_ledger_node_touch(ledger, &ledger->nodes[node]);
    gs_ledger_node_tidy(ledger, node);
}

/* It is on these GPUs and nowhere else, its whole memory divided among them. */
static void put_on(struct gs_ledger_claim *claim, gs_gpu_mask gpus)
{
    claim->gpus = gpus;
    claim->also = 0;
    claim->gpu_count = (uint8_t)gs_gpu_mask_count(gpus);
    claim->units = gs_units_each(claim->total_units, claim->gpu_count);
}

/* Follows the node's list of moved pods. */
static void follow_moved(const struct gs_ledger *ledger, struct gs_ledger_claim *claim)
{
    const struct gs_ledger_node *node = &ledger->nodes[claim->node];
    const uint64_t uid = gs_hash_text(claim->text);
    const struct gs_ledger_moved *moved =
        node->moved_count
            ? bsearch(&uid, node->moved, node->moved_count, sizeof(*moved), gs_hash_order)
            : NULL;
    if (!moved || !moved->gpus)
        return;
    put_on(claim, moved->gpus);
    claim->from_moved = true;
}

void gs_ledger_follow_moved(struct gs_ledger *ledger, uint32_t slot)
{
    uint32_t at = ledger->nodes[slot].first_claim;
    for (; at != GS_INDEX_NONE; at = ledger->claims[at].next)
        follow_moved(ledger, &ledger->claims[at]);
}

static uint32_t total_of(const struct gs_claim *claim)
{
    const uint64_t total =
        claim->total_units ? claim->total_units : (uint64_t)claim->units * claim->gpu_count;
    return total < UINT32_MAX ? (uint32_t)total : UINT32_MAX;
}

/* Without memory for them it is under no budget until they change. */
static void keep_labels(struct gs_ledger_claim *to, const struct gs_labels *labels)
{
    const size_t bytes = labels ? sizeof(*labels) + labels->count * sizeof(labels->all[0]) : 0;
    struct gs_labels *copy = bytes ? malloc(bytes) : NULL;
    if (copy)
        memcpy(copy, labels, bytes);
    free(to->labels); /* perhaps those */
    to->labels = copy;
}

/* Writes what may change over a claim's life; text, links and accounts are the caller's. */
static void fill(struct gs_ledger_claim *to, const struct gs_claim *from)
{
    to->gpus = from->gpus;
    to->also = from->also;
    to->from_moved = from->from_moved;
    to->total_units = total_of(from);
    to->revision = from->revision;
    to->each = from->each;
    if (to->cores_pct > GS_CORES_PCT)
        to->cores_pct = GS_CORES_PCT;
    to->cpu_milli = from->cpu_milli;
    to->priority = from->priority;
    to->gpu_count = (uint8_t)from->gpu_count;
    to->gpus_max = (uint8_t)from->gpus_max;
    to->state = (uint8_t)from->state;
    to->leaving = from->leaving;
    keep_labels(to, from->labels);
    to->seen = true;
}

static void replace_claim(struct gs_ledger *ledger, uint32_t slot, const struct gs_claim *claim,
                          uint32_t node)
{
    struct gs_ledger_claim *old = &ledger->claims[slot];
    uint32_t old_node = old->node;
    count_out(ledger, old);
    unlink_claim(ledger, slot);
    fill(old, claim);
    old->node = node;
    follow_moved(ledger, old);
    link_claim(ledger, slot);
    count_in(ledger, old);
    gs_ledger_node_touch(ledger, &ledger->nodes[node]);
    if (old_node != node) {
        gs_ledger_node_touch(ledger, &ledger->nodes[old_node]);
        gs_ledger_node_tidy(ledger, old_node);
    }
}

/* Behind each other, each with its NUL; NULL is "". *caller frees*; NULL: out of memory. */
static char *join(const char *const *texts, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += strlen(texts[i] ? texts[i] : "") + 1;
    char *joined = malloc(total), *at = joined;
    for (size_t i = 0; joined && i < count; i++) {
        const char *text = texts[i] ? texts[i] : "";
        at = mempcpy(at, text, strlen(text) + 1);
    }
    return joined;
}

static int add_claim(struct gs_ledger *ledger, const struct gs_claim *claim, uint32_t node)
{
    const char *const texts[] = {claim->uid, claim->ns, claim->name};
    _cleanup_free_ char *text = join(texts, 3);
    if (!text || gs_index_reserve(&ledger->by_claim) < 0 ||
        gs_pool_reserve(&ledger->claims, &ledger->claim_pool, sizeof(*ledger->claims)) < 0)
        return -1;
    uint32_t slot = gs_pool_take(&ledger->claim_pool);
    struct gs_ledger_claim *to = &ledger->claims[slot];
    *to = (struct gs_ledger_claim){.text = gs_steal(&text), .node = node};
    fill(to, claim);
    follow_moved(ledger, to);
    gs_index_insert(&ledger->by_claim, gs_hash_text(claim->uid), slot);
    link_claim(ledger, slot);
    count_in(ledger, to);
    gs_ledger_node_touch(ledger, &ledger->nodes[node]);
    return 0;
}

int gs_ledger_set_claim(struct gs_ledger *ledger, const struct gs_claim *claim,
                        struct gs_error *err)
{
    if (!claim->uid || !claim->uid[0] || !claim->node || !claim->node[0] || !claim->units ||
        !claim->gpu_count || claim->gpu_count > GS_GPUS_MAX || claim->gpus_max > GS_GPUS_MAX)
        return gs_fail(err, GS_EINVAL, "an allocation needs a UID, a node, units and 1 to %d GPUs",
                       GS_GPUS_MAX);
    uint32_t node = gs_ledger_node_need(ledger, gs_slice_of(claim->node));
    if (node == GS_INDEX_NONE)
        return gs_fail_nomem(err);
    uint32_t slot = gs_ledger_claim_slot(ledger, claim->uid);
    if (slot != GS_INDEX_NONE) {
        replace_claim(ledger, slot, claim, node);
    } else if (add_claim(ledger, claim, node) < 0) {
        gs_ledger_node_tidy(ledger, node);
        return gs_fail_nomem(err);
    }
    gs_ledger_remove_other(ledger, claim->uid);
    gs_ledger_release_hold(ledger, claim->uid); /* last: the UID may be borrowed from the hold */
    return 0;
}

void gs_ledger_place(struct gs_ledger *ledger, const char *uid, gs_gpu_mask gpus)
{
    uint32_t slot = gs_ledger_claim_slot(ledger, uid);
    if (slot == GS_INDEX_NONE || ledger->claims[slot].from_moved || !gpus)
        return;
    struct gs_ledger_claim *claim = &ledger->claims[slot];
    count_out(ledger, claim);
    put_on(claim, gpus);
    count_in(ledger, claim);
    gs_ledger_node_touch(ledger, &ledger->nodes[claim->node]);
}

bool gs_ledger_confirm(struct gs_ledger *ledger, const char *uid)
{
    uint32_t slot = gs_ledger_claim_slot(ledger, uid);
    if (slot == GS_INDEX_NONE)
        return false;
    struct gs_ledger_claim *claim = &ledger->claims[slot];
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
    uint32_t node = ledger->claims[slot].node;
    bool present = ledger->nodes[node].present;
    gs_ledger_claim_drop(ledger, slot);
    if (ret_slot)
        *ret_slot = present ? node : GS_INDEX_NONE;
    return true;
}

bool gs_ledger_undo(struct gs_ledger *ledger, const char *uid)
{
    uint32_t slot = gs_ledger_claim_slot(ledger, uid);
    if (slot == GS_INDEX_NONE || ledger->claims[slot].state != GS_CLAIM_RESERVED)
        return false;
    gs_ledger_claim_drop(ledger, slot);
    return true;
}

static struct gs_claim claim_out(const struct gs_ledger *ledger, uint32_t slot)
{
    const struct gs_ledger_claim *from = &ledger->claims[slot];
    const char *ns = from->text + strlen(from->text) + 1;
    return (struct gs_claim){
        .uid = from->text,
        .ns = ns,
        .name = ns + strlen(ns) + 1,
        .node = ledger->nodes[from->node].name,
        .slot = ledger->nodes[from->node].present ? from->node : GS_INDEX_NONE,
        .gpus = from->gpus,
        .also = from->also,
        .charged = from->charged,
        .unplaced = from->unplaced,
        .from_moved = from->from_moved,
        .each = from->each,
        .gpu_count = from->gpu_count,
        .gpus_max = from->gpus_max,
        .total_units = from->total_units,
        .priority = from->priority,
        .cpu_milli = from->cpu_milli,
        .revision = from->revision,
        .state = (enum gs_claim_state)from->state,
        .leaving = from->leaving,
        .seen = from->seen,
        .labels = from->labels,
    };
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
        struct gs_claim claim = claim_out(ledger, at);
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
        struct gs_claim claim = claim_out(ledger, i);
        if (!each(ctx, &claim))
            return;
    }
}

void gs_ledger_begin_pods(struct gs_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->claim_pool.count; i++) {
        ledger->claims[i].seen = false;
        ledger->claims[i].revision = 0; /* a restored API server counts from less: believe it */
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
        if (!claim->text || claim->seen || claim->state == GS_CLAIM_RESERVED)
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
        gs_view_charge(&counted, effective(node, &ledger->claims[at], &unplaced),
                       ledger->claims[at].each, 1);
    for (uint32_t i = 0; i < counted.gpu_count; i++) {
        const struct gs_gpu_state *is = &node->view.gpus[i], *was = &gpus[i];
        differing += is->used_units != was->used_units || is->pods != was->pods ||
                     is->used_cores_pct != was->used_cores_pct;
    }
    return differing;
}
