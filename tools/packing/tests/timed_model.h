/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <string.h>

#include "timed.h"

/*
 * A slow, obvious model of a timed replay with binpack: it goes through every millisecond and, in
 * each, through all pods. It shares no code with the replay but the workload that was drawn. Models
 * of nodes are one letter; all nodes have GPUs.
 */
enum { MODEL_PODS_MAX = 2000, MODEL_NODES_MAX = 8, MODEL_GPUS_MAX = 8 };

enum model_state { MODEL_TO_COME, MODEL_WAITS, MODEL_RUNS, MODEL_GONE };

struct model_pod {
    enum model_state state;
    int64_t tried_ms, due_ms; /* due -1: when a pod leaves */
    int64_t started_ms;
    uint32_t failures;
    int node; /* row */
    uint64_t gpus;
};

struct model {
    const struct gs_trace *trace;
    const struct gs_timed_workload *workload;
    struct model_pod pods[MODEL_PODS_MAX];
    uint32_t free_milli[MODEL_NODES_MAX][MODEL_GPUS_MAX];
    int64_t cpu[MODEL_NODES_MAX], memory[MODEL_NODES_MAX];
    uint64_t used_sum, lost_sum, capacity; /* milli × ms, milli × ms, milli */
    uint32_t longest_queue;
};

static const struct gs_trace_pod *model_asks(const struct model *model, uint32_t number)
{
    return &model->trace->pods[model->workload->arrivals[number].pod];
}

static uint64_t model_demand(const struct model *model, uint32_t number)
{
    return (uint64_t)model_asks(model, number)->gpus * model_asks(model, number)->gpu_milli;
}

static bool model_allows(const struct model *model, uint32_t number, uint32_t node)
{
    const char *models = model_asks(model, number)->models;
    return !models[0] || strstr(models, model->trace->nodes[node].model);
}

static uint64_t model_free(const struct model *model, uint32_t node)
{
    uint64_t sum = 0;
    for (uint32_t g = 0; g < model->trace->nodes[node].gpus; g++)
        sum += model->free_milli[node][g];
    return sum;
}

/* ---- placing: the tightest GPU, then the fullest node, then the smallest rank ---- */

static bool model_fits(const struct model *model, uint32_t number, uint32_t node,
                       uint64_t *ret_gpus, uint64_t *ret_left)
{
    const struct gs_trace_pod *pod = model_asks(model, number);
    uint32_t found = 0;
    *ret_gpus = *ret_left = 0;
    if (model->cpu[node] < pod->cpu_milli || model->memory[node] < pod->memory_mib ||
        !model_allows(model, number, node))
        return false;
    for (; found < pod->gpus; found++) {
        int best = -1;
        for (uint32_t g = 0; g < model->trace->nodes[node].gpus; g++) {
            uint32_t free_milli = model->free_milli[node][g];
            if (free_milli >= pod->gpu_milli && !(*ret_gpus >> g & 1) &&
                (best < 0 || free_milli < model->free_milli[node][best]))
                best = (int)g;
        }
        if (best < 0)
            return false;
        *ret_gpus |= (uint64_t)1 << best;
        *ret_left += model->free_milli[node][best] - pod->gpu_milli;
    }
    return true;
}

static void model_move(struct model *model, uint32_t number, int sign)
{
    const struct gs_trace_pod *pod = model_asks(model, number);
    const struct model_pod *at = &model->pods[number];
    model->cpu[at->node] -= sign * pod->cpu_milli;
    model->memory[at->node] -= sign * pod->memory_mib;
    for (int g = 0; g < MODEL_GPUS_MAX; g++) {
        if (at->gpus >> g & 1)
            model->free_milli[at->node][g] -= (uint32_t)sign * pod->gpu_milli;
    }
}

static void model_try(struct model *model, uint32_t number, int64_t now_ms)
{
    struct model_pod *pod = &model->pods[number];
    uint64_t gpus, left, best_left = 0;
    pod->node = -1;
    for (uint32_t n = 0; n < model->trace->node_count; n++) {
        const uint32_t *rank = model->workload->rank;
        if (!model_fits(model, number, n, &gpus, &left))
            continue;
        if (pod->node >= 0) {
            uint32_t b = (uint32_t)pod->node;
            uint64_t here = model_free(model, n), there = model_free(model, b);
            bool worse = left != best_left ? left > best_left
                         : here != there   ? here > there
                                           : rank[n] > rank[b];
            if (worse)
                continue;
        }
        pod->node = (int)n;
        pod->gpus = gpus;
        best_left = left;
    }
    pod->due_ms = -1;
    pod->tried_ms = now_ms;
    if (pod->node < 0) {
        pod->failures++;
        return;
    }
    pod->state = MODEL_RUNS;
    pod->started_ms = now_ms;
    model_move(model, number, 1);
}

/* ---- a millisecond ---- */

static void model_leave(struct model *model, int64_t now_ms)
{
    static const int64_t pauses_ms[] = {0, 1000, 2000, 4000, 8000, 10000};
    bool any = false;
    for (uint32_t i = 0; i < model->workload->count; i++) {
        struct model_pod *pod = &model->pods[i];
        if (pod->state != MODEL_RUNS ||
            pod->started_ms + model->workload->arrivals[i].lasts_ms != now_ms)
            continue;
        pod->state = MODEL_GONE;
        model_move(model, i, -1);
        any = true;
    }
    for (uint32_t i = 0; any && i < model->workload->count; i++) {
        struct model_pod *pod = &model->pods[i];
        if (pod->state != MODEL_WAITS || pod->due_ms >= 0)
            continue;
        int64_t end_ms = pod->tried_ms + pauses_ms[pod->failures < 5 ? pod->failures : 5];
        pod->due_ms = now_ms;
        if (end_ms > now_ms)
            pod->due_ms = (end_ms + 999) / 1000 * 1000;
    }
}

