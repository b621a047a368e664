/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/invariant.h"
#include "gpushare/model/budget.h"

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
static void charge(struct gs_ledger *ledger, struct gs_ledger_pod *pod, int sign)
{
    struct gs_node_view *view = &ledger->nodes[pod->node].view;
    const struct gs_claim *claim = &pod->claim;
    gs_view_charge(view, claim->charged, claim->each, sign);
    view->cpu_used_milli += sign * (int64_t)claim->cpu_milli;
    ledger->unplaced += (uint32_t)sign * claim->unplaced;
    ledger->reserved += (uint32_t)sign * (claim->state == GS_CLAIM_RESERVED);
}

static void count_in(struct gs_ledger *ledger, struct gs_ledger_pod *pod)
{
    const struct gs_ledger_node *node = &ledger->nodes[pod->node];
    bool unplaced;
    pod->claim.charged = effective(node, &pod->claim, &unplaced);
    pod->claim.unplaced = unplaced;
    GS_INVARIANT(pod->claim.units && (pod->claim.charged || !node->view.gpu_count),
                 "an allocation on a GPU node has at least one GPU");
    charge(ledger, pod, 1);
}

static void count_out(struct gs_ledger *ledger, struct gs_ledger_pod *pod)
{
    GS_INVARIANT(pod->claim.units && ledger->unplaced >= pod->claim.unplaced &&
                     ledger->reserved >= (pod->claim.state == GS_CLAIM_RESERVED),
                 "every removed allocation was counted when it was added");
    charge(ledger, pod, -1);
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
    for (uint32_t at = node->first_claim; at != GS_INDEX_NONE; at = ledger->pods[at]->next) {
        ledger->pods[at]->claim.charged = 0; /* its GPUs have nothing of it any more */
        count_out(ledger, ledger->pods[at]);
        count_in(ledger, ledger->pods[at]);
    }
    gs_ledger_node_touch(ledger, node);
}

/* --- records --- */

struct uid_key {
    const struct gs_ledger *ledger;
    const char *uid;
};

static bool same_uid(const void *ctx, uint32_t slot)
{
    const struct uid_key *key = ctx;
    return strcmp(key->ledger->pods[slot]->claim.uid, key->uid) == 0; /* a hold's lies there too */
}

uint32_t gs_ledger_pod_slot(const struct gs_ledger *ledger, const char *uid, bool is_hold)
{
    struct uid_key key = {ledger, uid};
    uint32_t slot = gs_index_find(&ledger->by_uid, gs_hash_text(uid), same_uid, &key);
    return slot != GS_INDEX_NONE && ledger->pods[slot]->is_hold == is_hold ? slot : GS_INDEX_NONE;
}

uint32_t gs_ledger_pod_add(struct gs_ledger *ledger, const char **const *texts, size_t count)
{
    size_t total = sizeof(struct gs_ledger_pod);
    for (size_t i = 0; i < count; i++)
        total += strlen(*texts[i] ? *texts[i] : "") + 1;
    if (gs_index_reserve(&ledger->by_uid) < 0 ||
        gs_pool_reserve(&ledger->pods, &ledger->pod_pool, sizeof(struct gs_ledger_pod *)) < 0)
        return GS_INDEX_NONE;
    struct gs_ledger_pod *pod = calloc(1, total);
    if (!pod)
        return GS_INDEX_NONE;
    char *at = (char *)(pod + 1);
    for (size_t i = 0; i < count; i++) {
        const char *text = *texts[i] ? *texts[i] : "";
        *texts[i] = at;
        at = mempcpy(at, text, strlen(text) + 1);
    }
    uint32_t slot = gs_pool_take(&ledger->pod_pool);
    ledger->pods[slot] = pod;
    gs_index_insert(&ledger->by_uid, gs_hash_text(*texts[0]), slot);
    return slot;
}

static uint32_t *list_of(struct gs_ledger *ledger, const struct gs_ledger_pod *pod)
{
    struct gs_ledger_node *node = &ledger->nodes[pod->node];
    return pod->is_hold ? &node->first_hold : &node->first_claim;
}

void gs_ledger_pod_link(struct gs_ledger *ledger, uint32_t slot, uint32_t prev)
{
    struct gs_ledger_pod *pod = ledger->pods[slot];
    uint32_t *at = prev == GS_INDEX_NONE ? list_of(ledger, pod) : &ledger->pods[prev]->next;
    pod->prev = prev;
    pod->next = *at;
    *at = slot;
    if (pod->next != GS_INDEX_NONE)
        ledger->pods[pod->next]->prev = slot;
}

static void unlink_pod(struct gs_ledger *ledger, const struct gs_ledger_pod *pod)
{
    uint32_t *at =
        pod->prev == GS_INDEX_NONE ? list_of(ledger, pod) : &ledger->pods[pod->prev]->next;
    *at = pod->next;
    if (pod->next != GS_INDEX_NONE)
        ledger->pods[pod->next]->prev = pod->prev;
}

