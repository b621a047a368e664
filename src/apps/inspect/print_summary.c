/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpushare/base/cleanup.h"
#include "inspect/amount.h"
#include "inspect/grid.h"
#include "inspect/show.h"

/*
 * The summary: NAME IPADDRESS GPU0(Allocated/Total) … PENDING(Allocated) GPU Memory(GiB), one table
 * for all nodes, as the original prints it. On a terminal that is too narrow for that: one table
 * per number of GPUs, then short headers, then blocks of GPU columns.
 */
struct shape {
    const struct view *view;
    bool colour;
    bool wide;
    bool brief;             /* "GPU0" for "GPU0(Allocated/Total)" */
    bool one_count;         /* only nodes of `count` GPU columns */
    uint32_t count;         /* GPU columns */
    uint32_t first, behind; /* of these, shown: first ≤ GPU < behind */
};

static bool is_in(const struct shape *shape, const struct view_node *node)
{
    return !shape->one_count || node->columns == shape->count;
}

static void put_header(struct grid *grid, const struct shape *shape)
{
    bool last = shape->behind == shape->count;
    grid_column(grid, false, "NAME");
    grid_column(grid, false, "IPADDRESS");
    for (uint32_t i = shape->first; i < shape->behind; i++)
        grid_column(grid, true, shape->brief ? "GPU%u" : "GPU%u(Allocated/Total)", i);
    if (!last)
        return;
    if (shape->view->pending)
        grid_column(grid, true, "PENDING(Allocated)");
    grid_column(grid, true, "GPU Memory(%s)", shape->view->unit);
    if (!shape->wide)
        return;
    grid_column(grid, true, "FREE");
    grid_column(grid, true, "LARGEST");
    grid_column(grid, true, "STRANDED");
    grid_column(grid, true, "PODS");
    if (shape->view->says_cores)
        grid_column(grid, true, "COMPUTE");
    if (shape->view->says_used)
        grid_column(grid, true, "USED");
    if (shape->view->says_enforced)
        grid_column(grid, false, "ENFORCED");
    grid_column(grid, false, "MODEL");
    grid_column(grid, false, "STATE");
}

static enum grid_colour colour_of(const struct view_gpu *gpu)
{
    if (gpu->overfull || !gpu->gpu->healthy)
        return GRID_BAD;
    if (!gpu->usable)
        return GRID_FAINT;
    return GRID_PLAIN;
}

static void put_gpu(struct grid *grid, const struct view_node *node, uint32_t idx)
{
    const struct view_gpu *gpu = view_gpu_at(node, idx);
    if (gpu)
        grid_cell(grid, colour_of(gpu), "%" PRIu64 "/%" PRIu64, gpu->used_units, gpu->total_units);
    else
        grid_cell(grid, GRID_FAINT, "0/0");
}

static void put_model(struct grid *grid, const struct view_node *node)
{
    const char *model = view_node_model(node);
    grid_cell(grid, GRID_PLAIN, "%s", model[0] ? model : "-");
}

static void put_state(struct grid *grid, const struct view_node *node)
{
    char words[512] = "";
    size_t len = 0;
    bool bad = false;
    const struct view_word *word;
    for (uint32_t nth = 0; (word = view_node_word(node->node, nth)) != NULL; nth++) {
        bad |= word->bad;
        len += (size_t)snprintf(words + len, sizeof(words) - len, ",%s", word->word);
    }
    for (uint32_t i = 0; i < node->gpu_count && len < sizeof(words) - 32; i++) {
        const struct view_gpu *gpu = &node->gpus[i];
        for (uint32_t nth = 0; (word = view_gpu_word(gpu->gpu, gpu->overfull, nth)) != NULL;
             nth++) {
            bad |= word->bad;
            len += (size_t)snprintf(words + len, sizeof(words) - len, ",GPU%u:%s", gpu->idx,
                                    word->word);
        }
    }
    grid_cell(grid, bad ? GRID_BAD : len ? GRID_WARN : GRID_GOOD, "%s", len ? words + 1 : "ok");
}

static void put_used(struct grid *grid, const struct view *view, const struct view_node *node)
{
    char text[USAGE_TEXT_BYTES] = "-";
    if (node->usage && node->usage->known)
        usage_text(node->used_bytes, view_unit_of(view, node), text);
    grid_cell(grid, GRID_PLAIN, "%s", text);
}

