/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/codec/annotation.h"
#include "gpushare/core/defrag.h"
#include "inspect/bound.h"
#include "inspect/common.h"
#include "inspect/doc.h"
#include "inspect/fetch.h"
#include "inspect/grid.h"
#include "inspect/lookup.h"
#include "inspect/queue.h"
#include "inspect/snapshot.h"
#include "inspect/terminal.h"
#include "inspect/verdict.h"
#include "inspect/waits.h"

/* kubectl inspect gpushare defrag: which pods would have to move so that others fit. */

/* A plan and whom it is for; waiting NULL: it frees a node. */
struct defrag_entry {
    const struct snap_waiting *waiting;
    enum gs_reason never; /* no GPU of this cluster could take it, whoever moves: not planned */
    enum gs_defrag_result result;
    struct gs_defrag_plan plan;
};

struct defrag_run {
    struct common common;
    const char *free_node; /* NULL: room for those that wait */
    uint32_t max_moves;
    enum gs_placement policy;
    enum format format;
    struct snapshot snapshot;
    struct bound bound;

    struct defrag_entry *entries;
    uint32_t entry_count;
    uint32_t left_out; /* pods that wait and were not looked at */
    bool old_eviction; /* the API server is older than 1.22 */
};

static int load(struct defrag_run *run, struct gs_error *err)
{
    const struct gs_watch_sink first = bound_sink(&run->bound);
    const struct fetch fetch = {.common = &run->common, .first = &first};
    run->bound.now_s = common_now_s(&run->common);
    return fetch_cluster(&fetch, &run->snapshot, NULL, err) < 0
               ? -1
               : snapshot_learnt(&run->snapshot, err);
}

static void release(struct defrag_run *run)
{
    for (uint32_t i = 0; i < run->entry_count; i++)
        gs_defrag_plan_release(&run->entries[i].plan);
    free(run->entries);
    bound_release(&run->bound);
    snapshot_release(&run->snapshot);
    source_close(&run->common.source);
}

static const char *node_name(const struct defrag_run *run, uint32_t slot)
{
    return gs_ledger_node_name(run->snapshot.cluster.ledger, slot);
}

/* ---- the moves ---- */

static int print_moves(const struct defrag_run *run, const struct gs_defrag_plan *plan)
{
    struct grid grid;
    char list[GS_IDX_TEXT_BYTES], ran[WAIT_SHORT_BYTES];
    int64_t now_s = common_now_s(&run->common);
    grid_open(&grid, run->common.app->terminal.colour);
    grid_column(&grid, false, "  MOVE");
    grid_column(&grid, false, "FROM");
    grid_column(&grid, true, "GPU");
    grid_column(&grid, true, "GIVES(%s)", verdict_unit(&run->snapshot));
    grid_column(&grid, true, "RAN");
    grid_column(&grid, false, "GOES TO");
    grid_column(&grid, true, "GPU");
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct gs_defrag_move *move = &plan->moves[i];
        const struct gs_defrag_pod *pod = &run->bound.pods[move->pod];
        waits_since(pod->age_s ? now_s - pod->age_s : 0, now_s, ran);
        grid_row(&grid);
        grid_cell(&grid, GRID_PLAIN, "  %s/%s", pod->ns, pod->name);
        grid_cell(&grid, GRID_PLAIN, "%s", node_name(run, plan->slot));
        grid_cell(&grid, GRID_PLAIN, "%s", gs_codec_idx_format(move->from, list));
        grid_cell(&grid, GRID_PLAIN, "%" PRIu64, (uint64_t)pod->ask.units * pod->ask.gpu_count);
        grid_cell(&grid, GRID_PLAIN, "%s", ran);
        grid_cell(&grid, GRID_PLAIN, "%s", node_name(run, move->slot));
        grid_cell(&grid, GRID_PLAIN, "%s", gs_codec_idx_format(move->gpus, list));
    }
    _cleanup_free_ char *text = grid_text(&grid);
    grid_close(&grid);
    if (text)
        fputs(text, stdout);
    return text ? 0 : -1;
}

/* An eviction is a POST that kubectl has no word for; the API server refuses it while a
 * PodDisruptionBudget says no. */
static void print_commands(const struct defrag_run *run, const struct gs_defrag_plan *plan,
                           bool keep_cordoned)
{
    const char *version = run->old_eviction ? "v1beta1" : "v1";
    putchar('\n');
    if (plan->cordon)
        printf("  kubectl cordon %s\n", node_name(run, plan->slot));
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct gs_defrag_pod *pod = &run->bound.pods[plan->moves[i].pod];
        printf("  echo '{\"apiVersion\":\"policy/%s\",\"kind\":\"Eviction\",\"metadata\":{"
               "\"namespace\":\"%s\",\"name\":\"%s\"}}' |\n"
               "    kubectl create --raw /api/v1/namespaces/%s/pods/%s/eviction -f - &&\n"
               "    kubectl -n %s wait --for=delete pod/%s --timeout=10m\n",
               version, pod->ns, pod->name, pod->ns, pod->name, pod->ns, pod->name);
    }
    if (plan->cordon && !keep_cordoned)
        printf("  kubectl uncordon %s\n", node_name(run, plan->slot));
}

