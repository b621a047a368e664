/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text, *label;
} obstacles[] = {
    [GS_OBSTACLE_GPU] = {"", ""},
    [GS_OBSTACLE_NOT_READY] = {"the node is not ready", "not_ready"},
    [GS_OBSTACLE_CORDONED] = {"the node is cordoned (kubectl uncordon)", "cordoned"},
    [GS_OBSTACLE_NO_PLUGIN] = {"the node's device plugin does not run: nothing is advertised",
                               "no_plugin"},
    [GS_OBSTACLE_CPU] = {"the node has too little CPU left", "no_cpu"},
    [GS_OBSTACLE_TAINT] = {"the node has a taint that the pod does not tolerate", "tainted"},
    [GS_OBSTACLE_AFFINITY] = {"the pod's nodeSelector or node affinity excludes the node",
                              "excluded"},
    [GS_OBSTACLE_NONE] = {"", "fits"},
};

const char *verdict_text(enum gs_obstacle obstacle, enum gs_reason reason)
{
    return obstacle == GS_OBSTACLE_GPU ? gs_reason_text(reason) : obstacles[obstacle].text;
}

const char *verdict_label(enum gs_obstacle obstacle, enum gs_reason reason)
{
    return obstacle == GS_OBSTACLE_GPU ? gs_reason_label(reason) : obstacles[obstacle].label;
}

/* The usable, allowed GPU with most free memory; with several GPUs asked, the scarcest of the best
 * ones. False: no such set. */
static bool nearest_gpu(const struct gs_node_view *view, const struct gs_ask *ask,
                        uint32_t *ret_idx, uint32_t *ret_free)
{
    gs_gpu_mask allowed = gs_ask_allowed(ask, view), taken = 0;
    const struct gs_gpu_state *best = NULL;
    for (uint32_t n = 0; n < ask->gpu_count; n++) {
        best = NULL;
        for (uint32_t i = 0; i < view->gpu_count; i++) {
            const struct gs_gpu_state *gpu = &view->gpus[i];
            if (gpu->usable && (allowed & ~taken & GS_GPU_BIT(gpu->idx)) &&
                (!best || gpu->free_units > best->free_units))
                best = gpu;
        }
        if (!best)
            return false;
        taken |= GS_GPU_BIT(best->idx);
    }
    *ret_idx = best->idx;
    *ret_free = best->free_units;
    return true;
}

/* miss: memory may be what is missing. */
static void count_nearest(const struct gs_node_view *view, const char *name,
                          const struct gs_ask *ask, bool miss, struct verdict_group *group)
{
    uint32_t idx, free_units;
    if (!nearest_gpu(view, ask, &idx, &free_units))
        return;
    bool better = !group->nearest || free_units > group->nearest_free_units ||
                  (free_units == group->nearest_free_units && strverscmp(name, group->nearest) < 0);
    if (!better)
        return;
    group->nearest = name;
    group->nearest_gpu = idx;
    group->nearest_free_units = free_units;
    group->missing_units = miss && free_units < ask->units ? ask->units - free_units : 0;
}

void verdict_of(const struct snapshot *snapshot, const struct gs_ask *ask, struct verdict *ret)
{
    const struct gs_place place = gs_cluster_place(&snapshot->cluster, GS_PLACEMENT_ROLLOUT);
    *ret = (struct verdict){0};
    for (const struct snap_node *node = snapshot->nodes; node; node = node->hh.next) {
        const struct gs_node_view *view = snapshot_view(snapshot, node);
        enum gs_reason reason;
        enum gs_obstacle obstacle = gs_place_judge(&place, ask, view->slot, &reason);
        const bool gpu = obstacle == GS_OBSTACLE_GPU;
        struct verdict_group *group = gpu ? &ret->gpu[reason] : &ret->other[obstacle];
        ret->nodes++;
        group->nodes++;
        /* of GPUs that say no only those come near that would take it if less were in use */
        if (!gpu || (!gs_reason_unresolvable(reason) &&
                     gs_place_open(&place, ask, view->slot) == GS_OBSTACLE_NONE))
            count_nearest(view, node->name, ask, gpu && reason != GS_REASON_MAX_PODS, group);
    }
}

const struct verdict_group *verdict_nearest(const struct verdict *verdict,
                                            enum gs_obstacle *ret_obstacle,
                                            enum gs_reason *ret_reason)
{
    /* Nodes where GPUs would do come nearer than any where they do not; CPU comes free by itself.
     * Farthest: where the GPUs were not looked at. */
    static const enum gs_obstacle near[] = {GS_OBSTACLE_NONE, GS_OBSTACLE_CPU, GS_OBSTACLE_CORDONED,
                                            GS_OBSTACLE_NOT_READY, GS_OBSTACLE_NO_PLUGIN};
    static const enum gs_obstacle far[] = {GS_OBSTACLE_TAINT, GS_OBSTACLE_AFFINITY};
    *ret_reason = GS_FITS;
    for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
        *ret_obstacle = near[i];
        if (verdict->other[near[i]].nodes)
            return &verdict->other[near[i]];
    }
    enum gs_reason reason = GS_REASON_NO_GPUS;
    for (int r = GS_FITS + 1; r < GS_REASONS; r++) {
        if (verdict->gpu[r].nodes && gs_reason_nearer((enum gs_reason)r, reason))
            reason = (enum gs_reason)r;
    }
    if (verdict->gpu[reason].nodes) {
        *ret_obstacle = GS_OBSTACLE_GPU;
        *ret_reason = reason;
        return &verdict->gpu[reason];
    }
    *ret_obstacle = verdict->other[far[0]].nodes ? far[0] : far[1];
    return &verdict->other[*ret_obstacle];
}

