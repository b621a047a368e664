/* SPDX-License-Identifier: Apache-2.0 */
#include "report_timed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define HOUR_MS 3600e3

/* The columns of the table. */
enum { ALLOCATED, LOST, WHOLE_NODE_WAIT, STARVED, COLUMNS };

/* Of one column of `count` rows: the mean, and how far the 95 % interval reaches to each side. */
static double mean_of(double (*rows)[COLUMNS], uint32_t count, int column, double *ret_reach)
{
    /* Student's t, both sides, by degrees of freedom. */
    static const double t[REPLAY_SEEDS_MAX] = {0,     12.71, 4.303, 3.182, 2.776,
                                               2.571, 2.447, 2.365, 2.306, 2.262};
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += rows[i][column];
    double mean = sum / count;
    for (uint32_t i = 0; i < count; i++)
        squares += (rows[i][column] - mean) * (rows[i][column] - mean);
    *ret_reach = count > 1 ? t[count - 1] * sqrt(squares / (count - 1) / count) : 0;
    return mean;
}

static void print_row(uint32_t load_pct, const char *policy, double (*rows)[COLUMNS],
                      uint32_t count)
{
    printf("%4" PRIu32 " %-9s", load_pct, policy);
    for (int c = 0; c < COLUMNS; c++) {
        double reach, mean = mean_of(rows, count, c, &reach);
        printf(" %8.2f +- %-6.2f", mean, reach);
    }
    putchar('\n');
    fflush(stdout);
}

static int run_seeds(const struct report_timed *run, uint32_t load_pct,
                     const struct gs_replay_policy *policy, struct gs_error *err)
{
    enum { CUT_S = 24 * 3600, WARMUP_S = 48 * 3600, MEASURED_S = 120 * 3600 };
    struct gs_timed_spec spec = {.replay = run->replay, .moves_per_hour = run->moves};
    double rows[REPLAY_SEEDS_MAX][COLUMNS];
    spec.replay.policy = policy;
    for (uint32_t i = 0; i < run->seeds; i++) {
        _cleanup_(gs_timed_workload_release) struct gs_timed_workload workload = {0};
        struct gs_timed_result result;
        spec.replay.seed = run->replay.seed + i;
        const struct gs_timed_draw draw = {load_pct, CUT_S, WARMUP_S, MEASURED_S, spec.replay.seed};
        if (gs_timed_draw(run->trace, &draw, &workload, err) < 0 ||
            gs_timed_replay(run->trace, &workload, &spec, &result, err) < 0)
            return -1;
        rows[i][ALLOCATED] = result.allocated_pct;
        rows[i][LOST] = result.lost_pct;
        rows[i][WHOLE_NODE_WAIT] = (double)result.whole_node_wait_ms / HOUR_MS;
        rows[i][STARVED] = result.starved;
    }
    print_row(load_pct, policy->name, rows, run->seeds);
    return 0;
}

int report_timed(const struct report_timed *run, struct gs_error *err)
{
    if (!run->seeds || run->seeds > REPLAY_SEEDS_MAX)
        return gs_fail(err, GS_EINVAL, "%" PRIu32 " seeds: 1 to %d are possible", run->seeds,
                       REPLAY_SEEDS_MAX);
    printf("%4s %-9s %-18s %-18s %-18s %s\n", "load", "policy", "  allocated %", "  lost %",
           "  8 GPUs wait, h", "  starved");
    for (uint32_t l = 0; l < run->load_count; l++) {
        for (uint32_t p = 0; p < run->policy_count; p++) {
            if (run_seeds(run, run->load_pct[l], run->policies[p], err) < 0)
                return -1;
        }
    }
    return 0;
}
