/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/codec/annotation.h"
#include "inspect/defrag.h"
#include "inspect/grid.h"
#include "inspect/verdict.h"
#include "inspect/waits.h"

/* What is planned, and the commands for it. */

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
        const struct gs_defrag_pod *pod = &run->pods[move->pod];
        waits_since(pod->age_s ? now_s - pod->age_s : 0, now_s, ran);
        grid_row(&grid);
        grid_cell(&grid, GRID_PLAIN, "  %s/%s", pod->ns, pod->name);
        grid_cell(&grid, GRID_PLAIN, "%s", run->nodes[move->pod]);
        grid_cell(&grid, GRID_PLAIN, "%s", gs_codec_idx_format(run->gpus[move->pod], list));
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
        const struct gs_defrag_pod *pod = &run->pods[plan->moves[i].pod];
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

static int tell_node(const struct defrag_run *run)
{
    const struct gs_defrag_plan *plan = &run->entries[0].plan;
    if (!plan->count && !run->stay_count) {
        printf("%s holds no pod with GPU memory.\n", run->free_node);
        return 0;
    }
    printf("%s: %" PRIu32 " of %" PRIu32 " pods with GPU memory can move\n", run->free_node,
           plan->count, plan->count + run->stay_count);
    if (plan->count && print_moves(run, plan) < 0)
        return -1;
    for (uint32_t i = 0; i < run->stay_count; i++)
        printf("  %s/%s stays: it %s\n", run->stay[i].ns, run->stay[i].name,
               why_it_stays(&run->stay[i]));
    if (plan->count)
        print_commands(run, plan, true);
    return 0;
}

int defrag_tell(const struct defrag_run *run)
{
    int result = run->free_node ? tell_node(run) : tell_waiting(run);
    bool moves = false;
    for (uint32_t i = 0; i < run->entry_count; i++)
        moves = moves || run->entries[i].plan.count;
    if (result == 0 && moves)
        puts("\nWhere new pods go is what the extender would choose now. Affinities between pods "
             "were not\nlooked at, nor budgets: an eviction that one forbids is refused.");
    return result;
}
