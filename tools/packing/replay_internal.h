/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "replay.h"

/* What replay*.c share. Nodes are in rank order everywhere but in the trace: slot = rank. */

struct replay_node {
    const struct gs_trace_node *trace;
    uint32_t row; /* in the node file */
    int64_t memory_left_mib;
};

struct replay {
    const struct gs_trace *trace;
    const struct gs_replay_spec *spec;
    struct gs_ledger *ledger;
    struct gs_policies *policies;
    struct replay_node *nodes;
    struct gs_ask *asks; /* by row of the pod file */
    char *texts;         /* of the asks */
    uint64_t random;

    /* of the decision being made */
    int64_t *losses;
    gs_gpu_mask *gpus;
    bool *fits;
};

/* The cluster without pods, and what the policies know of the trace beforehand; replay->trace, spec
 * and random are set. Close it also on failure. GS_ENOMEM, GS_EINVAL (two nodes of one name). */
int gs_replay_open(struct replay *replay, const uint32_t *rank, struct gs_error *err);
void gs_replay_close(struct replay *replay);

/* A pod has come: with spec->learn the policies hear of it. GS_ENOMEM. */
int gs_replay_learn(struct replay *replay, uint32_t row, struct gs_error *err);

/* The slot to place a pod of this row on, or -1. */
int64_t gs_replay_decide(struct replay *replay, uint32_t row);

/* On the GPUs of the decision just made; number is the pod's own. GS_ENOMEM. */
int gs_replay_place(struct replay *replay, uint32_t number, uint32_t row, int64_t slot,
                    struct gs_error *err);
void gs_replay_vacate(struct replay *replay, uint32_t number, uint32_t row, int64_t slot);

/* Some node would take it. */
bool gs_replay_has_room(const struct replay *replay, uint32_t row);

/* Fisher and Yates. */
void gs_replay_shuffle(uint32_t *all, uint32_t count, uint64_t *state);
uint64_t gs_replay_capacity_milli(const struct gs_trace *trace);

/* --- metrics --- */
struct replay_metrics {
    uint64_t arrived_milli, used_milli, capacity_milli;
    uint32_t arrivals, failed;
    double sums[GS_REPLAY_BUCKETS];
    uint32_t counts[GS_REPLAY_BUCKETS];
    int64_t *decision_ns; /* room for all arrivals */
};

void gs_replay_count(struct replay_metrics *metrics, const struct gs_trace_pod *pod, bool placed,
                     int64_t decision_ns);
void gs_replay_finish(struct replay_metrics *metrics, struct gs_replay_result *ret);
