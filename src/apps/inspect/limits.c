/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "inspect/grid.h"
#include "inspect/view.h"

/* ---- rows ---- */

const char *limits_enforced(const struct view_node *node)
{
    bool told = false, some = false, same = true;
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const enum gs_enforced enforced = node->gpus[i].gpu->enforced;
        told |= enforced != GS_ENFORCED_UNKNOWN;
        some |= gs_enforced_holds(enforced);
        same &= enforced == node->gpus[0].gpu->enforced;
    }
    if (!told)
        return "-";
    return !some ? "none" : same ? gs_enforced_name(node->gpus[0].gpu->enforced) : "some";
}

/* Why no limit of the kernel's can be on it; "" when one can, when it is not known, and of GPUs
 * beside whose ways there is no `required`. */
static const char *no_limit_on(enum gs_enforced enforced)
{
    switch (enforced) {
    case GS_ENFORCED_MIG:
        return gs_enforced_reason(GS_ENFORCED_INSTANCE);
    case GS_ENFORCED_NOT_ON:
    case GS_ENFORCED_NOT_HELD: /* a pod there is not; this one may be */
    case GS_ENFORCED_MPS_AWAY:
    case GS_ENFORCED_HOOK_AWAY:
        return "";
    default:
        return gs_enforced_reason(enforced);
    }
}

uint64_t limits_over(const struct usage_pod *pod, uint64_t bytes)
{
    return bytes > pod->limit_bytes ? bytes - pod->limit_bytes : 0;
}

/* Now, or ever. */
static bool is_over(const struct usage_pod *pod)
{
    return pod && (limits_over(pod, pod->used_bytes) || limits_over(pod, pod->peak_bytes));
}

static void say_over(const struct usage_pod *pod, char text[LIMITS_TEXT_BYTES])
{
    const uint64_t now = limits_over(pod, pod->used_bytes);
    char over[USAGE_TEXT_BYTES];
    const uint64_t bytes = now ? now : limits_over(pod, pod->peak_bytes);
    const enum gs_unit unit = bytes >> 30 ? GS_UNIT_GIB : GS_UNIT_MIB;
    usage_text(bytes, unit, over);
    snprintf(text, LIMITS_TEXT_BYTES, "%s %s %s more than its share%s", now ? "uses" : "used", over,
             gs_unit_name(unit), now ? "" : " at its peak");
}

const char *limits_hold(const struct view_node *node, const struct gs_claim *claim,
                        const struct usage *usage, char text[LIMITS_TEXT_BYTES])
{
    const struct usage_pod *pod = usage_pod_find(usage, claim->node, claim->uid);
    if (is_over(pod)) {
        say_over(pod, text);
        return text;
    }
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const enum gs_enforced enforced = node->gpus[i].gpu->enforced;
        if (!claim_on(claim, node->gpus[i].idx))
            continue;
        if (no_limit_on(enforced)[0])
            return no_limit_on(enforced);
        if (enforced == GS_ENFORCED_NOT_HELD && pod && gs_enforced_lacks(pod->enforced))
            return pod->reason;
    }
    return NULL;
}

/* A plugin that names no pods tells how many of the node's are over. */
static uint32_t over_unnamed(const struct view_node *node)
{
    if (!node->usage || node->usage->names_pods)
        return 0;
    return node->usage->over_pods < node->claim_count ? (uint32_t)node->usage->over_pods
                                                      : node->claim_count;
}

struct limits_row limits_of(const struct view_node *node, const struct usage *usage)
{
    struct limits_row row = {.held_pods = over_unnamed(node), .over_pods = over_unnamed(node)};
    char text[LIMITS_TEXT_BYTES];
    for (uint32_t i = 0; i < node->gpu_count; i++)
        row.limited_gpus += gs_enforced_holds(node->gpus[i].gpu->enforced);
    for (uint32_t i = 0; i < node->claim_count; i++) {
        const struct gs_claim *claim = &node->claims[i];
        row.held_pods += limits_hold(node, claim, usage, text) != NULL;
        row.over_pods += is_over(usage_pod_find(usage, claim->node, claim->uid));
    }
    return row;
}

void limits_add(struct limits_row *sum, const struct limits_row *row)
{
    sum->limited_gpus += row->limited_gpus;
    sum->held_pods += row->held_pods;
    sum->over_pods += row->over_pods;
}

/* ---- tables ---- */

static const char *mode_of(const struct view_node *node)
{
    return node->usage && node->usage->mode ? node->usage->mode : "-";
}

/* Of the first GPU that nothing keeps pods to their share on. */
static const char *why_not(const struct view_node *node)
{
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const enum gs_enforced enforced = node->gpus[i].gpu->enforced;
        if (enforced == GS_ENFORCED_UNKNOWN)
            return "its device plugin does not say";
        if (gs_enforced_lacks(enforced))
            return gs_enforced_reason(enforced);
    }
    return "-";
}

/* The kernel counts there what pods use, and the plugin tells. */
static bool knows_use(const struct view_node *node)
{
    bool counts = false;
    for (uint32_t i = 0; i < node->gpu_count; i++)
        counts |= !no_limit_on(node->gpus[i].gpu->enforced)[0];
    return counts && node->usage && node->usage->mode && strcmp(node->usage->mode, "off") != 0;
}

