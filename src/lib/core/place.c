/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/core/place.h"

#include <inttypes.h>
#include <stdio.h>

enum { UID_BYTES = 16 };

/* --- one node --- */

/* The pod's rules first: a node that they exclude is not helped by an uncordon. A node that is not
 * ready bears taints that say the same. */
static enum gs_obstacle obstacle_of(const struct gs_ask *ask, const struct gs_node_fact *fact)
{
    const enum gs_eligible verdict = ask->rules ? gs_eligible(ask->rules, fact->rules)
                                     : fact->rules->unschedulable ? GS_ELIGIBLE_NOT_CORDONED
                                                                  : GS_ELIGIBLE;
    if (ask->rules && !gs_eligible_perhaps(verdict)) {
        if (!gs_pod_selects(ask->rules, fact->rules))
            return GS_OBSTACLE_AFFINITY;
        if (gs_find_untolerated(ask->rules, fact->rules))
            return GS_OBSTACLE_TAINT;
    }
    if (!fact->ready)
        return GS_OBSTACLE_NOT_READY;
    if (verdict == GS_ELIGIBLE_NOT_CORDONED)
        return GS_OBSTACLE_CORDONED;
    if (verdict == GS_ELIGIBLE_NOT_TAINTED)
        return GS_OBSTACLE_TAINT;
    return fact->allocatable_units ? GS_OBSTACLE_NONE : GS_OBSTACLE_NO_PLUGIN;
}

enum gs_obstacle gs_place_open(const struct gs_place *place, const struct gs_ask *ask,
                               uint32_t slot)
{
    if (!place->facts)
        return GS_OBSTACLE_NONE;
    const struct gs_node_fact *fact = gs_node_fact(place->facts, slot);
    return fact ? obstacle_of(ask, fact) : GS_OBSTACLE_NOT_READY;
}

/* GPUs and all: how many such pods kube-scheduler lets in. */
static uint64_t count_allocatable(const struct gs_place *place, const struct gs_node_view *view,
                                  const struct gs_ask *ask)
{
    const struct gs_node_fact *fact = place->facts ? gs_node_fact(place->facts, view->slot) : NULL;
    const uint64_t each = (uint64_t)ask->units * ask->gpu_count;
    if (!fact || !each)
        return UINT64_MAX;
    const uint64_t units = fact->allocatable_units, used = view->sum_used_units;
    return units > used ? (units - used) / each : 0;
}

enum gs_obstacle gs_place_judge(const struct gs_place *place, const struct gs_ask *ask,
                                const struct gs_node_view *view, enum gs_reason *ret_reason,
                                struct gs_beside *ret)
{
    enum gs_obstacle obstacle = gs_place_open(place, ask, view->slot);
    *ret_reason = GS_FITS;
    if (obstacle == GS_OBSTACLE_TAINT || obstacle == GS_OBSTACLE_AFFINITY)
        return obstacle;
    *ret_reason = gs_fit_beside_holds(place->ledger, view, ask, ret);
    if (*ret_reason == GS_FITS && obstacle == GS_OBSTACLE_NONE &&
        !count_allocatable(place, view, ask))
        *ret_reason = GS_REASON_NO_ROOM;
    if (*ret_reason != GS_FITS)
        return GS_OBSTACLE_GPU;
    if (obstacle == GS_OBSTACLE_NONE && !gs_view_has_cpu(view, ask->cpu_milli))
        return GS_OBSTACLE_CPU;
    return obstacle;
}

/* --- all nodes --- */

bool gs_place_choose(const struct gs_place *place, const struct gs_ask *ask, bool *refused,
                     uint32_t *ret_slot, gs_gpu_mask *ret_gpus)
{
    struct gs_ask matched = *ask;
    struct gs_match match;
    struct gs_chooser chooser;
    struct gs_beside now;
    struct gs_choice choice, best = {0};
    enum gs_reason reason;
    uint32_t slot = GS_INDEX_NONE;
    gs_ask_match(&matched, place->ledger, &match);
    gs_chooser_init(&chooser, place->policies, place->policy, &matched);
    for (uint32_t i = 0; i < gs_ledger_slots(place->ledger); i++) {
        if (refused[i])
            continue;
        const struct gs_node_view *view = gs_ledger_view_at(place->ledger, i);
        /* what costs least first */
        refused[i] = !view || gs_fit(view, &matched) != GS_FITS ||
                     gs_place_judge(place, &matched, view, &reason, &now) != GS_OBSTACLE_NONE ||
                     !gs_chooser_choose(&chooser, &now.view, &choice);
        if (refused[i] || (slot != GS_INDEX_NONE && choice.loss >= best.loss))
            continue;
        slot = i;
        best = choice;
    }
    if (slot == GS_INDEX_NONE)
        return false;
    gs_gpu_mask gpus =
        gs_place_gpus(place, gs_ledger_view_at(place->ledger, slot), &matched, &reason);
    if (!gpus)
        return false;
    *ret_slot = slot;
    *ret_gpus = gpus;
    return true;
}

