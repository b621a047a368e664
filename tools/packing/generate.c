/* SPDX-License-Identifier: Apache-2.0 */
#include "generate.h"

#include <stdio.h>

#include "gpushare/base/splitmix.h"

/*
 * Marginals, rounded to whole percents and usual sizes, after the FGD paper (Weng et al., USENIX
 * ATC'23, tables 1 and 2) and the trace's README: shares of nodes by GPU model and number, cores
 * per GPU between 8 and 52; shares of pods by number of GPUs (13 % none, 38 % a part, 48 % one, 1 %
 * more), a third of the parts being 810 thousandths.
 */
struct node_kind {
    uint32_t weight; /* percent of nodes */
    const char *model;
    uint32_t gpus, cores, memory_gib;
};

static const struct node_kind node_kinds[] = {
    {45, "G2", 8, 96, 384},   {32, "T4", 2, 96, 512},     {11, "P100", 2, 16, 128},
    {3, "G3", 8, 128, 768},   {3, "V100M16", 4, 32, 128}, {2, "V100M32", 8, 96, 768},
    {2, "V100M16", 1, 8, 32}, {2, "T4", 4, 96, 384},
};

struct pod_kind {
    uint32_t weight; /* per mille of pods */
    uint32_t gpus;
    uint32_t gpu_milli; /* 0: drawn, see draw_part() */
    uint32_t cores;
};

static const struct pod_kind pod_kinds[] = {
    /* none */
    {50, 0, 0, 8},
    {45, 0, 0, 12},
    {30, 0, 0, 16},
    {8, 0, 0, 32},
    /* a part */
    {130, 1, 810, 3},
    {55, 1, 470, 12},
    {40, 1, 470, 8},
    {70, 1, 0, 4},
    {50, 1, 0, 8},
    {34, 1, 0, 12},
    /* one */
    {110, 1, 1000, 11},
    {75, 1, 1000, 12},
    {60, 1, 1000, 3},
    {60, 1, 1000, 4},
    {60, 1, 1000, 8},
    {60, 1, 1000, 16},
    {40, 1, 1000, 18},
    {14, 1, 1000, 24},
    /* more */
    {2, 2, 1000, 12},
    {2, 4, 1000, 32},
    {3, 8, 1000, 64},
    {2, 8, 1000, 90},
};

enum { NODE_KINDS = sizeof(node_kinds) / sizeof(node_kinds[0]) };
enum { POD_KINDS_DRAWN = sizeof(pod_kinds) / sizeof(pod_kinds[0]) };
enum { LOAD_MAX_PCT = 1000, NAME_BYTES = 32, MILLI = 1000, MIB_PER_GIB = 1024 };

static const char *name_of(struct gs_arena *arena, const char *what, uint32_t number)
{
    char name[NAME_BYTES];
    int len = snprintf(name, sizeof(name), "%s-%06u", what, number);
    return gs_arena_strndup(arena, name, (size_t)len);
}

/* The node kind at a place between 0 and 1 of all, as numerator and denominator: small clusters
 * have the same mix as large ones. */
static const struct node_kind *kind_at(uint64_t part, uint64_t whole)
{
    uint64_t all = 0, reached = 0;
    for (int i = 0; i < NODE_KINDS; i++)
        all += node_kinds[i].weight;
    for (int i = 0; i < NODE_KINDS; i++) {
        reached += node_kinds[i].weight;
        if (reached * whole > part * all)
            return &node_kinds[i];
    }
    return &node_kinds[NODE_KINDS - 1];
}

static int make_nodes(const struct gs_generate_spec *spec, uint64_t *random, struct gs_trace *trace,
                      uint64_t *ret_gpus)
{
    trace->nodes = gs_arena_calloc(&trace->arena, spec->nodes, sizeof(*trace->nodes));
    if (!trace->nodes)
        return -1;
    trace->node_count = spec->nodes;
    *ret_gpus = 0;
    for (uint32_t i = 0; i < spec->nodes; i++) {
        const struct node_kind *kind = kind_at(2 * (uint64_t)i + 1, 2 * (uint64_t)spec->nodes);
        trace->nodes[i] = (struct gs_trace_node){
            .cpu_milli = (int64_t)kind->cores * MILLI,
            .memory_mib = (int64_t)kind->memory_gib * MIB_PER_GIB,
            .gpus = kind->gpus,
            .model = kind->model,
        };
        *ret_gpus += kind->gpus;
    }
    for (uint32_t i = spec->nodes; i-- > 1;) {
        uint32_t other = (uint32_t)gs_splitmix_below(random, i + 1u);
        struct gs_trace_node held = trace->nodes[i];
        trace->nodes[i] = trace->nodes[other];
        trace->nodes[other] = held;
    }
    for (uint32_t i = 0; i < spec->nodes; i++) {
        trace->nodes[i].name = name_of(&trace->arena, "node", i);
        if (!trace->nodes[i].name)
            return -1;
    }
    return 0;
}

