/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the planner of `kubectl inspect gpushare defrag` takes, in process and without a server:
 *
 *   defrag_once [NODES PODS WAITING]
 *
 * A cluster of nodes with 8 GPUs of 80 units, filled by drawn pods wherever they fit, so that every
 * node has a little left and none a whole GPU; then pods wait for whole GPUs, one to four. Prints
 * processor time: of the whole, and of the slowest plan.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpushare/base/num.h"
#include "gpushare/base/splitmix.h"
#include "gpushare/core/defrag.h"

enum { GPUS = 8, UNITS = 80, NAME_BYTES = 16 };

static double processor_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "defrag_once: %s\n", what);
    exit(1);
}

static void add_nodes(struct gs_ledger *ledger, uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        struct gs_gpu gpus[GPUS] = {0};
        struct gs_node node = {0};
        char name[NAME_BYTES];
        for (uint32_t g = 0; g < GPUS; g++)
            gpus[g] = (struct gs_gpu){.idx = g,
                                      .mem_units = UNITS,
                                      .numa = GS_NUMA_NONE,
                                      .healthy = true,
                                      .schedulable = true};
        gs_node_reset(&node);
        snprintf(name, sizeof(name), "n%" PRIu32, n);
        node.name = name;
        node.cpu_milli = 96000;
        node.gpus = gpus;
        node.gpu_count = GPUS;
        need(gs_ledger_set_node(ledger, &node, NULL) == 0, "out of memory");
    }
}

/* On some node with room; one that has none is left out. */
static void add_pod(struct gs_ledger *ledger, struct gs_defrag_pod *pod, uint64_t *random)
{
    uint32_t slots = gs_ledger_slots(ledger);
    uint32_t start = (uint32_t)gs_splitmix_below(random, slots);
    for (uint32_t i = 0; i < slots; i++) {
        const struct gs_node_view *view = gs_ledger_view_at(ledger, (start + i) % slots);
        gs_gpu_mask gpus = gs_pick_emptiest(view, &pod->ask);
        if (!gpus)
            continue;
        struct gs_claim claim = {.uid = pod->uid,
                                 .ns = "",
                                 .name = "",
                                 .node = gs_ledger_node_name(ledger, view->slot),
                                 .gpus = gpus,
                                 .units = pod->ask.units,
                                 .gpu_count = 1};
        need(gs_ledger_set_claim(ledger, &claim, NULL) == 0, "out of memory");
        return;
    }
}

static struct gs_defrag_pod *add_pods(struct gs_ledger *ledger, struct gs_policies *policies,
                                      uint32_t count)
{
    struct gs_defrag_pod *pods = calloc(count + 1u, sizeof(*pods));
    char *names = calloc(count + 1u, NAME_BYTES);
    uint64_t random = 1;
    need(pods && names, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        char *name = &names[(size_t)i * NAME_BYTES];
        snprintf(name, NAME_BYTES, "p%" PRIu32, i);
        pods[i] = (struct gs_defrag_pod){
            .uid = name,
            .ns = "",
            .name = name,
            .ask = {.units = 10 + 5 * (uint32_t)gs_splitmix_below(&random, 8), .gpu_count = 1},
            .age_s = (int64_t)gs_splitmix_below(&random, 1000000),
            .movable = gs_splitmix_below(&random, 10) != 0,
        };
        gs_policies_learn(policies, &pods[i].ask);
        add_pod(ledger, &pods[i], &random);
    }
    return pods;
}

static uint32_t number(char **argv, int argc, int at, uint32_t otherwise)
{
    uint32_t value = otherwise;
    need(argc <= at || gs_parse_u32(argv[at], strlen(argv[at]), &value), "not a number");
    return value;
}

int main(int argc, char **argv)
{
    uint32_t nodes = number(argv, argc, 1, 1000), count = number(argv, argc, 2, 20000);
    uint32_t waiting = number(argv, argc, 3, 20), found = 0, moves = 0;
    struct gs_ledger *ledger = gs_ledger_new();
    struct gs_policies *policies = gs_policies_new();
    need(ledger && policies, "out of memory");
    add_nodes(ledger, nodes);
    struct gs_defrag_pod *pods = add_pods(ledger, policies, count);
    gs_policies_supply(policies, ledger);
    need(gs_policies_refresh(policies, NULL) == 0, "out of memory");
    struct gs_defrag_pod *asks = calloc(waiting + 1u, sizeof(*asks));
    double begun_s = processor_s(), slowest_s = 0;
    struct gs_place place = {ledger, policies, NULL, GS_PLACEMENT_ROLLOUT, 0};
    struct gs_defrag *defrag = gs_defrag_new(&place, pods, count);
    need(asks && defrag, "out of memory");
    for (uint32_t i = 0; i < waiting; i++) {
        struct gs_defrag_plan plan = {0};
        double since_s = processor_s();
        asks[i] = (struct gs_defrag_pod){
            .uid = "w", .ask = {.units = UNITS, .gpu_count = 1 + i % 4, .priority = 1}};
        found += gs_defrag_make_room(defrag, &asks[i], 8, &plan) == GS_DEFRAG_FOUND;
        moves += plan.count;
        gs_defrag_plan_release(&plan);
        double took_s = processor_s() - since_s;
        slowest_s = took_s > slowest_s ? took_s : slowest_s;
    }
    struct gs_ledger_stats stats;
    gs_ledger_stats(ledger, &stats);
    printf("nodes=%" PRIu32 " pods=%" PRIu32 " used_pct=%.1f waiting=%" PRIu32 " found=%" PRIu32
           " moves=%" PRIu32 " total_ms=%.0f slowest_ms=%.0f overfull=%" PRIu32 "\n",
           nodes, stats.claims, 100.0 * (double)stats.used_units / (double)stats.total_units,
           waiting, found, moves, 1e3 * (processor_s() - begun_s), 1e3 * slowest_s,
           stats.overfull_gpus);
    return 0;
}
