/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/what_if.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/codec/annotation.h"
#include "gpushare/codec/manifest.h"
#include "gpushare/codec/pod.h"
#include "inspect/doc.h"
#include "inspect/grid.h"
#include "inspect/lookup.h"

/* Appends a zeroed one; pods' asks borrow from their pods. NULL: there are ORDERS_MAX, or no
 * memory. Pointers to others become invalid. */
static struct order *add_order(struct orders *orders, struct gs_error *err)
{
    if (orders->count == ORDERS_MAX) {
        gs_fail(err, GS_ETOOBIG, "more than %d kinds of pods", ORDERS_MAX);
        return NULL;
    }
    struct order *more = reallocarray(orders->all, orders->count + 1, sizeof(*more));
    if (!more) {
        gs_fail_nomem(err);
        return NULL;
    }
    orders->all = more;
    more[orders->count] = (struct order){0};
    return &more[orders->count++];
}

void orders_release(struct orders *orders)
{
    for (size_t i = 0; i < orders->count; i++) {
        struct order *order = &orders->all[i];
        free(order->places);
        gs_pod_release(&order->pod);
    }
    free(orders->all);
    *orders = (struct orders){0};
}

/* ---- sizes of the command line ---- */

static int add_size(struct orders *orders, struct gs_slice text, const struct gs_ask *ask,
                    uint32_t replicas, struct gs_error *err)
{
    const char *times = memchr(text.at, 'x', text.len);
    size_t len = times ? (size_t)(times - text.at) : text.len;
    uint32_t units = 0;
    if (!gs_parse_u32(text.at, len, &units) ||
        (times && !gs_parse_u32(times + 1, text.len - len - 1, &replicas)) || !units ||
        units > INT32_MAX || !replicas || replicas > REPLICAS_MAX)
        return gs_fail(err, GS_EINVAL,
                       "--gpu-mem: \"%.*s\" is no size, such as 6, or 6x10 for ten pods of it",
                       text.len > 60 ? 60 : (int)text.len, text.at);
    struct order *order = add_order(orders, err);
    if (!order)
        return -1;
    order->ask = *ask;
    order->ask.units = units;
    order->replicas = replicas;
    return 0;
}

int orders_of_sizes(struct orders *orders, const char *text, const struct gs_ask *ask,
                    uint32_t replicas, struct gs_error *err)
{
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, ",");
        if (add_size(orders, (struct gs_slice){at, len}, ask, replicas, err) < 0)
            return -1;
        at += len + (at[len] == ',');
    }
    return 0;
}

/* ---- pods ---- */

int orders_of_pod(struct orders *orders, const struct gs_pod *pod, struct gs_error *err)
{
    struct order *order = add_order(orders, err);
    if (!order)
        return -1;
    if (gs_pod_copy(&order->pod, pod) < 0)
        return gs_fail_nomem(err);
    snprintf(order->title, sizeof(order->title), "%.63s/%.200s of %.30s", pod->ns, pod->name,
             pod->node_name);
    order->replicas = 1;
    gs_ask_of_pod(&order->ask, &order->pod);
    return 0;
}

/* ---- a manifest ---- */

struct reading {
    struct orders *orders;
    const struct gs_names *names;
};

static uint32_t number_of(const json_t *spec, const char *name)
{
    const json_t *number = json_object_get(spec, name);
    json_int_t value = json_is_integer(number) ? json_integer_value(number) : 1;
    return value < 0 ? 0 : value > REPLICAS_MAX ? REPLICAS_MAX : (uint32_t)value;
}

/* The pod's template and how many of it; NULL: the object makes none. */
static json_t *template_of(json_t *object, const char *kind, uint32_t *ret_replicas)
{
    static const char *const replicated[] = {"Deployment", "StatefulSet", "ReplicaSet",
                                             "ReplicationController"};
    json_t *spec = json_object_get(object, "spec");
    *ret_replicas = 1;
    if (strcmp(kind, "Pod") == 0)
        return object;
    if (strcmp(kind, "CronJob") == 0)
        spec = json_object_get(json_object_get(spec, "jobTemplate"), "spec");
    if (strcmp(kind, "Job") == 0 || strcmp(kind, "CronJob") == 0) {
        *ret_replicas = number_of(spec, "parallelism");
        return json_object_get(spec, "template");
    }
    for (size_t i = 0; i < sizeof(replicated) / sizeof(replicated[0]); i++) {
        if (strcmp(kind, replicated[i]) == 0) {
            *ret_replicas = number_of(spec, "replicas");
            return json_object_get(spec, "template");
        }
    }
    return NULL;
}

static int take(void *ctx, const char *version, const char *kind, struct gs_slice json,
                struct gs_error *err)
{
    struct reading *reading = ctx;
    uint32_t replicas;
    json_auto_t *object = json_loadb(json.at, json.len, 0, NULL);
    json_t *template = template_of(object, kind, &replicas);
    _cleanup_free_ char *text = template ? json_dumps(template, JSON_COMPACT) : NULL;
    if (!text || !replicas)
        return 0;
    struct order *order = add_order(reading->orders, err);
    if (!order || gs_codec_pod(reading->names, gs_slice_of(text), &order->pod, err) < 0)
        return -1;
    if (!gs_pod_wants_gpu(&order->pod)) {
        gs_pod_release(&order->pod);
        reading->orders->count--;
        return 0;
    }
    snprintf(order->title, sizeof(order->title), "%.30s %.200s", kind,
             lookup_text(object, "metadata", "name", NULL));
    order->replicas = replicas;
    gs_ask_of_pod(&order->ask, &order->pod);
    return 0;
}

int orders_of_manifest(struct orders *orders, const struct gs_names *names, const char *path,
                       struct gs_error *err)
{
    struct reading reading = {orders, names};
    size_t before = orders->count;
    if (gs_manifest_read(path, take, &reading, err) < 0)
        return -1;
    if (orders->count == before)
        return gs_fail(err, GS_EINVAL, "%.200s has no pod that asks for %s", path, names->gpu_mem);
    return 0;
}

/* ---- which fit where, in words and for programs ---- */

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
