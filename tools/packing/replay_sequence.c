/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/splitmix.h"
#include "replay_internal.h"

/* The order in which a trace's pods arrive. */

void gs_replay_shuffle(uint32_t *all, uint32_t count, uint64_t *state)
{
    for (uint32_t i = count; i-- > 1;) {
        uint32_t other = (uint32_t)gs_splitmix_below(state, i + 1u);
        uint32_t held = all[i];
        all[i] = all[other];
        all[other] = held;
    }
}

struct growing {
    uint32_t *all;
    uint32_t count, cap;
};

static int append(struct growing *list, uint32_t value)
{
    if (list->count == list->cap) {
        uint32_t cap = list->cap ? list->cap * 2 : 1024;
        void *wider = reallocarray(list->all, cap, sizeof(*list->all));
        if (!wider)
            return -1;
        list->all = wider;
        list->cap = cap;
    }
    list->all[list->count++] = value;
    return 0;
}

struct named {
    const char *name;
    uint32_t row;
};

static int by_name(const void *a, const void *b)
{
    const struct named *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : (left->row > right->row) - (left->row < right->row);
}

/* The pods' rows in the order of their names: what the draws refer to. */
static uint32_t *rows_by_name(const struct gs_trace *trace)
{
    _cleanup_free_ struct named *names = calloc(trace->pod_count + 1u, sizeof(*names));
    uint32_t *rows = calloc(trace->pod_count + 1u, sizeof(*rows));
    if (!names || !rows) {
        free(rows);
        return NULL;
    }
    for (uint32_t i = 0; i < trace->pod_count; i++)
        names[i] = (struct named){trace->pods[i].name, i};
    qsort(names, trace->pod_count, sizeof(*names), by_name);
    for (uint32_t i = 0; i < trace->pod_count; i++)
        rows[i] = names[i].row;
    return rows;
}

/* The whole list once, then draws until the next would exceed the demand. That test counts one GPU
 * of each pod only, as the published experiment does; a trace of pods that hardly ask for GPUs ends
 * at the ceiling on arrivals. */
static int draw_pods(const struct gs_trace *trace, const uint32_t *rows, uint64_t limit_milli,
                     uint64_t *state, struct growing *ret)
{
    enum { TIMES_MAX = 64 };
    uint64_t demand = 0;
    for (uint32_t i = 0; i < trace->pod_count; i++) {
        if (append(ret, rows[i]) < 0)
            return -1;
        demand += (uint64_t)trace->pods[i].gpus * trace->pods[i].gpu_milli;
    }
    gs_replay_shuffle(ret->all, ret->count, state);
    for (uint64_t more = (uint64_t)trace->pod_count * TIMES_MAX; more; more--) {
        uint32_t row = rows[gs_splitmix_below(state, trace->pod_count)];
        const struct gs_trace_pod *pod = &trace->pods[row];
        if (demand + pod->gpu_milli > limit_milli)
            break;
        demand += (uint64_t)pod->gpus * pod->gpu_milli;
        if (append(ret, row) < 0)
            return -1;
    }
    return 0;
}

uint64_t gs_replay_capacity_milli(const struct gs_trace *trace)
{
    uint64_t milli = 0;
    for (uint32_t i = 0; i < trace->node_count; i++)
        milli += (uint64_t)trace->nodes[i].gpus * GS_TRACE_CARD_MILLI;
    return milli;
}

static bool any_gpu_pod(const struct gs_trace *trace)
{
    for (uint32_t i = 0; i < trace->pod_count; i++) {
        if (trace->pods[i].gpus)
            return true;
    }
    return false;
}

int gs_replay_sequence(const struct gs_trace *trace, uint64_t seed, uint32_t percent,
                       struct gs_trace_sequence *ret, struct gs_error *err)
{
    uint64_t capacity = gs_replay_capacity_milli(trace);
    if (!capacity || !any_gpu_pod(trace))
        return gs_fail(err, GS_EINVAL, "the trace has no GPUs, or no pod that asks for one");
    if (percent >= GS_REPLAY_BUCKETS)
        return gs_fail(err, GS_EINVAL, "%u percent is above %d", percent, GS_REPLAY_BUCKETS - 1);
    _cleanup_free_ uint32_t *rows = rows_by_name(trace);
    _cleanup_free_ uint32_t *rank = calloc(trace->node_count + 1u, sizeof(*rank));
    struct growing pods = {0};
    uint64_t state = seed;
    if (!rows || !rank || draw_pods(trace, rows, capacity * percent / 100, &state, &pods) < 0) {
        free(pods.all);
        return gs_fail_nomem(err);
    }
    for (uint32_t i = 0; i < trace->node_count; i++)
        rank[i] = i;
    gs_replay_shuffle(rank, trace->node_count, &state);
    *ret = (struct gs_trace_sequence){gs_steal(&rank), pods.all, trace->node_count, pods.count};
    return 0;
}
