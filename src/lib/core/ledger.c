/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger_internal.h"

#include "gpushare/base/invariant.h"

struct gs_ledger *gs_ledger_new(void)
{
    struct gs_ledger *ledger = calloc(1, sizeof(*ledger));
    if (ledger)
        ledger->names_epoch = 1;
    return ledger;
}

static void free_node(struct gs_ledger_node *node)
{
    free((void *)node->name.at);
    free((void *)node->view.inventory);
    free(node->moved);
    free(node->view.gpus);
}

void gs_ledger_free(struct gs_ledger *ledger)
{
    if (!ledger)
        return;
    for (uint32_t i = 0; i < ledger->node_pool.count; i++)
        free_node(&ledger->nodes[i]);
    for (uint32_t i = 0; i < ledger->claim_pool.count; i++) {
        free(ledger->claims[i].text);
        free((void *)ledger->claims[i].is.labels);
    }
    for (uint32_t i = 0; i < ledger->hold_pool.count; i++)
        free(ledger->holds[i].texts);
    free(ledger->nodes);
    free(ledger->claims);
    free(ledger->others);
    free(ledger->holds);
    free(ledger->node_pool.free);
    free(ledger->claim_pool.free);
    free(ledger->other_pool.free);
    free(ledger->hold_pool.free);
    gs_index_release(&ledger->by_name);
    gs_index_release(&ledger->by_claim);
    gs_index_release(&ledger->by_other);
    gs_index_release(&ledger->by_hold);
    free(ledger);
}

struct name_key {
    const struct gs_ledger *ledger;
    struct gs_slice name;
};

static bool same_name(const void *ctx, uint32_t slot)
{
    const struct name_key *key = ctx;
    return gs_slice_eq(key->ledger->nodes[slot].name, key->name);
}

uint32_t gs_ledger_node_slot(const struct gs_ledger *ledger, const char *name)
{
    struct name_key key = {ledger, gs_slice_of(name)};
    return gs_index_find(&ledger->by_name, gs_hash_slice(key.name), same_name, &key);
}

uint32_t gs_ledger_node_need(struct gs_ledger *ledger, const char *name)
{
    uint32_t slot = gs_ledger_node_slot(ledger, name);
    if (slot != GS_INDEX_NONE)
        return slot;
    _cleanup_free_ char *copy = strdup(name);
    if (!copy || gs_index_reserve(&ledger->by_name) < 0 ||
        gs_pool_reserve(&ledger->nodes, &ledger->node_pool, sizeof(*ledger->nodes)) < 0)
        return GS_INDEX_NONE;
    slot = gs_pool_take(&ledger->node_pool);
    ledger->nodes[slot] = (struct gs_ledger_node){
        .name = gs_slice_of(gs_steal(&copy)),
        .first_claim = GS_INDEX_NONE,
        .first_hold = GS_INDEX_NONE,
        .view.slot = slot,
    };
    gs_index_insert(&ledger->by_name, gs_hash_text(name), slot);
    ledger->names_epoch++;
    return slot;
}

void gs_ledger_node_tidy(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_node *node = &ledger->nodes[slot];
    if (node->present || node->first_claim != GS_INDEX_NONE || node->first_hold != GS_INDEX_NONE ||
        node->others)
        return;
    gs_index_remove(&ledger->by_name, gs_hash_slice(node->name), slot);
    ledger->names_epoch++;
    free_node(node);
    *node = (struct gs_ledger_node){
        .first_claim = GS_INDEX_NONE,
        .first_hold = GS_INDEX_NONE,
    };
    gs_pool_give(&ledger->node_pool, slot);
}

void gs_ledger_node_touch(struct gs_ledger *ledger, struct gs_ledger_node *node)
{
    gs_view_summarise(&node->view);
    node->view.version = ++ledger->version;
}

/* The number of a model, a free one when it has none yet; 0 when there is no room for one more. */
static uint16_t model_number(struct gs_ledger *ledger, const char *name)
{
    uint16_t at = 0, unused = GS_MODELS_MAX;
    while (at < ledger->model_count && strcmp(ledger->models[at], name) != 0) {
        if (!ledger->model_gpus[at] && at < unused)
            unused = at;
        at++;
    }
    if (at < ledger->model_count)
        return (uint16_t)(at + 1);
    at = unused < at ? unused : at;
    if (at == GS_MODELS_MAX)
        return 0;
    memcpy(ledger->models[at], name, GS_MODEL_BYTES);
    if (at == ledger->model_count)
        ledger->model_count++;
    return (uint16_t)(at + 1);
}

