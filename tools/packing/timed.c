/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "timed_internal.h"

/* Pods come, wait, run and leave. */

enum { MS_PER_HOUR = 3600 * 1000 };

/* --- attempts --- */

struct timed_shape *timed_shape_of(const struct timed *timed, uint32_t number)
{
    uint32_t row = timed->workload->arrivals[number].pod;
    return &timed->measures.shapes[timed->measures.shape_of[row]];
}

int timed_start(struct timed *timed, uint32_t number, int64_t slot, int64_t now_ms,
                struct gs_error *err)
{
    const struct gs_timed_arrival *arrival = &timed->workload->arrivals[number];
    struct timed_leaving leaving = {now_ms + arrival->lasts_ms, number};
    if (gs_replay_place(&timed->replay, number, arrival->pod, slot, err) < 0)
        return -1;
    if (timed_heap_push(&timed->running, &leaving) < 0)
        return gs_fail_nomem(err);
    timed->pods[number].started_ms = now_ms;
    timed->pods[number].slot = slot;
    timed_queue_remove(&timed->queue, number);
    timed_measures_charge(&timed->measures, arrival->pod, 1);
    timed_measures_wait(&timed->measures, arrival->pod, -1);
    if (timed->spec->started)
        timed->spec->started(timed->spec->replay.ctx, number, now_ms);
    return 0;
}

static void fail(struct timed *timed, uint32_t number, int64_t now_ms)
{
    timed->pods[number].attempts++;
    timed->pods[number].tried_ms = now_ms;
    timed->pods[number].due_ms = TIMED_NEVER;
}

/* A pod for which no node has room fails at once. Others only take room away, so that these would
 * fail in their turn, too; in a long queue they are nearly all. */
static void drop_hopeless(struct timed *timed, int64_t now_ms)
{
    struct timed_list *batch = &timed->queue.batch;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t number = batch->all[i], row = timed->workload->arrivals[number].pod;
        struct timed_shape *shape = timed_shape_of(timed, number);
        if (shape->failed_at != timed->state && !gs_replay_has_room(&timed->replay, row))
            shape->failed_at = timed->state;
        if (shape->failed_at != timed->state)
            batch->all[kept++] = number;
        else
            fail(timed, number, now_ms);
    }
    batch->count = kept;
}

static int try_batch(struct timed *timed, int64_t now_ms, struct gs_error *err)
{
    struct timed_list *batch = &timed->queue.batch;
    if (timed_queue_batch(&timed->queue, now_ms) < 0)
        return gs_fail_nomem(err);
    drop_hopeless(timed, now_ms);
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t number = batch->all[i], row = timed->workload->arrivals[number].pod;
        struct timed_shape *shape = timed_shape_of(timed, number);
        int64_t slot =
            shape->failed_at == timed->state ? -1 : gs_replay_decide(&timed->replay, row);
        if (slot < 0) {
            shape->failed_at = timed->state;
            fail(timed, number, now_ms);
        } else if (timed_start(timed, number, slot, now_ms, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* --- what happens at one moment --- */

static void leave(struct timed *timed, int64_t now_ms)
{
    struct timed_heap *running = &timed->running;
    bool any = false;
    for (; running->count && running->all[0].at_ms == now_ms; any = true) {
        uint32_t number = timed_heap_pop(running).number;
        uint32_t row = timed->workload->arrivals[number].pod;
        gs_replay_vacate(&timed->replay, number, row, timed->pods[number].slot);
        timed_measures_charge(&timed->measures, row, -1);
    }
    timed->state += any;
    if (any)
        timed_queue_pod_left(&timed->queue, now_ms);
}

static int arrive(struct timed *timed, int64_t now_ms, struct gs_error *err)
{
    const struct gs_timed_workload *workload = timed->workload;
    for (; timed->arrived < workload->count && workload->arrivals[timed->arrived].at_ms == now_ms;
         timed->arrived++) {
        uint32_t row = workload->arrivals[timed->arrived].pod;
        timed->pods[timed->arrived] = (struct timed_pod){
            .started_ms = TIMED_WAITS,
            .tried_ms = now_ms,
            .due_ms = now_ms,
        };
        timed_measures_wait(&timed->measures, row, 1);
        if (gs_replay_learn(&timed->replay, row, err) < 0)
            return -1;
        if (timed_queue_add(&timed->queue, timed->arrived) < 0)
            return gs_fail_nomem(err);
    }
    return 0;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When something happens next, the end at the latest. */
static int64_t next_ms(const struct timed *timed)
{
    int64_t next = sooner(timed->workload->until_ms,
                          timed_queue_next_ms(&timed->queue, timed->measures.now_ms));
    if (timed->running.count)
        next = sooner(next, timed->running.all[0].at_ms);
    if (timed->arrived < timed->workload->count)
        next = sooner(next, timed->workload->arrivals[timed->arrived].at_ms);
    if (timed->spec->moves_per_hour)
        next = sooner(next, timed->moved_ms + MS_PER_HOUR);
    return next;
}

static int run(struct timed *timed, struct gs_error *err)
{
    for (;;) {
        int64_t now_ms = next_ms(timed);
        timed_measures_advance(&timed->measures, now_ms);
        if (now_ms == timed->workload->until_ms)
            return 0;
        leave(timed, now_ms);
        if (arrive(timed, now_ms, err) < 0 || try_batch(timed, now_ms, err) < 0)
            return -1;
        if (timed->spec->moves_per_hour && now_ms == timed->moved_ms + MS_PER_HOUR) {
            timed->moved_ms = now_ms;
            if (timed_moves_make(timed, now_ms, err) < 0)
                return -1;
        }
        timed_measures_settle(&timed->measures);
    }
}

static void release(struct timed *timed)
{
    gs_replay_close(&timed->replay);
    timed_queue_release(&timed->queue);
    timed_measures_release(&timed->measures);
    free(timed->running.all);
    free(timed->pods);
}

int gs_timed_replay(const struct gs_trace *trace, const struct gs_timed_workload *workload,
                    const struct gs_timed_spec *spec, struct gs_timed_result *ret,
                    struct gs_error *err)
{
    _cleanup_(release) struct timed timed = {
        .replay = {.trace = trace, .spec = &spec->replay, .random = spec->replay.seed},
        .workload = workload,
        .spec = spec,
        .pods = calloc(workload->count + 1u, sizeof(*timed.pods)),
        .state = 1,
    };
    if (spec->moves_per_hour && spec->replay.policy->placement == GS_PLACEMENT_DEFAULT)
        return gs_fail(err, GS_EINVAL, "moves are planned with the extender's own policies, not %s",
                       spec->replay.policy->name);
    timed.queue.pods = timed.pods;
    if (!timed.pods)
        return gs_fail_nomem(err);
    if (gs_replay_open(&timed.replay, workload->rank, err) < 0)
        return -1;
    if (timed_measures_init(&timed.measures, &timed.replay, workload->warmup_ms) < 0)
        return gs_fail_nomem(err);
    if (run(&timed, err) < 0)
        return -1;
    timed_measures_finish(&timed.measures, trace, workload, timed.pods, ret);
    ret->moves = timed.moves;
    return 0;
}
