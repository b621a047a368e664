/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/core/defrag.h"

#include "gpushare/base/array.h"
#include "gpushare/base/index.h"

#include "defrag_internal.h"

/* The planner's state, and moves carried out on the copy. The search is in defrag_search.c. */

/* --- where everybody is --- */

static void find_tenants(struct gs_defrag *defrag)
{
    for (uint32_t i = 0; i < defrag->count; i++) {
        struct gs_claim claim;
        struct defrag_tenant *tenant = &defrag->tenants[i];
        const uint64_t shape = defrag_shape_of(&defrag->pods[i].ask);
        *tenant = (struct defrag_tenant){.shape = shape, .slot = GS_LEDGER_NO_NODE, .gone = true};
        if (gs_ledger_find_claim(defrag->ledger, defrag->pods[i].uid, &claim))
            *tenant = (struct defrag_tenant){.shape = shape,
                                             .slot = claim.slot,
                                             .gpus = claim.charged,
                                             .each = claim.each,
                                             .gone = claim.unplaced || claim.leaving};
    }
}

/* Counting sort; within a slot in the order of `pods`. */
static void sort_by_slot(struct gs_defrag *defrag, uint32_t slots)
{
    uint32_t placed = 0;
    for (uint32_t i = 0; i < defrag->count; i++) {
        if (defrag->tenants[i].slot < slots)
            defrag->first[defrag->tenants[i].slot]++;
    }
    for (uint32_t slot = 0; slot < slots; slot++)
        defrag->first[slot] = placed += defrag->first[slot]; /* where the slot ends */
    defrag->first[slots] = placed;
    for (uint32_t i = defrag->count; i-- > 0;) {
        if (defrag->tenants[i].slot < slots)
            defrag->by_slot[--defrag->first[defrag->tenants[i].slot]] = i;
    }
}

struct gs_defrag *gs_defrag_new(struct gs_place *place, const struct gs_defrag_pod *pods,
                                uint32_t count)
{
    uint32_t slots = gs_ledger_slots(place->ledger);
    struct gs_defrag *defrag = calloc(1, sizeof(*defrag));
    if (!defrag)
        return NULL;
    *defrag =
        (struct gs_defrag){.place = place, .ledger = place->ledger, .pods = pods, .count = count};
    defrag->tenants = calloc(count + 1u, sizeof(*defrag->tenants));
    defrag->by_slot = calloc(count + 1u, sizeof(*defrag->by_slot));
    defrag->first = calloc(slots + 2u, sizeof(*defrag->first));
    defrag->refused = calloc(slots + 1u, sizeof(*defrag->refused));
    if (!defrag->tenants || !defrag->by_slot || !defrag->first || !defrag->refused) {
        gs_defrag_free(defrag);
        return NULL;
    }
    find_tenants(defrag);
    sort_by_slot(defrag, slots);
    return defrag;
}

void gs_defrag_free(struct gs_defrag *defrag)
{
    free(defrag->tenants);
    free(defrag->by_slot);
    free(defrag->first);
    free(defrag->refused);
    free(defrag);
}

void gs_defrag_plan_release(struct gs_defrag_plan *plan)
{
    free(plan->moves);
    *plan = (struct gs_defrag_plan){0};
}

/* --- placing --- */

bool defrag_place(const struct gs_defrag *defrag, const struct gs_ask *ask, uint32_t but,
                  uint32_t *ret_slot, gs_gpu_mask *ret_gpus)
{
    memset(defrag->refused, 0, gs_ledger_slots(defrag->ledger) * sizeof(*defrag->refused));
    if (but != GS_LEDGER_NO_NODE)
        defrag->refused[but] = true;
    return gs_place_choose(defrag->place, ask, defrag->refused, ret_slot, ret_gpus);
}

/* --- moves --- */

static int add_move(struct gs_defrag_plan *plan, const struct gs_defrag_move *move)
{
    if (!gs_array_reach(&plan->moves, &plan->cap, plan->count, sizeof(*plan->moves)))
        return -1;
    plan->moves[plan->count++] = *move;
    return 0;
}

void defrag_charge(const struct gs_defrag *defrag, struct gs_node_view *view, uint32_t pod,
                   int sign)
{
    gs_view_charge(view, defrag->tenants[pod].gpus, defrag->tenants[pod].each, sign);
    view->cpu_used_milli += sign * defrag->pods[pod].ask.cpu_milli;
}

/* What the old pods held goes, and the waiting pod takes its place. 1, 0, -1 as
 * defrag_carry_out(). */
