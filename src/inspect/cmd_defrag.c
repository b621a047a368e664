/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/codec/annotation.h"
#include "gpushare/core/defrag.h"
#include "inspect/columns.h"
#include "inspect/fetch.h"
#include "inspect/lookup.h"
#include "inspect/queue.h"
#include "inspect/verdict.h"
#include "inspect/waits.h"

/* kubectl inspect gpushare defrag: which pods would have to move so that others fit. */

/* A plan and the pod it is for. */
struct entry {
    const struct gs_pod *waiting;
    enum gs_reason never; /* no GPU of this cluster could take it, whoever moves: not planned */
    enum gs_defrag_result result;
    struct gs_defrag_plan plan;
};

struct run {
    struct common common;
    uint32_t max_moves;
    uint32_t gpu_mem; /* room for a pod of so many units instead; 0: for those that wait */
    struct gs_pod wanted;
    struct gs_container container; /* its */
    enum gs_placement policy;
    enum output_format format;
    struct snapshot snapshot;
    struct gs_defrag_pod *pods; /* bound ones, as the planner knows them */
    struct entry *entries;
    uint32_t entry_count;
    uint32_t left_out; /* pods that wait and were not looked at */
    bool old_eviction; /* the API server is older than 1.22 */
};

/* ---- pods that may move ---- */

static int load(struct run *run, struct gs_error *err)
{
    const struct fetch fetch = {.common = &run->common, .copies = true};
    if (fetch_cluster(&fetch, &run->snapshot, NULL, err) < 0)
        return -1;
    struct gs_defrag_pod *to = calloc(HASH_COUNT(run->snapshot.bound) + 1, sizeof(*to));
    run->pods = to;
    if (!to)
        return gs_fail_nomem(err);
    EACH_POD (bound, run->snapshot.bound) {
        const struct gs_pod *pod = bound->pod;
        const int64_t age_s = common_now_s(&run->common) - pod->created_s;
        *to = (struct gs_defrag_pod){.uid = pod->uid,
                                     .ns = pod->ns,
                                     .name = pod->name,
                                     .age_s = pod->created_s ? age_s : 0,
                                     .movable = pod->owner_uid[0] && !pod->daemon &&
                                                !pod->static_uid[0] && !pod->deleting};
        gs_ask_of_pod(&to++->ask, pod);
    }
    return snapshot_learnt(&run->snapshot, err);
}

static void release(struct run *run)
{
    for (uint32_t i = 0; i < run->entry_count; i++)
        gs_defrag_plan_release(&run->entries[i].plan);
    free(run->entries);
    free(run->pods);
    gs_pod_release(&run->wanted);
    snapshot_release(&run->snapshot);
}

static const char *node_name(const struct run *run, uint32_t slot)
{
    return gs_ledger_node_name(run->snapshot.cluster.ledger, slot);
}

/* ---- the moves ---- */

static void write_moves(struct sheet *to, const struct run *run, const struct gs_defrag_plan *plan)
{
    to->unit = verdict_unit(&run->snapshot);
    GS_EACH_OF (move, plan->moves, plan->count) {
        const struct gs_defrag_pod *pod = &run->pods[move->pod];
        const char *ran = waits_age(&to->texts, snapshot_since(&run->snapshot, pod->uid),
                                    common_now_s(&run->common));
        sheet_row(to);
        column_text(to, COLUMN_TEXT, "NAMESPACE", "namespace", COLUMN_ALWAYS, pod->ns);
        column_text(to, COLUMN_TEXT, "POD", "name", COLUMN_ALWAYS, pod->name);
        column_text(to, COLUMN_TEXT, "FROM", "from", COLUMN_ALWAYS, node_name(run, plan->slot));
        column_number(to, COLUMN_GPUS, "GPU", "fromGPUs", COLUMN_ALWAYS, move->from);
        column_number(to, COLUMN_NUMBER, "FREES()", NULL, COLUMN_ALWAYS,
                      (uint64_t)pod->ask.units * pod->ask.gpu_count);
        column_number(to, COLUMN_NUMBER, "UNITS", "usedGPU", COLUMN_DOCUMENT, pod->ask.units);
        column_text(to, COLUMN_TEXT, "AGE", NULL, COLUMN_ALWAYS, ran);
        column_number(to, COLUMN_NUMBER, "SECONDS", "runningSeconds", COLUMN_DOCUMENT,
                      pod->age_s > 0 ? (uint64_t)pod->age_s : 0);
        column_text(to, COLUMN_TEXT, "TO", "to", COLUMN_ALWAYS, node_name(run, move->slot));
        column_number(to, COLUMN_GPUS, "GPU", "toGPUs", COLUMN_ALWAYS, move->gpus);
    }
}

