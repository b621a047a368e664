/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations on the ledger and on its slow model must agree.
 *
 *   ledger_property [--ops N] [--seed S]
 *
 * Prints the seed, how often each kind of operation ran, and, when the two differ, the shortest
 * list of operations that it could find. Exit code 0: they agree; 3: they differ; 2: bad usage.
 * $MUTANT: whether they differ is all that is asked (tests/mutants/run.py).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"
#include "world.h"

enum { EPISODE_MAX = 20000, FULL_COMPARE_EVERY = 32, SHRINK_SECONDS = 10 };
enum { EXIT_AGREE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_DIFFER = 3 };

struct options {
    uint64_t ops, seed;
};

struct totals {
    uint64_t ops, episodes, questions;
    uint64_t by_kind[64];
};

static struct op recipe[EPISODE_MAX];

/* Runs a recipe, comparing everything after each operation when careful. Returns how many
 * operations it took to find a difference, 0 when there is none. */
static uint32_t replay(struct world *world, uint64_t config, const struct op *ops, uint32_t count,
                       bool careful, bool print)
{
    uint32_t found = 0;
    if (!world_start(world, config))
        abort();
    world->tell = print;
    for (uint32_t i = 0; i < count && !found; i++) {
        op_run(world, ops[i]);
        compare_touched(world);
        if (careful || i % FULL_COMPARE_EVERY == FULL_COMPARE_EVERY - 1 || i + 1 == count)
            compare_all(world);
        if (print)
            printf("  %-24s %s\n", op_name(ops[i].kind), world->said);
        if (world->wrong)
            found = i + 1;
    }
    world_end(world);
    return found;
}

/* Leaves out ever smaller pieces of a failing recipe as long as it still fails; the new length. */
static uint32_t shrink(uint64_t config, struct op *ops, uint32_t count)
{
    static struct op shorter[EPISODE_MAX];
    static struct world world;
    const struct gs_clock *clock = gs_clock_system();
    int64_t stop_ns = gs_clock_now_ns(clock) + SHRINK_SECONDS * GS_NS_PER_S;
    for (uint32_t piece = count / 2; piece > 0; piece /= 2) {
        for (uint32_t at = 0; at + piece <= count && gs_clock_now_ns(clock) < stop_ns;) {
            memcpy(shorter, ops, at * sizeof(*ops));
            memcpy(shorter + at, ops + at + piece, (count - at - piece) * sizeof(*ops));
            uint32_t fails = replay(&world, config, shorter, count - piece, true, false);
            if (fails) {
                memcpy(ops, shorter, fails * sizeof(*ops));
                count = fails;
            } else {
                at += piece;
            }
        }
    }
    return count;
}

static void print_difference(const struct options *options, uint64_t config, uint32_t count)
{
    static struct world world;
    printf("the ledger and its model differ; --seed %llu repeats it\n",
           (unsigned long long)options->seed);
    uint32_t careful = replay(&world, config, recipe, count, true, false);
    if (careful)
        count = shrink(config, recipe, careful);
    printf("%u operations lead there:\n", count);
    replay(&world, config, recipe, count, true, true);
    printf("%s\n", world.difference);
}

static uint32_t make_recipe(struct rng *rng, uint64_t ops_left)
{
    static const uint32_t lengths[] = {100, 500, 2000, 2000, EPISODE_MAX};
    uint32_t count = lengths[rng_below(rng, 5)];
    if (count > ops_left + 100)
        count = (uint32_t)ops_left + 100; /* some will find nothing to do */
    for (uint32_t i = 0; i < count; i++)
        recipe[i] = (struct op){op_choose(rng), rng_next(rng)};
    return count;
}

static void print_totals(const struct options *options, const struct totals *totals)
{
    printf("seed %llu: %llu operations of %u kinds in %llu episodes, %llu questions answered\n",
           (unsigned long long)options->seed, (unsigned long long)totals->ops, op_kinds(),
           (unsigned long long)totals->episodes, (unsigned long long)totals->questions);
    for (uint32_t i = 0; i < op_kinds(); i++)
        printf("%9llu %s\n", (unsigned long long)totals->by_kind[i], op_name(i));
}

/* 0, or how many operations of the recipe it took; *ret_config is that episode's. */
static uint32_t run(const struct options *options, struct totals *totals, uint64_t *ret_config)
{
    static struct world world;
    struct rng rng = {options->seed};
    while (totals->ops < options->ops) {
        *ret_config = rng_next(&rng);
        uint32_t count = make_recipe(&rng, options->ops - totals->ops);
        uint32_t found = replay(&world, *ret_config, recipe, count, false, false);
        totals->episodes++;
        totals->questions += world.questions;
        for (uint32_t i = 0; i < op_kinds(); i++) {
            totals->by_kind[i] += world.acted_by_kind[i];
            totals->ops += world.acted_by_kind[i];
        }
        if (found)
            return found;
    }
    return 0;
}

static bool parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        uint64_t *to = strcmp(argv[i], "--ops") == 0    ? &options->ops
                       : strcmp(argv[i], "--seed") == 0 ? &options->seed
                                                        : NULL;
        if (!to || !gs_parse_u64(value, strlen(value), to))
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options options = {.ops = 3000000, .seed = 1};
    struct totals totals = {0};
    uint64_t config = 0;
    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: %s [--ops N] [--seed S]\n", argv[0]);
        return EXIT_USAGE;
    }
    uint32_t found = run(&options, &totals, &config);
    print_totals(&options, &totals);
    if (found && !getenv("MUTANT"))
        print_difference(&options, config, found);
    return found ? EXIT_DIFFER : EXIT_AGREE;
}