void gs_ledger_pod_drop(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_pod *pod = ledger->pods[slot];
    uint32_t node = pod->node;
    if (pod->is_hold) {
        ledger->nodes[node].view.nominated--;
        ledger->holds--;
        ledger->promised -= pod->hold.gpus != 0;
    } else {
        count_out(ledger, pod);
        free((void *)pod->claim.labels);
    }
    unlink_pod(ledger, pod);
    gs_index_remove(&ledger->by_uid, gs_hash_text(pod->claim.uid), slot);
    free(pod);
    ledger->pods[slot] = NULL;
    gs_pool_give(&ledger->pod_pool, slot);
    gs_ledger_node_touch(ledger, &ledger->nodes[node]);
    gs_ledger_node_tidy(ledger, node);
}

/* --- claims --- */

/* It is on these GPUs and nowhere else, its whole memory divided among them. */
static void put_on(struct gs_claim *claim, gs_gpu_mask gpus)
{
    claim->gpus = gpus;
    claim->also = 0;
    claim->gpu_count = gs_gpu_mask_count(gpus);
    claim->units = gs_units_each(claim->total_units, claim->gpu_count);
}

/* Follows the node's list of moved pods. */
static void follow_moved(const struct gs_ledger *ledger, struct gs_ledger_pod *pod)
{
    const struct gs_ledger_node *node = &ledger->nodes[pod->node];
    const uint64_t uid = gs_hash_text(pod->claim.uid);
    const struct gs_ledger_moved *moved =
        node->moved_count
            ? bsearch(&uid, node->moved, node->moved_count, sizeof(*moved), gs_hash_order)
            : NULL;
    if (!moved || !moved->gpus)
        return;
    put_on(&pod->claim, moved->gpus);
    pod->claim.from_moved = true;
}

void gs_ledger_follow_moved(struct gs_ledger *ledger, uint32_t slot)
{
    uint32_t at = ledger->nodes[slot].first_claim;
    for (; at != GS_INDEX_NONE; at = ledger->pods[at]->next)
        follow_moved(ledger, ledger->pods[at]);
}

/* caller frees. Without memory for them it is under no budget until they change. */
static struct gs_labels *copy_labels(const struct gs_labels *labels)
{
    const size_t bytes = labels ? sizeof(*labels) + labels->count * sizeof(labels->all[0]) : 0;
    struct gs_labels *copy = bytes ? malloc(bytes) : NULL;
    return copy ? memcpy(copy, labels, bytes) : NULL;
}

/* Takes over what may change over a claim's life; list and accounts are the caller's. */
static void fill(struct gs_ledger *ledger, struct gs_ledger_pod *to, const struct gs_claim *from,
                 uint32_t node)
{
    const uint64_t total =
        from->total_units ? from->total_units : (uint64_t)from->units * from->gpu_count;
    struct gs_claim claim = *from;
    claim.uid = to->claim.uid;
    claim.ns = to->claim.ns;
    claim.name = to->claim.name;
    claim.node = ledger->nodes[node].name;
    claim.total_units = total < UINT32_MAX ? (uint32_t)total : UINT32_MAX;
    claim.cores_pct = claim.cores_pct < GS_CORES_PCT ? claim.cores_pct : GS_CORES_PCT;
    claim.labels = copy_labels(from->labels);
    claim.seen = true;
    free((void *)to->claim.labels);
    to->claim = claim;
    to->node = node;
}

static uint32_t add_claim(struct gs_ledger *ledger, const struct gs_claim *from)
{
    struct gs_claim claim = {.uid = from->uid, .ns = from->ns, .name = from->name};
    const char **const texts[] = {&claim.uid, &claim.ns, &claim.name};
    uint32_t slot = gs_ledger_pod_add(ledger, texts, sizeof(texts) / sizeof(texts[0]));
    if (slot != GS_INDEX_NONE)
        ledger->pods[slot]->claim = claim;
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
    uint32_t slot = gs_ledger_pod_slot(ledger, claim->uid, false);
    uint32_t held = gs_ledger_pod_slot(ledger, claim->uid, true);
    if (slot != GS_INDEX_NONE) {
        old_node = ledger->pods[slot]->node;
        count_out(ledger, ledger->pods[slot]);
        unlink_pod(ledger, ledger->pods[slot]);
    } else if ((slot = add_claim(ledger, claim)) == GS_INDEX_NONE) {
        gs_ledger_node_tidy(ledger, node);
        return gs_fail_nomem(err);
    }
    gs_ledger_remove_other(ledger, claim->uid);
    fill(ledger, ledger->pods[slot], claim, node);
    follow_moved(ledger, ledger->pods[slot]);
    gs_ledger_pod_link(ledger, slot, GS_INDEX_NONE);
    count_in(ledger, ledger->pods[slot]);
    gs_ledger_node_touch(ledger, &ledger->nodes[node]);
    if (old_node != node) {
        gs_ledger_node_touch(ledger, &ledger->nodes[old_node]);
        gs_ledger_node_tidy(ledger, old_node);
    }
    if (held != GS_INDEX_NONE)
        gs_ledger_pod_drop(ledger, held);
    return 0;
}

