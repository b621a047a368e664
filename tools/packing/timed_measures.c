/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "timed_internal.h"

/* What a timed replay counts, and what it comes to. */

enum { MS_PER_S = 1000 };

const char *gs_timed_class_name(enum gs_timed_class which)
{
    static const char *const names[GS_TIMED_CLASSES] = {"cpu", "part", "1", "2-7", "8+", "gpu"};
    return names[which];
}

static enum gs_timed_class class_of(const struct gs_trace_pod *pod)
{
    enum { MANY = 8 };
    if (!pod->gpus)
        return GS_TIMED_CPU;
    if (pod->gpu_milli < GS_TRACE_CARD_MILLI)
        return GS_TIMED_PART;
    if (pod->gpus == 1)
        return GS_TIMED_ONE;
    return pod->gpus < MANY ? GS_TIMED_SEVERAL : GS_TIMED_EIGHT;
}

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

/* Numbers the models; *ret_names: one name for each. */
static int find_models(struct timed_measures *measures, const struct replay *replay,
                       const char ***ret_names, uint32_t *ret_count)
{
    uint32_t count = 0, nodes = replay->trace->node_count;
    const char **names = gs_arena_calloc(&measures->arena, nodes + 1u, sizeof(*names));
    measures->model_of = gs_arena_calloc(&measures->arena, nodes + 1u, sizeof(*measures->model_of));
    measures->free_milli =
        gs_arena_calloc(&measures->arena, nodes + 1u, sizeof(*measures->free_milli));
    if (!names || !measures->model_of || !measures->free_milli)
        return -1;
    for (uint32_t slot = 0; slot < nodes; slot++) {
        const struct gs_trace_node *node = replay->nodes[slot].trace;
        uint32_t model = 0;
        while (model < count && strcmp(names[model], node->model) != 0)
            model++;
        if (model == count)
            names[count++] = node->model;
        measures->model_of[slot] = model;
        measures->free_milli[model] += (uint64_t)node->gpus * GS_TRACE_CARD_MILLI;
        measures->capacity_milli += (uint64_t)node->gpus * GS_TRACE_CARD_MILLI;
    }
    measures->all_free_milli = measures->capacity_milli;
    *ret_names = names;
    *ret_count = count;
    return 0;
}

static int match_models(struct timed_measures *measures, const char *const *names, uint32_t count)
{
    for (uint32_t s = 0; s < measures->shape_count; s++) {
        struct timed_shape *shape = &measures->shapes[s];
        if (!shape->pod->models[0])
            continue;
        shape->models = gs_arena_calloc(&measures->arena, count, sizeof(*shape->models));
        if (!shape->models)
            return -1;
        for (uint32_t m = 0; m < count; m++) {
            if (timed_models_allow(shape->pod->models, names[m]))
                shape->models[shape->model_count++] = m;
        }
    }
    return 0;
}

int timed_measures_init(struct timed_measures *measures, const struct replay *replay,
                        int64_t from_ms)
{
    const char **names;
    uint32_t count;
    measures->from_ms = from_ms;
    if (find_shapes(measures, replay->trace) < 0 ||
        find_models(measures, replay, &names, &count) < 0)
        return -1;
    return match_models(measures, names, count);
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

void timed_measures_charge(struct timed_measures *measures, uint32_t row, int64_t slot, int sign)
{
    uint64_t demand_milli = measures->shapes[measures->shape_of[row]].demand_milli;
    uint64_t *free_milli = &measures->free_milli[measures->model_of[slot]];
    *free_milli = sign > 0 ? *free_milli - demand_milli : *free_milli + demand_milli;
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
    uint64_t milli = 0;
    if (!shape->models)
        return measures->all_free_milli;
    for (uint32_t m = 0; m < shape->model_count; m++)
        milli += measures->free_milli[shape->models[m]];
    return milli;
}

void timed_measures_settle(struct timed_measures *measures)
{
    uint64_t wanted = 0;
    if (measures->waiting > measures->longest_queue)
        measures->longest_queue = measures->waiting;
    for (uint32_t s = 0; measures->waiting && s < measures->shape_count; s++) {
        const struct timed_shape *shape = &measures->shapes[s];
        if (shape->waiting && shape->demand_milli <= free_for(measures, shape))
            wanted += shape->waiting * shape->demand_milli;
    }
    measures->lost_milli = wanted < measures->all_free_milli ? wanted : measures->all_free_milli;
}

/* --- at the end --- */

static int ascending(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* waits: those of pods that started, and of those that still wait. */
static void summarise(int64_t *waits, uint32_t count, struct gs_timed_waits *ret)
{
    int64_t sum = 0;
    if (!count)
        return;
    qsort(waits, count, sizeof(*waits), ascending);
    for (uint32_t i = 0; i < count; i++) {
        sum += waits[i];
        ret->starved += waits[i] > (int64_t)GS_TIMED_STARVED_S * MS_PER_S;
    }
    ret->pods = count;
    ret->mean_ms = sum / count;
    ret->p50_ms = waits[(uint64_t)count * 50 / 100];
    ret->p99_ms = waits[(uint64_t)count * 99 / 100];
    ret->max_ms = waits[count - 1];
}

static double percent_of(unsigned __int128 sum, const struct timed_measures *measures)
{
    double all = (double)measures->capacity_milli * (double)(measures->now_ms - measures->from_ms);
    return 100 * (double)sum / all;
}

int timed_measures_finish(const struct timed_measures *measures, const struct gs_trace *trace,
                          const struct gs_timed_workload *workload, const struct timed_pod *pods,
                          struct gs_timed_result *ret)
{
    _cleanup_free_ int64_t *waits = calloc(workload->count + 1u, sizeof(*waits));
    if (!waits)
        return -1;
    *ret = (struct gs_timed_result){
        .allocated_pct = percent_of(measures->used_sum, measures),
        .lost_pct = percent_of(measures->lost_sum, measures),
        .longest_queue = measures->longest_queue,
    };
    for (int which = 0; which < GS_TIMED_CLASSES; which++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < workload->count; i++) {
            const struct gs_timed_arrival *arrival = &workload->arrivals[i];
            int of = (int)class_of(&trace->pods[arrival->pod]);
            bool in = of == which || (which == GS_TIMED_ALL && of != GS_TIMED_CPU);
            if (!in || arrival->at_ms < workload->warmup_ms)
                continue;
            bool waits_still = pods[i].started_ms == TIMED_WAITS;
            int64_t end_ms = waits_still ? workload->until_ms : pods[i].started_ms;
            waits[count++] = end_ms - arrival->at_ms;
            ret->waits[which].waiting += waits_still;
        }
        summarise(waits, count, &ret->waits[which]);
    }
    return 0;
}
