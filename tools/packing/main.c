/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/options.h"
#include "gpushare/base/num.h"
#include "replay.h"
#include "report_timed.h"
#include "trace_files.h"

/* gpushare-packing: how much of a cluster the placement policies fill with a trace's pods. */

struct settings {
    const char *nodes;
    const char *pods;
    const char *sequence;
    const char *arrivals;
    const char *policies; /* comma lists */
    const char *loads;
    uint32_t seed;
    bool timed;
    uint32_t seeds;
    uint32_t moves;
    uint32_t sample_nodes; /* 0: all */
    bool learn;
};

struct run {
    struct settings set;
    struct gs_trace trace;
    struct gs_trace_sequence sequence;
    const struct gs_replay_policy *policies[REPLAY_POLICIES_MAX];
    uint32_t count;
    FILE *arrivals;
};

/* Decisions are timed by the CPU time they take: other programs on the machine do not count. */
static int64_t cpu_time_ns(void *ctx)
{
    (void)ctx;
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * GS_NS_PER_S + now.tv_nsec;
}

static const struct gs_clock cpu_clock = {.monotonic_ns = cpu_time_ns, .wall_ns = cpu_time_ns};

static void read_settings(struct settings *set, int argc, char **argv)
{
    *set = (struct settings){
        .policies = "orig,binpack,rollout", .loads = "80,90,100", .seed = 42, .seeds = 1};
    const struct gs_option table[] = {
        OPT_STRING("nodes", &set->nodes, "FILE", "sn,cpu_milli,memory_mib,gpu,model as CSV"),
        OPT_STRING("pods", &set->pods, "FILE",
                   "name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec] as CSV"),
        OPT_STRING("seq", &set->sequence, "FILE",
                   "order of arrivals and nodes; without it, one is drawn"),
        OPT_STRING("arrivals", &set->arrivals, "FILE",
                   "a line per arrival: number, pod, node (-1: none), GPUs"),
        OPT_U32("seed", &set->seed, "NUMBER", "of what is drawn (default 42)"),
        OPT_STRING("policy", &set->policies, "NAME[,NAME]",
                   "binpack, spread, rollout, orig (default orig,binpack,rollout)"),
        OPT_FLAG("learn", &set->learn,
                 "rollout learns from the arrivals, as in a live cluster; else it knows the trace"),
        OPT_U32("sample-nodes", &set->sample_nodes, "NUMBER",
                "so many nodes only, of each kind its share"),
        OPT_FLAG("timed", &set->timed,
                 "pods come and go: how long they wait, and what is lost meanwhile"),
        OPT_STRING("load", &set->loads, "PERCENT[,PERCENT]",
                   "with --timed: of the GPU time that is requested (default 80,90,100)"),
        OPT_U32("seeds", &set->seeds, "NUMBER",
                "with --timed: so many seeds from --seed on, means and 95 % intervals (1)"),
        OPT_U32("moves", &set->moves, "NUMBER",
                "with --timed: every hour so many pods are moved at most, as `kubectl inspect "
                "gpushare defrag` says (0)"),
    };
    const struct gs_command command = {
        .name = "gpushare-packing",
        .doc = "Replays a trace against the shipped placement code: pods arrive, none leaves; with "
               "--timed they come and go.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
}

/* The next word of a comma list; false at its end. */
static bool next_word(const char **rest, struct gs_slice *ret)
{
    if (!**rest)
        return false;
    *ret = (struct gs_slice){*rest, strcspn(*rest, ",")};
    *rest += ret->len + ((*rest)[ret->len] == ',');
    return true;
}

static int find_policies(struct run *run, struct gs_error *err)
{
    struct gs_slice word;
    for (const char *rest = run->set.policies; next_word(&rest, &word);) {
        char name[32];
        snprintf(name, sizeof(name), "%.*s", (int)word.len, word.at);
        const struct gs_replay_policy *policy = gs_replay_policy_find(name);
        if (!policy || run->count == REPLAY_POLICIES_MAX)
            return gs_fail(err, GS_EINVAL, "\"%s\" is none of binpack, spread, rollout, orig, once",
                           name);
        run->policies[run->count++] = policy;
    }
    return 0;
}

static int load(struct run *run, struct gs_error *err)
{
    const struct settings *set = &run->set;
    enum { DEMAND_PCT = 130 };
    if (!set->nodes || !set->pods)
        return gs_fail(err, GS_EINVAL, "nodes and pods are needed (see --help)");
    if (find_policies(run, err) < 0 ||
        trace_files_read(set->nodes, set->pods, &run->trace, err) < 0)
        return -1;
    if (set->sample_nodes && gs_trace_sample_nodes(&run->trace, set->sample_nodes, err) < 0)
        return -1;
    if (set->timed)
        return 0;
    if (set->sequence)
        return trace_files_read_sequence(set->sequence, &run->trace, &run->sequence, err);
    return gs_replay_sequence(&run->trace, set->seed, DEMAND_PCT, &run->sequence, err);
}

static void write_arrival(void *ctx, const struct gs_replay_arrival *arrival)
{
    struct run *run = ctx;
    uint32_t idx;
    const char *comma = "";
    fprintf(run->arrivals, "%" PRIu32 " %" PRIu32 " %" PRId64 " %s", arrival->number, arrival->pod,
            arrival->node, arrival->gpus ? "" : "-");
    GS_FOR_EACH_GPU (idx, arrival->gpus) {
        fprintf(run->arrivals, "%s%" PRIu32, comma, idx);
        comma = ",";
    }
    fputc('\n', run->arrivals);
}

/* A bucket of the curve, or the nearest one below that has arrivals. */
static double curve_at(const struct gs_replay_result *result, int bucket)
{
    while (bucket > 0 && result->curve[bucket] < 0)
        bucket--;
    return result->curve[bucket];
}

static int replay_arrivals(struct run *run, const struct gs_replay_spec *common,
                           struct gs_error *err)
{
    printf("%" PRIu32 " nodes, %" PRIu32 " arrivals\n", run->trace.node_count,
           run->sequence.arrivals);
    printf("%-9s %7s %7s %7s %9s %9s %8s %8s\n", "policy", "b100", "b130", "failed", "stranded",
           "mean-us", "p99-us", "max-us");
    for (uint32_t i = 0; i < run->count; i++) {
        struct gs_replay_spec spec = *common;
        struct gs_replay_result result;
        spec.policy = run->policies[i];
        if (gs_replay(&run->trace, &run->sequence, &spec, &result, err) < 0)
            return -1;
        printf("%-9s %7.2f %7.2f %7" PRIu32 " %9.1f %9.1f %8.0f %8.0f\n", spec.policy->name,
               curve_at(&result, 100), curve_at(&result, 130), result.failed,
               (double)(result.capacity_milli - result.used_milli) / GS_TRACE_CARD_MILLI,
               (double)result.mean_ns / 1e3, (double)result.p99_ns / 1e3,
               (double)result.max_ns / 1e3);
        fflush(stdout);
    }
    return 0;
}

static int replay_timed(const struct run *run, const struct gs_replay_spec *common,
                        struct gs_error *err)
{
    struct report_timed timed = {
        .trace = &run->trace,
        .policies = run->policies,
        .policy_count = run->count,
        .seeds = run->set.seeds,
        .moves = run->set.moves,
        .replay = *common,
    };
    struct gs_slice word;
    for (const char *rest = run->set.loads; next_word(&rest, &word); timed.load_count++) {
        if (timed.load_count == REPLAY_LOADS_MAX ||
            !gs_parse_u32(word.at, word.len, &timed.load_pct[timed.load_count]))
            return gs_fail(err, GS_EINVAL, "--load: percents, 16 at most");
    }
    return report_timed(&timed, err);
}

static int replay(struct run *run, struct gs_error *err)
{
    struct gs_replay_spec spec = {
        .clock = &cpu_clock, .learn = run->set.learn, .seed = run->set.seed, .ctx = run};
    if (run->set.timed)
        return replay_timed(run, &spec, err);
    if (!run->set.arrivals)
        return replay_arrivals(run, &spec, err);
    run->arrivals = fopen(run->set.arrivals, "we");
    if (!run->arrivals)
        return gs_fail(err, GS_EIO, "%.160s cannot be written", run->set.arrivals);
    spec.arrival = write_arrival;
    int result = replay_arrivals(run, &spec, err);
    bool failed = ferror(run->arrivals) != 0;
    if ((fclose(run->arrivals) != 0 || failed) && result == 0)
        return gs_fail(err, GS_EIO, "%.160s cannot be written", run->set.arrivals);
    return result;
}

int main(int argc, char **argv)
{
    struct run run = {0};
    struct gs_error err = {0};
    read_settings(&run.set, argc, argv);
    int result = load(&run, &err);
    if (result == 0)
        result = replay(&run, &err);
    gs_trace_sequence_release(&run.sequence);
    gs_trace_release(&run.trace);
    if (result == 0)
        return 0;
    fprintf(stderr, "gpushare-packing: %s\n", err.msg);
    return err.code == GS_EINVAL ? 2 : 1;
}
