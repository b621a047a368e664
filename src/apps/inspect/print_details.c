/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "inspect/grid.h"
#include "inspect/show.h"

/* The original's -d: per node its name, its pods with what each takes of each GPU, its totals. */

static void put_header(struct grid *grid, const struct view_node *node)
{
    grid_columns(grid, "NAME\tNAMESPACE");
    for (uint32_t i = 0; i < node->columns; i++)
        grid_columns(grid, ">GPU%u(Allocated)", i);
    if (node->pending_pods)
        grid_columns(grid, ">Pending(Allocated)");
}

static void put_pod(struct grid *grid, const struct view_node *node, const struct gs_claim *claim)
{
    bool recorded = claim_recorded(claim);
    grid_row(grid);
    grid_cells(grid, "%s\t%s", claim->name, claim->ns);
    for (uint32_t i = 0; i < node->columns; i++)
        grid_cells(grid, "%" PRIu32, claim_on(claim, i) ? claim->units : 0);
    if (node->pending_pods)
        grid_cells(grid, "%" PRIu64, recorded ? 0 : claim_units(claim));
}

/* *caller frees*; NULL: out of memory. */
static char *table_of(const struct view_node *node)
{
    struct grid grid;
    grid_open(&grid);
    put_header(&grid, node);
    EACH_CLAIM (claim, node)
        put_pod(&grid, node, claim);
    if (!node->claim_count)
        grid_row(&grid);
    char *text = grid_text(&grid);
    /* libsmartcols prints no header without a row: here was an empty one */
    if (text && !node->claim_count)
        strchr(text, '\n')[1] = '\0';
    return text;
}

static int put_node(const struct view_node *node)
{
    const char *address = node->node->address;
    _cleanup_free_ char *text = table_of(node);
    if (!text)
        return -1;
    printf("\nNAME:       %s\nIPADDRESS:  %s\n\n%s", node->node->name,
           address[0] ? address : "unknown", text);
    printf("Allocated : %" PRIu64 " (%" PRIu64 "%%)\nTotal :     %" PRIu64 "\n", node->used_units,
           view_percent(node->used_units, node->total_units), node->total_units);
    const size_t width = text_width(text);
    put_dashes(width > 40 ? width : 40);
    return 0;
}

int print_details(const struct view *view)
{
    const struct view_sum *sum = &view->sum;
    EACH_ROW (node, view) {
        if (put_node(node) < 0)
            return -1;
    }
    printf("\n\nAllocated/Total GPU Memory In %s:  %" PRIu64 "/%" PRIu64 " (%" PRIu64 "%%)\n",
           view->scope, sum->used_units, sum->total_units,
           view_percent(sum->used_units, sum->total_units));
    return 0;
}