/* An eviction is a POST that kubectl has no word for; the API server refuses it while a
 * PodDisruptionBudget says no. */
static void print_commands(const struct run *run, const struct gs_defrag_plan *plan)
{
    const char *version = run->old_eviction ? "v1beta1" : "v1";
    putchar('\n');
    if (plan->cordon)
        printf("  kubectl cordon %s\n", node_name(run, plan->slot));
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct gs_defrag_pod *pod = &run->pods[plan->moves[i].pod];
        printf("  echo '{\"apiVersion\":\"policy/%s\",\"kind\":\"Eviction\",\"metadata\":{"
               "\"namespace\":\"%s\",\"name\":\"%s\"}}' |\n"
               "    kubectl create --raw /api/v1/namespaces/%s/pods/%s/eviction -f - &&\n"
               "    kubectl -n %s wait --for=delete pod/%s --timeout=10m\n",
               version, pod->ns, pod->name, pod->ns, pod->name, pod->ns, pod->name);
    }
    if (plan->cordon)
        printf("  kubectl uncordon %s\n", node_name(run, plan->slot));
}

/* ---- pods that wait ---- */

static const struct {
    const char *word, *sentence;
} results[] = {
    [GS_DEFRAG_FOUND] = {"moves", "fits after these moves"},
    [GS_DEFRAG_FITS] = {"fits", "fits now"},
    [GS_DEFRAG_NO_SUM] = {"insufficientMemory",
                          "needs more than the GPUs that it may use have free in total; moving "
                          "pods does not help"},
    [GS_DEFRAG_NONE] = {"notFound", "needs more moves than --max-moves"},
    [GS_DEFRAG_TOO_MANY] = {"searchIncomplete", "has no plan that was found before the search "
                                                "limit; a smaller --max-moves may find one"},
};

static void write_entry(struct sheet *to, const struct run *run, const struct entry *entry)
{
    const struct gs_defrag_plan *plan = &entry->plan;
    struct gs_charge charge;
    const bool placed = entry->result == GS_DEFRAG_FOUND || entry->result == GS_DEFRAG_FITS;
    const char *never = entry->never ? gs_reason_text(entry->never) : NULL;
    gs_pod_charge(entry->waiting, &charge);
    to->unit = verdict_unit(&run->snapshot);
    sheet_row(to);
    column_text(to, COLUMN_TEXT, "NAMESPACE", "namespace", COLUMN_ALWAYS, entry->waiting->ns);
    column_text(to, COLUMN_TEXT, "POD", "name", COLUMN_ALWAYS, entry->waiting->name);
    column_text(to, COLUMN_PROSE, "REQUEST()", NULL, COLUMN_ALWAYS,
                waits_request(&to->texts, entry->waiting));
    column_number(to, COLUMN_NUMBER, "UNITS", "requestedGPU", COLUMN_DOCUMENT, charge.units);
    column_number(to, COLUMN_NUMBER, "GPUS", "gpuCount", COLUMN_DOCUMENT, charge.gpu_count);
    column_text(to, COLUMN_TEXT, "WORD", "result", COLUMN_DOCUMENT,
                never ? "unresolvable" : results[entry->result].word);
    column_text(to, COLUMN_PROSE, "MESSAGE", "message", COLUMN_DOCUMENT, never);
    column_text(to, COLUMN_TEXT, "NODE", "node", COLUMN_ALWAYS,
                placed ? node_name(run, plan->slot) : NULL);
    column_number(to, COLUMN_GPUS, "GPU", "gpus", COLUMN_ALWAYS, placed ? plan->gpus : 0);
    column_number(to, COLUMN_NUMBER, "MOVES", NULL, COLUMN_ALWAYS, plan->count);
    column_number(to, COLUMN_BOOL, "CORDON", "cordon", COLUMN_DOCUMENT,
                  plan->count ? plan->cordon : COLUMN_UNKNOWN);
    column_text(to, COLUMN_PROSE, "RESULT", NULL, COLUMN_ALWAYS,
                never ? gs_arena_printf(&to->texts, "fits on no GPU of this cluster: %s", never)
                      : results[entry->result].sentence);
}

