/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/error.h"
#include "gpushare/core/policy.h"
#include "trace.h"

/*
 * Replays a trace against the shipped ledger and placement code, in process: pods arrive one after
 * the other, each is placed for good on the best node or counted as failed. The experiment is the
 * one of Weng et al., USENIX ATC'23, section 6 (README.md). A GPU has 1000 units, so that a
 * unit is gpu_milli. Single-threaded.
 *
 *   struct gs_replay_spec spec = {.policy = policy, .clock = gs_clock_system()};
 *   struct gs_replay_result result;
 *   if (gs_replay(&trace, &sequence, &spec, &result, err) < 0) ...
 *   result.curve[130] is the allocation at 130 % arrived
 *
 * Policies: binpack, spread, rollout, and orig: a scheduler extender without prioritize, that is
 * kube-scheduler's own LeastAllocated and BalancedAllocation and the tightest GPU.
 */
enum { GS_REPLAY_BUCKETS = 301 };

struct gs_replay_policy {
    const char *name;
    enum gs_placement placement; /* DEFAULT: orig */
};

/* By name; NULL when there is none. */
const struct gs_replay_policy *gs_replay_policy_find(const char *name);

struct gs_replay_arrival {
    uint32_t number; /* from 0 */
    uint32_t pod;    /* row of the pod file */
    int64_t node;    /* row of the node file, -1: nowhere */
    gs_gpu_mask gpus;
};

struct gs_replay_spec {
    const struct gs_replay_policy *policy;
    const struct gs_clock *clock; /* for decision times */
    bool learn;                   /* from the pods as they arrive; else the whole trace is known */
    uint64_t seed;                /* of what is drawn: orig's choice among equal nodes */

    void (*arrival)(void *ctx, const struct gs_replay_arrival *arrival); /* may be NULL */
    void *ctx;
};

struct gs_replay_result {
    uint32_t failed;
    uint64_t capacity_milli;
    uint64_t used_milli; /* at the end */
    /* By arrived demand in percent of the capacity, rounded: the mean allocation in percent,
     * rounded to 2 decimals; negative where there was no arrival. */
    double curve[GS_REPLAY_BUCKETS];
    int64_t mean_ns, p99_ns, max_ns; /* of a decision: filter and score all nodes, choose */
};

/* *ret is untouched on failure. GS_ENOMEM, GS_EINVAL (two nodes of one name). */
int gs_replay(const struct gs_trace *trace, const struct gs_trace_sequence *sequence,
              const struct gs_replay_spec *spec, struct gs_replay_result *ret,
              struct gs_error *err);

/*
 * The experiment's sequence for a seed of one's own: all pods in a shuffled order, then more of
 * them, drawn with replacement, while the GPU demand stays within `percent` of the capacity;
 * shuffled ranks. splitmix64 and Fisher-Yates: the same on every machine. GS_EINVAL: a trace
 * without GPU nodes or without GPU pods, or percent above GS_REPLAY_BUCKETS - 1.
 */
int gs_replay_sequence(const struct gs_trace *trace, uint64_t seed, uint32_t percent,
                       struct gs_trace_sequence *ret, struct gs_error *err);