/* 50 .. 700 thousandths in steps of 10: the parts that no single request dominates. */
static uint32_t draw_part(uint64_t *random)
{
    enum { LEAST = 5, MOST = 70, STEP = 10 };
    return (uint32_t)(LEAST + gs_splitmix_below(random, MOST - LEAST + 1)) * STEP;
}

static const struct pod_kind *draw_pod_kind(uint64_t *random)
{
    uint64_t all = 0;
    for (int i = 0; i < POD_KINDS_DRAWN; i++)
        all += pod_kinds[i].weight;
    uint64_t at = gs_splitmix_below(random, all);
    int i = 0;
    for (; at >= pod_kinds[i].weight; i++)
        at -= pod_kinds[i].weight;
    return &pod_kinds[i];
}

static int make_pods(uint64_t *random, uint64_t demand_milli, struct gs_trace *trace)
{
    enum { GIB_PER_CORE = 3 };
    /* Every second pod or so asks for a GPU of which the least is 50 thousandths: 100 pods per
     * card are far more than are ever drawn. */
    uint64_t most = demand_milli / MILLI * 100 + 1000;
    most = most < GS_TRACE_PODS_MAX ? most : GS_TRACE_PODS_MAX;
    trace->pods = gs_arena_calloc(&trace->arena, most, sizeof(*trace->pods));
    if (!trace->pods)
        return -1;
    for (uint64_t demand = 0; demand < demand_milli && trace->pod_count < most;) {
        const struct pod_kind *kind = draw_pod_kind(random);
        uint32_t milli = kind->gpus && !kind->gpu_milli ? draw_part(random) : kind->gpu_milli;
        const char *name = name_of(&trace->arena, "pod", trace->pod_count);
        if (!name)
            return -1;
        trace->pods[trace->pod_count++] = (struct gs_trace_pod){
            .name = name,
            .cpu_milli = (int64_t)kind->cores * MILLI,
            .memory_mib = (int64_t)kind->cores * GIB_PER_CORE * MIB_PER_GIB,
            .gpus = kind->gpus,
            .gpu_milli = milli,
            .models = "",
        };
        demand += (uint64_t)kind->gpus * milli;
    }
    return 0;
}

/* How long the trace's pods run, rounded: so many per mille of them at most so many seconds. */
static const struct {
    uint32_t per_mille, seconds;
} lasting[] = {{0, 1},      {10, 12},     {100, 60},    {250, 150},    {500, 500},      {750, 1900},
               {900, 6500}, {950, 16000}, {990, 96000}, {995, 700000}, {1000, 12000000}};

static int64_t draw_seconds(uint64_t *random)
{
    enum { STEPS = 1 << 20, PER_MILLE = 1000 };
    uint64_t at = gs_splitmix_below(random, (uint64_t)PER_MILLE * STEPS);
    size_t i = 1;
    while (at >= (uint64_t)lasting[i].per_mille * STEPS)
        i++;
    uint64_t from = (uint64_t)lasting[i - 1].per_mille * STEPS;
    uint64_t width = (uint64_t)lasting[i].per_mille * STEPS - from;
    uint64_t rise = lasting[i].seconds - lasting[i - 1].seconds;
    return (int64_t)(lasting[i - 1].seconds + (at - from) * rise / width);
}

/* Drawn after all else: the pods are the same with and without. */
static int make_stays(uint64_t *random, struct gs_trace *trace)
{
    trace->stays = gs_arena_calloc(&trace->arena, trace->pod_count, sizeof(*trace->stays));
    if (!trace->stays)
        return -1;
    for (uint32_t i = 0; i < trace->pod_count; i++)
        trace->stays[i].lasts_s = draw_seconds(random);
    return 0;
}

int gs_generate(const struct gs_generate_spec *spec, struct gs_trace *ret, struct gs_error *err)
{
    if (!spec->nodes || spec->nodes > GS_TRACE_NODES_MAX)
        return gs_fail(err, GS_EINVAL, "%u nodes: 1 to %d are possible", spec->nodes,
                       GS_TRACE_NODES_MAX);
    if (!spec->load_pct || spec->load_pct > LOAD_MAX_PCT)
        return gs_fail(err, GS_EINVAL, "a load of %u percent: 1 to %d are possible", spec->load_pct,
                       LOAD_MAX_PCT);
    struct gs_trace trace = {0};
    uint64_t random = spec->seed, gpus;
    if (make_nodes(spec, &random, &trace, &gpus) < 0 ||
        make_pods(&random, gpus * MILLI * spec->load_pct / 100, &trace) < 0 ||
        (spec->timed && make_stays(&random, &trace) < 0)) {
        gs_trace_release(&trace);
        return gs_fail_nomem(err);
    }
    *ret = trace;
    return 0;
}