/* ---- pods that wait ---- */

static void print_ask(const struct defrag_run *run, const struct defrag_entry *entry)
{
    const struct gs_charge *charge = &entry->waiting->charge;
    printf("%s/%s (%" PRIu32 " %s", entry->waiting->pod.ns, entry->waiting->pod.name, charge->units,
           verdict_unit(&run->snapshot));
    if (charge->gpu_count > 1)
        printf(" on each of %" PRIu32 " GPUs", charge->gpu_count);
    putchar(')');
}

static int print_entry(const struct defrag_run *run, const struct defrag_entry *entry)
{
    const struct gs_defrag_plan *plan = &entry->plan;
    char list[GS_IDX_TEXT_BYTES];
    print_ask(run, entry);
    if (entry->never) {
        printf(" fits no GPU of this cluster: %s\n", gs_reason_text(entry->never));
        return 0;
    }
    switch (entry->result) {
    case GS_DEFRAG_FITS:
        printf(" fits now: %s, GPU %s\n", node_name(run, plan->slot),
               gs_codec_idx_format(plan->gpus, list));
        return 0;
    case GS_DEFRAG_NO_SUM:
        puts(": less than that is free on all GPUs that it may use; no move helps");
        return 0;
    case GS_DEFRAG_NONE:
        printf(": no %" PRIu32 " moves help\n", run->max_moves);
        return 0;
    case GS_DEFRAG_TOO_MANY:
        puts(": nothing found, and not everything was tried; fewer --max-moves may find one");
        return 0;
    default:
        printf(" fits %s, GPU %s, after %" PRIu32 " move%s\n", node_name(run, plan->slot),
               gs_codec_idx_format(plan->gpus, list), plan->count, plan->count == 1 ? "" : "s");
    }
    if (print_moves(run, plan) < 0)
        return -1;
    print_commands(run, plan, false);
    return 0;
}

static int tell_waiting(const struct defrag_run *run)
{
    if (!run->entry_count)
        puts("No pod waits for GPU memory.");
    for (uint32_t i = 0; i < run->entry_count; i++) {
        if (i)
            putchar('\n');
        if (print_entry(run, &run->entries[i]) < 0)
            return -1;
    }
    if (run->left_out)
        printf("\n%" PRIu32 " more wait; they were not looked at: carry these moves out first\n",
               run->left_out);
    return 0;
}

/* ---- a node ---- */

static const char *why_it_stays(const struct gs_defrag_pod *pod)
{
    return pod->movable ? "has room nowhere else"
                        : "has no controller that makes a new one elsewhere, or is on its way out";
}

/* Pods that the plan left on the node; returns how many. */
static uint32_t each_that_stays(const struct defrag_run *run,
                                void (*each)(void *ctx, const struct gs_defrag_pod *pod), void *ctx)
{
    struct gs_claim claim;
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->bound.count; i++) {
        const struct gs_defrag_pod *pod = &run->bound.pods[i];
        if (!gs_ledger_find_claim(run->snapshot.cluster.ledger, pod->uid, &claim) ||
            strcmp(claim.node, run->free_node) != 0)
            continue;
        count++;
        if (each)
            each(ctx, pod);
    }
    return count;
}

static void print_stays(void *ctx, const struct gs_defrag_pod *pod)
{
    printf("  %s/%s stays: it %s\n", pod->ns, pod->name, why_it_stays(pod));
}

static void put_stays(void *ctx, const struct gs_defrag_pod *pod)
{
    doc_object(ctx, NULL);
    doc_text(ctx, "namespace", pod->ns);
    doc_text(ctx, "name", pod->name);
    doc_text(ctx, "message", why_it_stays(pod));
    doc_end(ctx);
}

static int tell_node(const struct defrag_run *run)
{
    const struct gs_defrag_plan *plan = &run->entries[0].plan;
    const uint32_t stay = each_that_stays(run, NULL, NULL);
    if (!plan->count && !stay) {
        printf("%s holds no pod with GPU memory.\n", run->free_node);
        return 0;
    }
    printf("%s: %" PRIu32 " of %" PRIu32 " pods with GPU memory can move\n", run->free_node,
           plan->count, plan->count + stay);
    if (plan->count && print_moves(run, plan) < 0)
        return -1;
    each_that_stays(run, print_stays, NULL);
    if (plan->count)
        print_commands(run, plan, true);
    return 0;
}

/* ---- for programs ---- */