void gs_ledger_place(struct gs_ledger *ledger, const char *uid, gs_gpu_mask gpus)
{
    uint32_t slot = gs_ledger_pod_slot(ledger, uid, false);
    if (slot == GS_INDEX_NONE || ledger->pods[slot]->claim.from_moved || !gpus)
        return;
    struct gs_ledger_pod *pod = ledger->pods[slot];
    count_out(ledger, pod);
    put_on(&pod->claim, gpus);
    count_in(ledger, pod);
    gs_ledger_node_touch(ledger, &ledger->nodes[pod->node]);
}

bool gs_ledger_confirm(struct gs_ledger *ledger, const char *uid)
{
    uint32_t slot = gs_ledger_pod_slot(ledger, uid, false);
    if (slot == GS_INDEX_NONE)
        return false;
    struct gs_claim *claim = &ledger->pods[slot]->claim;
    ledger->reserved -= claim->state == GS_CLAIM_RESERVED;
    claim->state = GS_CLAIM_CONFIRMED;
    claim->seen = true; /* a list that began before the bind does not know the pod yet */
    return true;
}

bool gs_ledger_remove(struct gs_ledger *ledger, const char *uid, uint32_t *ret_slot)
{
    gs_ledger_remove_other(ledger, uid);
    uint32_t slot = gs_ledger_pod_slot(ledger, uid, false);
    if (slot == GS_INDEX_NONE) {
        gs_ledger_release_hold(ledger, uid);
        return false;
    }
    uint32_t node = ledger->pods[slot]->node;
    if (ret_slot)
        *ret_slot = ledger->nodes[node].present ? node : GS_INDEX_NONE;
    gs_ledger_pod_drop(ledger, slot);
    return true;
}

bool gs_ledger_undo(struct gs_ledger *ledger, const char *uid)
{
    uint32_t slot = gs_ledger_pod_slot(ledger, uid, false);
    if (slot == GS_INDEX_NONE || ledger->pods[slot]->claim.state != GS_CLAIM_RESERVED)
        return false;
    gs_ledger_pod_drop(ledger, slot);
    return true;
}

bool gs_ledger_find_claim(const struct gs_ledger *ledger, const char *uid, struct gs_claim *ret)
{
    uint32_t slot = gs_ledger_pod_slot(ledger, uid, false);
    if (slot == GS_INDEX_NONE)
        return false;
    *ret = ledger->pods[slot]->claim;
    return true;
}

void gs_ledger_each_claim(const struct gs_ledger *ledger, uint32_t slot,
                          bool (*each)(void *ctx, const struct gs_claim *claim), void *ctx)
{
    uint32_t at = ledger->nodes[slot].first_claim;
    while (at != GS_INDEX_NONE && each(ctx, &ledger->pods[at]->claim))
        at = ledger->pods[at]->next;
}

void gs_ledger_each(const struct gs_ledger *ledger,
                    bool (*each)(void *ctx, const struct gs_claim *claim), void *ctx)
{
    for (uint32_t i = 0; i < ledger->pod_pool.count; i++) {
        const struct gs_ledger_pod *pod = ledger->pods[i];
        if (pod && !pod->is_hold && !each(ctx, &pod->claim))
            return;
    }
}

void gs_ledger_begin_pods(struct gs_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->pod_pool.count; i++) {
        struct gs_ledger_pod *pod = ledger->pods[i];
        if (pod && pod->is_hold) {
            pod->hold_seen = false;
        } else if (pod) {
            pod->claim.seen = false;
            pod->claim.revision = 0; /* a restored API server counts from less: believe it */
        }
    }
    for (uint32_t i = 0; i < ledger->other_pool.count; i++)
        ledger->others[i].seen = 0;
}

/* A reservation stays until whoever made it ends it. */
static bool survives(const struct gs_ledger_pod *pod)
{
    return pod->is_hold ? pod->hold_seen || pod->hold.gpus
                        : pod->claim.seen || pod->claim.state == GS_CLAIM_RESERVED;
}

uint32_t gs_ledger_sweep_pods(struct gs_ledger *ledger)
{
    uint32_t gone = 0;
    for (uint32_t i = 0; i < ledger->pod_pool.count; i++) {
        const struct gs_ledger_pod *pod = ledger->pods[i];
        if (!pod || survives(pod))
            continue;
        gone += !pod->is_hold;
        gs_ledger_pod_drop(ledger, i);
    }
    gs_ledger_sweep_others(ledger);
    return gone;
}

uint32_t gs_ledger_audit(const struct gs_ledger *ledger, uint32_t slot)
{
    const struct gs_ledger_node *node = &ledger->nodes[slot];
    uint64_t used[GS_GPUS_MAX] = {0};
    uint32_t pods[GS_GPUS_MAX] = {0}, cores_pct[GS_GPUS_MAX] = {0}, differing = 0;
    if (!node->name)
        return 0;
    for (uint32_t at = node->first_claim; at != GS_INDEX_NONE; at = ledger->pods[at]->next) {
        bool unplaced;
        uint32_t idx;
        const struct gs_claim *claim = &ledger->pods[at]->claim;
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
