/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "inspect/waits.h"
#include "inspect/what_if.h"

/* ---- orders as rows: each in a document, those of one owner and request together in a table ----
 */

static const char *find_blocker(const struct order *order)
{
    if (order->placed == order->replicas)
        return NULL;
    if (order->ask.broken)
        return gs_reason_text(order->ask.broken);
    return order->verdict.nodes ? verdict_text(verdict_nearest(&order->verdict))
                                : "the cluster has no nodes";
}

static void write_order(struct sheet *to, const struct order *order)
{
    const bool asked = order->kind == ORDER_ASKED;
    const struct gs_pod *pod = &order->pod;
    sheet_row(to);
    column_text(to, COLUMN_TEXT, "NAMESPACE", "namespace", COLUMN_ALWAYS, asked ? NULL : pod->ns);
    column_text(to, COLUMN_PROSE, "POD", "name", COLUMN_DOCUMENT, asked ? order->title : pod->name);
    column_text(to, COLUMN_TEXT, "OWNER", NULL, COLUMN_ALWAYS,
                asked           ? NULL
                : pod->owner[0] ? pod->owner
                                : pod->name);
    column_text(to, COLUMN_TEXT, "OWNER", "owner", COLUMN_DOCUMENT, pod->owner);
    column_text(to, COLUMN_TEXT, "REQUEST()", NULL, COLUMN_ALWAYS,
                asked ? NULL : waits_request(&to->texts, pod));
    column_number(to, COLUMN_NUMBER, "UNITS", "requestedGPU", COLUMN_DOCUMENT, order->ask.units);
    column_number(to, COLUMN_NUMBER, "COMPUTE", "requestedCorePercentage", COLUMN_DOCUMENT,
                  order->ask.cores_pct ? order->ask.cores_pct : COLUMN_UNKNOWN);
    column_number(to, COLUMN_NUMBER, "GPUS", "gpuCount", COLUMN_DOCUMENT, order->ask.gpu_count);
    column_number(to, COLUMN_NUMBER, "PODS", "replicas", COLUMN_ALWAYS, order->replicas);
    column_number(to, COLUMN_NUMBER, "FIT", "scheduledReplicas", COLUMN_ALWAYS, order->placed);
    column_number(to, COLUMN_NUMBER, "UNPLACED", NULL, COLUMN_DOCUMENT,
                  order->replicas - order->placed);
    column_text(to, COLUMN_TEXT, "NODE", NULL, COLUMN_ALWAYS,
                order->place_count ? order->places[0].node : NULL);
    column_text(to, COLUMN_PROSE, "BLOCKED-BY", NULL, COLUMN_ALWAYS, find_blocker(order));
}

static void write_places(struct sheet *to, const struct order *order)
{
    GS_EACH_OF (place, order->places, order->place_count) {
        sheet_row(to);
        column_text(to, COLUMN_TEXT, "NODE", "node", COLUMN_ALWAYS, place->node);
        column_number(to, COLUMN_GPUS, "GPUS", "gpus", COLUMN_ALWAYS, place->gpus);
        column_number(to, COLUMN_NUMBER, "REPLICAS", "replicas", COLUMN_ALWAYS, place->replicas);
    }
}

/* ---- pods that are pending or have to move: a sentence, and a row for each owner ---- */

static int print_owners(const struct what_if *run, enum order_kind kind)
{
    struct sheet sheet = {.unit = verdict_unit(&run->on.snapshot)};
    GS_EACH_OF (order, run->on.orders.all, run->on.orders.count) {
        if (order->kind == kind)
            write_order(&sheet, order);
    }
    sheet_join(&sheet, "namespace,owner,request", "node");
    sheet_sort(&sheet, NULL, "unplaced,namespace,owner"); /* first what does not fit */
    return sheet_print(stdout, &sheet, NULL, &run->common.app->terminal);
}

