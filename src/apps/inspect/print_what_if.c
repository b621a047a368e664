/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/annotation.h"
#include "inspect/doc.h"
#include "inspect/grid.h"
#include "inspect/waits.h"
#include "inspect/what_if.h"

/* ---- pods that wait or have to move: a row for each owner ---- */

/* Orders of one owner that ask for the same. */
struct group {
    const struct order *order, *unplaced; /* some of them; NULL: all are placed */
    uint32_t pods, placed, nodes;
};

static const char *owner_of(const struct order *order)
{
    return order->pod.owner[0] ? order->pod.owner : order->pod.name;
}

static const char *node_of(const struct order *order)
{
    return order->place_count ? order->places[0].node : "";
}

static int by_owner(const struct order *x, const struct order *y)
{
    int order = strcmp(x->pod.ns, y->pod.ns);
    if (!order)
        order = strverscmp(owner_of(x), owner_of(y));
    return order ? order : verdict_order(&x->ask, &y->ask);
}

static int by_group(const void *a, const void *b)
{
    const struct order *x = *(const struct order *const *)a, *y = *(const struct order *const *)b;
    int order = by_owner(x, y);
    return order ? order : strverscmp(node_of(x), node_of(y));
}

static void add_to_group(struct group *group, const struct order *order)
{
    if (order->placed && (!group->nodes || strcmp(node_of(group->order), node_of(order)) != 0))
        group->nodes++;
    if (!order->placed)
        group->unplaced = order;
    group->order = order;
    group->pods += order->replicas;
    group->placed += order->placed;
}

/* *caller frees*; NULL: out of memory. */
static struct group *group_orders(const struct orders *orders, enum order_kind kind,
                                  size_t *ret_count)
{
    struct group *groups = calloc(orders->count + 1, sizeof(*groups));
    _cleanup_free_ const struct order **sorted = calloc(orders->count + 1, sizeof(struct order *));
    size_t count = 0, used = 0;
    if (!groups || !sorted) {
        free(groups);
        return NULL;
    }
    for (size_t i = 0; i < orders->count; i++) {
        if (orders->all[i].kind == kind)
            sorted[count++] = &orders->all[i];
    }
    qsort(sorted, count, sizeof(struct order *), by_group);
    for (size_t i = 0; i < count; i++) {
        used += !i || by_owner(sorted[i - 1], sorted[i]) != 0;
        add_to_group(&groups[used - 1], sorted[i]);
    }
    *ret_count = used;
    return groups;
}

static const char *in_the_way(const struct order *order)
{
    enum gs_obstacle obstacle;
    enum gs_reason reason;
    if (!order)
        return "-";
    if (order->ask.broken)
        return gs_reason_text(order->ask.broken);
    verdict_nearest(&order->verdict, &obstacle, &reason);
    return order->verdict.nodes ? verdict_text(obstacle, reason) : "the cluster has no nodes";
}

static void put_group(struct grid *grid, const struct group *group, bool reasons)
{
    char asks[WAIT_SHORT_BYTES];
    waits_asks(&group->order->pod, asks);
    grid_row(grid);
    grid_cell(grid, GRID_PLAIN, "%s", group->order->pod.ns);
    grid_cell(grid, GRID_PLAIN, "%s", owner_of(group->order));
    grid_cell(grid, GRID_PLAIN, "%s", asks);
    grid_cell(grid, GRID_PLAIN, "%" PRIu32, group->pods);
    grid_cell(grid, group->unplaced ? GRID_BAD : GRID_PLAIN, "%" PRIu32, group->placed);
    if (group->nodes > 1)
        grid_cell(grid, GRID_PLAIN, "%" PRIu32 " nodes", group->nodes);
    else
        grid_cell(grid, GRID_PLAIN, "%s", group->nodes ? node_of(group->order) : "-");
    if (reasons)
        grid_cell(grid, GRID_PLAIN, "%s", in_the_way(group->unplaced));
}

