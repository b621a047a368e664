/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/splitmix.h"
#include "timed_internal.h"

/* What arrives when, and on how many nodes. */

typedef unsigned __int128 wide;

enum { MS_PER_S = 1000, FRACTION_BITS = 32 };

/* Longer than anybody wants to run a cluster; products with it fit 128 bits. */
#define SECONDS_MAX ((int64_t)1 << 32)

/* --- exponential gaps --- */

/*
 * -ln(u) of a u drawn from (0, 1), with 32 binary places. The logarithm to base 2 one bit at a time
 * by squaring: libraries' log() differ in the last place, this does not.
 */
static uint64_t draw_exponential(uint64_t *random)
{
    static const uint64_t ln2 = 2977044472; /* ln 2 × 2^32 */
    uint64_t u = gs_splitmix_next(random) | 1;
    int zeros = __builtin_clzll(u);
    uint64_t mantissa = u << zeros, fraction = 0; /* 2^63 stands for 1 */
    for (int bit = 0; bit < FRACTION_BITS; bit++) {
        wide square = (wide)mantissa * mantissa >> 63;
        bool two = square >> 64 != 0;
        mantissa = (uint64_t)(two ? square >> 1 : square);
        fraction = fraction << 1 | two;
    }
    uint64_t minus_log2 = ((uint64_t)(zeros + 1) << FRACTION_BITS) - fraction;
    return (uint64_t)((wide)minus_log2 * ln2 >> FRACTION_BITS);
}

/* --- what is drawn from --- */

static uint64_t demand_milli(const struct gs_trace_pod *pod)
{
    return (uint64_t)pod->gpus * pod->gpu_milli;
}

static bool fits_some_node(const struct gs_trace *trace, const struct gs_trace_pod *pod)
{
    for (uint32_t i = 0; i < trace->node_count; i++) {
        const struct gs_trace_node *node = &trace->nodes[i];
        if (node->cpu_milli >= pod->cpu_milli && node->memory_mib >= pod->memory_mib &&
            node->gpus >= pod->gpus && timed_models_allow(pod->models, node->model))
            return true;
    }
    return false;
}

/* Rows to draw from, and what they come to. */
struct source {
    uint32_t *rows;
    uint32_t count;
    uint64_t work; /* thousandths of a GPU times seconds, after the cut */
};

static int64_t cut(int64_t lasts_s, int64_t cut_s)
{
    return lasts_s < cut_s ? lasts_s : cut_s;
}

static int gather(const struct gs_trace *trace, int64_t cut_s, struct source *source,
                  struct gs_error *err)
{
    source->rows = calloc(trace->pod_count + 1u, sizeof(*source->rows));
    if (!source->rows)
        return gs_fail_nomem(err);
    for (uint32_t i = 0; trace->lasts_s && i < trace->pod_count; i++) {
        if (!trace->lasts_s[i] || !fits_some_node(trace, &trace->pods[i]))
            continue;
        source->work += demand_milli(&trace->pods[i]) * (uint64_t)cut(trace->lasts_s[i], cut_s);
        source->rows[source->count++] = i;
    }
    if (!source->work)
        return gs_fail(err, GS_EINVAL,
                       "the trace does not say of any pod with GPU how long it ran");
    return 0;
}

/* --- the draw --- */

static int add(struct gs_timed_workload *workload, uint32_t *cap,
               const struct gs_timed_arrival *arrival, struct gs_error *err)
{
    if (workload->count == GS_TIMED_ARRIVALS_MAX)
        return gs_fail(err, GS_ETOOBIG, "more than %d arrivals", GS_TIMED_ARRIVALS_MAX);
    if (workload->count == *cap) {
        uint32_t more = *cap ? *cap * 2 : 4096;
        void *wider = reallocarray(workload->arrivals, more, sizeof(*workload->arrivals));
        if (!wider)
            return gs_fail_nomem(err);
        workload->arrivals = wider;
        *cap = more;
    }
    workload->arrivals[workload->count++] = *arrival;
    return 0;
}

/* Time is kept to 2^-16 ms, so that thousands of arrivals a second have the right rate too. */
static int draw_arrivals(const struct gs_trace *trace, const struct gs_timed_draw *draw,
                         const struct source *source, uint64_t capacity_milli, uint64_t *random,
                         struct gs_timed_workload *ret, struct gs_error *err)
{
    enum { TICK_BITS = 16 };
    wide work = (wide)source->work * 100 * MS_PER_S << TICK_BITS;
    uint64_t gap = (uint64_t)(work / ((wide)source->count * capacity_milli * draw->load_pct));
    uint32_t cap = 0;
    for (wide now = 0;;) {
        now += (wide)draw_exponential(random) * (gap ? gap : 1) >> FRACTION_BITS;
        int64_t at_ms = (int64_t)(now >> TICK_BITS);
        if (at_ms >= ret->until_ms)
            return 0;
        uint32_t row = source->rows[gs_splitmix_below(random, source->count)];
        int64_t lasts_s = cut(trace->lasts_s[row], draw->cut_s);
        struct gs_timed_arrival arrival = {at_ms, lasts_s * MS_PER_S, row};
        if (add(ret, &cap, &arrival, err) < 0)
            return -1;
    }
}

static int draw_rank(uint32_t count, uint64_t *random, struct gs_timed_workload *ret,
                     struct gs_error *err)
{
    ret->rank = calloc(count + 1u, sizeof(*ret->rank));
    if (!ret->rank)
        return gs_fail_nomem(err);
    for (uint32_t i = 0; i < count; i++)
        ret->rank[i] = i;
    gs_replay_shuffle(ret->rank, count, random);
    return 0;
}