static int let_in(struct gs_defrag *defrag, const struct gs_ask *waiting,
                  struct gs_defrag_plan *plan)
{
    struct gs_gpu_state states[GS_GPUS_MAX];
    struct gs_node_view after = gs_view_copy(gs_ledger_view_at(defrag->ledger, plan->slot), states);
    enum gs_reason reason;
    for (uint32_t i = 0; i < plan->count; i++)
        defrag_charge(defrag, &after, plan->moves[i].pod, -1);
    gs_view_summarise(&after);
    if (gs_place_judge(defrag->place, waiting, &after, &reason, NULL) != GS_OBSTACLE_NONE)
        return 0;
    plan->gpus = gs_place_gpus(defrag->place, &after, waiting, &reason);
    if (!plan->gpus)
        return 0;
    for (uint32_t i = 0; i < plan->count; i++)
        gs_ledger_remove(defrag->place->ledger, defrag->pods[plan->moves[i].pod].uid, NULL);
    return gs_place_claim(defrag->place, waiting, plan->slot, plan->gpus, NULL) < 0 ? -1 : 1;
}

static int move_all(struct gs_defrag *defrag, const uint32_t *pods, uint32_t count,
                    struct gs_defrag_plan *plan)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct gs_ask *ask = &defrag->pods[pods[i]].ask;
        struct gs_defrag_move move = {.pod = pods[i], .from = defrag->tenants[pods[i]].gpus};
        uint32_t but = plan->cordon ? plan->slot : GS_LEDGER_NO_NODE;
        if (!defrag_place(defrag, ask, but, &move.slot, &move.gpus))
            return 0;
        if (gs_place_claim(defrag->place, ask, move.slot, move.gpus, NULL) < 0 ||
            add_move(plan, &move) < 0)
            return -1;
    }
    return 1;
}

int defrag_carry_out(struct gs_defrag *defrag, const struct gs_ask *waiting, uint32_t slot,
                     const uint32_t *pods, uint32_t count, bool cordon, struct gs_defrag_plan *ret)
{
    struct gs_defrag_plan plan = {.slot = slot, .cordon = cordon};
    uint32_t before = defrag->place->made;
    int result = move_all(defrag, pods, count, &plan);
    if (result == 1)
        result = let_in(defrag, waiting, &plan);
    if (result != 1) {
        gs_place_take_back(defrag->place, before);
        gs_defrag_plan_release(&plan);
        return result;
    }
    for (uint32_t i = 0; i < count; i++)
        defrag->tenants[pods[i]].gone = true;
    defrag_forget(defrag);
    *ret = plan;
    return 1;
}

/* --- shapes --- */

uint64_t defrag_shape_of(const struct gs_ask *ask)
{
    const uint64_t words[] = {
        gs_ask_hash(ask),
        (uint64_t)ask->priority,
        ask->broken,
        ask->rules ? gs_pod_rules_hash(ask->rules) : 0,
    };
    return gs_hash_bytes(words, sizeof(words));
}

void defrag_forget(struct gs_defrag *defrag)
{
    defrag->known_count = 0;
}

const enum gs_defrag_result *defrag_find_known(const struct gs_defrag *defrag, uint64_t shape,
                                               uint32_t max_moves)
{
    GS_EACH_OF (known, defrag->known, defrag->known_count) {
        if (known->max_moves == max_moves && known->shape == shape)
            return &known->result;
    }
    return NULL;
}

void defrag_note_known(struct gs_defrag *defrag, uint64_t shape, uint32_t max_moves,
                       enum gs_defrag_result result)
{
    if (defrag->known_count < DEFRAG_KNOWN_MAX)
        defrag->known[defrag->known_count++] = (struct defrag_known){shape, max_moves, result};
}

static bool has_room(const struct gs_defrag *defrag, const struct gs_ask *ask)
{
    for (uint32_t slot = 0; slot < gs_ledger_slots(defrag->ledger); slot++) {
        const struct gs_node_view *view = gs_ledger_view_at(defrag->ledger, slot);
        enum gs_reason reason;
        if (view && gs_place_judge(defrag->place, ask, view, &reason, NULL) == GS_OBSTACLE_NONE)
            return true;
    }
    return false;
}

bool defrag_might_move(struct gs_defrag *defrag, uint32_t pod)
{
    const uint64_t shape = defrag->tenants[pod].shape;
    const enum gs_defrag_result *known = defrag_find_known(defrag, shape, UINT32_MAX);
    const bool room = known ? *known == GS_DEFRAG_FITS : has_room(defrag, &defrag->pods[pod].ask);
    if (!known)
        defrag_note_known(defrag, shape, UINT32_MAX, room ? GS_DEFRAG_FITS : GS_DEFRAG_NONE);
    return room;
}
