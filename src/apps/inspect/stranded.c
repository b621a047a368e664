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

static const char small_pieces[] = "the pieces are smaller than what most pods ask for";

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
    return small_pieces;
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

/* ---- the move that would free it ---- */

enum { MOVES_MAX = 20, MOVE_BYTES = 512 }; /* nodes for which one is looked for */

struct entry {
    const struct view_node *node;
    struct stranded_row row;
    char move[MOVE_BYTES]; /* "" when none was found */
};

/* The least that a pod on one GPU asks for that is larger than each piece and not than all; 0:
 * nobody does. */
static uint32_t next_size(const struct view *view, const struct bound *bound,
                          const struct stranded_row *row)
{
    uint32_t least = 0;
    for (uint32_t i = 0; i < bound->count; i++) {
        const struct gs_ask *ask = &bound->pods[i].ask;
        if (ask->gpu_count == 1 && ask->units > row->largest && (!least || ask->units < least))
            least = ask->units;
    }
    for (const struct snap_waiting *w = view->snapshot->waiting; w; w = w->hh.next) {
        if (w->charge.gpu_count == 1 && w->charge.units > row->largest &&
            (!least || w->charge.units < least))
            least = w->charge.units;
    }
    return least <= row->free_units ? least : 0;
}

static void find_move(const struct view *view, const struct bound *bound, struct gs_defrag *defrag,
                      struct gs_defrag_pod *pod, struct entry *entry)
{
    struct gs_defrag_plan plan = {0};
    *pod = (struct gs_defrag_pod){.uid = "", .ns = "", .name = ""};
    pod->ask = (struct gs_ask){.uid = "",
                               .ns = "",
                               .units = next_size(view, bound, &entry->row),
                               .gpu_count = 1,
                               .priority = INT32_MAX};
    if (!pod->ask.units ||
        gs_defrag_make_room_on(defrag, entry->node->state->slot, pod, 1, &plan) != GS_DEFRAG_FOUND)
        return;
    const struct gs_defrag_pod *moved = &bound->pods[plan.moves[0].pod];
    snprintf(entry->move, MOVE_BYTES, "%.100s/%.253s to %.100s: a pod of %" PRIu32 " fits",
             moved->ns, moved->name,
             gs_ledger_node_name(view->snapshot->cluster.ledger, plan.moves[0].slot),
             pod->ask.units);
    gs_defrag_plan_release(&plan);
}

/* Rows of the view are read before: the ledger changes. */
static int find_moves(const struct view *view, const struct bound *bound, struct entry *entries,
                      uint32_t count)
{
    struct gs_place place = gs_cluster_place(&view->snapshot->cluster, GS_PLACEMENT_ROLLOUT);
    struct gs_defrag_pod asks[MOVES_MAX];
    struct gs_defrag *defrag = gs_defrag_new(&place, bound->pods, bound->count);
    if (!defrag)
        return -1;
    for (uint32_t i = 0; i < count && i < MOVES_MAX; i++) {
        if (entries[i].row.why == small_pieces)
            find_move(view, bound, defrag, &asks[i], &entries[i]);
    }
    gs_defrag_free(defrag);
    return 0;
}

/* ---- the table ---- */

static void put_row(struct grid *grid, const struct entry *entry, bool moves)
{
    const struct stranded_row row = entry->row;
    grid_row(grid);
    grid_cell(grid, GRID_PLAIN, "%s", entry->node->node->name);
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
    if (moves)
        grid_cell(grid, GRID_PLAIN, "%s", entry->move[0] ? entry->move : "-");
}

static char *table_of(const struct view *view, const struct terminal *terminal,
                      const struct entry *entries, uint32_t count, bool moves)
{
    struct grid grid;
    grid_open(&grid, terminal->colour);
    grid_column(&grid, false, "NODE");
    grid_column(&grid, true, "STRANDED(%s)", view->unit);
    grid_column(&grid, true, "OF FREE");
    grid_column(&grid, true, "GPUS");
    grid_column(&grid, true, "A POD OF");
    grid_column(&grid, true, "AND CPU");
    grid_column(&grid, false, "WHY");
    if (moves)
        grid_column(&grid, false, "MOVE");
    for (uint32_t i = 0; i < count; i++)
        put_row(&grid, &entries[i], moves);
    char *text = grid_text(&grid);
    grid_close(&grid);
    return text;
}

int print_stranded(const struct view *view, const struct bound *bound,
                   const struct terminal *terminal)
{
    const struct gs_fragmentation *sum = &view->sum.fragmentation;
    char stranded[AMOUNT_TEXT_BYTES], free_[AMOUNT_TEXT_BYTES];
    uint32_t nodes = 0;
    if (!sum->known) {
        puts("What is stranded is not known yet: 16 pods with GPU memory have to be seen.");
        return 0;
    }
    _cleanup_free_ struct entry *entries = calloc(view->node_count + 1, sizeof(*entries));
    if (!entries)
        return -1;
    for (size_t i = 0; i < view->node_count; i++) {
        const struct view_node *node = &view->nodes[i];
        if (node->fragmentation.stranded_units)
            entries[nodes++] = (struct entry){.node = node, .row = stranded_of(node)};
    }
    if (nodes && bound && find_moves(view, bound, entries, nodes) < 0)
        return -1;
    _cleanup_free_ char *text =
        nodes ? table_of(view, terminal, entries, nodes, bound != NULL) : NULL;
    if (nodes && !text)
        return -1;
    fputs(text ? text : "", stdout);
    printf("%s of %s free are stranded on %" PRIu32 " node%s\n",
           amount_text(sum->stranded_units, stranded),
           amount_of_memory(sum->free_units, view->unit, free_), nodes, nodes == 1 ? "" : "s");
    return 0;
}
