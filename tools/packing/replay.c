/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "replay_internal.h"

/* The paper's experiment: pods arrive, none leaves. */

static int arrive(struct replay *replay, struct replay_metrics *metrics, uint32_t row,
                  struct gs_error *err)
{
    const struct gs_replay_spec *spec = replay->spec;
    if (gs_replay_learn(replay, row, err) < 0)
        return -1;
    int64_t start_ns = gs_clock_now_ns(spec->clock);
    int64_t slot = gs_replay_decide(replay, row);
    int64_t decision_ns = gs_clock_now_ns(spec->clock) - start_ns;
    uint32_t number = metrics->arrivals;
    if (slot >= 0 && gs_replay_place(replay, number, row, slot, err) < 0)
        return -1;
    gs_replay_count(metrics, &replay->trace->pods[row], slot >= 0, decision_ns);
    if (spec->arrival) {
        struct gs_replay_arrival arrival = {number, row, -1, 0};
        if (slot >= 0) {
            arrival.node = replay->nodes[slot].row;
            arrival.gpus = replay->gpus[slot];
        }
        spec->arrival(spec->ctx, &arrival);
    }
    return 0;
}

static int run(struct replay *replay, const struct gs_trace_sequence *sequence,
               struct replay_metrics *metrics, struct gs_error *err)
{
    if (gs_replay_open(replay, sequence->rank, err) < 0)
        return -1;
    metrics->capacity_milli = gs_replay_capacity_milli(replay->trace);
    for (uint32_t i = 0; i < sequence->arrivals; i++) {
        if (arrive(replay, metrics, sequence->pods[i], err) < 0)
            return -1;
    }
    return 0;
}

int gs_replay(const struct gs_trace *trace, const struct gs_trace_sequence *sequence,
              const struct gs_replay_spec *spec, struct gs_replay_result *ret, struct gs_error *err)
{
    _cleanup_(gs_replay_close) struct replay replay = {
        .trace = trace, .spec = spec, .random = spec->seed};
    _cleanup_free_ int64_t *decision_ns = calloc(sequence->arrivals + 1u, sizeof(*decision_ns));
    _cleanup_free_ struct replay_metrics *metrics = calloc(1, sizeof(*metrics));
    if (!decision_ns || !metrics)
        return gs_fail_nomem(err);
    metrics->decision_ns = decision_ns;
    if (run(&replay, sequence, metrics, err) < 0)
        return -1;
    gs_replay_finish(metrics, ret);
    return 0;
}