static int check(const struct gs_timed_draw *draw, uint64_t capacity_milli, struct gs_error *err)
{
    if (!draw->load_pct || draw->load_pct > GS_TIMED_LOAD_MAX_PCT)
        return gs_fail(err, GS_EINVAL, "a load of %u percent: 1 to %d are possible", draw->load_pct,
                       GS_TIMED_LOAD_MAX_PCT);
    if (draw->cut_s < 1 || draw->measured_s < 1 || draw->warmup_s < 0 ||
        draw->cut_s > SECONDS_MAX || draw->measured_s > SECONDS_MAX || draw->warmup_s > SECONDS_MAX)
        return gs_fail(err, GS_EINVAL, "a cut and a measured time of a second or more are needed");
    if (!capacity_milli)
        return gs_fail(err, GS_EINVAL, "the trace has no GPUs");
    return 0;
}

int gs_timed_draw(const struct gs_trace *trace, const struct gs_timed_draw *draw,
                  struct gs_timed_workload *ret, struct gs_error *err)
{
    struct source source = {0};
    uint64_t capacity_milli = gs_replay_capacity_milli(trace), random = draw->seed;
    if (check(draw, capacity_milli, err) < 0)
        return -1;
    struct gs_timed_workload workload = {
        .warmup_ms = draw->warmup_s * MS_PER_S,
        .until_ms = (draw->warmup_s + draw->measured_s) * MS_PER_S,
    };
    int result = gather(trace, draw->cut_s, &source, err);
    if (result == 0)
        result = draw_rank(trace->node_count, &random, &workload, err);
    if (result == 0)
        result = draw_arrivals(trace, draw, &source, capacity_milli, &random, &workload, err);
    free(source.rows);
    if (result == 0)
        *ret = workload;
    else
        gs_timed_workload_release(&workload);
    return result;
}

void gs_timed_workload_release(struct gs_timed_workload *workload)
{
    free(workload->arrivals);
    free(workload->rank);
    *workload = (struct gs_timed_workload){0};
}

/* --- fewer nodes --- */

struct kind {
    uint32_t first, count; /* in the sorted order of rows */
    uint64_t share, rest;  /* nodes of this kind that are taken, and the remainder */
};

static int compare_kinds(const struct gs_trace_node *a, const struct gs_trace_node *b)
{
    if (a->cpu_milli != b->cpu_milli)
        return a->cpu_milli < b->cpu_milli ? -1 : 1;
    if (a->memory_mib != b->memory_mib)
        return a->memory_mib < b->memory_mib ? -1 : 1;
    if (a->gpus != b->gpus)
        return a->gpus < b->gpus ? -1 : 1;
    return strcmp(a->model, b->model);
}

static int by_kind(const void *a, const void *b)
{
    const struct gs_trace_node *left = a, *right = b;
    int order = compare_kinds(left, right);
    return order ? order : strcmp(left->name, right->name);
}

static int by_rest(const void *a, const void *b)
{
    const struct kind *left = a, *right = b;
    if (left->rest != right->rest)
        return left->rest > right->rest ? -1 : 1;
    return (left->first > right->first) - (left->first < right->first);
}

/* How many of each kind: the whole part of its share, then one more by the largest remainders. */
static uint32_t share_out(const struct gs_trace_node *nodes, uint32_t all, uint32_t wanted,
                          struct kind *kinds)
{
    uint32_t count = 0, taken = 0;
    for (uint32_t i = 0; i < all; i++) {
        if (!i || compare_kinds(&nodes[i - 1], &nodes[i]) != 0)
            kinds[count++] = (struct kind){.first = i};
        kinds[count - 1].count++;
    }
    for (uint32_t k = 0; k < count; k++) {
        kinds[k].share = (uint64_t)kinds[k].count * wanted / all;
        kinds[k].rest = (uint64_t)kinds[k].count * wanted % all;
        taken += (uint32_t)kinds[k].share;
    }
    qsort(kinds, count, sizeof(*kinds), by_rest);
    for (uint32_t k = 0; k < count && taken < wanted; k++, taken++)
        kinds[k].share++;
    return count;
}

int gs_trace_sample_nodes(struct gs_trace *trace, uint32_t count, struct gs_error *err)
{
    uint32_t all = trace->node_count, wanted = count < all ? count : all, taken = 0;
    if (!wanted)
        return gs_fail(err, GS_EINVAL, "no nodes would be left");
    _cleanup_free_ struct kind *kinds = calloc(all, sizeof(*kinds));
    _cleanup_free_ struct gs_trace_node *sorted = calloc(all, sizeof(*sorted));
    struct gs_trace_node *sample = gs_arena_calloc(&trace->arena, wanted, sizeof(*sample));
    if (!kinds || !sorted || !sample)
        return gs_fail_nomem(err);
    memcpy(sorted, trace->nodes, all * sizeof(*sorted));
    qsort(sorted, all, sizeof(*sorted), by_kind);
    uint32_t kind_count = share_out(sorted, all, wanted, kinds);
    for (uint32_t k = 0; k < kind_count; k++) {
        for (uint32_t i = 0; i < kinds[k].share; i++)
            sample[taken++] = sorted[kinds[k].first + i];
    }
    trace->nodes = sample;
    trace->node_count = taken;
    return 0;
}