static void put_node(struct grid *grid, const struct view_node *node)
{
    const struct limits_row *row = &node->limits;
    const bool none = row->limited_gpus == 0;
    grid_row(grid);
    grid_cell(grid, GRID_PLAIN, "%s", node->node->name);
    grid_cell(grid, GRID_PLAIN, "%s", mode_of(node));
    grid_cell(grid, GRID_PLAIN, "%" PRIu32, node->gpu_count);
    grid_cell(grid, none ? GRID_WARN : GRID_PLAIN, "%" PRIu32, row->limited_gpus);
    grid_cell(grid, GRID_PLAIN, "%s", limits_enforced(node));
    grid_cell(grid, GRID_PLAIN, "%" PRIu32, node->claim_count);
    if (row->over_pods || knows_use(node))
        grid_cell(grid, row->over_pods ? GRID_BAD : GRID_PLAIN, "%" PRIu64, row->over_pods);
    else
        grid_cell(grid, GRID_PLAIN, "-");
    grid_cell(grid, GRID_PLAIN, "%" PRIu32, row->held_pods);
    grid_cell(grid, GRID_PLAIN, "%s", why_not(node));
}

static void nodes_table(struct grid *grid, const struct view *view)
{
    grid_column(grid, false, "NODE");
    grid_column(grid, false, "MODE");
    grid_column(grid, true, "GPUS");
    grid_column(grid, true, "LIMITED");
    grid_column(grid, false, "BY");
    grid_column(grid, true, "PODS");
    grid_column(grid, true, "OVER");
    grid_column(grid, true, "HELD BACK");
    grid_column(grid, false, "WHY NOT LIMITED");
    for (size_t i = 0; i < view->node_count; i++)
        put_node(grid, &view->nodes[i]);
}

static void put_pod(struct grid *grid, const struct gs_claim *claim, const struct usage_pod *pod,
                    const char *why)
{
    char text[USAGE_TEXT_BYTES];
    grid_row(grid);
    grid_cell(grid, GRID_PLAIN, "%s", claim->ns);
    grid_cell(grid, GRID_PLAIN, "%s", claim->name);
    grid_cell(grid, GRID_PLAIN, "%s", claim->node);
    usage_text(pod->limit_bytes, GS_UNIT_GIB, text);
    grid_cell(grid, GRID_PLAIN, "%s", text);
    grid_cell(grid, GRID_PLAIN, "%s", why);
}

/* Whom nobody can hold is a matter of its node, which the first table tells. */
static bool pods_table(struct grid *grid, const struct view *view)
{
    bool any = false;
    char text[LIMITS_TEXT_BYTES];
    grid_column(grid, false, "NAMESPACE");
    grid_column(grid, false, "POD");
    grid_column(grid, false, "NODE");
    grid_column(grid, true, "SHARE(GiB)");
    grid_column(grid, false, "WHY HELD BACK");
    for (size_t i = 0; i < view->node_count; i++) {
        const struct view_node *node = &view->nodes[i];
        for (uint32_t c = 0; c < node->claim_count; c++) {
            const struct gs_claim *claim = &node->claims[c];
            const struct usage_pod *pod = usage_pod_find(view->usage, claim->node, claim->uid);
            const char *why = limits_hold(node, claim, view->usage, text);
            if (!pod || !why || (why != text && why != pod->reason))
                continue;
            put_pod(grid, claim, pod, why);
            any = true;
        }
    }
    return any;
}

static void print_sums(const struct view *view)
{
    const struct limits_row *sum = &view->sum.limits;
    const char *before = "mode ";
    uint32_t known = 0;
    for (int mode = 0; mode < USAGE_MODES; mode++) {
        uint32_t nodes = 0;
        for (size_t i = 0; i < view->node_count; i++)
            nodes += mode_of(&view->nodes[i]) == usage_modes[mode];
        known += nodes;
        if (nodes)
            printf("%s%s on %" PRIu32, before, usage_modes[mode], nodes);
        before = nodes ? ", " : before;
    }
    if (known < view->sum.nodes)
        printf("%snot known on %" PRIu32, before, view->sum.nodes - known);
    printf(" of %" PRIu32 " nodes; limits hold on %" PRIu32 " of %" PRIu32
           " GPUs; required would hold back %" PRIu32 " of %" PRIu32 " pods, %" PRIu64
           " of them for what they use\n",
           view->sum.nodes, sum->limited_gpus, view->sum.gpus, sum->held_pods, view->sum.pods,
           sum->over_pods);
}

int print_limits(const struct view *view, const struct terminal *terminal)
{
    struct grid nodes, pods;
    grid_open(&nodes, terminal->colour);
    nodes_table(&nodes, view);
    grid_open(&pods, terminal->colour);
    const bool any = pods_table(&pods, view);
    _cleanup_free_ char *first = grid_text(&nodes);
    _cleanup_free_ char *second = grid_text(&pods);
    grid_close(&nodes);
    grid_close(&pods);
    if (!first || !second)
        return -1;
    printf("%s\n%s%s", first, any ? second : "", any ? "\n" : "");
    print_sums(view);
    return 0;
}
