/* SPDX-License-Identifier: Apache-2.0 */
/* Places held for pods that are not bound. Few: preemption makes them, one at a time, and the
 * members of pod groups between filter and bind. */
#include "ledger_internal.h"

/* Before which pods a hold stands: higher priority; then who has GPUs, as they are where they are
 * and the others may sit elsewhere; then older. */
static bool goes_first(const struct gs_ledger_hold *a, const struct gs_ledger_hold *b)
{
    if (a->asked.ask.priority != b->asked.ask.priority)
        return a->asked.ask.priority > b->asked.ask.priority;
    return !a->asked.gpus != !b->asked.gpus ? a->asked.gpus != 0 : a->order < b->order;
}

static void link_hold(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_hold *hold = &ledger->holds[slot];
    struct gs_ledger_node *node = &ledger->nodes[hold->asked.slot];
    uint32_t *at = &node->first_hold;
    while (*at != GS_INDEX_NONE && goes_first(&ledger->holds[*at], hold))
        at = &ledger->holds[*at].next;
    hold->next = *at;
    *at = slot;
    node->view.nominated++;
    ledger->promised += hold->asked.gpus != 0;
    gs_ledger_node_touch(ledger, node);
}

static void drop_hold(struct gs_ledger *ledger, uint32_t slot)
{
    struct gs_ledger_hold *hold = &ledger->holds[slot];
    uint32_t home = hold->asked.slot;
    struct gs_ledger_node *node = &ledger->nodes[home];
    uint32_t *at = &node->first_hold;
    while (*at != slot)
        at = &ledger->holds[*at].next;
    *at = hold->next;
    node->view.nominated--;
    ledger->promised -= hold->asked.gpus != 0;
    gs_index_remove(&ledger->by_hold, gs_hash_text(hold->texts), slot);
    free(hold->texts);
    *hold = (struct gs_ledger_hold){0};
    gs_pool_give(&ledger->hold_pool, slot);
    gs_ledger_node_touch(ledger, node);
    gs_ledger_node_tidy(ledger, home);
}

static uint32_t find_hold(const struct gs_ledger *ledger, const char *uid)
{
    return uid && ledger->by_hold.count
               ? gs_index_find_text(&ledger->by_hold, ledger->holds, sizeof(*ledger->holds), uid)
               : GS_INDEX_NONE;
}

const struct gs_hold *gs_ledger_find_hold(const struct gs_ledger *ledger, const char *uid)
{
    const uint32_t slot = find_hold(ledger, uid);
    return slot == GS_INDEX_NONE ? NULL : &ledger->holds[slot].asked;
}

uint32_t gs_ledger_promises(const struct gs_ledger *ledger)
{
    return ledger->promised;
}

bool gs_ledger_release_hold(struct gs_ledger *ledger, const char *uid)
{
    const uint32_t slot = find_hold(ledger, uid);
    if (slot == GS_INDEX_NONE)
        return false;
    drop_hold(ledger, slot);
    return true;
}

/* The ask's texts become copies of their own, its UID first; NULL: no memory, it is as it was. */
static char *own_texts(struct gs_ask *ask)
{
    struct gs_slice *const lists[] = {&ask->model, &ask->model_deny, &ask->uuid, &ask->uuid_deny};
    const size_t uid_bytes = strlen(ask->uid) + 1;
    size_t bytes = uid_bytes;
    GS_EACH_OF (list, lists, 4)
        bytes += (*list)->len;
    char *texts = malloc(bytes), *at = texts;
    if (!texts)
        return NULL;
    ask->uid = memcpy(texts, ask->uid, uid_bytes);
    at += uid_bytes;
    GS_EACH_OF (list, lists, 4) {
        if ((*list)->len)
            memcpy(at, (*list)->at, (*list)->len);
        (*list)->at = at;
        at += (*list)->len;
    }
    return texts;
}

static bool says_the_same(const struct gs_ledger_hold *old, const struct gs_hold *hold,
                          const struct gs_ask *ask)
{
    const struct gs_ask *asked = &old->asked.ask;
    return strcmp(old->asked.node, hold->node) == 0 && old->asked.gpus == hold->gpus &&
           asked->priority == ask->priority && asked->group == ask->group &&
           gs_ask_hash(asked) == gs_ask_hash(ask);
}

int gs_ledger_hold(struct gs_ledger *ledger, const struct gs_hold *hold, struct gs_error *err)
{
    struct gs_ask ask = hold->ask;
    ask.cpu_milli = 0; /* of no account here, nor who else it belongs to */
    ask.rules = NULL;
    ask.ns = NULL;
    if (!hold->node || !hold->node[0] || !ask.units || ask.broken) {
        gs_ledger_release_hold(ledger, ask.uid);
        return 0;
    }
    if (gs_ledger_claim_slot(ledger, ask.uid) != GS_INDEX_NONE)
        return 0; /* it has its place already */
    uint32_t old = find_hold(ledger, ask.uid);
    if (old != GS_INDEX_NONE && says_the_same(&ledger->holds[old], hold, &ask)) {
        ledger->holds[old].seen = true;
        return 0;
    }
    _cleanup_free_ char *texts = own_texts(&ask);
    uint32_t node = texts ? gs_ledger_node_need(ledger, hold->node) : GS_INDEX_NONE;
    if (node == GS_INDEX_NONE)
        return gs_fail_nomem(err);
    if (gs_index_reserve(&ledger->by_hold) < 0 ||
        gs_pool_reserve(&ledger->holds, &ledger->hold_pool, sizeof(*ledger->holds)) < 0) {
        gs_ledger_node_tidy(ledger, node);
        return gs_fail_nomem(err);
    }
    uint32_t slot = gs_pool_take(&ledger->hold_pool);
    ledger->holds[slot] =
        (struct gs_ledger_hold){.texts = gs_steal(&texts),
                                .asked = {ask, ledger->nodes[node].name.at, hold->gpus, node},
                                .order = ++ledger->hold_order,
                                .seen = true};
    link_hold(ledger, slot);
    if (old != GS_INDEX_NONE)
        drop_hold(ledger, old);
    gs_index_insert(&ledger->by_hold, gs_hash_text(ask.uid), slot);
    return 0;
}

void gs_ledger_each_hold(const struct gs_ledger *ledger, uint32_t slot,
                         bool (*each)(void *ctx, const struct gs_hold *hold), void *ctx)
{
    const struct gs_ledger_node *node = &ledger->nodes[slot];
    for (uint32_t at = node->first_hold; at != GS_INDEX_NONE; at = ledger->holds[at].next) {
        if (!each(ctx, &ledger->holds[at].asked))
            return;
    }
}

void gs_ledger_sweep_holds(struct gs_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->hold_pool.count; i++) {
        const struct gs_ledger_hold *hold = &ledger->holds[i];
        if (hold->texts && !hold->seen && !hold->asked.gpus)
            drop_hold(ledger, i);
    }
}
