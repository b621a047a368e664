/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "inspect/grid.h"
#include "inspect/limits.h"
#include "inspect/show.h"

/* The original's -d: per node its name, its pods with what each takes of each GPU, its totals. */

/* The most that the pod uses on one of its GPUs, and ever used. */
static void put_use(struct grid *grid, const struct view *view, const struct view_node *node,
                    const struct gs_claim *claim)
{
    const struct usage_pod *pod = usage_pod_find(view->usage, claim->node, claim->uid);
    char used[USAGE_TEXT_BYTES] = "-", peak[USAGE_TEXT_BYTES] = "-";
    bool over = pod && pod->known && limits_over(pod, pod->used_bytes) > 0;
    if (pod && pod->known) {
        usage_text(pod->used_bytes, view_unit_of(view, node), used);
        usage_text(pod->peak_bytes, view_unit_of(view, node), peak);
    }
    grid_cell(grid, over ? GRID_BAD : GRID_PLAIN, "%s", used);
    grid_cell(grid, GRID_PLAIN, "%s", peak);
}

static bool names_pods(const struct view_node *node)
{
    return node->usage && node->usage->names_pods;
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
    if (node->used_cores_pct)
        grid_column(grid, true, "COMPUTE");
    if (!names_pods(node))
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
        grid_cell(grid, GRID_PLAIN, "%" PRIu32, claim_on(claim, i) ? claim->units : 0);
    if (node->pending_pods)
        grid_cell(grid, recorded ? GRID_PLAIN : GRID_WARN, "%" PRIu64,
                  recorded ? 0 : claim_units(claim));
    if (node->used_cores_pct)
        grid_cell(grid, GRID_PLAIN, "%" PRIu32, claim->cores_pct);
    if (names_pods(node))
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
    const struct view_word *word;
    for (uint32_t nth = 0; (word = view_node_word(node->node, nth)) != NULL; nth++)
        printf("%s: %s\n", word->word, word->means);
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const struct view_gpu *gpu = &node->gpus[i];
        uint32_t nth = 0;
        for (; (word = view_gpu_word(gpu->gpu, gpu->overfull, nth)) != NULL; nth++) {
            if (!nth)
                printf("GPU%" PRIu32 " (%s):", gpu->idx,
                       gpu->gpu->uuid[0] ? gpu->gpu->uuid : "no UUID known");
            printf(" %s", word->word);
        }
        if (nth)
            putchar('\n');
    }
}

static void put_cores(const struct view_node *node)
{
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const struct view_gpu *gpu = &node->gpus[i];
        if (gpu->used_cores_pct)
            printf("Compute :   %" PRIu32 " of 100 of GPU%" PRIu32 ", held by %s\n",
                   gpu->used_cores_pct, gpu->idx, view_cores(gpu->gpu->enforced)->by);
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
    printf("\n\nAllocated/Total GPU Memory In %s:  %" PRIu64 "/%" PRIu64 " (%" PRIu64 "%%)\n",
           view->scope, sum->used_units, sum->total_units,
           view_percent(sum->used_units, sum->total_units));
    return 0;
}
