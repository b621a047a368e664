/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "replay_internal.h"

/* What a replay counts while pods arrive, and what it comes to. */

static uint64_t demand_of(const struct gs_trace_pod *pod)
{
    return (uint64_t)pod->gpus * pod->gpu_milli;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Arrived demand in percent, a half to the even side: as the published curves have it. */
static uint32_t bucket_of(const struct replay_metrics *metrics)
{
    uint64_t whole = metrics->capacity_milli ? metrics->capacity_milli : 1;
    uint64_t bucket = metrics->arrived_milli * 100 / whole;
    uint64_t rest = metrics->arrived_milli * 100 % whole;
    bool up = rest * 2 > whole || (rest * 2 == whole && bucket % 2);
    return bucket < GS_REPLAY_BUCKETS ? (uint32_t)bucket + up : GS_REPLAY_BUCKETS;
}

void gs_replay_count(struct replay_metrics *metrics, const struct gs_trace_pod *pod, bool placed,
                     int64_t decision_ns)
{
    metrics->decision_ns[metrics->arrivals++] = decision_ns;
    metrics->arrived_milli += demand_of(pod);
    if (placed)
        metrics->used_milli += demand_of(pod);
    else
        metrics->failed++;
    uint32_t bucket = bucket_of(metrics);
    if (bucket >= GS_REPLAY_BUCKETS)
        return;
    metrics->sums[bucket] += percent(metrics->used_milli, metrics->capacity_milli);
    metrics->counts[bucket]++;
}

static int ascending(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static void finish_times(struct replay_metrics *metrics, struct gs_replay_result *ret)
{
    if (!metrics->arrivals)
        return;
    qsort(metrics->decision_ns, metrics->arrivals, sizeof(*metrics->decision_ns), ascending);
    int64_t sum = 0;
    for (uint32_t i = 0; i < metrics->arrivals; i++)
        sum += metrics->decision_ns[i];
    ret->mean_ns = sum / metrics->arrivals;
    ret->p99_ns = metrics->decision_ns[(uint64_t)metrics->arrivals * 99 / 100];
    ret->max_ns = metrics->decision_ns[metrics->arrivals - 1];
}

void gs_replay_finish(struct replay_metrics *metrics, struct gs_replay_result *ret)
{
    *ret = (struct gs_replay_result){
        .failed = metrics->failed,
        .capacity_milli = metrics->capacity_milli,
        .used_milli = metrics->used_milli,
    };
    for (int b = 0; b < GS_REPLAY_BUCKETS; b++) {
        double mean = metrics->counts[b] ? metrics->sums[b] / metrics->counts[b] : -1;
        ret->curve[b] = mean < 0 ? -1 : (double)(int64_t)(mean * 100 + 0.5) / 100;
    }
    finish_times(metrics, ret);
}
