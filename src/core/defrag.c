/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/core/defrag.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "defrag_internal.h"

/* The planner's state, and moves carried out on the copy. The search is in defrag_search.c. */

enum { UID_BYTES = 32 };

/* --- where everybody is --- */

static void find_tenants(struct gs_defrag *defrag)
{
    for (uint32_t i = 0; i < defrag->count; i++) {
        struct gs_claim claim;
        struct defrag_tenant *tenant = &defrag->tenants[i];
        *tenant = (struct defrag_tenant){.slot = GS_LEDGER_NO_NODE, .gone = true};
        if (!gs_ledger_find_claim(defrag->ledger, defrag->pods[i].uid, &claim))
            continue;
        const struct gs_node_view *view = gs_ledger_view(defrag->ledger, gs_slice_of(claim.node));
        if (view)
            *tenant = (struct defrag_tenant){.slot = view->slot,
                                             .gpus = claim.charged,
                                             .units = claim.units,
                                             .cores_pct = claim.cores_pct,
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

struct gs_defrag *gs_defrag_new(struct gs_ledger *ledger, struct gs_policies *policies,
                                enum gs_placement placement, const bool *open,
                                const struct gs_defrag_pod *pods, uint32_t count)
{
    uint32_t slots = gs_ledger_slots(ledger);
    struct gs_defrag *defrag = calloc(1, sizeof(*defrag));
    if (!defrag)
        return NULL;
    *defrag = (struct gs_defrag){.ledger = ledger,
                                 .policies = policies,
                                 .placement = placement,
                                 .open = open,
                                 .pods = pods,
                                 .count = count};
    defrag->tenants = calloc(count + 1u, sizeof(*defrag->tenants));
    defrag->by_slot = calloc(count + 1u, sizeof(*defrag->by_slot));
    defrag->first = calloc(slots + 2u, sizeof(*defrag->first));
    if (!defrag->tenants || !defrag->by_slot || !defrag->first) {
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
    free(defrag);
}

void gs_defrag_plan_release(struct gs_defrag_plan *plan)
{
    free(plan->moves);
    *plan = (struct gs_defrag_plan){0};
}

/* --- placing --- */

static const struct gs_node_view *open_view(const struct gs_defrag *defrag, uint32_t slot)
{
    return defrag->open[slot] ? gs_ledger_view_at(defrag->ledger, slot) : NULL;
}

static bool fits(const struct gs_defrag *defrag, const struct gs_ask *ask, uint32_t slot,
                 struct gs_gpu_state *room, struct gs_node_view *ret_view)
{
    const struct gs_node_view *view = open_view(defrag, slot);
    return view && gs_view_cpu_left_milli(view) >= ask->cpu_milli &&
           gs_fit_beside_holds(defrag->ledger, view, ask, room, ret_view) == GS_FITS;
}

bool defrag_fits(const struct gs_defrag *defrag, const struct gs_ask *ask, uint32_t slot)
{
    struct gs_gpu_state room[GS_GPUS_MAX];
    return fits(defrag, ask, slot, room, NULL);
}

static enum gs_placement placement_of(const struct gs_defrag *defrag, const struct gs_ask *ask)
{
    return ask->placement == GS_PLACEMENT_DEFAULT ? defrag->placement : ask->placement;
}

bool defrag_place(const struct gs_defrag *defrag, const struct gs_ask *ask, uint32_t but,
                  uint32_t *ret_slot, gs_gpu_mask *ret_gpus)
{
    struct gs_chooser chooser;
    struct gs_choice best = {0};
    bool any = false;
    gs_chooser_init(&chooser, defrag->policies, placement_of(defrag, ask), ask);
    for (uint32_t slot = 0; slot < gs_ledger_slots(defrag->ledger); slot++) {
        struct gs_gpu_state room[GS_GPUS_MAX];
        struct gs_node_view view;
        struct gs_choice choice;
        if (slot == but || !fits(defrag, ask, slot, room, &view) ||
            !gs_chooser_choose(&chooser, &view, &choice) || (any && choice.loss >= best.loss))
            continue;
        any = true;
        best = choice;
        *ret_slot = slot;
        *ret_gpus = choice.gpus;
    }
    return any;
}

static void put_uid(char uid[UID_BYTES], uint32_t number)
{
    snprintf(uid, UID_BYTES, "/%" PRIu32, number); /* no UID begins like this */
}

int defrag_charge(struct gs_defrag *defrag, const struct gs_ask *ask, uint32_t slot,
                  gs_gpu_mask gpus, uint32_t *ret_number)
{
    char uid[UID_BYTES];
    put_uid(uid, defrag->made);
    struct gs_claim claim = {
        .uid = uid,
        .ns = "",
        .name = "",
        .node = gs_ledger_node_name(defrag->ledger, slot),
        .gpus = gpus,
        .units = ask->units,
        .gpu_count = ask->gpu_count,
        .cores_pct = ask->cores_pct,
        .priority = ask->priority,
        .cpu_milli = (uint32_t)ask->cpu_milli,
    };
    if (gs_ledger_set_claim(defrag->ledger, &claim, NULL) < 0)
        return -1;
    *ret_number = defrag->made++;
    return 0;
}

/* --- moves --- */

int defrag_plan_add(struct gs_defrag_plan *plan, const struct gs_defrag_move *move)
{
    if (plan->count == plan->cap) {
        uint32_t cap = plan->cap ? plan->cap * 2 : 8;
        void *wider = reallocarray(plan->moves, cap, sizeof(*plan->moves));
        if (!wider)
            return -1;
        plan->moves = wider;
        plan->cap = cap;
    }
    plan->moves[plan->count++] = *move;
    return 0;
}

/* The new pods are numbered from `from` on. */
static void take_back(struct gs_defrag *defrag, uint32_t from)
{
    while (defrag->made > from) {
        char uid[UID_BYTES];
        put_uid(uid, --defrag->made);
        gs_ledger_remove(defrag->ledger, uid, NULL);
    }
}

/* What the old pods held goes, and the waiting pod takes its place. When it does not fit they are
 * back. 1, 0, -1 as defrag_carry_out(). */
static int let_in(struct gs_defrag *defrag, const struct gs_ask *waiting,
                  const struct gs_defrag_plan *plan, gs_gpu_mask *ret_gpus)
{
    struct gs_claim *old = calloc(plan->count + 1u, sizeof(*old));
    struct gs_gpu_state room[GS_GPUS_MAX];
    struct gs_node_view view;
    struct gs_choice choice = {0};
    uint32_t number;
    int result = 1;
    if (!old)
        return -1;
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct gs_defrag_pod *pod = &defrag->pods[plan->moves[i].pod];
        gs_ledger_find_claim(defrag->ledger, pod->uid, &old[i]);
        old[i].uid = pod->uid; /* the ledger's own texts go with the claim */
        old[i].ns = pod->ns;
        old[i].name = pod->name;
        old[i].node = gs_ledger_node_name(defrag->ledger, plan->slot);
        gs_ledger_remove(defrag->ledger, pod->uid, NULL);
    }
    if (waiting) {
        bool in = fits(defrag, waiting, plan->slot, room, &view) &&
                  gs_policy_choose(defrag->policies, placement_of(defrag, waiting), &view, waiting,
                                   &choice);
        result = in ? defrag_charge(defrag, waiting, plan->slot, choice.gpus, &number) + 1 : 0;
        result = in && result == 0 ? -1 : result;
    }
    for (uint32_t i = 0; result != 1 && i < plan->count; i++) {
        if (gs_ledger_set_claim(defrag->ledger, &old[i], NULL) < 0)
            result = -1;
    }
    *ret_gpus = choice.gpus;
    free(old);
    return result;
}

static int move_all(struct gs_defrag *defrag, const uint32_t *pods, uint32_t count,
                    struct gs_defrag_plan *plan)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct gs_ask *ask = &defrag->pods[pods[i]].ask;
        struct gs_defrag_move move = {.pod = pods[i]};
        uint32_t but = plan->cordon ? plan->slot : GS_LEDGER_NO_NODE, number;
        if (!defrag_place(defrag, ask, but, &move.slot, &move.gpus))
            return 0;
        if (defrag_charge(defrag, ask, move.slot, move.gpus, &number) < 0 ||
            defrag_plan_add(plan, &move) < 0)
            return -1;
    }
    return 1;
}

int defrag_carry_out(struct gs_defrag *defrag, const struct gs_ask *waiting, uint32_t slot,
                     const uint32_t *pods, uint32_t count, bool cordon, struct gs_defrag_plan *ret)
{
    struct gs_defrag_plan plan = {.slot = slot, .cordon = cordon};
    uint32_t before = defrag->made;
    int result = move_all(defrag, pods, count, &plan);
    if (result == 1)
        result = let_in(defrag, waiting, &plan, &plan.gpus);
    if (result != 1) {
        take_back(defrag, before);
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

static bool same_text(struct gs_slice a, struct gs_slice b)
{
    return a.len == b.len && (!a.len || memcmp(a.at, b.at, a.len) == 0);
}

bool defrag_same_shape(const struct gs_ask *a, const struct gs_ask *b)
{
    return a->units == b->units && a->gpu_count == b->gpu_count && a->cores_pct == b->cores_pct &&
           a->priority == b->priority && a->cpu_milli == b->cpu_milli && a->broken == b->broken &&
           same_text(a->model, b->model) && same_text(a->model_deny, b->model_deny) &&
           same_text(a->uuid, b->uuid) && same_text(a->uuid_deny, b->uuid_deny);
}

void defrag_forget(struct gs_defrag *defrag)
{
    defrag->shape_count = defrag->failure_count = 0;
}

static bool has_room(const struct gs_defrag *defrag, const struct gs_ask *ask)
{
    for (uint32_t slot = 0; slot < gs_ledger_slots(defrag->ledger); slot++) {
        if (defrag_fits(defrag, ask, slot))
            return true;
    }
    return false;
}

bool defrag_might_move(struct gs_defrag *defrag, uint32_t pod)
{
    const struct gs_ask *ask = &defrag->pods[pod].ask;
    for (uint32_t i = 0; i < defrag->shape_count; i++) {
        if (defrag_same_shape(defrag->shapes[i].ask, ask))
            return defrag->shapes[i].room;
    }
    bool room = has_room(defrag, ask);
    if (defrag->shape_count < DEFRAG_SHAPES_MAX)
        defrag->shapes[defrag->shape_count++] = (struct defrag_shape){ask, room};
    return room;
}