static const char *ending(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_until_fit(const struct added *added)
{
    fputs("All", stdout);
    if (added->hopeless)
        printf(" but %" PRIu64 " pod%s, which do not fit on a node like %s,", added->hopeless,
               ending(added->hopeless), added->like);
    if (added->count)
        printf(" need at least %" PRIu32 " more node%s like %s\n", added->count,
               ending(added->count), added->like);
    else
        puts(" fit without another node");
}

static void print_drain(const struct what_if *run)
{
    const struct tally moves = orders_tally(&run->on.orders, ORDER_MOVES);
    printf("%s %s be drained: %" PRIu64 " of %" PRIu64 " pod%s with GPU memory fit on other nodes",
           run->without, moves.placed < moves.pods ? "cannot" : "can", moves.placed, moves.pods,
           ending(moves.pods));
    if (run->end_there)
        printf("; %" PRIu32 " more, of a DaemonSet or static, end with their node", run->end_there);
    putchar('\n');
}

static void print_waiting(const struct what_if *run)
{
    const struct tally waits = orders_tally(&run->on.orders, ORDER_WAITS);
    if (waits.pods)
        printf("%" PRIu64 " of %" PRIu64 " pending pod%s would start%s", waits.placed, waits.pods,
               ending(waits.pods), run->waiting ? "" : " first (--pending lists them)");
    else
        fputs("No pod with GPU memory is pending", stdout);
    if (waits.pods && run->waiting && run->add && !run->until_fit)
        printf(", with %" PRIu32 " more node%s like %s", run->on.added.count,
               ending(run->on.added.count), run->on.added.like);
    if (run->gated)
        printf("; not counted: %" PRIu32 " with scheduling gates", run->gated);
    if (run->elsewhere)
        printf("; not counted: %" PRIu32 " of another scheduler (see why)", run->elsewhere);
    putchar('\n');
}

/* ---- what was asked about: which fit where ---- */

/* More places are told by number. */
enum { PLACES_SHOWN = 40 };

static int print_order(const struct order *order, const struct what_if *run)
{
    const struct terminal *terminal = &run->common.app->terminal;
    struct sheet places = {0};
    if (order->title[0])
        printf("%s: ", order->title);
    printf("%" PRIu32 " of %" PRIu32 " pods with %" PRIu32 " %s", order->placed, order->replicas,
           order->ask.units, verdict_unit(&run->on.snapshot));
    if (order->ask.gpu_count > 1)
        printf(" x%" PRIu32, order->ask.gpu_count);
    if (order->ask.cores_pct)
        printf(", %" PRIu32 "%%", order->ask.cores_pct);
    puts(" fit now");
    if (order->place_count > PLACES_SHOWN)
        printf("on %" PRIu32 " GPUs or sets of GPUs (-o json names them)\n", order->place_count);
    else
        write_places(&places, order);
    if (sheet_print(stdout, &places, NULL, terminal) < 0)
        return -1;
    if (order->placed == order->replicas)
        return 0;
    puts("Why no more fit:");
    if (order->ask.broken || !order->verdict.nodes)
        return puts(find_blocker(order));
    return verdict_write(stdout, &order->verdict, terminal);
}

static int print_asked(const struct what_if *run, bool behind)
{
    const struct tally asked = orders_tally(&run->on.orders, ORDER_ASKED);
    uint32_t kinds = 0;
    GS_EACH_OF (order, run->on.orders.all, run->on.orders.count) {
        if (order->kind != ORDER_ASKED)
            continue;
        if (behind || kinds)
            putchar('\n');
        kinds++;
        if (print_order(order, run) < 0)
            return -1;
    }
    if (kinds > 1)
        printf("\nTotal: %" PRIu64 " of %" PRIu64 " pods fit\n", asked.placed, asked.pods);
    return 0;
}

int what_if_print(const struct what_if *run)
{
    const bool waits = run->waiting || run->gated || run->elsewhere ||
                       orders_tally(&run->on.orders, ORDER_WAITS).pods;
    if (run->without)
        print_drain(run);
    if (run->until_fit)
        print_until_fit(&run->on.added);
    if (run->without && print_owners(run, ORDER_MOVES) < 0)
        return -1;
    if (waits)
        print_waiting(run);
    if ((run->waiting && print_owners(run, ORDER_WAITS) < 0) ||
        print_asked(run, run->until_fit || run->without || waits) < 0)
        return -1;
    printf("Policy: %s (%s)\n", gs_placement_name(run->on.policy), run->policy_source);
    return 0;
}

/* ---- for programs ---- */

static void put_orders(struct doc *doc, const char *key, const struct what_if *run,
                       enum order_kind kind)
{
    doc_list(doc, key);
    GS_EACH_OF (order, run->on.orders.all, run->on.orders.count) {
        struct sheet sheet = {0}, places = {0};
        if (order->kind != kind)
            continue;
        doc_object(doc, NULL);
        write_order(&sheet, order);
        sheet_members(doc, &sheet, NULL);
        write_places(&places, order);
        sheet_list(doc, "placements", &places);
        verdict_document(doc, &order->verdict);
        doc_end(doc);
    }
    doc_end(doc);
}

/* What pods of one kind come to, and each of them. */
static void put_kind(struct doc *doc, const struct what_if *run, const char *name,
                     enum order_kind kind, bool items)
{
    const struct tally tally = orders_tally(&run->on.orders, kind);
    doc_object(doc, name);
    doc_number(doc, "podCount", tally.pods);
    doc_number(doc, "scheduledPodCount", tally.placed);
    if (kind == ORDER_WAITS) {
        doc_number(doc, "gatedPodCount", run->gated);
        doc_number(doc, "otherSchedulerPodCount", run->elsewhere);
    }
    if (items)
        put_orders(doc, "items", run, kind);
    doc_end(doc);
}

int what_if_document(const struct what_if *run)
{
    const struct added *added = &run->on.added;
    struct doc doc;
    doc_open(&doc, stdout, run->format == OUTPUT_YAML);
    doc_text(&doc, "unit", verdict_unit(&run->on.snapshot));
    doc_text(&doc, "policy", gs_placement_name(run->on.policy));
    doc_text(&doc, "policySource", run->policy_source);
    if (run->add) {
        doc_object(&doc, "addedNodes");
        doc_text(&doc, "like", added->like);
        doc_number(&doc, "nodeCount", added->count);
        if (run->until_fit)
            doc_number(&doc, "unschedulablePodCount", added->hopeless);
        doc_end(&doc);
    }
    put_orders(&doc, "pods", run, ORDER_ASKED);
    put_kind(&doc, run, "pending", ORDER_WAITS, run->waiting);
    if (run->without)
        put_kind(&doc, run, "evicted", ORDER_MOVES, true);
    return doc_close(&doc);
}
