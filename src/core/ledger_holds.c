/* SPDX-License-Identifier: Apache-2.0 */
/* Places held for pods that are not bound. Few: preemption makes them, one at a time, and the
 * members of pod groups between filter and bind. */
#include "ledger_internal.h"

#include <stdlib.h>
#include <string.h>

struct hold_key {
    const struct gs_ledger *ledger;
    const char *uid;
};

static bool same_hold(const void *ctx, uint32_t slot)
{
    const struct hold_key *key = ctx;
    return strcmp(key->ledger->holds[slot]->asked.uid, key->uid) == 0;
}

/* Before which pods a hold stands: higher priority; then who has GPUs, as they are where they are
 * and the others may sit elsewhere; then older. */
static bool goes_first(const struct gs_ledger_hold *a, const struct gs_ledger_hold *b)
{
    if (a->asked.priority != b->asked.priority)
        return a->asked.priority > b->asked.priority;
    return !a->asked.gpus != !b->asked.gpus ? a->asked.gpus != 0 : a->order < b->order;
}

static void link_hold(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_hold *hold = ledger->holds[slot];
    struct gs_ledger_node *node = &ledger->nodes[hold->node];
    uint32_t *at = &node->first_hold;
    while (*at != GS_INDEX_NONE && goes_first(ledger->holds[*at], hold))
        at = &ledger->holds[*at]->next;
    hold->next = *at;
    *at = slot;
    node->view.nominated++;
    ledger->promised += hold->asked.gpus != 0;
    gs_ledger_node_touch(ledger, node);
}

static void drop_hold(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_hold *hold = ledger->holds[slot];
    uint32_t home = hold->node;
    struct gs_ledger_node *node = &ledger->nodes[home];
    uint32_t *at = &node->first_hold;
    while (*at != slot)
        at = &ledger->holds[*at]->next;
    *at = hold->next;
    node->view.nominated--;
    ledger->promised -= hold->asked.gpus != 0;
    gs_index_remove(&ledger->by_hold, gs_hash_text(hold->asked.uid), slot);
    free(hold);
    ledger->holds[slot] = NULL;
    gs_pool_give(&ledger->hold_pool, slot);
    gs_ledger_node_touch(ledger, node);
    gs_ledger_node_tidy(ledger, home);
}

static uint32_t find_hold(const struct gs_ledger *ledger, const char *uid)
{
    struct hold_key key = {ledger, uid};
    return gs_index_find(&ledger->by_hold, gs_hash_text(uid), same_hold, &key);
}

uint32_t gs_ledger_hold_slot(const struct gs_ledger *ledger, const char *uid)
{
    uint32_t slot = ledger->by_hold.count ? find_hold(ledger, uid) : GS_INDEX_NONE;
    return slot == GS_INDEX_NONE ? GS_INDEX_NONE : ledger->holds[slot]->node;
}

gs_gpu_mask gs_ledger_promised(const struct gs_ledger *ledger, const char *uid, uint32_t *ret_slot)
{
    uint32_t slot = uid && ledger->promised ? find_hold(ledger, uid) : GS_INDEX_NONE;
    if (slot == GS_INDEX_NONE || !ledger->holds[slot]->asked.gpus)
        return 0;
    if (ret_slot)
        *ret_slot = ledger->holds[slot]->node;
    return ledger->holds[slot]->asked.gpus;
}

uint32_t gs_ledger_promises(const struct gs_ledger *ledger)
{
    return ledger->promised;
}

bool gs_ledger_release_hold(struct gs_ledger *ledger, const char *uid)
{
    if (!ledger->by_hold.count)
        return false;
    uint32_t slot = find_hold(ledger, uid);
    if (slot == GS_INDEX_NONE)
        return false;
    drop_hold(ledger, slot);
    return true;
}

int gs_ledger_hold(struct gs_ledger *ledger, const struct gs_hold *hold, struct gs_error *err)
{
    if (!hold->uid || !hold->uid[0] || !hold->node || !hold->node[0] || !hold->units ||
        !hold->gpu_count || hold->gpu_count > GS_GPUS_MAX)
        return gs_fail(err, GS_EINVAL, "a reservation needs a UID, a node, units and 1 to %d GPUs",
                       GS_GPUS_MAX);
    if (gs_ledger_claim_slot(ledger, hold->uid) != GS_INDEX_NONE)
        return 0; /* it has its place already */
    struct gs_hold asked = *hold;
    const char **const texts[] = {&asked.uid, &asked.model, &asked.model_deny, &asked.uuid,
                                  &asked.uuid_deny};
    uint32_t node = gs_ledger_node_need(ledger, gs_slice_of(hold->node));
    if (node == GS_INDEX_NONE)
        return gs_fail_nomem(err);
    struct gs_ledger_hold *record = NULL;
    if (gs_index_reserve(&ledger->by_hold) < 0 ||
        gs_pool_reserve(&ledger->holds, &ledger->hold_pool, sizeof(*ledger->holds)) < 0 ||
        !(record = gs_ledger_record(sizeof(*record), texts, sizeof(texts) / sizeof(texts[0])))) {
        gs_ledger_node_tidy(ledger, node);
        return gs_fail_nomem(err);
    }
    asked.node = ledger->nodes[node].name;
    uint32_t old = find_hold(ledger, asked.uid);
    uint64_t order = old == GS_INDEX_NONE ? ++ledger->hold_order : ledger->holds[old]->order;
    *record = (struct gs_ledger_hold){.asked = asked, .order = order, .node = node, .seen = true};
    uint32_t slot = gs_pool_take(&ledger->hold_pool);
    ledger->holds[slot] = record;
    link_hold(ledger, slot);
    if (old != GS_INDEX_NONE)
        drop_hold(ledger, old);
    gs_index_insert(&ledger->by_hold, gs_hash_text(asked.uid), slot);
    return 0;
}

void gs_ledger_each_hold(const struct gs_ledger *ledger, uint32_t slot,
                         bool (*each)(void *ctx, const struct gs_hold *hold), void *ctx)
{
    const struct gs_ledger_node *node = &ledger->nodes[slot];
    for (uint32_t at = node->first_hold; at != GS_INDEX_NONE; at = ledger->holds[at]->next) {
        if (!each(ctx, &ledger->holds[at]->asked))
            return;
    }
}

void gs_ledger_sweep_holds(struct gs_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->hold_pool.count; i++) {
        const struct gs_ledger_hold *hold = ledger->holds[i];
        if (hold && !hold->seen && !hold->asked.gpus)
            drop_hold(ledger, i);
    }
}