gs_gpu_mask gs_place_gpus(const struct gs_place *place, const struct gs_node_view *view,
                          const struct gs_ask *ask, enum gs_reason *ret_reason)
{
    const struct gs_ledger *ledger = place->ledger;
    struct gs_beside now;
    struct gs_chooser chooser;
    struct gs_choice choice;
    const struct gs_hold *hold = gs_ledger_find_hold(ledger, ask->uid);
    if (hold && hold->gpus && hold->slot == view->slot &&
        gs_fit_chosen(ledger, view, ask, hold->gpus, NULL) == GS_FITS) {
        *ret_reason = GS_FITS;
        return hold->gpus;
    }
    *ret_reason = gs_fit_beside_holds(ledger, view, ask, &now);
    if (*ret_reason != GS_FITS)
        return 0;
    gs_chooser_init(&chooser, place->policies, place->policy, ask);
    if (gs_chooser_choose(&chooser, &now.view, &choice) &&
        gs_fit_chosen(ledger, view, ask, choice.gpus, NULL) == GS_FITS)
        return choice.gpus;
    const gs_gpu_mask tightest = gs_pick_tightest(&now.view, ask);
    *ret_reason = gs_fit_chosen(ledger, view, ask, tightest, NULL);
    return *ret_reason == GS_FITS ? tightest : 0;
}

/* --- how many --- */

/* Nobody is nominated and each takes one GPU: no order of them makes a difference. */
static uint64_t count_shares(const struct gs_node_view *view, const struct gs_ask *ask)
{
    gs_gpu_mask candidates = gs_fit_candidates(view, ask);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        if (!(candidates & GS_GPU_BIT(gpu->idx)))
            continue;
        uint32_t shares = gpu->free_units / ask->units;
        if (ask->cores_pct && gpu->free_cores_pct / ask->cores_pct < shares)
            shares = gpu->free_cores_pct / ask->cores_pct;
        if (gpu->max_pods && gpu->max_pods - gpu->pods < shares)
            shares = gpu->max_pods - gpu->pods;
        sum += shares;
    }
    return sum;
}

/* One after the other: each finds the seats of nominated pods moved by the one before. */
static uint64_t count_placed(const struct gs_place *place, const struct gs_node_view *view,
                             const struct gs_ask *ask, uint64_t most)
{
    struct gs_gpu_state states[GS_GPUS_MAX];
    struct gs_node_view copy = gs_view_copy(view, states);
    enum gs_reason reason;
    gs_gpu_mask gpus;
    uint64_t count = 0;
    while (count < most && (gpus = gs_place_gpus(place, &copy, ask, &reason)) != 0) {
        gs_view_charge(&copy, gpus, ask->each, 1);
        gs_view_summarise(&copy);
        copy.cpu_used_milli += ask->cpu_milli; /* a policy may look at it */
        count++;
    }
    return count;
}

uint64_t gs_place_count(const struct gs_place *place, const struct gs_ask *ask, uint32_t slot)
{
    const struct gs_node_view *view = gs_ledger_view_at(place->ledger, slot);
    uint64_t most = view ? count_allocatable(place, view, ask) : 0;
    if (!view || !ask->units || ask->broken || gs_place_open(place, ask, slot) != GS_OBSTACLE_NONE)
        return 0;
    if (view->cpu_milli && ask->cpu_milli > 0) {
        const uint64_t by_cpu = (uint64_t)(gs_view_cpu_left_milli(view) / ask->cpu_milli);
        most = by_cpu < most ? by_cpu : most;
    }
    if (view->nominated || ask->gpu_count > 1)
        return count_placed(place, view, ask, most);
    uint64_t shares = count_shares(view, ask);
    return shares < most ? shares : most;
}

/* --- claims --- */

static void put_uid(char uid[UID_BYTES], uint32_t number)
{
    snprintf(uid, UID_BYTES, "/%" PRIu32, number); /* no UID begins like this */
}

int gs_place_claim(struct gs_place *place, const struct gs_ask *ask, uint32_t slot,
                   gs_gpu_mask gpus, struct gs_error *err)
{
    char uid[UID_BYTES];
    put_uid(uid, place->made);
    struct gs_claim claim = gs_claim_of_ask(ask, gpus);
    claim.uid = uid;
    claim.ns = claim.name = "";
    claim.node = gs_ledger_node_name(place->ledger, slot);
    if (gs_ledger_set_claim(place->ledger, &claim, err) < 0)
        return -1;
    place->made++;
    return 0;
}

void gs_place_take_back(struct gs_place *place, uint32_t from)
{
    char uid[UID_BYTES];
    while (place->made > from) {
        put_uid(uid, --place->made);
        gs_ledger_remove(place->ledger, uid, NULL);
    }
}
