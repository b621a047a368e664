/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpushare/core/defrag.h"
#include "timed_internal.h"

/*
 * Once an hour somebody does what `kubectl inspect gpushare defrag` says: for those who wait
 * although the sum of what is free would do, in the order in which they came, while the hour's
 * moves last. Planned by the same code, on a copy of the cluster. A pod that is moved begins anew.
 */

enum { UID_BYTES = 16 };

struct plans {
    struct timed *timed;
    struct replay copy;
    struct gs_defrag_pod *pods; /* those that run and have GPUs */
    char (*uids)[UID_BYTES];
    uint32_t *numbers; /* of their arrivals */
    struct gs_place place;
    uint32_t count, left; /* moves left */
    struct gs_defrag *defrag;
};

static void release(struct plans *plans)
{
    if (plans->defrag)
        gs_defrag_free(plans->defrag);
    gs_replay_close(&plans->copy);
    free(plans->pods);
    free(plans->uids);
    free(plans->numbers);
}

static uint32_t row_of(const struct timed *timed, uint32_t number)
{
    return timed->workload->arrivals[number].pod;
}

/* A pod that runs, as it is, on the copy. */
static int copy_pod(struct plans *plans, uint32_t number, int64_t now_ms, struct gs_error *err)
{
    struct timed *timed = plans->timed;
    uint32_t row = row_of(timed, number);
    int64_t slot = timed->pods[number].slot;
    char *uid = plans->uids[plans->count];
    struct gs_claim claim;
    snprintf(uid, UID_BYTES, "%" PRIu32, number);
    if (gs_ledger_find_claim(timed->replay.ledger, uid, &claim)) {
        plans->copy.gpus[slot] = claim.gpus;
        plans->numbers[plans->count] = number;
        plans->pods[plans->count++] =
            (struct gs_defrag_pod){.uid = uid,
                                   .ns = "",
                                   .name = uid,
                                   .ask = timed->replay.asks[row],
                                   .age_s = (now_ms - timed->pods[number].started_ms) / 1000,
                                   .movable = true};
    }
    return gs_replay_place(&plans->copy, number, row, slot, err);
}

static int begin(struct plans *plans, int64_t now_ms, struct gs_error *err)
{
    /* The copy has no policies to teach: those of the cluster decide. */
    static const struct gs_replay_spec untaught = {.learn = true};
    struct timed *timed = plans->timed;
    uint32_t running = timed->running.count;
    plans->copy = (struct replay){.trace = timed->replay.trace, .spec = &untaught};
    plans->pods = calloc(running + 1u, sizeof(*plans->pods));
    plans->uids = calloc(running + 1u, sizeof(*plans->uids));
    plans->numbers = calloc(running + 1u, sizeof(*plans->numbers));
    if (!plans->pods || !plans->uids || !plans->numbers)
        return gs_fail_nomem(err);
    if (gs_replay_open(&plans->copy, timed->workload->rank, err) < 0)
        return -1;
    for (uint32_t i = 0; i < running; i++) {
        if (copy_pod(plans, timed->running.all[i].number, now_ms, err) < 0)
            return -1;
    }
    plans->place = (struct gs_place){plans->copy.ledger, timed->replay.policies, NULL,
                                     timed->spec->replay.policy->placement, 0};
    plans->defrag = gs_defrag_new(&plans->place, plans->pods, plans->count);
    return plans->defrag ? 0 : gs_fail_nomem(err);
}

/* The planner looks at GPUs and CPU; the nodes' memory must do, too. Changes the copy's. */
static bool memory_suffices(struct plans *plans, const struct gs_defrag_plan *plan, uint32_t row)
{
    const struct timed *timed = plans->timed;
    struct replay_node *nodes = plans->copy.nodes;
    for (uint32_t i = 0; i < plan->count; i++) {
        uint32_t number = plans->numbers[plan->moves[i].pod];
        int64_t mib = timed->replay.trace->pods[row_of(timed, number)].memory_mib;
        nodes[plan->moves[i].slot].memory_left_mib -= mib;
        if (nodes[plan->moves[i].slot].memory_left_mib < 0)
            return false;
        nodes[timed->pods[number].slot].memory_left_mib += mib;
    }
    nodes[plan->slot].memory_left_mib -= timed->replay.trace->pods[row].memory_mib;
    return nodes[plan->slot].memory_left_mib >= 0;
}