static int compare_text(struct gs_slice a, struct gs_slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.at, b.at, len) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

int verdict_order(const struct gs_ask *left, const struct gs_ask *right)
{
    const int64_t numbers[][2] = {
        {left->units, right->units},         {left->gpu_count, right->gpu_count},
        {left->cores_pct, right->cores_pct}, {left->cpu_milli, right->cpu_milli},
        {left->priority, right->priority},   {left->broken, right->broken}};
    const struct gs_slice texts[][2] = {{left->model, right->model},
                                        {left->model_deny, right->model_deny},
                                        {left->uuid, right->uuid},
                                        {left->uuid_deny, right->uuid_deny}};
    int order = 0;
    for (size_t i = 0; !order && i < sizeof(numbers) / sizeof(numbers[0]); i++)
        order = (numbers[i][0] > numbers[i][1]) - (numbers[i][0] < numbers[i][1]);
    for (size_t i = 0; !order && i < sizeof(texts) / sizeof(texts[0]); i++)
        order = compare_text(texts[i][0], texts[i][1]);
    return order;
}

/* The groups with a node, those that fit left out, and their words: *at is 0 at first. NULL: no
 * more. */
static const struct verdict_group *next(const struct verdict *verdict, int *at,
                                        const char **ret_words)
{
    while (*at < GS_REASONS + GS_OBSTACLE_NONE) {
        const int i = (*at)++;
        const struct verdict_group *group =
            i < GS_REASONS ? &verdict->gpu[i] : &verdict->other[i - GS_REASONS];
        *ret_words =
            i < GS_REASONS ? gs_reason_text((enum gs_reason)i) : obstacles[i - GS_REASONS].text;
        if (group->nodes)
            return group;
    }
    return NULL;
}

struct line {
    const struct verdict_group *group;
    const char *words;
};

static int most_first(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    return x->group->nodes != y->group->nodes ? (x->group->nodes < y->group->nodes ? 1 : -1)
                                              : strcmp(x->words, y->words);
}

static void print_line(const struct line *line, const char *unit, FILE *out)
{
    const struct verdict_group *group = line->group;
    fprintf(out, "  %" PRIu32 " %s: %s", group->nodes, group->nodes == 1 ? "node" : "nodes",
            line->words);
    if (group->missing_units)
        fprintf(out, "; nearest: %s GPU%" PRIu32 " has %" PRIu32 " %s free, %" PRIu32 " missing",
                group->nearest, group->nearest_gpu, group->nearest_free_units, unit,
                group->missing_units);
    else if (group->nearest)
        fprintf(out, "; for example %s", group->nearest);
    putc('\n', out);
}

void verdict_print(const struct verdict *verdict, const char *unit, FILE *out)
{
    struct line lines[GS_REASONS + GS_OBSTACLES];
    size_t used = 0;
    for (int i = 0; (lines[used].group = next(verdict, &i, &lines[used].words)) != NULL;)
        used++;
    qsort(lines, used, sizeof(*lines), most_first);
    for (size_t i = 0; i < used; i++)
        print_line(&lines[i], unit, out);
}

void verdict_document(struct doc *doc, const struct verdict *verdict, bool gpus)
{
    const struct verdict_group *group;
    const char *words;
    doc_list(doc, "reasons");
    for (int i = 0; (group = next(verdict, &i, &words)) != NULL;) {
        doc_object(doc, NULL);
        doc_text(doc, "message", words);
        doc_number(doc, "nodes", group->nodes);
        if (group->nearest)
            doc_text(doc, "nearest", group->nearest);
        if (group->nearest && gpus) {
            doc_number(doc, "id", group->nearest_gpu);
            doc_number(doc, "freeGPU", group->nearest_free_units);
        }
        doc_end(doc);
    }
    doc_end(doc);
}

void verdict_ask_document(struct doc *doc, const struct gs_ask *ask)
{
    doc_number(doc, "requestedGPU", ask->units);
    if (ask->cores_pct)
        doc_number(doc, "requestedCorePercentage", ask->cores_pct);
    doc_number(doc, "gpuCount", ask->gpu_count);
}

const char *verdict_unit(const struct snapshot *snapshot)
{
    enum gs_unit unit = GS_UNIT_UNKNOWN;
    for (const struct snap_node *node = snapshot->nodes; node; node = node->hh.next) {
        if (node->unit && unit && node->unit != unit)
            return "units";
        unit = unit ? unit : node->unit;
    }
    return unit ? gs_unit_name(unit) : "units";
}