/* A node has these GPUs now. */
static void number_models(struct gs_ledger *ledger, const struct gs_node *node,
                          struct gs_gpu_state *states)
{
    uint32_t models = 0;
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        uint32_t first = 0;
        while (strcmp(node->gpus[first].model, node->gpus[i].model) != 0)
            first++;
        if (first < i)
            states[i].model = states[first].model;
        else if (node->gpus[i].model[0] && models++ < GS_NODE_MODELS_MAX)
            states[i].model = model_number(ledger, node->gpus[i].model);
        if (states[i].model)
            ledger->model_gpus[states[i].model - 1]++;
    }
}

/* A node has these GPUs no more. */
static void forget_models(struct gs_ledger *ledger, const struct gs_node_view *view)
{
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        uint16_t model = view->gpus[i].model;
        if (!model ||
            !GS_INVARIANT(ledger->model_gpus[model - 1] > 0, "each GPU's model is counted"))
            continue;
        if (--ledger->model_gpus[model - 1] == 0)
            memset(ledger->models[model - 1], 0, GS_MODEL_BYTES);
    }
    while (ledger->model_count && !ledger->model_gpus[ledger->model_count - 1])
        ledger->model_count--;
}

uint16_t gs_ledger_model_count(const struct gs_ledger *ledger)
{
    return ledger->model_count;
}

const char *gs_ledger_model_name(const struct gs_ledger *ledger, uint16_t model)
{
    return model ? ledger->models[model - 1] : "";
}

/* A node's list of moved pods by their hashes; false when out of memory. */
static bool copy_moved(const struct gs_node *node, struct gs_ledger_moved **ret)
{
    const uint32_t count = node->moved_count;
    struct gs_ledger_moved *copy = count ? calloc(count, sizeof(*copy)) : NULL;
    for (uint32_t i = 0; copy && i < count; i++)
        copy[i] = (struct gs_ledger_moved){gs_hash_text(node->moved[i].uid), node->moved[i].gpus};
    if (copy)
        qsort(copy, count, sizeof(*copy), gs_hash_order);
    *ret = copy;
    return copy || !count;
}

/* moved: taken. */
static void take_moved(struct gs_ledger *ledger, struct gs_ledger_node *entry,
                       const struct gs_node *node, struct gs_ledger_moved *moved)
{
    if (node->moved_error && node->moved_error[0]) {
        free(moved);
        return;
    }
    free(entry->moved);
    entry->moved = moved;
    entry->moved_count = node->moved_count;
    gs_ledger_follow_moved(ledger, entry->view.slot);
}

int gs_ledger_set_node(struct gs_ledger *ledger, const struct gs_node *node, struct gs_error *err)
{
    size_t count = node->gpu_count ? node->gpu_count : 1;
    _cleanup_free_ struct gs_gpu_state *states = calloc(count, sizeof(*states));
    _cleanup_free_ struct gs_gpu *inventory = calloc(count, sizeof(*inventory));
    _cleanup_free_ struct gs_ledger_moved *moved = NULL;
    if (!states || !inventory || !copy_moved(node, &moved))
        return gs_fail_nomem(err);
    struct gs_node_view view;
    gs_view_of_node(&view, node, states);
    if (node->gpu_count)
        memcpy(inventory, node->gpus, node->gpu_count * sizeof(*inventory));
    uint32_t slot = gs_ledger_node_need(ledger, node->name);
    if (slot == GS_INDEX_NONE)
        return gs_fail_nomem(err);

    struct gs_ledger_node *entry = &ledger->nodes[slot];
    number_models(ledger, node, states);
    forget_models(ledger, &entry->view);
    free(entry->view.gpus);
    free((void *)entry->view.inventory);
    view.gpus = gs_steal(&states);
    view.inventory = gs_steal(&inventory);
    view.cpu_used_milli = entry->view.cpu_used_milli;
    view.nominated = entry->view.nominated;
    view.slot = slot;
    entry->view = view;
    entry->present = entry->seen = true;
    take_moved(ledger, entry, node, gs_steal(&moved));
    gs_ledger_recount_node(ledger, slot);
    return 0;
}

static void drop_node(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_node *entry = &ledger->nodes[slot];
    entry->present = entry->view.tells_moved = false;
    free(entry->moved);
    entry->moved = NULL;
    entry->moved_count = 0;
    forget_models(ledger, &entry->view);
    entry->view.gpu_count = 0;
    entry->view.cpu_milli = 0;
    gs_ledger_recount_node(ledger, slot);
    gs_ledger_node_tidy(ledger, slot);
}