static void put_wide(struct grid *grid, const struct shape *shape, const struct view_node *node)
{
    const struct gs_fragmentation *part = &node->fragmentation;
    grid_cell(grid, GRID_PLAIN, "%" PRIu64, part->free_units);
    grid_cell(grid, GRID_PLAIN, "%" PRIu32, part->largest_units);
    if (part->known)
        grid_cell(grid, GRID_PLAIN, "%" PRIu64, part->stranded_units);
    else
        grid_cell(grid, GRID_PLAIN, "-");
    grid_cell(grid, GRID_PLAIN, "%" PRIu32, node->claim_count);
    if (shape->view->says_cores)
        grid_cell(grid, GRID_PLAIN, "%" PRIu64 "/%" PRIu32, node->used_cores_pct,
                  node->gpu_count * GS_CORES_PCT);
    if (shape->view->says_used)
        put_used(grid, shape->view, node);
    if (shape->view->says_enforced)
        grid_cell(grid, GRID_PLAIN, "%s", limits_enforced(node));
    put_model(grid, node);
    put_state(grid, node);
}

static void put_node(struct grid *grid, const struct shape *shape, const struct view_node *node)
{
    const char *address = node->node->address;
    grid_row(grid);
    grid_cell(grid, GRID_PLAIN, "%s", node->node->name);
    grid_cell(grid, GRID_PLAIN, "%s", address[0] ? address : "unknown");
    for (uint32_t i = shape->first; i < shape->behind; i++)
        put_gpu(grid, node, i);
    if (shape->behind != shape->count)
        return;
    if (shape->view->pending)
        grid_cell(grid, node->pending_units ? GRID_WARN : GRID_PLAIN, "%" PRIu64,
                  node->pending_units);
    grid_cell(grid, node->used_units > node->total_units ? GRID_BAD : GRID_PLAIN,
              "%" PRIu64 "/%" PRIu64, node->used_units, node->total_units);
    if (shape->wide)
        put_wide(grid, shape, node);
}

/* *caller frees*; NULL: out of memory. */
static char *table_of(const struct shape *shape)
{
    struct grid grid;
    grid_open(&grid, shape->colour);
    put_header(&grid, shape);
    for (size_t i = 0; i < shape->view->node_count; i++) {
        if (is_in(shape, &shape->view->nodes[i]))
            put_node(&grid, shape, &shape->view->nodes[i]);
    }
    char *text = grid_text(&grid);
    grid_close(&grid);
    return text;
}

static bool fits(const char *text, uint32_t width)
{
    return !width || text_width(text) <= width;
}

static int put(const struct shape *shape, size_t *widest)
{
    _cleanup_free_ char *text = table_of(shape);
    if (!text)
        return -1;
    size_t width = text_width(text);
    if (width > *widest)
        *widest = width;
    fputs(text, stdout);
    return 0;
}

/* Blocks of as many GPU columns as fit; at least one. */
static int put_blocks(struct shape *shape, uint32_t width, size_t *widest)
{
    for (shape->first = 0; shape->first < shape->count; shape->first = shape->behind) {
        shape->behind = shape->count;
        for (;;) {
            _cleanup_free_ char *text = table_of(shape);
            if (!text)
                return -1;
            if (fits(text, width) || shape->behind <= shape->first + 1)
                break;
            shape->behind--;
        }
        if (shape->first)
            putchar('\n');
        if (put(shape, widest) < 0)
            return -1;
    }
    return 0;
}

static int put_count(struct shape *shape, uint32_t width, size_t *widest)
{
    shape->first = 0;
    shape->behind = shape->count;
    for (int brief = 0; brief < 2; brief++) {
        shape->brief = brief;
        _cleanup_free_ char *text = table_of(shape);
        if (!text)
            return -1;
        if (fits(text, width))
            return put(shape, widest);
    }
    /* what the wide form adds about a node would not fit either way */
    return shape->count && !shape->wide ? put_blocks(shape, width, widest) : put(shape, widest);
}

static uint32_t most_columns(const struct view *view)
{
    uint32_t most = 0;
    for (size_t i = 0; i < view->node_count; i++) {
        if (view->nodes[i].columns > most)
            most = view->nodes[i].columns;
    }
    return most;
}

