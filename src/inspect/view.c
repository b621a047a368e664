/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "inspect/common.h"

uint64_t view_percent(uint64_t used, uint64_t total)
{
    return total ? (uint64_t)((double)used / (double)total * 100) : 0;
}

static const char *put_words(const char *const *words, const bool *is, size_t count,
                             const char *before, char to[VIEW_WORDS_BYTES])
{
    size_t len = 0;
    to[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (is[i])
            len += (size_t)snprintf(to + len, VIEW_WORDS_BYTES - len, "%s%s", before, words[i]);
    }
    return to;
}

const char *view_gpu_words(const struct view_gpu *gpu, const char *before,
                           char to[VIEW_WORDS_BYTES])
{
    static const char *const words[] = {"unhealthy", "cordoned", "overfull"};
    const bool is[] = {!gpu->gpu->healthy, !gpu->gpu->schedulable, gpu->overfull};
    return put_words(words, is, sizeof(is), before, to);
}

const char *view_node_words(const struct snap_node *node, const char *before,
                            char to[VIEW_WORDS_BYTES])
{
    static const char *const words[] = {"NotReady", "SchedulingDisabled"};
    const bool is[] = {!node->ready, node->unschedulable};
    return put_words(words, is, sizeof(is), before, to);
}

const char *view_limits(enum gs_enforced enforced)
{
    static const char *const limits[] = {
        [GS_ENFORCED_DMEM] = "the kernel limits each pod to its request (dmem)",
        [GS_ENFORCED_DRIVER] = "the driver limits each pod to its request (driver)",
        [GS_ENFORCED_MPS] =
            "MPS limits each process that keeps its environment: mps (per process, cooperative)",
        [GS_ENFORCED_MIG] = "the hardware limits a pod that is alone on it to its instance (mig)",
        [GS_ENFORCED_HOOK] =
            "a preloaded library limits the calls that it intercepts: hook (cooperative)",
    };
    return limits[enforced];
}

enum gs_unit view_unit(const char *word)
{
    enum gs_unit unit = GS_UNIT_GIB;
    gs_unit_parse(word, strlen(word), &unit);
    return unit;
}

const struct view_gpu *view_gpu_at(const struct view_node *node, uint32_t idx)
{
    EACH_GPU (gpu, node) {
        if (gpu->idx == idx)
            return gpu;
    }
    return NULL;
}

enum gs_unit view_unit_of(const struct view *view, const struct view_node *node)
{
    return node->node->unit ? node->node->unit : view_unit(view->unit);
}

bool view_fit(const struct view *view, uint32_t nth, struct view_fit *ret)
{
    enum { SIZES = 8 };
    const struct gs_place place = gs_cluster_place(&view->snapshot->cluster, GS_PLACEMENT_ROLLOUT);
    *ret = (struct view_fit){.gib = 1u << nth};
    ret->units = ret->gib * (1024 / gs_unit_mib(view_unit(view->unit)));
    if (view->mixed_units || nth == SIZES || ret->units > view->sum.largest_gpu_units)
        return false;
    const struct gs_ask ask = {.units = ret->units, .gpu_count = 1};
    EACH_ROW (node, view)
        ret->pods += gs_place_count(&place, &ask, node->state->slot);
    return true;
}

/* ---- one node ---- */

struct collect {
    struct gs_claim *to;
    uint32_t count;
};

static bool collect_claim(void *ctx, const struct gs_claim *claim)
{
    struct collect *collect = ctx;
    collect->to[collect->count++] = *claim;
    return true;
}

static int order_claims(const void *a, const void *b)
{
    const struct gs_claim *x = a, *y = b;
    int first_x = claim_recorded(x) ? __builtin_ctzll(x->gpus) : GS_GPUS_MAX;
    int first_y = claim_recorded(y) ? __builtin_ctzll(y->gpus) : GS_GPUS_MAX;
    if (first_x != first_y)
        return first_x - first_y;
    int order = strcmp(x->ns, y->ns);
    return order ? order : strcmp(x->name, y->name);
}

static void count_claim(struct view_node *node, const struct gs_claim *claim)
{
    node->used_units += claim_units(claim);
    if (!claim_recorded(claim)) {
        node->pending_units += claim_units(claim);
        node->pending_pods++;
    }
    EACH_GPU (gpu, node) {
        if (claim_on(claim, gpu->idx))
            gpu->used_units += claim->units;
    }
}

/* New pods may come: else nothing on it is free, whatever its GPUs hold. */
static bool is_open(const struct snapshot *snapshot, const struct view_node *node)
{
    const struct gs_place place = gs_cluster_place(&snapshot->cluster, GS_PLACEMENT_ROLLOUT);
    const struct gs_ask any = {.gpu_count = 1};
    return gs_place_open(&place, &any, node->state->slot) == GS_OBSTACLE_NONE;
}

static void fill_gpus(struct view_node *node, struct view_gpu *gpus, bool open)
{
    const struct gs_node_view *state = node->state;
    node->gpus = gpus;
    node->gpu_count = state->gpu_count;
    for (uint32_t i = 0; i < state->gpu_count; i++) {
        const struct gs_gpu_state *from = &state->gpus[i];
        gpus[i] = (struct view_gpu){
            .gpu = &state->inventory[i],
            .idx = from->idx,
            .total_units = from->total_units,
            .used_cores_pct = from->used_cores_pct,
            .free_units = from->usable && open ? from->free_units : 0,
            .usable = from->usable && open,
            .overfull = gpu_overfull(from),
        };
        node->columns = from->idx + 1u;
        node->used_cores_pct += from->used_cores_pct;
    }
}

