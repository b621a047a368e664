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
    [GS_OBSTACLE_NO_PLUGIN] =
        {"the node advertises no GPU memory: its device plugin is not running", "no_plugin"},
    [GS_OBSTACLE_CPU] = {"the node has insufficient CPU", "no_cpu"},
    [GS_OBSTACLE_TAINT] = {"the node has a taint that the pod does not tolerate", "tainted"},
    [GS_OBSTACLE_AFFINITY] = {"the pod's nodeSelector or node affinity excludes the node",
                              "excluded"},
    [GS_OBSTACLE_NONE] = {"", "fits"},
};

const char *verdict_text(const struct verdict_group *group)
{
    return group->reason ? gs_reason_text(group->reason) : obstacles[group->obstacle].text;
}

const char *verdict_label(const struct verdict_group *group)
{
    return group->reason ? gs_reason_label(group->reason) : obstacles[group->obstacle].label;
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
        GS_EACH_OF (gpu, view->gpus, view->gpu_count) {
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

static void add_taint(struct verdict_group *group, const struct gs_taint *taint)
{
    int i = 0;
    for (; taint && i < VERDICT_TAINTS && group->taints[i]; i++) {
        if (strcmp(group->taints[i]->key, taint->key) == 0 &&
            strcmp(group->taints[i]->value, taint->value) == 0)
            return;
    }
    if (taint && i < VERDICT_TAINTS)
        group->taints[i] = taint;
}

void verdict_of(const struct snapshot *snapshot, const struct gs_ask *ask, struct verdict *ret)
{
    const struct gs_place place = gs_cluster_place(&snapshot->cluster, GS_PLACEMENT_ROLLOUT);
    *ret = (struct verdict){0};
    for (int i = 0; i < GS_OBSTACLES; i++)
        ret->groups[i].obstacle = (enum gs_obstacle)i;
    for (int i = 0; i < GS_REASONS; i++)
        ret->groups[GS_OBSTACLES + i].reason = (enum gs_reason)i;
    EACH_NODE (node, snapshot) {
        const struct gs_node_view *view = snapshot_view(snapshot, node);
        enum gs_reason reason;
        enum gs_obstacle obstacle = gs_place_judge(&place, ask, view, &reason, NULL);
        const bool gpu = obstacle == GS_OBSTACLE_GPU;
        struct verdict_group *group =
            &ret->groups[gpu ? GS_OBSTACLES + (int)reason : (int)obstacle];
        ret->nodes++;
        group->nodes++;
        if (obstacle == GS_OBSTACLE_TAINT)
            add_taint(group,
                      gs_find_untolerated(
                          ask->rules, gs_node_fact(&snapshot->cluster.facts, view->slot)->rules));
        /* of GPUs that say no only those come near that would take it if less were in use */
        if (gpu ? !gs_reason_unresolvable(reason) &&
                      gs_place_open(&place, ask, view->slot) == GS_OBSTACLE_NONE
                : !gs_reason_unresolvable(gs_fit(view, ask)))
            count_nearest(view, node->name, ask, gpu && reason != GS_REASON_MAX_PODS, group);
    }
}

const struct verdict_group *verdict_nearest(const struct verdict *verdict)
{
    /* Nodes where GPUs would do come nearer than any where they do not; CPU comes free by itself.
     */
    static const enum gs_obstacle nearest[] = {GS_OBSTACLE_NONE, GS_OBSTACLE_CPU,
                                               GS_OBSTACLE_CORDONED, GS_OBSTACLE_NOT_READY,
                                               GS_OBSTACLE_NO_PLUGIN};
    const struct verdict_group *groups = verdict->groups, *taint = &groups[GS_OBSTACLE_TAINT],
                               *affinity = &groups[GS_OBSTACLE_AFFINITY];
    enum gs_reason reason = GS_REASON_NO_GPUS;
    for (int r = GS_FITS + 1; r < GS_REASONS; r++) {
        if (groups[GS_OBSTACLES + r].nodes && gs_reason_nearer((enum gs_reason)r, reason))
            reason = (enum gs_reason)r;
    }
    GS_EACH_OF (obstacle, nearest, sizeof(nearest) / sizeof(nearest[0])) {
        if (groups[*obstacle].nodes)
            return &groups[*obstacle];
    }
    /* Farthest: where the GPUs were not looked at; but those of others that never do are farther.
     */
    if (gs_reason_unresolvable(reason) && (taint->nearest || affinity->nearest))
        return taint->nearest ? taint : affinity;
    if (groups[GS_OBSTACLES + (int)reason].nodes)
        return &groups[GS_OBSTACLES + (int)reason];
    return taint->nodes ? taint : affinity;
}

const char *verdict_key(struct gs_arena *arena, const struct gs_ask *ask, const struct gs_pod *pod)
{
    return gs_arena_printf(
        arena, "%u %u %u %" PRId64 " %" PRId64 " %d %" PRIx64 " %s %zu %.*s %zu %.*s %zu %.*s %.*s",
        ask->units, ask->gpu_count, ask->cores_pct, (int64_t)ask->cpu_milli, (int64_t)ask->priority,
        ask->broken, gs_pod_rules_hash(&pod->rules), pod->nominated_node[0] ? pod->uid : "",
        ask->model.len, (int)ask->model.len, ask->model.at, ask->model_deny.len,
        (int)ask->model_deny.len, ask->model_deny.at, ask->uuid.len, (int)ask->uuid.len,
        ask->uuid.at, (int)ask->uuid_deny.len, ask->uuid_deny.at);
}

const char *verdict_closest(struct gs_arena *arena, const struct verdict_group *group)
{
    if (!group->missing_units)
        return group->nearest;
    return gs_arena_printf(arena, "%s GPU%" PRIu32 ": %" PRIu32 " free, %" PRIu32 " missing",
                           group->nearest, group->nearest_gpu, group->nearest_free_units,
                           group->missing_units);
}

const char *verdict_own(const struct gs_pod *pod)
{
    if (pod->gated)
        return "it has scheduling gates: kube-scheduler ignores it until they are removed";
    if (pod->gpu_units_overflow)
        return "it requests more than 2^31 units: write gpu-mem without a suffix, 10 and not 10G";
    return NULL;
}

const char *verdict_reason(struct gs_arena *arena, const struct verdict_group *group)
{
    const char *text = verdict_text(group);
    for (int i = 0; text && i < VERDICT_TAINTS && group->taints[i]; i++) {
        const struct gs_taint *taint = group->taints[i];
        text = gs_arena_printf(arena, "%s%s%s%s%s:%s", text, i ? ", " : " (", taint->key,
                               taint->value[0] ? "=" : "", taint->value, taint->effect);
    }
    return text && group->taints[0] ? gs_arena_printf(arena, "%s)", text) : text;
}

void verdict_closest_columns(struct sheet *to, const struct verdict_group *group)
{
    const uint64_t unknown = COLUMN_UNKNOWN;
    const bool near = group->nearest;
    column_text(to, COLUMN_TEXT, "CLOSEST", "closest.node", COLUMN_DOCUMENT, group->nearest);
    column_number(to, COLUMN_NUMBER, "CLOSEST-GPU", "closest.gpu", COLUMN_DOCUMENT,
                  near ? group->nearest_gpu : unknown);
    column_number(to, COLUMN_NUMBER, "CLOSEST-FREE", "closest.freeGPU", COLUMN_DOCUMENT,
                  near ? group->nearest_free_units : unknown);
    column_number(to, COLUMN_NUMBER, "MISSING", "closest.missingGPU", COLUMN_DOCUMENT,
                  group->missing_units ? group->missing_units : unknown);
}

/* The groups with a node as rows, most nodes first; those that fit are left out. */
static void write_row(struct sheet *to, const struct verdict_group *group)
{
    if (!group->nodes || group->obstacle == GS_OBSTACLE_NONE)
        return;
    sheet_row(to);
    column_number(to, COLUMN_NUMBER, "NODES", "nodeCount", COLUMN_ALWAYS, group->nodes);
    column_text(to, COLUMN_PROSE, "REASON", "message", COLUMN_ALWAYS,
                verdict_reason(&to->texts, group));
    column_text(to, COLUMN_PROSE, "CLOSEST", NULL, COLUMN_IF_SET,
                verdict_closest(&to->texts, group));
    verdict_closest_columns(to, group);
}

static void write_rows(struct sheet *to, const struct verdict *verdict)
{
    GS_EACH_OF (group, verdict->groups, GS_OBSTACLES + GS_REASONS)
        write_row(to, group);
    sheet_sort(to, NULL, "nodes,reason");
}

int verdict_write(FILE *out, const struct verdict *verdict, const struct terminal *terminal)
{
    struct sheet sheet = {0};
    write_rows(&sheet, verdict);
    return sheet_print(out, &sheet, NULL, terminal);
}

void verdict_document(struct doc *doc, const struct verdict *verdict)
{
    struct sheet sheet = {0};
    write_rows(&sheet, verdict);
    sheet_list(doc, "reasons", &sheet);
}

const char *verdict_unit(const struct snapshot *snapshot)
{
    enum gs_unit unit = GS_UNIT_UNKNOWN;
    EACH_NODE (node, snapshot) {
        if (node->unit && unit && node->unit != unit)
            return "units";
        unit = unit ? unit : node->unit;
    }
    return unit ? gs_unit_name(unit) : "units";
}
