/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/stranded.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpushare/base/cleanup.h"
#include "inspect/amount.h"
#include "inspect/grid.h"

/* The least that a pod there asks for; 0 without one. */
static int64_t least_cpu_milli(const struct view_node *node)
{
    int64_t least = 0;
    for (uint32_t i = 0; i < node->claim_count; i++) {
        if (!i || node->claims[i].cpu_milli < least)
            least = node->claims[i].cpu_milli;
    }
    return least;
}

static const char *why(const struct view_node *node, int64_t cpu_milli)
{
    uint32_t full = 0, free_gpus = 0;
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &node->state->gpus[i];
        const bool has_room = node->gpus[i].free_units > 0;
        free_gpus += has_room;
        full += has_room && gpu->max_pods && gpu->pods >= gpu->max_pods;
    }
    if (cpu_milli >= 0 && cpu_milli < least_cpu_milli(node))
        return "less CPU is left than any pod there asks for";
    if (full && full == free_gpus)
        return "its GPUs have as many pods as they may";
    return "the pieces are smaller than what most pods ask for";
}

struct stranded_row stranded_of(const struct view_node *node)
{
    struct stranded_row row = {
        .units = node->fragmentation.stranded_units,
        .free_units = node->fragmentation.free_units,
        .largest = node->fragmentation.largest_units,
        .cpu_milli = node->state->cpu_milli ? gs_view_cpu_left_milli(node->state) : -1,
    };
    for (uint32_t i = 0; i < node->gpu_count; i++)
        row.pieces += node->gpus[i].free_units > 0;
    row.why = why(node, row.cpu_milli);
    return row;
}

static void put_row(struct grid *grid, const struct view_node *node)
{
    const struct stranded_row row = stranded_of(node);
    grid_row(grid);
    grid_cell(grid, GRID_PLAIN, "%s", node->node->name);
    grid_cell(grid, GRID_PLAIN, "%" PRIu64, row.units);
    grid_cell(grid, GRID_PLAIN, "%" PRIu64, row.free_units);
    grid_cell(grid, GRID_PLAIN, "%" PRIu32, row.pieces);
    grid_cell(grid, GRID_PLAIN, "%" PRIu32, row.largest);
    if (row.cpu_milli >= 0)
        grid_cell(grid, GRID_PLAIN, "%" PRId64 ".%" PRId64, row.cpu_milli / 1000,
                  row.cpu_milli % 1000 / 100);
    else
        grid_cell(grid, GRID_PLAIN, "-");
    grid_cell(grid, GRID_PLAIN, "%s", row.why);
}

int print_stranded(const struct view *view, const struct terminal *terminal)
{
    const struct gs_fragmentation *sum = &view->sum.fragmentation;
    char stranded[AMOUNT_TEXT_BYTES], free_[AMOUNT_TEXT_BYTES];
    struct grid grid;
    uint32_t nodes = 0;
    if (!sum->known) {
        puts("What is stranded is not known yet: 16 pods with GPU memory have to be seen.");
        return 0;
    }
    grid_open(&grid, terminal->colour);
    grid_column(&grid, false, "NODE");
    grid_column(&grid, true, "STRANDED(%s)", view->unit);
    grid_column(&grid, true, "OF FREE");
    grid_column(&grid, true, "GPUS");
    grid_column(&grid, true, "A POD OF");
    grid_column(&grid, true, "AND CPU");
    grid_column(&grid, false, "WHY");
    for (size_t i = 0; i < view->node_count; i++) {
        if (!view->nodes[i].fragmentation.stranded_units)
            continue;
        nodes++;
        put_row(&grid, &view->nodes[i]);
    }
    _cleanup_free_ char *text = nodes ? grid_text(&grid) : NULL;
    grid_close(&grid);
    if (nodes && !text)
        return -1;
    fputs(text ? text : "", stdout);
    printf("%s of %s free are stranded on %" PRIu32 " node%s%s\n",
           amount_text(sum->stranded_units, stranded),
           amount_of_memory(sum->free_units, view->unit, free_), nodes, nodes == 1 ? "" : "s",
           nodes ? "; moves that make room: kubectl inspect gpushare defrag" : "");
    return 0;
}