/* Evicted, and begun anew where the plan says. */
static int move(struct plans *plans, const struct gs_defrag_move *to, int64_t now_ms,
                struct gs_error *err)
{
    struct timed *timed = plans->timed;
    uint32_t number = plans->numbers[to->pod], row = row_of(timed, number);
    struct timed_pod *pod = &timed->pods[number];
    gs_replay_vacate(&timed->replay, number, row, pod->slot);
    timed_measures_charge(&timed->measures, row, -1);
    timed->replay.gpus[to->slot] = to->gpus;
    if (gs_replay_place(&timed->replay, number, row, to->slot, err) < 0)
        return -1;
    timed_measures_charge(&timed->measures, row, 1);
    pod->slot = to->slot;
    timed_heap_put_off(&timed->running, number,
                       now_ms + timed->workload->arrivals[number].lasts_ms);
    return 0;
}

static int carry_out(struct plans *plans, const struct gs_defrag_plan *plan, uint32_t number,
                     int64_t now_ms, struct gs_error *err)
{
    struct timed *timed = plans->timed;
    for (uint32_t i = 0; i < plan->count; i++) {
        if (move(plans, &plan->moves[i], now_ms, err) < 0)
            return -1;
    }
    plans->left -= plan->count;
    timed->moves += plan->count;
    timed->state++;
    timed->replay.gpus[plan->slot] = plan->gpus;
    return timed_start(timed, number, plan->slot, now_ms, err);
}

/* *ret_go_on: false when nothing more can be planned on this copy. */
static int make_room(struct plans *plans, uint32_t number, int64_t now_ms, bool *ret_go_on,
                     struct gs_error *err)
{
    struct timed *timed = plans->timed;
    uint32_t row = row_of(timed, number);
    const struct gs_defrag_pod waiting = {
        .uid = "waiting", .ns = "", .name = "", .ask = timed->replay.asks[row]};
    _cleanup_(gs_defrag_plan_release) struct gs_defrag_plan plan = {0};
    uint32_t most = plans->left < GS_DEFRAG_MOVES_MAX ? plans->left : GS_DEFRAG_MOVES_MAX;
    enum gs_defrag_result result = gs_defrag_make_room(plans->defrag, &waiting, most, &plan);
    if (result == GS_DEFRAG_NO_MEMORY)
        return gs_fail_nomem(err);
    if (result != GS_DEFRAG_FOUND)
        return 0;
    *ret_go_on = false; /* one pod at a time: the next plan is made of what is then there */
    return memory_suffices(plans, &plan, row) ? carry_out(plans, &plan, number, now_ms, err) : 0;
}

/* One waiting pod of each shape: the others of it have no room either. */
static int plan_once(struct timed *timed, uint32_t *left, int64_t now_ms, struct gs_error *err)
{
    const struct timed_list *waiting = &timed->queue.waiting;
    _cleanup_(release) struct plans plans = {.timed = timed, .left = *left};
    bool go_on = true;
    if (begin(&plans, now_ms, err) < 0)
        return -1;
    for (uint32_t i = 0; i < waiting->count && go_on; i++) {
        struct timed_shape *shape = timed_shape_of(timed, waiting->all[i]);
        if (shape->planned_at == timed->state || !shape->pod->gpus)
            continue;
        shape->planned_at = timed->state;
        if (make_room(&plans, waiting->all[i], now_ms, &go_on, err) < 0)
            return -1;
    }
    *left = go_on ? 0 : plans.left;
    return 0;
}

int timed_moves_make(struct timed *timed, int64_t now_ms, struct gs_error *err)
{
    uint32_t left = timed->spec->moves_per_hour;
    uint64_t state = timed->state;
    for (bool more = timed->queue.waiting.count; more && left;) {
        uint32_t before = left;
        if (plan_once(timed, &left, now_ms, err) < 0)
            return -1;
        more = timed->queue.waiting.count && left < before;
    }
    if (timed->state != state)
        timed_queue_pod_left(&timed->queue, now_ms);
    return 0;
}
