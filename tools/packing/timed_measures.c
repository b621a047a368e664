/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "timed_internal.h"

/* What a timed replay counts, and what it comes to. */

enum { MS_PER_S = 1000 };

/* --- shapes and models --- */

bool timed_models_allow(const char *models, const char *model)
{
    size_t len = strlen(model);
    if (!models[0])
        return true;
    for (const char *at = models; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, model, len) == 0 && (at[len] == '|' || !at[len]))
            return true;
    }
    return false;
}

static int by_shape(const void *a, const void *b, void *ctx)
{
    const struct gs_trace_pod *pods = ctx;
    const struct gs_trace_pod *left = &pods[*(const uint32_t *)a];
    const struct gs_trace_pod *right = &pods[*(const uint32_t *)b];
    if (left->cpu_milli != right->cpu_milli)
        return left->cpu_milli < right->cpu_milli ? -1 : 1;
    if (left->memory_mib != right->memory_mib)
        return left->memory_mib < right->memory_mib ? -1 : 1;
    if (left->gpus != right->gpus)
        return left->gpus < right->gpus ? -1 : 1;
    if (left->gpu_milli != right->gpu_milli)
        return left->gpu_milli < right->gpu_milli ? -1 : 1;
    return strcmp(left->models, right->models);
}

/* Rows that ask for the same get one shape. */
static int find_shapes(struct timed_measures *measures, const struct gs_trace *trace)
{
    _cleanup_free_ uint32_t *rows = calloc(trace->pod_count + 1u, sizeof(*rows));
    measures->shapes =
        gs_arena_calloc(&measures->arena, trace->pod_count + 1u, sizeof(*measures->shapes));
    measures->shape_of =
        gs_arena_calloc(&measures->arena, trace->pod_count + 1u, sizeof(*measures->shape_of));
    if (!rows || !measures->shapes || !measures->shape_of)
        return -1;
    for (uint32_t i = 0; i < trace->pod_count; i++)
        rows[i] = i;
    qsort_r(rows, trace->pod_count, sizeof(*rows), by_shape, trace->pods);
    for (uint32_t i = 0; i < trace->pod_count; i++) {
        const struct gs_trace_pod *pod = &trace->pods[rows[i]];
        if (!i || by_shape(&rows[i - 1], &rows[i], trace->pods) != 0)
            measures->shapes[measures->shape_count++] = (struct timed_shape){
                .pod = pod, .demand_milli = (uint64_t)pod->gpus * pod->gpu_milli};
        measures->shape_of[rows[i]] = measures->shape_count - 1;
    }
    return 0;
}

int timed_measures_init(struct timed_measures *measures, const struct replay *replay,
                        int64_t from_ms)
{
    measures->replay = replay;
    measures->from_ms = from_ms;
    measures->capacity_milli = gs_replay_capacity_milli(replay->trace);
    measures->all_free_milli = measures->capacity_milli;
    return find_shapes(measures, replay->trace);
}

void timed_measures_release(struct timed_measures *measures)
{
    gs_arena_release(&measures->arena);
}

/* --- while time passes --- */

void timed_measures_advance(struct timed_measures *measures, int64_t now_ms)
{
    int64_t since_ms = measures->now_ms > measures->from_ms ? measures->now_ms : measures->from_ms;
    measures->now_ms = now_ms;
    if (now_ms <= since_ms)
        return;
    uint64_t passed_ms = (uint64_t)(now_ms - since_ms);
    uint64_t used_milli = measures->capacity_milli - measures->all_free_milli;
    measures->used_sum += (unsigned __int128)used_milli * passed_ms;
    measures->lost_sum += (unsigned __int128)measures->lost_milli * passed_ms;
}

void timed_measures_charge(struct timed_measures *measures, uint32_t row, int sign)
{
    uint64_t demand_milli = measures->shapes[measures->shape_of[row]].demand_milli;
    measures->all_free_milli = sign > 0 ? measures->all_free_milli - demand_milli
                                        : measures->all_free_milli + demand_milli;
}

void timed_measures_wait(struct timed_measures *measures, uint32_t row, int sign)
{
    struct timed_shape *shape = &measures->shapes[measures->shape_of[row]];
    shape->waiting = sign > 0 ? shape->waiting + 1 : shape->waiting - 1;
    measures->waiting = sign > 0 ? measures->waiting + 1 : measures->waiting - 1;
}

static uint64_t free_for(const struct timed_measures *measures, const struct timed_shape *shape)
{
    const struct replay *replay = measures->replay;
    uint64_t milli = 0;
    if (!shape->pod->models[0])
        return measures->all_free_milli;
    for (uint32_t slot = 0; slot < replay->trace->node_count; slot++) {
        if (timed_models_allow(shape->pod->models, replay->nodes[slot].trace->model))
            milli += gs_ledger_view_at(replay->ledger, slot)->sum_free_units;
    }
    return milli;
}

void timed_measures_settle(struct timed_measures *measures)
{
    uint64_t wanted = 0;
    for (uint32_t s = 0; measures->waiting && s < measures->shape_count; s++) {
        const struct timed_shape *shape = &measures->shapes[s];
        if (shape->waiting && shape->demand_milli <= free_for(measures, shape))
            wanted += shape->waiting * shape->demand_milli;
    }
    measures->lost_milli = wanted < measures->all_free_milli ? wanted : measures->all_free_milli;
}

/* --- at the end --- */

static double percent_of(unsigned __int128 sum, const struct timed_measures *measures)
{
    double all = (double)measures->capacity_milli * (double)(measures->now_ms - measures->from_ms);
    return 100 * (double)sum / all;
}

void timed_measures_finish(const struct timed_measures *measures, const struct gs_trace *trace,
                           const struct gs_timed_workload *workload, const struct timed_pod *pods,
                           struct gs_timed_result *ret)
{
    int64_t sum_ms = 0, count = 0;
    *ret = (struct gs_timed_result){
        .allocated_pct = percent_of(measures->used_sum, measures),
        .lost_pct = percent_of(measures->lost_sum, measures),
    };
    for (uint32_t i = 0; i < workload->count; i++) {
        const struct gs_timed_arrival *arrival = &workload->arrivals[i];
        if (arrival->at_ms < workload->warmup_ms)
            continue;
        bool waits_still = pods[i].started_ms == TIMED_WAITS;
        int64_t end_ms = waits_still ? workload->until_ms : pods[i].started_ms;
        int64_t wait_ms = end_ms - arrival->at_ms;
        ret->starved += wait_ms > (int64_t)GS_TIMED_STARVED_S * MS_PER_S;
        if (trace->pods[arrival->pod].gpus >= GS_TIMED_WHOLE_NODE) {
            sum_ms += wait_ms;
            count++;
        }
    }
    ret->whole_node_wait_ms = count ? sum_ms / count : 0;
}
