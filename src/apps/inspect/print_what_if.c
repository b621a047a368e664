/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "inspect/waits.h"
#include "inspect/what_if.h"

/* ---- orders as rows: each in a document, those of one owner and request together in a table ----
 */

/* Of some orders together. */
struct group {
    const struct order *order;
    const char *node, *blocked_by;
    uint64_t pods, placed, nodes;
};

#define AT(member) offsetof(struct place, member)

static const struct column place_columns[] = {
    {"NODE", "node", COLUMN_TEXT, AT(node), 1},
    {"GPUS", "gpus", COLUMN_GPUS, AT(gpus), 1},
    {"REPLICAS", "replicas", COLUMN_NUMBER, AT(replicas), 1},
};

static struct rows places_of(const struct order *order)
{
    struct rows rows = ROWS_OF(place_columns, struct place);
    rows.all = order->places;
    rows.count = order->place_count;
    return rows;
}

static const char *find_blocker(const struct order *order)
{
    enum gs_obstacle obstacle;
    enum gs_reason reason;
    if (order->placed == order->replicas)
        return NULL;
    if (order->ask.broken)
        return gs_reason_text(order->ask.broken);
    verdict_nearest(&order->verdict, &obstacle, &reason);
    return order->verdict.nodes ? verdict_text(obstacle, reason) : "the cluster has no nodes";
}

static struct group group_of(const struct order *order)
{
    return (struct group){.order = order,
                          .node = order->place_count ? order->places[0].node : NULL,
                          .blocked_by = find_blocker(order),
                          .pods = order->replicas,
                          .placed = order->placed,
                          .nodes = order->place_count > 0};
}

static const char *owner_of(const struct order *order)
{
    return order->pod.owner[0] ? order->pod.owner : order->pod.name;
}

static void write_row(struct sheet *to, const struct group *group)
{
    const struct order *order = group->order;
    const bool asked = order->kind == ORDER_ASKED;
    char asks[WAIT_SHORT_BYTES] = "";
    if (!asked)
        waits_asks(&order->pod, asks);
    sheet_row(to);
    column_text(to, COLUMN_TEXT, "NAMESPACE", "namespace", COLUMN_ALWAYS,
                asked ? NULL : order->pod.ns);
    column_text(to, COLUMN_TEXT, "POD", "name", COLUMN_DOCUMENT,
                asked ? order->title : order->pod.name);
    column_text(to, COLUMN_TEXT, "OWNER", NULL, COLUMN_ALWAYS, asked ? NULL : owner_of(order));
    column_text(to, COLUMN_TEXT, "OWNER", "owner", COLUMN_DOCUMENT, order->pod.owner);
    column_text(to, COLUMN_TEXT, "REQUEST()", NULL, COLUMN_ALWAYS,
                gs_arena_strdup(&to->texts, asks));
    column_number(to, COLUMN_NUMBER, "UNITS", "requestedGPU", COLUMN_DOCUMENT, order->ask.units);
    column_number(to, COLUMN_NUMBER, "COMPUTE", "requestedCorePercentage", COLUMN_DOCUMENT,
                  order->ask.cores_pct ? order->ask.cores_pct : COLUMN_UNKNOWN);
    column_number(to, COLUMN_NUMBER, "GPUS", "gpuCount", COLUMN_DOCUMENT, order->ask.gpu_count);
    column_number(to, COLUMN_NUMBER, "PODS", "replicas", COLUMN_ALWAYS, group->pods);
    column_number(to, COLUMN_NUMBER, "FIT", "scheduledReplicas", COLUMN_ALWAYS, group->placed);
    column_number(to, COLUMN_NUMBER, "UNPLACED", NULL, COLUMN_DOCUMENT,
                  group->pods - group->placed);
    column_text(to, COLUMN_TEXT, "NODE", NULL, COLUMN_ALWAYS,
                group->nodes > 1 ? gs_arena_printf(&to->texts, "%" PRIu64 " nodes", group->nodes)
                                 : group->node);
    column_text(to, COLUMN_PROSE, "BLOCKED-BY", NULL, COLUMN_ALWAYS, group->blocked_by);
}