/* Without an inventory a node has what it advertises, also what does not divide by its GPUs. */
static uint64_t total_of(const struct view_node *node)
{
    if (!node->node->inventory && node->node->allocatable_units)
        return node->node->allocatable_units;
    return node->state->sum_total_units;
}

/* One of its GPUs is unhealthy, and nobody says which: kube-scheduler lets in what is left. */
static void cut_free(struct view_node *node)
{
    struct gs_fragmentation *free = &node->fragmentation;
    uint64_t left = node->total_units > node->used_units ? node->total_units - node->used_units : 0;
    free->free_units = free->free_units < left ? free->free_units : left;
    if (free->largest_units > free->free_units)
        free->largest_units = (uint32_t)free->free_units;
}

/* What is missing to the total is not usable; what is too much was given beyond it. */
static void balance(struct view_node *node)
{
    const uint64_t given = node->used_units + node->fragmentation.free_units;
    EACH_GPU (gpu, node) {
        node->over_units +=
            gpu->used_units > gpu->total_units ? gpu->used_units - gpu->total_units : 0;
    }
    if (given > node->total_units + node->over_units)
        node->over_units = given - node->total_units;
    node->unusable_units = node->total_units + node->over_units - given;
}

static void fill_node(const struct snapshot *snapshot, struct view_node *node,
                      struct view_gpu *gpus, struct gs_claim *claims)
{
    struct collect collect = {.to = claims};
    uint32_t idx;
    const bool open = is_open(snapshot, node);
    fill_gpus(node, gpus, open);
    gs_ledger_each_claim(snapshot->cluster.ledger, node->state->slot, collect_claim, &collect);
    qsort(claims, collect.count, sizeof(*claims), order_claims);
    node->claims = claims;
    node->claim_count = collect.count;
    for (uint32_t i = 0; i < collect.count; i++) {
        count_claim(node, &claims[i]);
        if (!i || claims[i].cpu_milli < node->least_cpu_milli)
            node->least_cpu_milli = claims[i].cpu_milli;
    }
    node->total_units = total_of(node);
    GS_FOR_EACH_GPU (idx, node->usage ? node->usage->known : 0)
        node->used_bytes = gs_sat_add_u64(node->used_bytes, node->usage->used_bytes[idx]);
    if (open)
        gs_fragmentation_of_node(snapshot->cluster.policies, node->state, &node->fragmentation);
    if (!node->node->inventory)
        cut_free(node);
    balance(node);
}

static void keep_namespace(struct view_node *node, const char *ns)
{
    uint32_t kept = 0;
    EACH_CLAIM (claim, node) {
        if (strcmp(claim->ns, ns) == 0)
            node->claims[kept++] = *claim;
    }
    node->claim_count = kept;
}

/* ---- all nodes ---- */

static bool wanted(const struct view_node *node, const struct view_options *options)
{
    return node->claim_count > 0 || (!options->ns && node->total_units > 0);
}

static void fill_nodes(const struct snapshot *snapshot, const struct view_options *options,
                       struct view *view)
{
    struct view_gpu *gpus = view->all_gpus;
    struct gs_claim *claims = view->all_claims;
    EACH_NODE (node, snapshot) {
        struct view_node *row = &view->nodes[view->node_count];
        const struct gs_node_view *state = snapshot_view(snapshot, node);
        if (!state)
            continue;
        *row = (struct view_node){
            .node = node, .state = state, .usage = usage_node_find(options->usage, node->name)};
        fill_node(snapshot, row, gpus, claims);
        gpus += row->gpu_count;
        claims += row->claim_count;
        if (options->ns)
            keep_namespace(row, options->ns);
        limits_count(row, options->usage, !options->ns);
        view->node_count += wanted(row, options);
    }
}

static int by_name(const void *a, const void *b)
{
    const struct view_node *x = a, *y = b;
    return strverscmp(x->node->name, y->node->name);
}

int view_build(struct snapshot *snapshot, const struct view_options *options, struct view *ret,
               struct gs_error *err)
{
    struct gs_ledger_stats stats;
    gs_ledger_stats(snapshot->cluster.ledger, &stats);
    *ret = (struct view){.usage = options->usage, .snapshot = snapshot};
    if (snapshot_learnt(snapshot, err) < 0)
        return -1;
    ret->nodes = calloc(HASH_COUNT(snapshot->nodes) + 1, sizeof(*ret->nodes));
    ret->all_claims = calloc(stats.claims + 1, sizeof(*ret->all_claims));
    ret->all_gpus = calloc(stats.gpus + 1, sizeof(*ret->all_gpus));
    if (!ret->nodes || !ret->all_claims || !ret->all_gpus)
        return gs_fail_nomem(err);
    fill_nodes(snapshot, options, ret);
    qsort(ret->nodes, ret->node_count, sizeof(*ret->nodes), by_name);
    if (view_sum_up(ret) < 0)
        return gs_fail_nomem(err);
    ret->now_s = options->now_s;
    ret->scope = options->ns || options->some ? "Nodes Shown" : "Cluster";
    if (options->waits)
        return waits_find(snapshot, options->ns, &ret->waits, err);
    waits_count(snapshot, options->ns, ret->unit, &ret->waits);
    return 0;
}

void view_release(struct view *view)
{
    free(view->nodes);
    free(view->namespaces);
    free(view->all_claims);
    free(view->all_gpus);
    waits_release(&view->waits);
    *view = (struct view){0};
}