static int print_plan(const struct run *run, const struct entry *entry)
{
    struct sheet moves = {0};
    printf("\n%s/%s:\n", entry->waiting->ns, entry->waiting->name);
    write_moves(&moves, run, &entry->plan);
    int result = sheet_print(stdout, &moves, NULL, &run->common.app->terminal);
    print_commands(run, &entry->plan);
    return result;
}

static int print_text(const struct run *run)
{
    struct sheet sheet = {0};
    bool moves = false;
    if (!run->entry_count)
        puts("No pod with GPU memory is pending.");
    GS_EACH_OF (entry, run->entries, run->entry_count)
        write_entry(&sheet, run, entry);
    int result = sheet_print(stdout, &sheet, NULL, &run->common.app->terminal);
    GS_EACH_OF (entry, run->entries, run->entry_count) {
        moves |= entry->plan.count > 0;
        if (result >= 0 && entry->plan.count)
            result = print_plan(run, entry);
    }
    if (run->left_out)
        printf("\n%" PRIu32 " more pending pods were not considered: carry out these moves first\n",
               run->left_out);
    if (moves)
        puts("\nThe nodes of new pods are those that the extender would choose now. Affinities "
             "between pods and\nPodDisruptionBudgets were not considered: the API server rejects "
             "an eviction that a budget forbids.");
    return result;
}

/* ---- for programs ---- */

static int print_document(const struct run *run)
{
    struct doc doc;
    doc_open(&doc, stdout, run->format == OUTPUT_YAML);
    doc_text(&doc, "unit", verdict_unit(&run->snapshot));
    doc_list(&doc, "items");
    GS_EACH_OF (entry, run->entries, run->entry_count) {
        struct sheet sheet = {0}, moves = {0};
        doc_object(&doc, NULL);
        write_entry(&sheet, run, entry);
        sheet_members(&doc, &sheet, NULL);
        write_moves(&moves, run, &entry->plan);
        sheet_list(&doc, "moves", &moves);
        doc_end(&doc);
    }
    doc_end(&doc);
    doc_number(&doc, "skippedPodCount", run->left_out);
    return doc_close(&doc);
}

/* ---- the plans ---- */

/* Plans of one run; one after the other they take the cluster further from what it is. */
enum { PLANS_MAX = 20 };

/* GS_FITS, or why no GPU of this cluster can ever take it. */
static enum gs_reason never(const struct snapshot *snapshot, const struct gs_ask *ask)
{
    struct verdict verdict;
    verdict_of(snapshot, ask, &verdict);
    const enum gs_reason reason = verdict_nearest(&verdict)->reason;
    return gs_reason_unresolvable(reason) ? reason : GS_FITS;
}