/* ---- pods that are pending or have to move: a row for each owner ---- */

static int by_owner(const struct order *x, const struct order *y)
{
    int order = strcmp(x->pod.ns, y->pod.ns);
    if (!order)
        order = strverscmp(owner_of(x), owner_of(y));
    return order ? order : verdict_order(&x->ask, &y->ask);
}

static int by_group(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    int order = by_owner(x->order, y->order);
    return order ? order : strverscmp(x->node ? x->node : "", y->node ? y->node : "");
}

static void add_group(struct group *sum, const struct group *group)
{
    sum->pods += group->pods;
    sum->placed += group->placed;
    sum->nodes += group->nodes && (!sum->node || strcmp(sum->node, group->node) != 0);
    sum->node = group->node ? group->node : sum->node;
    sum->blocked_by = group->blocked_by ? group->blocked_by : sum->blocked_by;
}

static int print_groups(const struct told *told, enum order_kind kind)
{
    _cleanup_free_ struct group *all = calloc(told->orders->count + 1, sizeof(*all));
    struct sheet sheet = {.rows.unit = told->unit};
    size_t count = 0;
    if (!all)
        return -1;
    GS_EACH_OF (order, told->orders->all, told->orders->count) {
        if (order->kind == kind)
            all[count++] = group_of(order);
    }
    qsort(all, count, sizeof(*all), by_group);
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && by_owner(all[i].order, all[i + 1].order) == 0) {
            add_group(&all[i], &all[i + 1]);
            all[i + 1] = all[i];
        } else {
            write_row(&sheet, &all[i]);
        }
    }
    rows_sort(&sheet.rows, NULL, "unplaced,namespace,owner"); /* first what does not fit */
    return sheet_write(stdout, &sheet, told->terminal);
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
        printf(" but %" PRIu64 " %s, which do not fit on a node like %s,", added->hopeless,
               pods_word(added->hopeless), added->like);
    if (added->count)
        printf(" need at least %" PRIu32 " more %s like %s\n", added->count,
               added->count == 1 ? "node" : "nodes", added->like);
    else
        puts(" fit without another node");
}

static void print_drain(const struct told *told)
{
    const struct tally moves = orders_tally(told->orders, ORDER_MOVES);
    printf("%s %s be drained: %" PRIu64 " of %" PRIu64 " %s with GPU memory fit on other nodes",
           told->without, moves.placed < moves.pods ? "cannot" : "can", moves.placed, moves.pods,
           pods_word(moves.pods));
    if (told->end_there)
        printf("; %" PRIu32 " more of a DaemonSet end with their node", told->end_there);
    putchar('\n');
}

static bool tells_waiting(const struct told *told)
{
    return told->names_waiting || told->gated || told->elsewhere ||
           orders_tally(told->orders, ORDER_WAITS).pods;
}