static void put_moves(struct doc *doc, const struct defrag_run *run,
                      const struct gs_defrag_plan *plan)
{
    doc_list(doc, "moves");
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct gs_defrag_move *move = &plan->moves[i];
        const struct gs_defrag_pod *pod = &run->bound.pods[move->pod];
        doc_object(doc, NULL);
        doc_text(doc, "namespace", pod->ns);
        doc_text(doc, "name", pod->name);
        doc_number(doc, "usedGPU", (uint64_t)pod->ask.units * pod->ask.gpu_count);
        doc_number(doc, "ranSeconds", pod->age_s > 0 ? (uint64_t)pod->age_s : 0);
        doc_text(doc, "from", node_name(run, plan->slot));
        doc_gpus(doc, "fromGpus", move->from);
        doc_text(doc, "to", node_name(run, move->slot));
        doc_gpus(doc, "toGpus", move->gpus);
        doc_end(doc);
    }
    doc_end(doc);
    doc_bool(doc, "cordon", plan->cordon);
}

static void put_entry(struct doc *doc, const struct defrag_run *run,
                      const struct defrag_entry *entry)
{
    static const char *const results[] = {[GS_DEFRAG_FOUND] = "moves",
                                          [GS_DEFRAG_FITS] = "fits",
                                          [GS_DEFRAG_NO_SUM] = "noSum",
                                          [GS_DEFRAG_NONE] = "none",
                                          [GS_DEFRAG_TOO_MANY] = "notAllTried"};
    const bool placed = entry->result == GS_DEFRAG_FOUND || entry->result == GS_DEFRAG_FITS;
    doc_object(doc, NULL);
    doc_text(doc, "namespace", entry->waiting->pod.ns);
    doc_text(doc, "name", entry->waiting->pod.name);
    doc_number(doc, "requestedGPU", entry->waiting->charge.units);
    doc_number(doc, "gpuCount", entry->waiting->charge.gpu_count);
    doc_text(doc, "result", entry->never ? "never" : results[entry->result]);
    if (entry->never)
        doc_text(doc, "message", gs_reason_text(entry->never));
    if (placed) {
        doc_text(doc, "node", node_name(run, entry->plan.slot));
        doc_gpus(doc, "gpus", entry->plan.gpus);
    }
    if (entry->plan.count)
        put_moves(doc, run, &entry->plan);
    doc_end(doc);
}

static int print_document(const struct defrag_run *run)
{
    struct doc doc;
    doc_open(&doc, stdout, run->format == FORMAT_YAML);
    doc_text(&doc, "unit", verdict_unit(&run->snapshot));
    if (run->free_node) {
        doc_text(&doc, "node", run->free_node);
        put_moves(&doc, run, &run->entries[0].plan);
        doc_list(&doc, "stay");
        each_that_stays(run, put_stays, &doc);
        doc_end(&doc);
        return doc_close(&doc);
    }
    doc_list(&doc, "items");
    for (uint32_t i = 0; i < run->entry_count; i++)
        put_entry(&doc, run, &run->entries[i]);
    doc_end(&doc);
    doc_number(&doc, "notLookedAt", run->left_out);
    return doc_close(&doc);
}

static int tell(const struct defrag_run *run)
{
    if (run->format != FORMAT_TEXT)
        return print_document(run);
    int result = run->free_node ? tell_node(run) : tell_waiting(run);
    bool moves = false;
    for (uint32_t i = 0; i < run->entry_count; i++)
        moves = moves || run->entries[i].plan.count;
    if (result == 0 && moves)
        puts("\nWhere new pods go is what the extender would choose now. Affinities between pods "
             "were not\nlooked at, nor budgets: an eviction that one forbids is refused.");
    return result;
}

/* ---- the command ---- */

/* Plans of one run; one after the other they take the cluster further from what it is. */
enum { PLANS_MAX = 20 };

static void read_options(struct defrag_run *run, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_STRING("free-node", &run->free_node, "NODE",
                   "move all pods with GPU memory off this node instead"),
        OPT_U32("max-moves", &run->max_moves, "N", "pods that move for one that waits (5)"),
        OPT_POLICY(&run->policy),
        OPT_FORMAT(&run->format),
        COMMON_OPTIONS(&run->common, "has no effect: all pods count"),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc = "For pods that wait although enough memory is free in sum: the cheapest moves after "
               "which they fit, and the commands for them. Only pods with a controller move, none "
               "of higher priority, those that have run least first. The placement code is the "
               "extender's; the cluster is left alone.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .quiet = true,
    };
    gs_options_parse(&command, argc, argv);
}

/* ---- who waits ---- */

