/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/codec/annotation.h"
#include "inspect/doc.h"
#include "inspect/grid.h"
#include "inspect/what_if.h"

/* Which pods fit where, in words and for programs. */

/* More places are told by node, more nodes by number. */
enum { ROWS_MAX = 40 };

static void put_row(struct grid *grid, const char *node, const char *gpus, uint32_t replicas)
{
    grid_row(grid);
    grid_cell(grid, GRID_PLAIN, "%s", node);
    grid_cell(grid, GRID_PLAIN, "%s", gpus);
    grid_cell(grid, GRID_PLAIN, "%" PRIu32, replicas);
}

/* The next node's places are places[from..*ret_to); returns its replicas. */
static uint32_t of_node(const struct order *order, uint32_t from, uint32_t *ret_to)
{
    uint32_t replicas = 0, i = from;
    for (; i < order->place_count && strcmp(order->places[i].node, order->places[from].node) == 0;
         i++)
        replicas += order->places[i].replicas;
    *ret_to = i;
    return replicas;
}

static uint32_t count_nodes(const struct order *order)
{
    uint32_t nodes = 0, next = 0;
    for (uint32_t i = 0; i < order->place_count; i = next, nodes++)
        of_node(order, i, &next);
    return nodes;
}

static void put_rows(struct grid *grid, const struct order *order)
{
    char text[GS_IDX_TEXT_BYTES];
    for (uint32_t i = 0; i < order->place_count && order->place_count <= ROWS_MAX; i++)
        put_row(grid, order->places[i].node, gs_codec_idx_format(order->places[i].gpus, text),
                order->places[i].replicas);
    for (uint32_t i = 0, to; i < order->place_count && order->place_count > ROWS_MAX; i = to) {
        uint32_t replicas = of_node(order, i, &to);
        snprintf(text, sizeof(text), "%" PRIu32 " GPUs", to - i);
        put_row(grid, order->places[i].node, to - i == 1 ? "1 GPU" : text, replicas);
    }
}

static int print_places(const struct order *order)
{
    struct grid grid;
    uint32_t nodes = count_nodes(order);
    if (!order->place_count)
        return 0;
    if (nodes > ROWS_MAX) {
        printf("  on %" PRIu32 " nodes, %" PRIu32 " GPUs or sets of GPUs (-o json names them)\n",
               nodes, order->place_count);
        return 0;
    }
    grid_open(&grid, false);
    grid_column(&grid, false, "NODE");
    grid_column(&grid, false, "GPU");
    grid_column(&grid, true, "REPLICAS");
    put_rows(&grid, order);
    _cleanup_free_ char *text = grid_text(&grid);
    grid_close(&grid);
    if (text)
        fputs(text, stdout);
    return text ? 0 : -1;
}

static int print_order(const struct order *order, const char *unit, enum gs_placement policy)
{
    if (order->title[0])
        printf("%s: ", order->title);
    printf("%" PRIu32 " of %" PRIu32 " pods with %" PRIu32 " %s ", order->placed, order->replicas,
           order->ask.units, unit);
    if (order->ask.cores_pct)
        printf("and %" PRIu32 " of 100 of the compute ", order->ask.cores_pct);
    if (order->ask.gpu_count > 1)
        printf("on each of %" PRIu32 " GPUs fit now", order->ask.gpu_count);
    else
        printf("on one GPU fit now");
    if (order->placed) /* an extender with another --policy places them elsewhere */
        printf(", placed by %s", gs_placement_name(policy));
    putchar('\n');
    if (print_places(order) < 0)
        return -1;
    if (order->placed == order->replicas)
        return 0;
    puts(order->placed ? "In the way of the others:" : "In the way:");
    if (order->ask.broken)
        printf("  %s\n", gs_reason_text(order->ask.broken));
    else if (!order->verdict.nodes)
        puts("  the cluster has no nodes");
    else
        verdict_print(&order->verdict, unit);
    return 0;
}

int orders_print(const struct orders *orders, const char *unit, enum gs_placement policy)
{
    uint64_t placed = 0, wanted = 0;
    for (size_t i = 0; i < orders->count; i++) {
        const struct order *order = &orders->all[i];
        if (i)
            putchar('\n');
        if (print_order(order, unit, policy) < 0)
            return -1;
        placed += order->placed;
        wanted += order->replicas;
    }
    if (orders->count > 1)
        printf("\n%" PRIu64 " of %" PRIu64 " pods in all fit\n", placed, wanted);
    return fflush(stdout) == 0 ? 0 : -1;
}

/* ---- for programs ---- */

static void put_places(struct doc *doc, const struct order *order)
{
    doc_list(doc, "places");
    for (uint32_t i = 0; i < order->place_count; i++) {
        const struct place *place = &order->places[i];
        doc_object(doc, NULL);
        doc_text(doc, "node", place->node);
        doc_gpus(doc, "gpus", place->gpus);
        doc_number(doc, "replicas", place->replicas);
        doc_end(doc);
    }
    doc_end(doc);
}

static void put_order(struct doc *doc, const struct order *order)
{
    doc_object(doc, NULL);
    if (order->title[0])
        doc_text(doc, "name", order->title);
    verdict_ask_document(doc, &order->ask);
    doc_number(doc, "replicas", order->replicas);
    doc_number(doc, "placed", order->placed);
    put_places(doc, order);
    verdict_document(doc, &order->verdict, false);
    doc_end(doc);
}

int orders_document(const struct orders *orders, const char *unit, enum gs_placement policy,
                    bool yaml)
{
    struct doc doc;
    doc_open(&doc, stdout, yaml);
    doc_text(&doc, "unit", unit);
    doc_text(&doc, "policy", gs_placement_name(policy));
    doc_list(&doc, "pods");
    for (size_t i = 0; i < orders->count; i++)
        put_order(&doc, &orders->all[i]);
    doc_end(&doc);
    return doc_close(&doc);
}