static int print_groups(const struct told *told, enum order_kind kind)
{
    struct grid grid;
    size_t count = 0;
    const struct tally tally = orders_tally(told->orders, kind);
    const bool reasons = tally.placed < tally.pods;
    _cleanup_free_ struct group *groups = group_orders(told->orders, kind, &count);
    if (!groups)
        return -1;
    if (!count)
        return 0;
    grid_open(&grid, false);
    grid_column(&grid, false, "NAMESPACE");
    grid_column(&grid, false, "OWNER");
    grid_column(&grid, true, "ASKS(%s)", told->unit);
    grid_column(&grid, true, "PODS");
    grid_column(&grid, true, kind == ORDER_WAITS ? "START" : "FIT");
    grid_column(&grid, false, "ON");
    if (reasons)
        grid_column(&grid, false, "IN THE WAY OF THE OTHERS");
    for (size_t i = 0; i < count; i++)
        put_group(&grid, &groups[i], reasons);
    _cleanup_free_ char *text = grid_text(&grid);
    grid_close(&grid);
    if (text)
        fputs(text, stdout);
    return text ? 0 : -1;
}

/* ---- the verdict, in one sentence each ---- */

static const char *pods_word(uint64_t count)
{
    return count == 1 ? "pod" : "pods";
}

static void print_until_fit(const struct told *told)
{
    const struct added *added = told->added;
    fputs("All", stdout);
    if (added->hopeless)
        printf(" but %" PRIu64 " %s, which no node like %s takes,", added->hopeless,
               pods_word(added->hopeless), added->like);
    if (added->count)
        printf(" start with %" PRIu32 " more %s like %s, and with no fewer\n", added->count,
               added->count == 1 ? "node" : "nodes", added->like);
    else
        puts(" start as it is: no node more is needed");
}

static void print_drain(const struct told *told)
{
    const struct tally moves = orders_tally(told->orders, ORDER_MOVES);
    const uint64_t stay = moves.pods - moves.placed;
    if (!moves.pods)
        printf("%s can be drained: no pod with GPU memory has to move", told->without);
    else if (!stay)
        printf("%s can be drained: %s%" PRIu64 " %s with GPU memory %s another place",
               told->without, moves.pods == 1 ? "its " : "all ", moves.pods, pods_word(moves.pods),
               moves.pods == 1 ? "finds" : "find");
    else
        printf("%s cannot be drained: %" PRIu64 " of %" PRIu64 " %s with GPU memory %s no other "
               "place",
               told->without, stay, moves.pods, pods_word(moves.pods),
               stay == 1 ? "finds" : "find");
    if (told->end_there)
        printf("; %" PRIu32 " more of a DaemonSet %s with its node", told->end_there,
               told->end_there == 1 ? "goes" : "go");
    putchar('\n');
}

static void print_waiting(const struct told *told)
{
    const struct tally waits = orders_tally(told->orders, ORDER_WAITS);
    if (!waits.pods)
        fputs("No pod waits for GPU memory", stdout);
    else if (told->names_waiting)
        printf("%" PRIu64 " of %" PRIu64 " %s that wait start%s", waits.placed, waits.pods,
               pods_word(waits.pods), waits.placed == 1 ? "s" : "");
    else
        printf("%" PRIu64 " %s already and come%s first: %" PRIu64 " start%s "
               "(--waiting says which)",
               waits.pods, waits.pods == 1 ? "pod waits" : "pods wait", waits.pods == 1 ? "s" : "",
               waits.placed, waits.placed == 1 ? "s" : "");
    if (waits.pods && told->names_waiting && told->added && !told->until_fit)
        printf(", with %" PRIu32 " more %s like %s", told->added->count,
               told->added->count == 1 ? "node" : "nodes", told->added->like);
    if (told->gated)
        printf("; %" PRIu32 " more %s behind scheduling gates", told->gated,
               told->gated == 1 ? "is" : "are");
    if (told->elsewhere)
        printf("; %" PRIu32 " more %s another scheduler (why says which)", told->elsewhere,
               told->elsewhere == 1 ? "names" : "name");
    putchar('\n');
}

static bool tells_waiting(const struct told *told)
{
    return told->names_waiting || told->gated || told->elsewhere ||
           orders_tally(told->orders, ORDER_WAITS).pods;
}

static int print_verdicts(const struct told *told)
{
    if (told->without)
        print_drain(told);
    if (told->until_fit)
        print_until_fit(told);
    if (told->without && print_groups(told, ORDER_MOVES) < 0)
        return -1;
    if (tells_waiting(told))
        print_waiting(told);
    return told->names_waiting ? print_groups(told, ORDER_WAITS) : 0;
}

/* ---- what was asked about: which fit where ---- */

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

