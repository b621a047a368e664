/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/codec/annotation.h"
#include "inspect/common.h"
#include "inspect/fetch.h"
#include "inspect/grid.h"
#include "inspect/rehearsal.h"
#include "inspect/terminal.h"
#include "inspect/verdict.h"

/* kubectl inspect gpushare what-if: how many such pods would find a place now, and where. */

enum { REPLICAS_MAX = 100000 };

struct place {
    char *node;
    gs_gpu_mask gpus;
    uint32_t replicas;
};

struct what_if {
    struct common common;
    struct rehearsal_ask ask;
    uint32_t replicas;
    enum gs_placement policy;
    bool progress;
    struct source source;
    struct snapshot snapshot;
    struct rehearsal *rehearsal;
    struct gs_watch_sink to[2]; /* both hear what the API says */
    struct place *places;
    uint32_t place_count;
    uint32_t placed;
};

static bool set_policy(void *to, const char *text)
{
    return gs_placement_parse(text, strlen(text), to);
}

static void read_options(struct what_if *run, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_U32("gpu-mem", &run->ask.units, "N", "units of memory that each GPU gives", .key = 'm'),
        OPT_U32("gpu-count", &run->ask.gpu_count, "N", "GPUs per pod (1)", .key = 'c'),
        OPT_U32("replicas", &run->replicas, "N", "how many pods (1)", .key = 'r'),
        OPT_STRING("gpu-model", &run->ask.model, "LIST",
                   "only GPUs whose model has one of these words in it"),
        OPT_CUSTOM("policy", &run->policy, set_policy, "binpack|spread|fgd|rollout",
                   "the extender's --policy (rollout)"),
        COMMON_OPTIONS(&run->common, "has no effect: all pods count"),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc = "How many pods would fit now, where they would go, and what is in the way of the "
               "others. The placement code is the extender's; the cluster is left alone.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .quiet = true,
    };
    gs_options_parse(&command, argc, argv);
}

static const char *wrong(const struct what_if *run)
{
    if (!run->ask.units || run->ask.units > INT32_MAX)
        return "--gpu-mem is needed: how much of each GPU a pod asks for, such as --gpu-mem 6";
    if (!run->ask.gpu_count || run->ask.gpu_count > GS_GPUS_MAX)
        return "--gpu-count is 1 to 64";
    if (!run->replicas || run->replicas > REPLICAS_MAX)
        return "--replicas is 1 to 100000";
    return NULL;
}

/* ---- one list, two listeners ---- */

#define TEE(name, type)                                                                            \
    static int on_##name(void *ctx, type arg)                                                      \
    {                                                                                              \
        struct what_if *run = ctx;                                                                 \
        if (run->to[0].name(run->to[0].ctx, arg) < 0)                                              \
            return -1;                                                                             \
        return run->to[1].name(run->to[1].ctx, arg);                                               \
    }
TEE(list_begin, enum gs_kind)
TEE(list_end, enum gs_kind)
TEE(node, const struct gs_node *)
TEE(pod, const struct gs_pod *)

static int load(struct what_if *run, struct gs_error *err)
{
    const struct gs_watch_sink sink = {.ctx = run,
                                       .list_begin = on_list_begin,
                                       .list_end = on_list_end,
                                       .node = on_node,
                                       .pod = on_pod};
    const struct fetch fetch = {
        .source = &run->source, .names = &run->common.names, .progress = run->progress};
    if (snapshot_init(&run->snapshot, err) < 0 ||
        rehearsal_new(&run->common.names, run->policy, &run->rehearsal, err) < 0)
        return -1;
    run->to[0] = snapshot_sink(&run->snapshot);
    run->to[1] = rehearsal_sink(run->rehearsal);
    return fetch_cluster(&fetch, &sink, NULL, err);
}

/* ---- placing ---- */

/* Nodes that kube-scheduler would not even ask about are left out. */
static int offer_nodes(struct what_if *run, struct gs_error *err)
{
    for (const struct snap_node *node = run->snapshot.nodes; node; node = node->hh.next) {
        if (node->ready && !node->unschedulable && node->allocatable_units &&
            rehearsal_node(run->rehearsal, node->name, err) < 0)
            return -1;
    }
    return 0;
}

static int note_place(struct what_if *run, const struct gs_pod *pod, struct gs_error *err)
{
    struct gs_claim claim;
    /* the snapshot says afterwards what is in the way of the rest */
    if (claim_of_pod(pod, &claim) && gs_ledger_set_claim(run->snapshot.ledger, &claim, err) < 0)
        return -1;
    for (uint32_t i = run->place_count; i-- > 0;) { /* mostly the one before */
        struct place *place = &run->places[i];
        if (place->gpus == pod->recorded_gpus && strcmp(place->node, pod->node_name) == 0) {
            place->replicas++;
            return 0;
        }
    }
    struct place *more = reallocarray(run->places, run->place_count + 1, sizeof(*run->places));
    if (!more)
        return gs_fail_nomem(err);
    run->places = more;
    struct place *place = &run->places[run->place_count];
    *place = (struct place){strdup(pod->node_name), pod->recorded_gpus, 1};
    if (!place->node)
        return gs_fail_nomem(err);
    run->place_count++;
    return 0;
}