/* The planner remembers what an ask came to: asks live as long as it. */
static int plan_for_all(struct run *run, struct gs_defrag *defrag, const struct queue *queue,
                        struct gs_defrag_pod *asks)
{
    uint32_t plans = 0;
    for (uint32_t i = 0; i < queue->count; i++) {
        struct entry *entry = &run->entries[run->entry_count];
        const struct gs_pod *pod = queue->all[i];
        if (pod->nominated_node[0])
            continue; /* it has a place already, because others are evicted for it */
        if (plans == PLANS_MAX) {
            run->left_out++;
            continue;
        }
        asks[i] = (struct gs_defrag_pod){.uid = pod->uid};
        gs_ask_of_pod(&asks[i].ask, pod);
        entry->waiting = pod;
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

/* A pod of --gpu-mem, for which any other may move. */
static void write_wanted(struct run *run)
{
    struct gs_pod *pod = &run->wanted;
    gs_pod_reset(pod);
    pod->ns = pod->uid = "new";
    pod->name = "pod";
    pod->priority = INT32_MAX;
    run->container.gpu_units = run->gpu_mem;
    pod->containers = &run->container;
    pod->container_count = 1;
}

static int plan(struct run *run, struct gs_error *err)
{
    struct queue queue;
    struct gs_place place = gs_cluster_place(&run->snapshot.cluster, run->policy);
    struct gs_defrag *defrag = gs_defrag_new(&place, run->pods, HASH_COUNT(run->snapshot.bound));
    int result = queue_find(&run->snapshot, &queue, err);
    _cleanup_free_ struct gs_defrag_pod *asks = calloc(queue.count + 1u, sizeof(*asks));
    run->entries = calloc(queue.count + 1u, sizeof(*run->entries));
    if (result == 0 && run->gpu_mem) {
        write_wanted(run);
        queue.all[0] = &run->wanted;
        queue.count = 1;
    }
    if (result == 0 &&
        (!defrag || !asks || !run->entries || plan_for_all(run, defrag, &queue, asks) < 0))
        result = gs_fail_nomem(err);
    queue_release(&queue);
    gs_defrag_free(defrag);
    return result;
}

/* ---- the command ---- */

static void read_options(struct run *run, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_U32("gpu-mem", &run->gpu_mem, "UNITS",
                "make room for a new pod of this size on one GPU instead"),
        OPT_U32("max-moves", &run->max_moves, "N",
                "maximum number of pods to evict for one pending pod (default 5)"),
        OPT_POLICY(&run->policy),
        OPT_FORMAT(&run->format),
        COMMON_OPTIONS(&run->common),
    };
    common_parse(argc, argv, NULL,
                 "Finds the fewest pods to evict so that pending pods fit, where enough memory is "
                 "free in total, and prints the commands, but evicts nothing. Only pods that a "
                 "controller replaces and whose priority is not above the pending pod's are "
                 "evicted, those with the shortest run time first.",
                 table, sizeof(table) / sizeof(table[0]));
}

/* policy/v1 has evictions since 1.22, and v1beta1 none since 1.25. Who cannot be asked is new. */
static void find_release(struct run *run)
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
    struct run run = {.common = COMMON_DEFAULTS, .max_moves = 5, .policy = GS_PLACEMENT_ROLLOUT};
    struct gs_error err = {0};
    read_options(&run, argc, argv);
    if (!run.max_moves || run.max_moves > GS_DEFRAG_MOVES_MAX)
        return complain_usage(argv[0], "--max-moves must be from 1 to 16");
    int result = common_connect(&run.common, app, &err);
    if (result == 0)
        result = load(&run, &err);
    if (result == 0)
        result = plan(&run, &err);
    if (result == 0)
        find_release(&run);
    if (result == 0 &&
        ((run.format == OUTPUT_TABLE ? print_text(&run) : print_document(&run)) < 0 ||
         fflush(stdout) != 0))
        result = fail_output(&err);
    release(&run);
    return common_end(&run.common, result, &err);
}
