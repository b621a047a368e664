/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "replay.h"

/*
 * Replay with time: pods arrive, run as long as the trace says, and leave; what does not fit waits
 * in a queue like kube-scheduler's. What is measured is how long pods wait, how much is allocated,
 * and how much GPU time is lost while a pod waits for which the sum of what is free would do.
 * Placement is the shipped ledger and policies, as in replay.h. Single-threaded.
 *
 *   struct gs_timed_draw draw = {.load_pct = 90, .cut_s = 86400, ...};
 *   struct gs_timed_workload workload = {0};
 *   if (gs_timed_draw(&trace, &draw, &workload, err) < 0 ||
 *       gs_timed_replay(&trace, &workload, &spec, &result, err) < 0) ...
 *   gs_timed_workload_release(&workload);
 *
 * Times are milliseconds since the run began.
 */
enum { GS_TIMED_ARRIVALS_MAX = 4000000, GS_TIMED_LOAD_MAX_PCT = 1000 };

struct gs_timed_arrival {
    int64_t at_ms, lasts_ms;
    uint32_t pod; /* row of the pod file */
};

struct gs_timed_workload {
    struct gs_timed_arrival *arrivals; /* by time */
    uint32_t count;
    uint32_t *rank;              /* of the nodes, as in a sequence */
    int64_t warmup_ms, until_ms; /* what arrives before warmup_ms is not measured */
};

struct gs_timed_draw {
    uint32_t load_pct; /* GPU time that is asked for, in percent of what there is */
    int64_t cut_s;     /* no pod runs longer */
    int64_t warmup_s, measured_s;
    uint64_t seed;
};

/*
 * Pairs of a shape and a duration, drawn together from the trace with replacement; exponential
 * gaps between arrivals, of a mean that gives the load. The same on every machine: the logarithm
 * is worked out in integers. GS_EINVAL: a load of 0 or above the ceiling, no time, a trace without
 * GPUs or without a pod with GPU of which it is known how long it ran. GS_ETOOBIG: more than
 * GS_TIMED_ARRIVALS_MAX arrivals. *ret zeroed before; untouched on failure.
 */
int gs_timed_draw(const struct gs_trace *trace, const struct gs_timed_draw *draw,
                  struct gs_timed_workload *ret, struct gs_error *err);
void gs_timed_workload_release(struct gs_timed_workload *workload);

/*
 * A smaller cluster: of each kind of node (CPU, memory, GPUs, model) the share that it has, by the
 * largest remainders; at most as many as there are. The trace's nodes are replaced. GS_EINVAL for
 * count 0, GS_ENOMEM.
 */
int gs_trace_sample_nodes(struct gs_trace *trace, uint32_t count, struct gs_error *err);

/*
 * The queue, after kube-scheduler (pkg/scheduler/internal/queue/scheduling_queue.go), with time
 * for nothing but waiting: an attempt takes none.
 *   - a pod that arrives is tried at once; one that does not fit may be tried again 1, 2, 4, 8,
 * then 10 s later, if a pod has left since;
 *   - when a pod leaves, all whose pause is over are tried, the others at the first whole second
 *     after it;
 *   - tried at the same moment: first the pod whose last attempt (or arrival) was longest ago, then
 *     the one that arrived first. None is evicted.
 */

/* A pod that waited longer than this was starved; so many GPUs take a whole node. */
enum { GS_TIMED_STARVED_S = 6 * 3600, GS_TIMED_WHOLE_NODE = 8 };

/* Of the measured time. A pod that still waits at the end has waited until then. */
struct gs_timed_result {
    double allocated_pct; /* of the GPU time */
    /* Of the same: at each moment the free GPU memory, or what those pods request together that
     * wait although their request is not more than all that is free on GPUs of their models,
     * whichever is less. */
    double lost_pct;
    int64_t whole_node_wait_ms; /* mean of pods that request GS_TIMED_WHOLE_NODE GPUs or more */
    uint32_t starved;
    uint32_t moves; /* that were made, warm-up included */
};

struct gs_timed_spec {
    struct gs_replay_spec replay; /* its arrival() is not called, clock is not read */
    void (*started)(void *ctx, uint32_t number, int64_t at_ms); /* with replay.ctx; or NULL */
    /* Every full hour so many pods are moved at most, as gs_defrag_make_room() says, for those that
     * wait although the sum of what is free would do. A moved pod begins again. Only with a policy
     * that the extender has, else GS_EINVAL. */
    uint32_t moves_per_hour;
};

/* *ret is untouched on failure. GS_ENOMEM, GS_EINVAL (two nodes of one name; moves with orig). */
int gs_timed_replay(const struct gs_trace *trace, const struct gs_timed_workload *workload,
                    const struct gs_timed_spec *spec, struct gs_timed_result *ret,
                    struct gs_error *err);