static int place_all(struct what_if *run, struct gs_error *err)
{
    struct gs_pod pod = {0};
    struct progress progress;
    int result = offer_nodes(run, err);
    progress_begin(&progress, run->progress);
    while (result == 0 && run->placed < run->replicas) {
        int more = rehearsal_place(run->rehearsal, &run->ask, &pod, err);
        if (more <= 0) {
            result = more;
            break;
        }
        result = note_place(run, &pod, err);
        progress_tell(&progress, ++run->placed, run->replicas, "pods placed");
    }
    progress_end(&progress);
    gs_pod_release(&pod);
    return result;
}

/* ---- telling ---- */

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = strverscmp(x->node, y->node);
    return order ? order : (x->gpus > y->gpus) - (x->gpus < y->gpus);
}

static int print_places(const struct what_if *run)
{
    char list[GS_IDX_TEXT_BYTES];
    struct grid grid;
    grid_open(&grid, false);
    grid_column(&grid, false, "NODE");
    grid_column(&grid, false, "GPU");
    grid_column(&grid, true, "REPLICAS");
    for (uint32_t i = 0; i < run->place_count; i++) {
        const struct place *place = &run->places[i];
        grid_row(&grid);
        grid_cell(&grid, GRID_PLAIN, "%s", place->node);
        grid_cell(&grid, GRID_PLAIN, "%s", gs_codec_idx_format(place->gpus, list));
        grid_cell(&grid, GRID_PLAIN, "%" PRIu32, place->replicas);
    }
    _cleanup_free_ char *text = grid_text(&grid);
    grid_close(&grid);
    if (text && run->place_count)
        fputs(text, stdout);
    return text ? 0 : -1;
}

static void print_way(const struct what_if *run, const char *unit)
{
    const struct gs_ask ask = {.units = run->ask.units,
                               .gpu_count = run->ask.gpu_count,
                               .selects = run->ask.model != NULL,
                               .model = gs_slice_of(run->ask.model ? run->ask.model : ""),
                               .model_deny = GS_SLICE(""),
                               .uuid = GS_SLICE(""),
                               .uuid_deny = GS_SLICE("")};
    struct verdict verdict;
    if (run->placed == run->replicas)
        return;
    verdict_of(&run->snapshot, &ask, &verdict);
    puts(run->placed ? "In the way of the others:" : "In the way:");
    if (!verdict.nodes)
        puts("  the cluster has no nodes");
    verdict_print(&verdict, &ask, unit);
}

static int tell(struct what_if *run, struct gs_error *err)
{
    const char *unit = verdict_unit(&run->snapshot);
    if (run->place_count)
        qsort(run->places, run->place_count, sizeof(*run->places), by_place);
    printf("%" PRIu32 " of %" PRIu32 " pods with %" PRIu32 " %s ", run->placed, run->replicas,
           run->ask.units, unit);
    if (run->ask.gpu_count > 1)
        printf("on each of %" PRIu32 " GPUs fit now", run->ask.gpu_count);
    else
        printf("on one GPU fit now");
    if (run->placed) /* an extender with another --policy places them elsewhere */
        printf(", placed by %s", gs_placement_name(run->policy));
    putchar('\n');
    if (print_places(run) < 0)
        return gs_fail_nomem(err);
    print_way(run, unit);
    return 0;
}

static void release(struct what_if *run)
{
    for (uint32_t i = 0; i < run->place_count; i++)
        free(run->places[i].node);
    free(run->places);
    rehearsal_free(run->rehearsal);
    snapshot_release(&run->snapshot);
    source_close(&run->source);
}

int cmd_what_if(const struct app *app, int argc, char **argv)
{
    struct what_if run = {.common = COMMON_DEFAULTS,
                          .ask = {.gpu_count = 1},
                          .replicas = 1,
                          .policy = GS_PLACEMENT_ROLLOUT,
                          .progress = app->terminal.progress};
    struct gs_error err = {0};
    read_options(&run, argc, argv);
    if (wrong(&run))
        return complain_usage(argv[0], wrong(&run));
    int result = common_connect(&run.common, app, &run.source, &err);
    if (result == 0)
        result = load(&run, &err);
    if (result == 0)
        result = place_all(&run, &err);
    if (result == 0)
        result = tell(&run, &err);
    release(&run);
    return result == 0 ? 0 : complain(&err);
}