static int print_order(const struct order *order, const struct told *told)
{
    if (order->title[0])
        printf("%s: ", order->title);
    printf("%" PRIu32 " of %" PRIu32 " pods with %" PRIu32 " %s ", order->placed, order->replicas,
           order->ask.units, told->unit);
    if (order->ask.cores_pct)
        printf("and %" PRIu32 " of 100 of the compute ", order->ask.cores_pct);
    if (order->ask.gpu_count > 1)
        printf("on each of %" PRIu32 " GPUs fit now", order->ask.gpu_count);
    else
        printf("on one GPU fit now");
    if (order->placed) /* an extender with another --policy places them elsewhere */
        printf(", placed by %s", gs_placement_name(told->policy));
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
        verdict_print(&order->verdict, told->unit, stdout);
    return 0;
}

static int print_asked(const struct told *told, bool behind)
{
    const struct tally asked = orders_tally(told->orders, ORDER_ASKED);
    uint32_t kinds = 0;
    for (size_t i = 0; i < told->orders->count; i++) {
        const struct order *order = &told->orders->all[i];
        if (order->kind != ORDER_ASKED)
            continue;
        if (behind || kinds)
            putchar('\n');
        kinds++;
        if (print_order(order, told) < 0)
            return -1;
    }
    if (kinds > 1)
        printf("\n%" PRIu64 " of %" PRIu64 " pods in all fit\n", asked.placed, asked.pods);
    return 0;
}

int what_if_print(const struct told *told)
{
    const bool verdicts = told->until_fit || told->without || tells_waiting(told);
    if (print_verdicts(told) < 0 || print_asked(told, verdicts) < 0)
        return -1;
    if (told->source == POLICY_EXTENDER)
        printf("By %s, the running extender's policy.\n", gs_placement_name(told->policy));
    else if (told->source == POLICY_DEFAULT)
        printf("By %s, --policy's default: the running extender could not be asked.\n",
               gs_placement_name(told->policy));
    return 0;
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
    if (order->kind != ORDER_ASKED) {
        doc_text(doc, "name", order->pod.name);
        doc_text(doc, "namespace", order->pod.ns);
        doc_text(doc, "owner", order->pod.owner);
    } else if (order->title[0]) {
        doc_text(doc, "name", order->title);
    }
    verdict_ask_document(doc, &order->ask);
    doc_number(doc, "replicas", order->replicas);
    doc_number(doc, "placed", order->placed);
    put_places(doc, order);
    verdict_document(doc, &order->verdict, false);
    doc_end(doc);
}

/* Ends the list. */
static void put_orders(struct doc *doc, const struct orders *orders, enum order_kind kind)
{
    for (size_t i = 0; i < orders->count; i++) {
        if (orders->all[i].kind == kind)
            put_order(doc, &orders->all[i]);
    }
    doc_end(doc);
}

/* What pods of one kind come to, and each of them. */
static void put_kind(struct doc *doc, const struct told *told, const char *name,
                     enum order_kind kind, bool items)
{
    const struct tally tally = orders_tally(told->orders, kind);
    doc_object(doc, name);
    doc_number(doc, "pods", tally.pods);
    doc_number(doc, "placed", tally.placed);
    if (kind == ORDER_WAITS) {
        doc_number(doc, "gated", told->gated);
        doc_number(doc, "otherScheduler", told->elsewhere);
    }
    if (items) {
        doc_list(doc, "items");
        put_orders(doc, told->orders, kind);
    }
    doc_end(doc);
}

int what_if_document(const struct told *told, bool yaml)
{
    static const char *const sources[] = {
        [POLICY_OPTION] = "option", [POLICY_EXTENDER] = "extender", [POLICY_DEFAULT] = "default"};
    struct doc doc;
    doc_open(&doc, stdout, yaml);
    doc_text(&doc, "unit", told->unit);
    doc_text(&doc, "policy", gs_placement_name(told->policy));
    doc_text(&doc, "policySource", sources[told->source]);
    if (told->added) {
        doc_object(&doc, "added");
        doc_text(&doc, "like", told->added->like);
        doc_number(&doc, "nodes", told->added->count);
        if (told->until_fit)
            doc_number(&doc, "hopeless", told->added->hopeless);
        doc_end(&doc);
    }
    doc_list(&doc, "pods");
    put_orders(&doc, told->orders, ORDER_ASKED);
    put_kind(&doc, told, "waiting", ORDER_WAITS, told->names_waiting);
    if (told->without)
        put_kind(&doc, told, "moving", ORDER_MOVES, true);
    return doc_close(&doc);
}
