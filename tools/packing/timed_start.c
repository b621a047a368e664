/* SPDX-License-Identifier: Apache-2.0 */
#include "timed_internal.h"

/* A pod starts on a node, tried in its turn or given room by moves. */

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
    timed_measures_charge(&timed->measures, arrival->pod, slot, 1);
    timed_measures_wait(&timed->measures, arrival->pod, -1);
    if (timed->spec->started) {
        struct gs_timed_start told = {now_ms, number, arrival->pod, timed->replay.nodes[slot].row,
                                      timed->replay.gpus[slot]};
        timed->spec->started(timed->spec->replay.ctx, &told);
    }
    return 0;
}
