/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "gpushare/base/cleanup.h"
#include "inspect/grid.h"
#include "inspect/show.h"

/*
 * The original's summary: NAME IPADDRESS GPU0(Allocated/Total) … PENDING(Allocated) GPU
 * Memory(GiB), one table for all nodes.
 */

static uint32_t most_columns(const struct view *view)
{
    uint32_t most = 0;
    EACH_ROW (node, view) {
        if (node->columns > most)
            most = node->columns;
    }
    return most;
}

static void put_node(struct grid *grid, const struct view *view, const struct view_node *node,
                     uint32_t columns)
{
    const char *address = node->node->address;
    grid_row(grid);
    grid_cells(grid, "%s\t%s", node->node->name, address[0] ? address : "unknown");
    for (uint32_t i = 0; i < columns; i++) {
        const struct view_gpu *gpu = view_gpu_at(node, i);
        grid_cells(grid, "%" PRIu64 "/%" PRIu64, gpu ? gpu->used_units : 0,
                   gpu ? gpu->total_units : 0);
    }
    if (view->pending)
        grid_cells(grid, "%" PRIu64, node->pending_units);
    grid_cells(grid, "%" PRIu64 "/%" PRIu64, node->used_units, node->total_units);
}

/* *caller frees*; NULL: out of memory. */
static char *table_of(const struct view *view)
{
    const uint32_t columns = most_columns(view);
    struct grid grid;
    grid_open(&grid);
    grid_columns(&grid, "NAME\tIPADDRESS");
    for (uint32_t i = 0; i < columns; i++)
        grid_columns(&grid, ">GPU%u(Allocated/Total)", i);
    if (view->pending)
        grid_columns(&grid, ">PENDING(Allocated)");
    grid_columns(&grid, ">GPU Memory(%s)", view->unit);
    EACH_ROW (node, view)
        put_node(&grid, view, node, columns);
    return grid_text(&grid);
}

void view_put_waits(const struct view *view)
{
    char waits[WAIT_TEXT_BYTES];
    waits_sum(&view->waits, waits);
    if (view->waits.count)
        printf("%s: kubectl inspect gpushare why\n", waits);
}

int print_summary(const struct view *view, const struct output *output,
                  const struct terminal *terminal)
{
    const struct view_sum *sum = &view->sum;
    if (output->format != OUTPUT_TABLE || output->columns) {
        if (nodes_print(view, output, terminal) < 0)
            return -1;
        if (output->format == OUTPUT_WIDE)
            view_put_waits(view);
        return 0;
    }
    _cleanup_free_ char *text = table_of(view);
    if (!text)
        return -1;
    if (!terminal->screen || !terminal->width || text_width(text) <= terminal->width) {
        fputs(text, stdout);
        put_dashes(text_width(text));
    } else if (nodes_print(view, output, terminal) < 0) {
        return -1;
    }
    printf("Allocated/Total GPU Memory In %s:\n%" PRIu64 "/%" PRIu64 " (%" PRIu64 "%%)\n",
           view->scope, sum->used_units, sum->total_units,
           view_percent(sum->used_units, sum->total_units));
    if (terminal->screen) /* scripts read the original's lines from pipes */
        view_put_waits(view);
    return 0;
}
