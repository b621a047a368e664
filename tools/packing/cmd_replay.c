/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "common/options.h"
#include "replay.h"
#include "report_timed.h"
#include "trace_files.h"

/* gpushare-packing replay: how much of a cluster the placement policies fill with a trace's pods.
 */

enum { POLICIES_MAX = REPLAY_POLICIES_MAX };
#define HOUR_NS (3600 * GS_NS_PER_S)

struct replay_settings {
    const char *nodes;
    const char *pods;
    const char *sequence;
    const char *policies; /* comma list */
    const char *arrivals;
    const char *curve;
    const char *results;
    uint64_t seed;
    struct replay_loads loads;
    bool timed;
    int64_t cut_ns, warmup_ns, measured_ns;
    uint32_t seeds;
    uint32_t moves;
    uint32_t sample_nodes; /* 0: all */
    uint32_t extender_weight;
    bool all_pods;
    bool learn;
};

struct replay_run {
    struct replay_settings set;
    struct gs_trace trace;
    struct gs_trace_sequence sequence;
    const struct gs_replay_policy *policies[POLICIES_MAX];
    struct gs_replay_result results[POLICIES_MAX];
    uint32_t count;
    FILE *arrivals;
    bool bar; /* draw progress */
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

static void read_settings(struct replay_settings *set, int argc, char **argv)
{
    *set = (struct replay_settings){
        .policies = "binpack,fgd,rollout",
        .seed = 42,
        .loads = {{130}, 1},
        .cut_ns = 24 * HOUR_NS,
        .warmup_ns = 48 * HOUR_NS,
        .measured_ns = 120 * HOUR_NS,
        .seeds = 1,
    };
    const struct gs_option table[] = {
        OPT_STRING("nodes", &set->nodes, "FILE", "sn,cpu_milli,memory_mib,gpu,model as CSV"),
        OPT_STRING("pods", &set->pods, "FILE",
                   "name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec] as CSV"),
        OPT_STRING("seq", &set->sequence, "FILE",
                   "order of arrivals and nodes; without it, one is drawn"),
        OPT_U64("seed", &set->seed, "NUMBER", "of what is drawn (default 42)"),
        OPT_CUSTOM("load", &set->loads, replay_loads_set, "PERCENT[,PERCENT]",
                   "of the GPUs that a drawn order asks for (default 130); with --timed, of the "
                   "GPU time, several if wanted; 0.8 is 80"),
        OPT_FLAG("timed", &set->timed,
                 "pods come and go: how long they wait, and what is lost meanwhile"),
        OPT_DURATION("cut", &set->cut_ns, "TIME", "with --timed: no pod runs longer (24h)"),
        OPT_DURATION("warm-up", &set->warmup_ns, "TIME",
                     "with --timed: pods that arrive so early are not measured (48h)"),
        OPT_DURATION("measure", &set->measured_ns, "TIME",
                     "with --timed: how long is measured after that (120h)"),
        OPT_U32("seeds", &set->seeds, "NUMBER",
                "with --timed: runs with so many seeds from --seed on, means and 95 % intervals "
                "(1)"),
        OPT_U32("moves", &set->moves, "NUMBER",
                "with --timed: every hour so many pods are moved at most, as `kubectl inspect "
                "gpushare defrag` says (0)"),
        OPT_STRING("results", &set->results, "FILE",
                   "with --timed: every figure of every run, as CSV"),
        OPT_U32("sample-nodes", &set->sample_nodes, "NUMBER",
                "so many nodes only, of each kind its share"),
        OPT_STRING("policy", &set->policies, "NAME[,NAME]",
                   "binpack, spread, rollout; to compare with: fgd, bestfit, packing, dotprod, "
                   "cluster, random, orig (default binpack,fgd,rollout)"),
        OPT_FLAG("learn", &set->learn,
                 "fgd and rollout learn from the arrivals, as in a live cluster; else they know "
                 "the trace"),
        OPT_U32(
            "extender-weight", &set->extender_weight, "WEIGHT",
            "add 10 x WEIGHT x score to kube-scheduler's own scores; 0: the policy alone decides"),
        OPT_FLAG("all-pods", &set->all_pods, "the extender scores pods without GPU, too"),
        OPT_STRING("arrivals", &set->arrivals, "FILE",
                   "a line per arrival: number, pod, node (-1: none), GPUs"),
        OPT_STRING("curve", &set->curve, "FILE", "allocation by arrived percent, as CSV"),
    };
    const struct gs_command command = {
        .name = "gpushare-packing replay",
        .doc = "Replays a trace against the shipped placement code: pods arrive, none leaves; with "
               "--timed they come and go.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
}

static int find_policies(struct replay_run *run, struct gs_error *err)
{
    const char *rest = run->set.policies;
    while (*rest) {
        size_t len = strcspn(rest, ",");
        char name[32] = "";
        if (len < sizeof(name))
            memcpy(name, rest, len);
        const struct gs_replay_policy *policy = gs_replay_policy_find(name);
        if (!policy)
            return gs_fail(err, GS_EINVAL, "\"%.*s\" is none of the policies %s", (int)len, rest,
                           gs_replay_policy_names());
        if (run->count == POLICIES_MAX)
            return gs_fail(err, GS_EINVAL, "more than %d policies", POLICIES_MAX);
        run->policies[run->count++] = policy;
        rest += rest[len] ? len + 1 : len;
    }
    if (!run->count)
        return gs_fail(err, GS_EINVAL, "no policy");
    if (run->set.arrivals && run->count != 1)
        return gs_fail(err, GS_EINVAL, "arrivals are written for one policy at a time");
    return 0;
}

static int load(struct replay_run *run, struct gs_error *err)
{
    const struct replay_settings *set = &run->set;
    if (!set->nodes || !set->pods)
        return gs_fail(err, GS_EINVAL, "nodes and pods are needed (see --help)");
    if (set->timed && (set->sequence || set->arrivals || set->curve))
        return gs_fail(err, GS_EINVAL, "--seq, --arrivals and --curve are not for --timed");
    if (!set->timed && (set->loads.count != 1 || set->results || set->seeds != 1 || set->moves))
        return gs_fail(err, GS_EINVAL,
                       "several loads or seeds, --moves and --results are for --timed");
    if (find_policies(run, err) < 0 ||
        trace_files_read(set->nodes, set->pods, &run->trace, err) < 0)
        return -1;
    if (set->sample_nodes && gs_trace_sample_nodes(&run->trace, set->sample_nodes, err) < 0)
        return -1;
    if (set->timed)
        return 0;
    if (set->sequence)
        return trace_files_read_sequence(set->sequence, &run->trace, &run->sequence, err);
    return gs_replay_sequence(&run->trace, set->seed, set->loads.percent[0], &run->sequence, err);
}

/* --- while it runs --- */

static void write_arrival(void *ctx, const struct gs_replay_arrival *arrival)
{
    struct replay_run *run = ctx;
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

static void draw_bar(void *ctx, uint32_t done, uint32_t arrivals)
{
    enum { WIDTH = 40, STEPS = 200 };
    if (done != arrivals && done % (arrivals / STEPS + 1))
        return;
    static const char full[] = "########################################";
    int part = (int)((uint64_t)done * WIDTH / arrivals);
    fprintf(stderr, "\r[%-*.*s] %3d %%", WIDTH, part, full, (int)((uint64_t)done * 100 / arrivals));
    if (done == arrivals)
        fputs("\r\033[K", stderr);
}

static struct gs_replay_spec spec_of(const struct replay_settings *set)
{
    return (struct gs_replay_spec){
        .clock = &cpu_clock,
        .learn = set->learn,
        .extender_weight = set->extender_weight,
        .all_pods = set->all_pods,
        .seed = set->seed,
    };
}

static int replay_one(struct replay_run *run, uint32_t at, struct gs_error *err)
{
    struct gs_replay_spec spec = spec_of(&run->set);
    spec.policy = run->policies[at];
    spec.arrival = run->arrivals ? write_arrival : NULL;
    spec.progress = run->bar ? draw_bar : NULL;
    spec.ctx = run;
    return gs_replay(&run->trace, &run->sequence, &spec, &run->results[at], err);
}

/* --- results --- */

static void print_header(const struct replay_run *run)
{
    printf("%" PRIu32 " nodes, %" PRIu32 " arrivals\n", run->trace.node_count,
           run->sequence.arrivals);
    printf("%-9s %7s %7s %7s %7s %9s %9s %8s %8s\n", "policy", "b100", "b130", "final", "failed",
           "stranded", "mean-us", "p99-us", "max-us");
}

/* A bucket of the curve, or the nearest one below that has arrivals. */
static double curve_at(const struct gs_replay_result *result, int bucket)
{
    while (bucket > 0 && result->curve[bucket] < 0)
        bucket--;
    return result->curve[bucket];
}

static void print_result(const char *name, const struct gs_replay_result *result)
{
    printf("%-9s %7.2f %7.2f %7.2f %7" PRIu32 " %9.1f %9.1f %8.0f %8.0f\n", name,
           curve_at(result, 100), curve_at(result, 130), result->final_pct, result->failed,
           (double)(result->capacity_milli - result->used_milli) / GS_TRACE_CARD_MILLI,
           (double)result->mean_ns / 1e3, (double)result->p99_ns / 1e3,
           (double)result->max_ns / 1e3);
    fflush(stdout);
}

static int write_curves(const struct replay_run *run, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf out = GS_BUF(1 << 20);
    gs_buf_puts(&out, "arrived_pct");
    for (uint32_t i = 0; i < run->count; i++)
        gs_buf_printf(&out, ",%s", gs_replay_policy_name(run->policies[i]));
    gs_buf_putc(&out, '\n');
    for (int b = 0; b < GS_REPLAY_BUCKETS; b++) {
        if (run->results[0].curve[b] < 0) /* the same arrivals for all */
            continue;
        gs_buf_printf(&out, "%d", b);
        for (uint32_t i = 0; i < run->count; i++)
            gs_buf_printf(&out, ",%.2f", run->results[i].curve[b]);
        gs_buf_putc(&out, '\n');
    }
    if (gs_buf_failed(&out))
        return gs_fail_nomem(err);
    return trace_files_write(run->set.curve, (struct gs_slice){out.data, out.len}, err);
}

static int replay_with_time(const struct replay_run *run, struct gs_error *err)
{
    const struct replay_settings *set = &run->set;
    struct report_timed timed = {
        .trace = &run->trace,
        .policies = run->policies,
        .policy_count = run->count,
        .loads = set->loads,
        .draw = {.cut_s = set->cut_ns / GS_NS_PER_S,
                 .warmup_s = set->warmup_ns / GS_NS_PER_S,
                 .measured_s = set->measured_ns / GS_NS_PER_S,
                 .seed = set->seed},
        .seeds = set->seeds,
        .moves = set->moves,
        .replay = spec_of(set),
        .results = set->results,
    };
    return report_timed(&timed, err);
}

static int replay_all(struct replay_run *run, struct gs_error *err)
{
    print_header(run);
    for (uint32_t i = 0; i < run->count; i++) {
        if (replay_one(run, i, err) < 0)
            return -1;
        print_result(gs_replay_policy_name(run->policies[i]), &run->results[i]);
    }
    return run->set.curve ? write_curves(run, err) : 0;
}

static int replay_and_close(struct replay_run *run, struct gs_error *err)
{
    if (run->set.timed)
        return replay_with_time(run, err);
    if (!run->set.arrivals)
        return replay_all(run, err);
    run->arrivals = fopen(run->set.arrivals, "we");
    if (!run->arrivals)
        return gs_fail(err, GS_EIO, "%.160s cannot be written", run->set.arrivals);
    int result = replay_all(run, err);
    bool failed = ferror(run->arrivals) != 0;
    if ((fclose(run->arrivals) != 0 || failed) && result == 0)
        return gs_fail(err, GS_EIO, "%.160s cannot be written", run->set.arrivals);
    return result;
}

int cmd_replay(int argc, char **argv)
{
    _cleanup_free_ struct replay_run *run = calloc(1, sizeof(*run));
    struct gs_error err = {0};
    if (!run) {
        fputs("gpushare-packing replay: out of memory\n", stderr);
        return 1;
    }
    read_settings(&run->set, argc, argv);
    run->bar = isatty(STDERR_FILENO) != 0;
    int result = load(run, &err);
    if (result == 0)
        result = replay_and_close(run, &err);
    gs_trace_sequence_release(&run->sequence);
    gs_trace_release(&run->trace);
    if (result == 0)
        return 0;
    fprintf(stderr, "gpushare-packing replay: %s\n", err.msg);
    return err.code == GS_EINVAL ? 2 : 1;
}