/* GS_FITS, or why no GPU of this cluster can ever take it. */
static enum gs_reason never(const struct snapshot *snapshot, const struct gs_ask *ask)
{
    struct verdict verdict;
    enum gs_obstacle obstacle;
    enum gs_reason reason;
    verdict_of(snapshot, ask, &verdict);
    verdict_nearest(&verdict, &obstacle, &reason);
    return gs_reason_unresolvable(reason) ? reason : GS_FITS;
}

/* The planner remembers what an ask came to: asks live as long as it. */
static int plan_for_all(struct defrag_run *run, struct gs_defrag *defrag, const struct queue *queue,
                        struct gs_defrag_pod *asks)
{
    uint32_t plans = 0;
    for (uint32_t i = 0; i < queue->count; i++) {
        struct defrag_entry *entry = &run->entries[run->entry_count];
        const struct gs_pod *pod = &queue->all[i]->pod;
        if (pod->nominated_node[0])
            continue; /* it has a place already, because others are evicted for it */
        if (plans == PLANS_MAX) {
            run->left_out++;
            continue;
        }
        asks[i] = (struct gs_defrag_pod){.uid = pod->uid};
        gs_ask_of_pod(&asks[i].ask, pod);
        entry->waiting = queue->all[i];
        entry->never = never(&run->snapshot, &asks[i].ask);
        entry->result = entry->never
                            ? GS_DEFRAG_NONE
                            : gs_defrag_make_room(defrag, &asks[i], run->max_moves, &entry->plan);
        if (entry->result == GS_DEFRAG_NO_MEMORY)
            return -1;
        run->entry_count++;
        plans += entry->result == GS_DEFRAG_FOUND;
    }
    return 0;
}

static int make_room(struct defrag_run *run, struct gs_defrag *defrag)
{
    struct queue queue;
    struct gs_error ignored = {0};
    int result = queue_find(&run->snapshot, &queue, &ignored);
    _cleanup_free_ struct gs_defrag_pod *asks = calloc(queue.count + 1u, sizeof(*asks));
    run->entries = calloc(queue.count + 1u, sizeof(*run->entries));
    if (result == 0)
        result = asks && run->entries ? plan_for_all(run, defrag, &queue, asks) : -1;
    queue_release(&queue);
    return result;
}

/* ---- a node ---- */

static int free_node(struct defrag_run *run, struct gs_defrag *defrag, uint32_t slot)
{
    run->entries = calloc(1, sizeof(*run->entries));
    if (!run->entries)
        return -1;
    run->entry_count = 1;
    struct defrag_entry *entry = &run->entries[0];
    entry->result = gs_defrag_free_node(defrag, slot, &entry->plan);
    return entry->result == GS_DEFRAG_NO_MEMORY ? -1 : 0;
}

static int plan(struct defrag_run *run, struct gs_error *err)
{
    const struct gs_node_view *view =
        run->free_node ? gs_ledger_view(run->snapshot.cluster.ledger, gs_slice_of(run->free_node))
                       : NULL;
    if (run->free_node && !view)
        return gs_fail(err, GS_ENOENT, "there is no node %.200s", run->free_node);
    struct gs_place place = gs_cluster_place(&run->snapshot.cluster, run->policy);
    struct gs_defrag *defrag = gs_defrag_new(&place, run->bound.pods, run->bound.count);
    if (!defrag)
        return gs_fail_nomem(err);
    int result = view ? free_node(run, defrag, view->slot) : make_room(run, defrag);
    gs_defrag_free(defrag);
    return result < 0 ? gs_fail_nomem(err) : 0;
}

/* policy/v1 has evictions since 1.22, and v1beta1 none since 1.25. Who cannot be asked is new. */
static void find_release(struct defrag_run *run)
{
    enum { FIRST_WITH_V1 = 22 };
    struct gs_error ignored = {0};
    uint64_t minor;
    json_auto_t *version = lookup_json(&run->common.source, "/version", NULL, &ignored);
    const char *text = lookup_text(version, "minor", NULL);
    run->old_eviction =
        gs_parse_u64(text, strspn(text, "0123456789"), &minor) && minor < FIRST_WITH_V1;
}

int cmd_defrag(const struct app *app, int argc, char **argv)
{
    struct defrag_run run = {
        .common = COMMON_DEFAULTS, .max_moves = 5, .policy = GS_PLACEMENT_ROLLOUT};
    struct gs_error err = {0};
    read_options(&run, argc, argv);
    if (!run.max_moves || run.max_moves > GS_DEFRAG_MOVES_MAX)
        return complain_usage(argv[0], "--max-moves is 1 to 16");
    int result = common_connect(&run.common, app, &err);
    if (result == 0)
        result = load(&run, &err);
    if (result == 0)
        result = plan(&run, &err);
    if (result == 0)
        find_release(&run);
    if (result == 0 && (tell(&run) < 0 || fflush(stdout) != 0))
        result = fail_output(&err);
    release(&run);
    return result == 0 ? 0 : complain(&err);
}
