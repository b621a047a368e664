/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gs_rollout_stranded() costs, in process: 1000 states of one kind of node, in turn, with the
 * table of one kind of workload. By hand. perf counts; the difference between two numbers of calls
 * is free of the start:
 *
 *   perf stat -e instructions:u,cycles:u rollout_once KIND CALLS
 *
 * Prints the sum of the results: a faster function prints the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/base/splitmix.h"

#include "core/policy_internal.h"

enum { STATES = 1000, CLASSES_MAX = 16 };

struct kind {
    const char *name;
    uint32_t gpus, card_units;
    uint32_t used_pct; /* at most, of each GPU */
    int32_t cpu_milli; /* left; INT32_MAX: does not count */
    uint32_t unit;     /* of the sizes in classes */
    const struct gs_class *classes;
};

/* count, units, GPUs, milli-CPU */
static const struct gs_class small[] = {
    {40, 2, 1, 1000, "", ""}, {30, 4, 1, 2000, "", ""}, {20, 1, 1, 500, "", ""},
    {20, 8, 1, 2000, "", ""}, {10, 6, 1, 1000, "", ""}, {5, 16, 1, 4000, "", ""},
    {2, 8, 2, 4000, "", ""},  {90, 0, 1, 1000, "", ""}, {0},
};
/* As in docs/packing.md's trace, roughly. */
static const struct gs_class mixed[] = {
    {400, 1000, 1, 11000, "", ""},
    {300, 810, 1, 3000, "", ""},
    {90, 470, 1, 8000, "", ""},
    {60, 50, 1, 1000, "", ""},
    {50, 190, 1, 4000, "", ""},
    {20, 1000, 2, 20000, "", ""},
    {9, 500, 2, 4000, "", ""},
    {8, 1000, 4, 32000, "", ""},
    {5, 1000, 8, 64000, "", ""},
    {80, 0, 1, 12000, "", ""},
    {0},
};

static const struct kind kinds[] = {
    {"small", 8, 80, 10, INT32_MAX, 1, small},
    {"small-used", 8, 80, 80, INT32_MAX, 1, small},
    {"small-cpu", 8, 80, 30, 128000, 1, small},
    {"small-mib", 8, 81559, 30, INT32_MAX, 1000, small},
    {"small-16", 16, 141, 30, INT32_MAX, 1, small},
    {"small-1", 1, 24, 10, INT32_MAX, 1, small},
    {"mixed", 8, 1000, 10, 96000, 1, mixed},
    {"mixed-used", 8, 1000, 70, 96000, 1, mixed},
    {"mixed-cpu", 8, 1000, 10, 3000, 1, mixed},
    {"mixed-2", 2, 1000, 50, 64000, 1, mixed},
};

static int by_size(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static struct gs_state random_state(const struct kind *kind, uint64_t *seed)
{
    struct gs_state state = {.cpu_milli = kind->cpu_milli, .gpus = kind->gpus};
    for (uint32_t i = 0; i < state.gpus; i++) {
        uint32_t used = (uint32_t)gs_splitmix_below(seed, kind->used_pct + 1u);
        state.free_units[i] = kind->card_units - kind->card_units * used / 100;
        state.left_units += state.free_units[i];
    }
    qsort(state.free_units, state.gpus, sizeof(state.free_units[0]), by_size);
    return state;
}

static struct gs_policy_table *build(const struct kind *kind)
{
    struct gs_class classes[CLASSES_MAX];
    struct gs_supply supply = {0};
    uint32_t count = 0;
    for (const struct gs_class *class = kind->classes; class->count; class ++) {
        classes[count] = *class;
        classes[count++].units *= kind->unit;
    }
    return gs_policy_table_build(classes, count, &supply);
}

static int run(const struct kind *kind, uint64_t calls)
{
    _cleanup_(gs_policy_table_freep) struct gs_policy_table *table = build(kind);
    if (!table)
        return 1;
    struct gs_state states[STATES];
    uint64_t seed = 1, sum = 0;
    for (uint32_t i = 0; i < STATES; i++)
        states[i] = random_state(kind, &seed);
    for (uint64_t call = 0; call < calls; call++)
        sum += gs_rollout_stranded(table, &states[call % STATES]);
    printf("%s: %llu\n", kind->name, (unsigned long long)sum);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t calls;
    if (argc == 3 && gs_parse_u64(argv[2], strlen(argv[2]), &calls)) {
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
            if (strcmp(argv[1], kinds[i].name) == 0)
                return run(&kinds[i], calls);
        }
    }
    fprintf(stderr, "rollout_once KIND CALLS\n");
    return 2;
}
