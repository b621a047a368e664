/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "inspect/grid.h"
#include "inspect/print.h"

/* The original's -d: per node its name, its pods with what each takes of each GPU, its totals. */

/* The most that the pod uses on one of its GPUs, and ever used. */
static void put_use(struct grid *grid, const struct view *view, const struct view_node *node,
                    const struct gs_claim *claim)
{
    const struct usage_pod *pod = usage_pod_find(view->usage, claim->node, claim->uid);
    char used[USAGE_TEXT_BYTES] = "-", peak[USAGE_TEXT_BYTES] = "-";
    bool over = pod && pod->known && pod->used_bytes > pod->given_bytes;
    if (pod && pod->known) {
        usage_text(pod->used_bytes, view_unit_of(view, node), used);
        usage_text(pod->peak_bytes, view_unit_of(view, node), peak);
    }
    grid_cell(grid, over ? GRID_BAD : GRID_PLAIN, "%s", used);
    grid_cell(grid, GRID_PLAIN, "%s", peak);
}

static bool names_pods(const struct view *view, const struct view_node *node)
{
    const struct usage_node *usage = usage_node_find(view->usage, node->node->name);
    return usage && usage->names_pods;
}

static bool asks_for_cores(const struct view_node *node)
{
    bool any = false;
    for (uint32_t i = 0; i < node->gpu_count; i++)
        any |= node->gpus[i].used_cores_pct > 0;
    return any;
}

static void put_header(struct grid *grid, const struct view *view, const struct view_node *node,
                       bool brief)
{
    grid_column(grid, false, "NAME");
    grid_column(grid, false, "NAMESPACE");
    for (uint32_t i = 0; i < node->columns; i++)
        grid_column(grid, true, brief ? "GPU%u" : "GPU%u(Allocated)", i);
    if (node->pending_pods)
        grid_column(grid, true, "Pending(Allocated)");
    if (asks_for_cores(node))
        grid_column(grid, true, "COMPUTE");
    if (!names_pods(view, node))
        return;
    grid_column(grid, true, "USED(%s)", gs_unit_name(view_unit_of(view, node)));
    grid_column(grid, true, "PEAK");
}

static void put_pod(struct grid *grid, const struct view *view, const struct view_node *node,
                    const struct gs_claim *claim)
{
    bool recorded = claim_recorded(claim);
    grid_row(grid);
    grid_cell(grid, GRID_PLAIN, "%s", claim->name);
    grid_cell(grid, GRID_PLAIN, "%s", claim->ns);
    for (uint32_t i = 0; i < node->columns; i++)
        grid_cell(grid, GRID_PLAIN, "%" PRIu32,
                  recorded && (claim->gpus & GS_GPU_BIT(i)) ? claim->units : 0);
    if (node->pending_pods)
        grid_cell(grid, recorded ? GRID_PLAIN : GRID_WARN, "%" PRIu64,
                  recorded ? 0 : (uint64_t)claim->units * claim->gpu_count);
    if (asks_for_cores(node))
        grid_cell(grid, GRID_PLAIN, "%" PRIu32, claim->cores_pct);
    if (names_pods(view, node))
        put_use(grid, view, node, claim);
}

/* *caller frees*; NULL: out of memory. */
static char *table_of(const struct view *view, const struct view_node *node, bool colour,
                      bool brief)
{
    struct grid grid;
    grid_open(&grid, colour);
    put_header(&grid, view, node, brief);
    for (uint32_t i = 0; i < node->claim_count; i++)
        put_pod(&grid, view, node, &node->claims[i]);
    if (!node->claim_count)
        grid_row(&grid);
    char *text = grid_text(&grid);
    grid_close(&grid);
    /* libsmartcols prints no header without a row: here was an empty one */
    if (text && !node->claim_count)
        strchr(text, '\n')[1] = '\0';
    return text;
}

static void put_health(const struct view_node *node)
{
    if (!node->node->ready)
        puts("NotReady: the kubelet does not answer");
    if (node->node->unschedulable)
        puts("SchedulingDisabled: no new pods");
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const struct view_gpu *gpu = &node->gpus[i];
        const char *word;
        bool bad;
        for (uint32_t nth = 0; (word = view_gpu_word(gpu, nth, &bad)) != NULL; nth++) {
            if (!nth)
                printf("GPU%" PRIu32 " (%s):", gpu->idx,
                       gpu->gpu->uuid[0] ? gpu->gpu->uuid : "no UUID known");
            printf(" %s", word);
        }
        if (view_gpu_word(gpu, 0, &bad))
            putchar('\n');
    }
}

static void put_cores(const struct view_node *node)
{
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const struct view_gpu *gpu = &node->gpus[i];
        if (gpu->used_cores_pct)
            printf("Compute :   %" PRIu32 " of 100 of GPU%" PRIu32 ", held by %s\n",
                   gpu->used_cores_pct, gpu->idx,
                   gpu->gpu->enforced == GS_ENFORCED_MPS ? gs_enforced_name(gpu->gpu->enforced)
                                                         : "nothing: it is a count");
    }
}

static int put_node(const struct view *view, const struct view_node *node,
                    const struct terminal *terminal)
{
    const char *address = node->node->address;
    _cleanup_free_ char *text = table_of(view, node, terminal->colour, false);
    if (text && terminal->screen && terminal->width && text_width(text) > terminal->width) {
        free(text);
        text = table_of(view, node, terminal->colour, true);
    }
    if (!text)
        return -1;
    printf("\nNAME:       %s\nIPADDRESS:  %s\n\n%s", node->node->name,
           address[0] ? address : "unknown", text);
    printf("Allocated : %" PRIu64 " (%" PRIu64 "%%)\nTotal :     %" PRIu64 "\n", node->used_units,
           view_percent(node->used_units, node->total_units), node->total_units);
    put_cores(node);
    put_health(node);
    size_t width = text_width(text);
    if (terminal->screen && terminal->width && width > terminal->width)
        width = terminal->width;
    put_dashes(width > 40 ? width : 40);
    return 0;
}

int print_details(const struct view *view, const struct terminal *terminal)
{
    const struct view_sum *sum = &view->sum;
    for (size_t i = 0; i < view->node_count; i++) {
        if (put_node(view, &view->nodes[i], terminal) < 0)
            return -1;
    }
    printf("\n\nAllocated/Total GPU Memory In Cluster:  %" PRIu64 "/%" PRIu64 " (%" PRIu64 "%%)\n",
           sum->used_units, sum->total_units, view_percent(sum->used_units, sum->total_units));
    return 0;
}