static int put_per_count(struct shape *shape, uint32_t most, uint32_t width, size_t *widest)
{
    bool first = true;
    shape->one_count = true;
    for (shape->count = 0; shape->count <= most; shape->count++) {
        bool any = false;
        for (size_t i = 0; i < shape->view->node_count; i++)
            any |= shape->view->nodes[i].columns == shape->count;
        if (!any)
            continue;
        if (!first)
            putchar('\n');
        first = false;
        if (put_count(shape, width, widest) < 0)
            return -1;
    }
    return 0;
}

static int put_tables(const struct view *view, const struct terminal *terminal, bool wide,
                      size_t *widest)
{
    uint32_t most = most_columns(view);
    uint32_t width = terminal->screen ? terminal->width : 0;
    struct shape shape = {
        .view = view, .colour = terminal->colour, .wide = wide, .count = most, .behind = most};
    _cleanup_free_ char *text = table_of(&shape);
    if (!text)
        return -1;
    if (!fits(text, width))
        return put_per_count(&shape, most, width, widest);
    *widest = text_width(text);
    fputs(text, stdout);
    return 0;
}

/* ---- beyond the original ---- */

static int put_namespaces(const struct view *view)
{
    char used[AMOUNT_TEXT_BYTES];
    struct grid grid;
    grid_open(&grid, false);
    grid_column(&grid, false, "NAMESPACE");
    grid_column(&grid, true, "PODS");
    grid_column(&grid, true, "GPU Memory(%s)", view->unit);
    for (size_t i = 0; i < view->ns_count; i++) {
        grid_row(&grid);
        grid_cell(&grid, GRID_PLAIN, "%s", view->namespaces[i].name);
        grid_cell(&grid, GRID_PLAIN, "%" PRIu32, view->namespaces[i].pods);
        grid_cell(&grid, GRID_PLAIN, "%s", amount_text(view->namespaces[i].used_units, used));
    }
    _cleanup_free_ char *text = grid_text(&grid);
    grid_close(&grid);
    if (!text)
        return -1;
    if (view->ns_count)
        printf("\n%s", text);
    return 0;
}

static void put_cluster(const struct view *view)
{
    const struct view_sum *sum = &view->sum;
    char used[AMOUNT_TEXT_BYTES], free_[AMOUNT_TEXT_BYTES], unusable[AMOUNT_TEXT_BYTES],
        total[AMOUNT_TEXT_BYTES];
    printf("\nAllocated %s + free %s + not usable %s = total %s",
           amount_text(sum->used_units, used), amount_text(sum->fragmentation.free_units, free_),
           amount_text(sum->unusable_units, unusable),
           amount_of_memory(sum->total_units, view->unit, total));
    if (sum->over_units)
        printf(" + %s more than its GPUs have", amount_text(sum->over_units, used));
    printf("\nLargest pod that fits on one GPU %" PRIu32, sum->fragmentation.largest_units);
    if (sum->fragmentation.known)
        printf(", stranded %s", amount_text(sum->fragmentation.stranded_units, used));
    printf("\n%" PRIu32 " node%s, %" PRIu32 " GPU%s (%" PRIu32 " not usable, %" PRIu32
           " overfull), %" PRIu32 " pod%s\n",
           sum->nodes, sum->nodes == 1 ? "" : "s", sum->gpus, sum->gpus == 1 ? "" : "s",
           sum->unusable_gpus, sum->overfull_gpus, sum->pods, sum->pods == 1 ? "" : "s");
}

int print_summary(const struct view *view, const struct terminal *terminal, bool wide)
{
    const struct view_sum *sum = &view->sum;
    char waits[WAIT_TEXT_BYTES];
    size_t widest = 0;
    if (put_tables(view, terminal, wide, &widest) < 0)
        return -1;
    if (terminal->screen && terminal->width && widest > terminal->width)
        widest = terminal->width;
    put_dashes(widest);
    printf("Allocated/Total GPU Memory In %s:\n%" PRIu64 "/%" PRIu64 " (%" PRIu64 "%%)\n",
           view->scope, sum->used_units, sum->total_units,
           view_percent(sum->used_units, sum->total_units));
    if (!wide) {
        /* scripts read the original's lines from pipes */
        waits_sum(&view->waits, waits);
        if (terminal->screen && view->waits.count)
            printf("%s: kubectl inspect gpushare why\n", waits);
        return 0;
    }
    if (put_namespaces(view) < 0)
        return -1;
    put_cluster(view);
    if (view->waits.count)
        putchar('\n');
    return waits_print(&view->waits, terminal, view->now_s);
}