static void model_arrive(struct model *model, int64_t now_ms)
{
    for (uint32_t i = 0; i < model->workload->count; i++) {
        if (model->workload->arrivals[i].at_ms == now_ms)
            model->pods[i] =
                (struct model_pod){.state = MODEL_WAITS, .tried_ms = now_ms, .due_ms = now_ms};
    }
}

/* The pod whose turn it is, or -1. */
static int64_t model_next(const struct model *model, int64_t now_ms)
{
    int64_t best = -1;
    for (uint32_t i = 0; i < model->workload->count; i++) {
        const struct model_pod *pod = &model->pods[i], *than = &model->pods[best < 0 ? 0 : best];
        if (pod->state != MODEL_WAITS || pod->due_ms != now_ms)
            continue;
        uint32_t mine = model->trace->stays[model->workload->arrivals[i].pod].priority;
        uint32_t its =
            model->trace->stays[model->workload->arrivals[best < 0 ? 0 : best].pod].priority;
        if (best < 0 || mine > its || (mine == its && pod->tried_ms < than->tried_ms))
            best = i;
    }
    return best;
}

static void model_measure(struct model *model, int64_t now_ms)
{
    uint64_t all_free = 0, wanted = 0;
    uint32_t waiting = 0;
    for (uint32_t n = 0; n < model->trace->node_count; n++)
        all_free += model_free(model, n);
    for (uint32_t i = 0; i < model->workload->count; i++) {
        uint64_t usable = 0;
        if (model->pods[i].state != MODEL_WAITS)
            continue;
        waiting++;
        for (uint32_t n = 0; n < model->trace->node_count; n++)
            usable += model_allows(model, i, n) ? model_free(model, n) : 0;
        if (usable >= model_demand(model, i))
            wanted += model_demand(model, i);
    }
    if (waiting > model->longest_queue)
        model->longest_queue = waiting;
    if (now_ms < model->workload->warmup_ms)
        return;
    model->used_sum += model->capacity - all_free;
    model->lost_sum += wanted < all_free ? wanted : all_free;
}

static void model_run(struct model *model)
{
    for (uint32_t n = 0; n < model->trace->node_count; n++) {
        model->cpu[n] = model->trace->nodes[n].cpu_milli;
        model->memory[n] = model->trace->nodes[n].memory_mib;
        for (uint32_t g = 0; g < model->trace->nodes[n].gpus; g++)
            model->free_milli[n][g] = GS_TRACE_CARD_MILLI;
        model->capacity += model_free(model, n);
    }
    for (int64_t now_ms = 0; now_ms < model->workload->until_ms; now_ms++) {
        model_leave(model, now_ms);
        model_arrive(model, now_ms);
        for (int64_t next; (next = model_next(model, now_ms)) >= 0;)
            model_try(model, (uint32_t)next, now_ms);
        model_measure(model, now_ms);
    }
}

/* ---- what it comes to ---- */

static bool model_is(const struct gs_trace_pod *pod, enum gs_timed_class which)
{
    switch (which) {
    case GS_TIMED_CPU:
        return pod->gpus == 0;
    case GS_TIMED_PART:
        return pod->gpus == 1 && pod->gpu_milli < 1000;
    case GS_TIMED_ONE:
        return pod->gpus == 1 && pod->gpu_milli == 1000;
    case GS_TIMED_SEVERAL:
        return pod->gpus > 1 && pod->gpus < 8;
    case GS_TIMED_EIGHT:
        return pod->gpus >= 8;
    default:
        return pod->gpus > 0;
    }
}

/* The measures of one class, from the model's pods. */
static struct gs_timed_waits model_waits(const struct model *model, enum gs_timed_class which)
{
    static int64_t waits[MODEL_PODS_MAX];
    struct gs_timed_waits ret = {0};
    int64_t sum = 0;
    for (uint32_t i = 0; i < model->workload->count; i++) {
        const struct gs_timed_arrival *arrival = &model->workload->arrivals[i];
        bool waits_still = model->pods[i].state == MODEL_WAITS;
        if (!model_is(model_asks(model, i), which) || arrival->at_ms < model->workload->warmup_ms)
            continue;
        int64_t end_ms = waits_still ? model->workload->until_ms : model->pods[i].started_ms;
        uint32_t at = ret.pods++;
        for (; at && waits[at - 1] > end_ms - arrival->at_ms; at--)
            waits[at] = waits[at - 1];
        waits[at] = end_ms - arrival->at_ms;
        sum += waits[at];
        ret.waiting += waits_still;
    }
    for (uint32_t i = 0; i < ret.pods; i++)
        ret.starved += waits[i] > 6 * 3600 * 1000;
    if (ret.pods) {
        ret.mean_ms = sum / ret.pods;
        ret.p50_ms = waits[ret.pods / 2];
        ret.p99_ms = waits[ret.pods * 99 / 100];
        ret.max_ms = waits[ret.pods - 1];
    }
    return ret;
}
