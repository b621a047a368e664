/* SPDX-License-Identifier: Apache-2.0 */
/* Places held for pods that are not bound. Few: preemption makes them, one at a time, and the
 * members of pod groups between filter and bind. */
#include "ledger_internal.h"

/* Before which pods a hold stands: higher priority; then who has GPUs, as they are where they are
 * and the others may sit elsewhere; then older. */
static bool goes_first(const struct gs_ledger_pod *a, const struct gs_ledger_pod *b)
{
    if (a->hold.priority != b->hold.priority)
        return a->hold.priority > b->hold.priority;
    return !a->hold.gpus != !b->hold.gpus ? a->hold.gpus != 0 : a->order < b->order;
}

static void link_hold(struct gs_ledger *ledger, uint32_t slot)
{
    const struct gs_ledger_pod *hold = ledger->pods[slot];
    struct gs_ledger_node *node = &ledger->nodes[hold->node];
    uint32_t prev = GS_INDEX_NONE, at = node->first_hold;
    for (; at != GS_INDEX_NONE && goes_first(ledger->pods[at], hold); at = ledger->pods[at]->next)
        prev = at;
    gs_ledger_pod_link(ledger, slot, prev);
    node->view.nominated++;
    ledger->holds++;
    ledger->promised += hold->hold.gpus != 0;
    gs_ledger_node_touch(ledger, node);
}

static uint32_t find_hold(const struct gs_ledger *ledger, const char *uid)
{
    return uid && ledger->holds ? gs_ledger_pod_slot(ledger, uid, true) : GS_INDEX_NONE;
}

uint32_t gs_ledger_hold_slot(const struct gs_ledger *ledger, const char *uid)
{
    uint32_t slot = find_hold(ledger, uid);
    return slot == GS_INDEX_NONE ? GS_INDEX_NONE : ledger->pods[slot]->node;
}

gs_gpu_mask gs_ledger_promised(const struct gs_ledger *ledger, const char *uid, uint32_t *ret_slot)
{
    uint32_t slot = find_hold(ledger, uid);
    if (slot == GS_INDEX_NONE || !ledger->pods[slot]->hold.gpus)
        return 0;
    if (ret_slot)
        *ret_slot = ledger->pods[slot]->node;
    return ledger->pods[slot]->hold.gpus;
}

uint32_t gs_ledger_promises(const struct gs_ledger *ledger)
{
    return ledger->promised;
}

bool gs_ledger_release_hold(struct gs_ledger *ledger, const char *uid)
{
    uint32_t slot = find_hold(ledger, uid);
    if (slot == GS_INDEX_NONE)
        return false;
    gs_ledger_pod_drop(ledger, slot);
    return true;
}

int gs_ledger_hold(struct gs_ledger *ledger, const struct gs_hold *hold, struct gs_error *err)
{
    if (!hold->uid || !hold->uid[0] || !hold->node || !hold->node[0] || !hold->units ||
        !hold->gpu_count || hold->gpu_count > GS_GPUS_MAX)
        return gs_fail(err, GS_EINVAL, "a reservation needs a UID, a node, units and 1 to %d GPUs",
                       GS_GPUS_MAX);
    if (gs_ledger_pod_slot(ledger, hold->uid, false) != GS_INDEX_NONE)
        return 0; /* it has its place already */
    struct gs_hold kept = *hold;
    const char **const texts[] = {&kept.uid, &kept.model, &kept.model_deny, &kept.uuid,
                                  &kept.uuid_deny};
    uint32_t old = find_hold(ledger, hold->uid);
    uint32_t node = gs_ledger_node_need(ledger, gs_slice_of(hold->node));
    if (node == GS_INDEX_NONE)
        return gs_fail_nomem(err);
    uint32_t slot = gs_ledger_pod_add(ledger, texts, sizeof(texts) / sizeof(texts[0]));
    if (slot == GS_INDEX_NONE) {
        gs_ledger_node_tidy(ledger, node);
        return gs_fail_nomem(err);
    }
    kept.node = ledger->nodes[node].name;
    *ledger->pods[slot] = (struct gs_ledger_pod){
        .hold = kept,
        .order = old == GS_INDEX_NONE ? ++ledger->hold_order : ledger->pods[old]->order,
        .node = node,
        .is_hold = true,
        .hold_seen = true,
    };
    link_hold(ledger, slot);
    if (old != GS_INDEX_NONE)
        gs_ledger_pod_drop(ledger, old);
    return 0;
}

void gs_ledger_each_hold(const struct gs_ledger *ledger, uint32_t slot,
                         bool (*each)(void *ctx, const struct gs_hold *hold), void *ctx)
{
    uint32_t at = ledger->nodes[slot].first_hold;
    while (at != GS_INDEX_NONE && each(ctx, &ledger->pods[at]->hold))
        at = ledger->pods[at]->next;
}
