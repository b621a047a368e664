/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/amount.h"
#include "inspect/web_draw.h"

/* Where there are many nodes: a cell for each GPU, by model, as high as it is given. Beyond
 * CELLS_MAX GPUs a cell is a node, and each of its GPUs a bar in it, which is one letter: forty
 * thousand elements are too many. A model has several parts, so that news are short; all models
 * together have a bounded number. */

enum { CELLS_MAX = 4000, NODES_OF_PART = 250, PARTS_OF_MODELS = 64, MODELS_MAX = 24 };
_Static_assert(PARTS_OF_MODELS + MODELS_MAX + WEB_NODES_MAX + 8 <= WEB_PARTS_MAX, "parts");

struct cell {
    uint64_t given, total, free, stranded;
    bool usable, overfull;
};

/* A tenth of the whole, rounded up: whatever is given is seen. */
static unsigned tenths(uint64_t part, uint64_t whole)
{
    const uint64_t share = whole ? (part * 10 + whole - 1) / whole : 0;
    return share > 10 ? 10 : (unsigned)share;
}

static bool mostly_stranded(const struct gs_fragmentation *part)
{
    return part->stranded_units * 2 > part->free_units;
}

static void put_bars(struct gs_buf *out, const struct view_node *node)
{
    static const char *const bars[] = {"\u00b7", "\u2581", "\u2581", "\u2582", "\u2583", "\u2584",
                                       "\u2585", "\u2585", "\u2586", "\u2587", "\u2588"};
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const struct view_gpu *gpu = &node->gpus[i];
        gs_buf_puts(out, gpu->overfull  ? "!"
                         : !gpu->usable ? "\u00d7"
                                        : bars[tenths(gpu->used_units, gpu->total_units)]);
    }
}

static void put_cell(struct gs_buf *out, const struct view_node *node, const struct view_gpu *gpu,
                     const struct cell *cell)
{
    const char *state = cell->overfull                                            ? " full"
                        : !cell->usable                                           ? " off"
                        : mostly_stranded(&node->fragmentation) && cell->stranded ? " str"
                                                                                  : "";
    gs_buf_printf(out, "<a class=\"c l%u%s%s\" href=\"", tenths(cell->given, cell->total), state,
                  gpu ? "" : " n");
    web_put_address(out, WEB_NODE, NULL, node->node->name);
    if (gpu)
        gs_buf_printf(out, "&amp;gpu=%" PRIu32, gpu->idx);
    gs_buf_puts(out, "\" aria-label=\"");
    web_escape(out, node->node->name);
    if (gpu)
        gs_buf_printf(out, " GPU%" PRIu32, gpu->idx);
    gs_buf_printf(out, ": %" PRIu64 "/%" PRIu64, cell->given, cell->total);
    if (cell->overfull)
        gs_buf_puts(out, ", overfull");
    else if (!cell->usable)
        gs_buf_puts(out, ", takes no pods");
    else if (cell->stranded)
        gs_buf_printf(out, ", %" PRIu64 " stranded%s", cell->stranded, gpu ? " on its node" : "");
    gs_buf_puts(out, "\">");
    if (!gpu)
        put_bars(out, node);
    gs_buf_puts(out, "</a>");
}

static void put_gpu_cells(struct gs_buf *out, const struct view_node *node)
{
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const struct view_gpu *gpu = &node->gpus[i];
        put_cell(
            out, node, gpu,
            &(struct cell){.given = gpu->used_units,
                           .total = gpu->total_units,
                           .stranded = gpu->free_units ? node->fragmentation.stranded_units : 0,
                           .usable = gpu->usable,
                           .overfull = gpu->overfull});
    }
}

static void put_node_cell(struct gs_buf *out, const struct view_node *node)
{
    struct cell cell = {.given = node->used_units,
                        .total = node->total_units,
                        .stranded = node->fragmentation.stranded_units};
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        cell.usable |= node->gpus[i].usable;
        cell.overfull |= node->gpus[i].overfull;
    }
    put_cell(out, node, NULL, &cell);
}

static void put_sum(struct gs_buf *out, const struct view *part)
{
    const struct view_sum *sum = &part->sum;
    char text[5][AMOUNT_TEXT_BYTES];
    gs_buf_printf(out, " <small>%s nodes, %s GPUs: %s of %s %s given, %s free",
                  amount_text(sum->nodes, text[0]), amount_text(sum->gpus, text[1]),
                  amount_text(sum->used_units, text[2]), amount_text(sum->total_units, text[3]),
                  part->unit, amount_text(sum->fragmentation.free_units, text[4]));
    if (sum->fragmentation.stranded_units)
        gs_buf_printf(out, ", %s stranded",
                      amount_text(sum->fragmentation.stranded_units, text[0]));
    if (sum->unusable_units)
        gs_buf_printf(out, ", %s not usable", amount_text(sum->unusable_units, text[0]));
    gs_buf_puts(out, "</small>");
}

static void put_legend(const struct web_draw *draw, bool per_gpu)
{
    gs_buf_puts(
        draw->out,
        per_gpu ? "<p class=legend>A cell is a GPU: <i class=\"c l7\"></i> as high as it is "
                  "given, <i class=\"c l7 str\"></i> most of the node's free memory is "
                  "stranded, <i class=\"c l4 off\"></i> takes no pods, <i class=\"c l10 "
                  "full\"></i> overfull</p>"
                : "<p class=legend>A cell is a node, each bar in it a GPU: \u2585 as high as it "
                  "is given, \u00b7 free, \u00d7 takes no pods, ! overfull; <i class=\"c "
                  "str\"></i> most of the node's free memory is stranded</p>");
}

/* Nodes from that on of one model. */
static void put_part(const struct web_draw *draw, const struct view_model *model, size_t nth,
                     size_t from, size_t nodes, bool per_gpu)
{
    struct gs_buf *out = draw->out;
    char id[64];
    snprintf(id, sizeof(id), "o-%zu-%zu", nth, from);
    web_begin(draw, id);
    gs_buf_printf(out, "<section class=map id=%s>", id);
    if (nth == 0 && from == 0)
        put_legend(draw, per_gpu);
    if (from == 0) {
        gs_buf_puts(out, "<h2>");
        web_escape(out, model->name[0] ? model->name : "model not known");
        put_sum(out, &model->part);
        gs_buf_puts(out, "</h2>");
    }
    gs_buf_puts(out, "<div class=cells>");
    for (size_t i = from; i < model->part.node_count && i < from + nodes; i++) {
        if (per_gpu)
            put_gpu_cells(out, &model->part.nodes[i]);
        else
            put_node_cell(out, &model->part.nodes[i]);
    }
    gs_buf_puts(out, "</div></section>\n");
    web_end(draw);
}

void web_put_overview(const struct web_draw *draw)
{
    struct view_models models;
    const bool per_gpu = draw->view->sum.gpus <= CELLS_MAX;
    if (view_by_model(draw->view, MODELS_MAX, &models) < 0)
        draw->out->failed = GS_ENOMEM;
    size_t nodes = draw->view->node_count / PARTS_OF_MODELS + 1;
    nodes = nodes > NODES_OF_PART ? nodes : NODES_OF_PART;
    for (size_t nth = 0; nth < models.count; nth++) {
        const struct view_model *model = &models.all[nth];
        for (size_t from = 0; from < model->part.node_count; from += nodes)
            put_part(draw, model, nth, from, nodes, per_gpu);
    }
    view_models_release(&models);
}