static void print_waiting(const struct told *told)
{
    const struct tally waits = orders_tally(told->orders, ORDER_WAITS);
    if (waits.pods)
        printf("%" PRIu64 " of %" PRIu64 " pending %s would start%s", waits.placed, waits.pods,
               pods_word(waits.pods), told->names_waiting ? "" : " first (--pending lists them)");
    else
        fputs("No pod with GPU memory is pending", stdout);
    if (waits.pods && told->names_waiting && told->added && !told->until_fit)
        printf(", with %" PRIu32 " more %s like %s", told->added->count,
               told->added->count == 1 ? "node" : "nodes", told->added->like);
    if (told->gated)
        printf("; not counted: %" PRIu32 " with scheduling gates", told->gated);
    if (told->elsewhere)
        printf("; not counted: %" PRIu32 " of another scheduler (see why)", told->elsewhere);
    putchar('\n');
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

/* More places are told by number. */
enum { PLACES_SHOWN = 40 };

static int print_order(const struct order *order, const struct told *told)
{
    const struct rows places = places_of(order);
    if (order->title[0])
        printf("%s: ", order->title);
    printf("%" PRIu32 " of %" PRIu32 " pods with %" PRIu32 " %s", order->placed, order->replicas,
           order->ask.units, told->unit);
    if (order->ask.gpu_count > 1)
        printf(" x%" PRIu32, order->ask.gpu_count);
    if (order->ask.cores_pct)
        printf(", %" PRIu32 "%%", order->ask.cores_pct);
    puts(" fit now");
    if (places.count > PLACES_SHOWN)
        printf("on %zu GPUs or sets of GPUs (-o json names them)\n", places.count);
    else if (rows_write(stdout, &places, told->terminal) < 0)
        return -1;
    if (order->placed == order->replicas)
        return 0;
    puts("Why no more fit:");
    if (order->ask.broken || !order->verdict.nodes)
        return puts(find_blocker(order));
    return verdict_write(stdout, &order->verdict, told->terminal);
}

static int print_asked(const struct told *told, bool behind)
{
    const struct tally asked = orders_tally(told->orders, ORDER_ASKED);
    uint32_t kinds = 0;
    GS_EACH_OF (order, told->orders->all, told->orders->count) {
        if (order->kind != ORDER_ASKED)
            continue;
        if (behind || kinds)
            putchar('\n');
        kinds++;
        if (print_order(order, told) < 0)
            return -1;
    }
    if (kinds > 1)
        printf("\nTotal: %" PRIu64 " of %" PRIu64 " pods fit\n", asked.placed, asked.pods);
    return 0;
}

int what_if_print(const struct told *told)
{
    static const char *const sources[] = {
        [POLICY_OPTION] = "",
        [POLICY_EXTENDER] = ", that of the running extender",
        [POLICY_DEFAULT] =
            ", the default of --policy; the running extender did not report its own"};
    const bool verdicts = told->until_fit || told->without || tells_waiting(told);
    if (print_verdicts(told) < 0 || print_asked(told, verdicts) < 0)
        return -1;
    printf("Policy: %s%s.\n", gs_placement_name(told->policy), sources[told->source]);
    return 0;
}

/* ---- for programs ---- */

static void put_orders(struct doc *doc, const char *key, const struct told *told,
                       enum order_kind kind)
{
    doc_list(doc, key);
    GS_EACH_OF (order, told->orders->all, told->orders->count) {
        const struct group group = group_of(order);
        const struct rows places = places_of(order);
        struct sheet sheet = {0};
        if (order->kind != kind)
            continue;
        doc_object(doc, NULL);
        write_row(&sheet, &group);
        sheet_members(doc, &sheet, NULL);
        rows_list(doc, "placements", &places);
        verdict_document(doc, &order->verdict);
        doc_end(doc);
    }
    doc_end(doc);
}

/* What pods of one kind come to, and each of them. */
static void put_kind(struct doc *doc, const struct told *told, const char *name,
                     enum order_kind kind, bool items)
{
    const struct tally tally = orders_tally(told->orders, kind);
    doc_object(doc, name);
    doc_number(doc, "podCount", tally.pods);
    doc_number(doc, "scheduledPodCount", tally.placed);
    if (kind == ORDER_WAITS) {
        doc_number(doc, "gatedPodCount", told->gated);
        doc_number(doc, "otherSchedulerPodCount", told->elsewhere);
    }
    if (items)
        put_orders(doc, "items", told, kind);
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
        doc_object(&doc, "addedNodes");
        doc_text(&doc, "like", told->added->like);
        doc_number(&doc, "nodeCount", told->added->count);
        if (told->until_fit)
            doc_number(&doc, "unschedulablePodCount", told->added->hopeless);
        doc_end(&doc);
    }
    put_orders(&doc, "pods", told, ORDER_ASKED);
    put_kind(&doc, told, "pending", ORDER_WAITS, told->names_waiting);
    if (told->without)
        put_kind(&doc, told, "evicted", ORDER_MOVES, true);
    return doc_close(&doc);
}