void gs_ledger_drop_node(struct gs_ledger *ledger, const char *name)
{
    uint32_t slot = gs_ledger_node_slot(ledger, name);
    if (slot != GS_INDEX_NONE && ledger->nodes[slot].present)
        drop_node(ledger, slot);
}

const struct gs_node_view *gs_ledger_view(const struct gs_ledger *ledger, const char *name)
{
    uint32_t slot = gs_ledger_node_slot(ledger, name);
    return slot == GS_INDEX_NONE ? NULL : gs_ledger_view_at(ledger, slot);
}

/* The first slot that the hash may mean; any slot, or none, when it means nothing. */
static bool guess(const void *ctx, uint32_t slot)
{
    return true;
}

/*
 * A look-up waits for memory three times: for the index's entry, for the node's record and for its
 * name. A row of them waits together.
 */
enum { LOOK_UP_ROW = 32, VIEWS_AHEAD = 8 };

static void find_row(const struct gs_ledger *ledger, const struct gs_slice *names, uint32_t count,
                     uint32_t *slots)
{
    uint64_t hashes[LOOK_UP_ROW];
    for (uint32_t i = 0; i < count; i++) {
        hashes[i] = gs_hash_slice(names[i]);
        gs_index_prefetch(&ledger->by_name, hashes[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        slots[i] = gs_index_find(&ledger->by_name, hashes[i], guess, NULL);
        if (slots[i] != GS_INDEX_NONE)
            __builtin_prefetch(&ledger->nodes[slots[i]].name.at);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i] != GS_INDEX_NONE)
            __builtin_prefetch(ledger->nodes[slots[i]].name.at);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct name_key key = {ledger, names[i]};
        if (slots[i] != GS_INDEX_NONE && !same_name(&key, slots[i]))
            slots[i] = gs_index_find(&ledger->by_name, hashes[i], same_name, &key);
    }
}

void gs_ledger_find_nodes(const struct gs_ledger *ledger, const struct gs_slice *names,
                          uint32_t count, uint32_t *ret_slots)
{
    for (uint32_t i = 0; i < count; i += LOOK_UP_ROW)
        find_row(ledger, names + i, count - i < LOOK_UP_ROW ? count - i : LOOK_UP_ROW,
                 ret_slots + i);
}

uint64_t gs_ledger_names_epoch(const struct gs_ledger *ledger)
{
    return ledger->names_epoch;
}

const struct gs_node_view *gs_ledger_view_in(const struct gs_ledger *ledger, const uint32_t *slots,
                                             uint32_t count, uint32_t i)
{
    if (i + VIEWS_AHEAD < count && slots[i + VIEWS_AHEAD] != GS_INDEX_NONE)
        __builtin_prefetch(&ledger->nodes[slots[i + VIEWS_AHEAD]].view);
    return slots[i] == GS_INDEX_NONE ? NULL : gs_ledger_view_at(ledger, slots[i]);
}

uint32_t gs_ledger_slots(const struct gs_ledger *ledger)
{
    return ledger->node_pool.count;
}

const struct gs_node_view *gs_ledger_view_at(const struct gs_ledger *ledger, uint32_t slot)
{
    const struct gs_ledger_node *node = &ledger->nodes[slot];
    return node->present ? &node->view : NULL;
}

const char *gs_ledger_node_name(const struct gs_ledger *ledger, uint32_t slot)
{
    return ledger->nodes[slot].name.at;
}

void gs_ledger_begin_nodes(struct gs_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->node_pool.count; i++)
        ledger->nodes[i].seen = false;
}

void gs_ledger_sweep_nodes(struct gs_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->node_pool.count; i++) {
        if (ledger->nodes[i].present && !ledger->nodes[i].seen)
            drop_node(ledger, i);
    }
}

void gs_ledger_stats(const struct gs_ledger *ledger, struct gs_ledger_stats *ret)
{
    struct gs_ledger_stats stats = {
        .claims = ledger->by_claim.count,
        .reserved = ledger->reserved,
        .unplaced_claims = ledger->unplaced,
        .others = ledger->by_other.count,
        .held = ledger->by_hold.count - ledger->promised,
        .promised = ledger->promised,
    };
    for (uint32_t i = 0; i < ledger->node_pool.count; i++) {
        const struct gs_ledger_node *node = &ledger->nodes[i];
        if (!node->present)
            continue;
        stats.nodes++;
        stats.gpu_nodes += node->view.gpu_count > 0;
        stats.gpus += node->view.gpu_count;
        for (uint32_t g = 0; g < node->view.gpu_count; g++)
            stats.overfull_gpus += node->view.gpus[g].used_units > node->view.gpus[g].total_units;
    }
    *ret = stats;
}
