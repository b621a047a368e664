/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service in random worlds (service_world.h).
 *
 *   service_world [--rounds N] [--first N] [--steps N] [--seed S]
 *
 * Rounds alternate between one replica without election, whose bindings may be carried out a minute
 * late, and two with one. Exit code 0: nothing went wrong; 3: something did, and the line says
 * which round repeats it; 2: bad usage.
 */
#include "service_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/log.h"
#include "gpushare/base/num.h"
#include "gpushare/base/splitmix.h"

enum { EXIT_RIGHT = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_WRONG = 3 };

struct sw_world sw;

unsigned sw_random(unsigned below)
{
    return (unsigned)((gs_splitmix_next(&sw.rng) >> 32) * below >> 32);
}

bool sw_once_in(unsigned n)
{
    return sw_random(n) == 0;
}

void sw_fail(const char *fmt, ...)
{
    va_list ap;
    if (sw.wrong)
        return;
    sw.wrong = true;
    va_start(ap, fmt);
    vsnprintf(sw.what, sizeof(sw.what), fmt, ap);
    va_end(ap);
}

static int64_t now(void *ctx)
{
    return sw.now_ns;
}

static void begin(uint64_t seed, int replicas, const struct sw_counts *counts)
{
    sw = (struct sw_world){
        .now_ns = 1000 * GS_NS_PER_S, .rng = seed, .replica_count = replicas, .counts = *counts};
    sw.clock = (struct gs_clock){now, now, NULL};
    if (gs_names_init(&sw.names, "aliyun.com", NULL) < 0)
        abort();
    for (int p = 0; p < SW_PODS; p++)
        sw.pods[p] = (struct sw_pod){.node = -1};
    static const unsigned sizes[SW_NODES][SW_GPUS] = {{16, 16, 16}, {8, 16, 24}, {12, 12, 12}};
    for (int n = 0; n < SW_NODES; n++) {
        sw.nodes[n] = (struct sw_node){.exists = true, .inventory = true, .speaks = n != 2};
        memcpy(sw.nodes[n].size, sizes[n], sizeof(sizes[n]));
        sw_tell_node(n, false);
    }
    for (int r = 0; r < replicas; r++) {
        if (sw_replica_start(&sw.replicas[r], r) < 0)
            abort();
    }
}

static void end(void)
{
    for (int r = 0; r < sw.replica_count; r++) {
        sw_replica_stop(&sw.replicas[r]);
        sw.counts.terms += sw.replicas[r].terms;
    }
    for (int kind = GS_KIND_NODE; kind <= GS_KIND_POD; kind++) {
        for (size_t i = 0; i < sw.history[kind].count; i++)
            free(sw.history[kind].events[i].json);
        free(sw.history[kind].events);
    }
}

/* True when nothing went wrong. */
static bool run(uint64_t seed, uint64_t round, uint64_t steps, struct sw_counts *counts)
{
    begin(seed * 1000003 + round, round % 2 ? 2 : 1, counts);
    for (uint64_t i = 0; i < steps && !sw.wrong; i++)
        sw_step();
    if (!sw.wrong)
        sw_settle();
    end();
    *counts = sw.counts;
    return !sw.wrong;
}

struct options {
    uint64_t rounds, first, steps, seed;
};

static bool parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        uint64_t *to = strcmp(argv[i], "--rounds") == 0  ? &options->rounds
                       : strcmp(argv[i], "--first") == 0 ? &options->first
                       : strcmp(argv[i], "--steps") == 0 ? &options->steps
                       : strcmp(argv[i], "--seed") == 0  ? &options->seed
                                                         : NULL;
        if (!to || !gs_parse_u64(value, strlen(value), to))
            return false;
    }
    return true;
}

static void print_counts(const struct options *options, uint64_t rounds,
                         const struct sw_counts *counts)
{
    printf(
        "seed %llu: %llu rounds, %lu steps: %lu binds (%lu at once, %lu answers lost, %lu late), "
        "%lu lists, %lu restarts, %lu terms, %lu exchanges, %lu edits, %lu pods by hand, "
        "%lu filters beside promises\n",
        (unsigned long long)options->seed, (unsigned long long)rounds, counts->steps, counts->binds,
        counts->bound, counts->lost, counts->late, counts->lists, counts->restarts, counts->terms,
        counts->exchanges, counts->edits, counts->by_hand, counts->promises);
}

int main(int argc, char **argv)
{
    struct options options = {.rounds = 4, .steps = 4000, .seed = 1};
    struct sw_counts counts = {0};
    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: %s [--rounds N] [--first N] [--steps N] [--seed S]\n", argv[0]);
        return EXIT_USAGE;
    }
    gs_log_init(GS_LOG_ERROR, GS_LOG_TEXT);
    if (!freopen("/dev/null", "w", stderr)) /* the service says a lot about what goes wrong here */
        return EXIT_FAILED;
    bool right = true;
    uint64_t round = options.first;
    for (; right && round < options.first + options.rounds; round++)
        right = run(options.seed, round, options.steps, &counts);
    print_counts(&options, round - options.first, &counts);
    if (!right)
        printf("WRONG: %s; --seed %llu --first %llu --rounds 1 --steps %llu repeats it\n", sw.what,
               (unsigned long long)options.seed, (unsigned long long)(round - 1),
               (unsigned long long)options.steps);
    return right ? EXIT_RIGHT : EXIT_WRONG;
}
