/* SPDX-License-Identifier: Apache-2.0 */
#include "report_timed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "trace_files.h"

enum { MS_PER_S = 1000, RESULTS_BYTES_MAX = 64 << 20 };
#define MINUTE_MS 60e3

/* --- loads --- */

/* "0.85" is 85, "85" too. */
static bool read_load(const char *text, size_t len, uint32_t *ret)
{
    enum { HUNDREDTHS = 2 };
    const char *point = memchr(text, '.', len);
    size_t whole = point ? (size_t)(point - text) : len, digits = point ? len - whole - 1 : 0;
    uint32_t value, part = 0;
    if (!gs_parse_u32(text, whole, &value) || value > GS_TIMED_LOAD_MAX_PCT)
        return false;
    if (!point) {
        *ret = value;
        return true;
    }
    if (digits > HUNDREDTHS || !gs_parse_u32(point + 1, digits, &part))
        return false;
    *ret = value * 100 + (digits == 1 ? part * 10 : part);
    return true;
}

bool replay_loads_set(void *to, const char *text)
{
    struct replay_loads loads = {0};
    for (const char *rest = text;;) {
        size_t len = strcspn(rest, ",");
        if (loads.count == REPLAY_LOADS_MAX || !read_load(rest, len, &loads.percent[loads.count]))
            return false;
        loads.count++;
        if (!rest[len])
            break;
        rest += len + 1;
    }
    *(struct replay_loads *)to = loads;
    return true;
}

/* --- figures and their intervals --- */

/* The columns of the table. */
enum { ALLOCATED, LOST, WAIT_MEAN, WAIT_P50, WAIT_P99, STARVED, FIRST_CLASS };
enum { COLUMNS = FIRST_CLASS + GS_TIMED_ALL };

static void figures_of(const struct gs_timed_result *result, double ret[COLUMNS])
{
    const struct gs_timed_waits *all = &result->waits[GS_TIMED_ALL];
    ret[ALLOCATED] = result->allocated_pct;
    ret[LOST] = result->lost_pct;
    ret[WAIT_MEAN] = (double)all->mean_ms / MINUTE_MS;
    ret[WAIT_P50] = (double)all->p50_ms / MINUTE_MS;
    ret[WAIT_P99] = (double)all->p99_ms / MINUTE_MS;
    ret[STARVED] = all->starved + result->waits[GS_TIMED_CPU].starved;
    for (int which = 0; which < GS_TIMED_ALL; which++)
        ret[FIRST_CLASS + which] = (double)result->waits[which].mean_ms / MINUTE_MS;
}

/* Student's t for 95 %, both sides, by degrees of freedom. */
static double student_t(uint32_t freedom)
{
    static const double table[] = {0,     12.71, 4.303, 3.182, 2.776, 2.571, 2.447,
                                   2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
                                   2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
    uint32_t last = sizeof(table) / sizeof(table[0]) - 1;
    return freedom <= last ? table[freedom] : 2.0;
}

/* Of one column of `count` rows: the mean, and how far the 95 % interval reaches to each side. */
static double mean_of(double (*rows)[COLUMNS], uint32_t count, int column, double *ret_reach)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += rows[i][column];
    double mean = sum / count;
    for (uint32_t i = 0; i < count; i++)
        squares += (rows[i][column] - mean) * (rows[i][column] - mean);
    *ret_reach = count > 1 ? student_t(count - 1) * sqrt(squares / (count - 1) / count) : 0;
    return mean;
}

/* --- printing --- */

static void print_row(uint32_t load_pct, const char *policy, double (*rows)[COLUMNS],
                      uint32_t count)
{
    printf("%4" PRIu32 " %-9s", load_pct, policy);
    for (int c = 0; c < COLUMNS; c++) {
        double reach, mean = mean_of(rows, count, c, &reach);
        char cell[40];
        int places = c == STARVED ? 0 : c <= LOST ? 2 : 1;
        int len = snprintf(cell, sizeof(cell), "%.*f", places, mean);
        if (count > 1)
            snprintf(cell + len, sizeof(cell) - (size_t)len, "+-%.*f", places, reach);
        printf(" %*s", count > 1 ? 13 : 9, cell);
    }
    putchar('\n');
    fflush(stdout);
}

static void print_header(const struct report_timed *run, const struct gs_timed_workload *workload)
{
    static const char *const names[] = {"alloc%",  "lost%",   "wait-min",
                                        "p50-min", "p99-min", "starved"};
    uint64_t gpus = 0;
    for (uint32_t i = 0; i < run->trace->node_count; i++)
        gpus += run->trace->nodes[i].gpus;
    printf("%" PRIu32 " nodes, %" PRIu64 " GPUs; %" PRIu32 " pods to draw from, %" PRIu32
           " fit no node; %" PRIu32
           " run longer than %.4g h and are cut: %.1f %% of the GPU time\n",
           run->trace->node_count, gpus, workload->rows - workload->too_big, workload->too_big,
           workload->cut_rows, (double)run->draw.cut_s / 3600, workload->cut_pct);
    printf("%4s %-9s", "load", "policy");
    for (int c = 0; c < COLUMNS; c++) {
        char name[32];
        snprintf(name, sizeof(name), "%s", c < FIRST_CLASS ? names[c] : "");
        if (c >= FIRST_CLASS)
            snprintf(name, sizeof(name), "%s-min",
                     gs_timed_class_name((enum gs_timed_class)(c - FIRST_CLASS)));
        printf(" %*s", run->seeds > 1 ? 13 : 9, name);
    }
    putchar('\n');
}

static void write_results(struct gs_buf *out, uint32_t load_pct, uint64_t seed, const char *policy,
                          const struct gs_timed_result *result)
{
    for (int which = 0; which < GS_TIMED_CLASSES; which++) {
        const struct gs_timed_waits *w = &result->waits[which];
        gs_buf_printf(out,
                      "%" PRIu32 ",%s,%" PRIu64 ",%.4f,%.4f,%" PRIu32 ",%s,%" PRIu32 ",%" PRId64
                      ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 "\n",
                      load_pct, policy, seed, result->allocated_pct, result->lost_pct,
                      result->longest_queue, gs_timed_class_name((enum gs_timed_class)which),
                      w->pods, w->mean_ms, w->p50_ms, w->p99_ms, w->max_ms, w->starved, w->waiting,
                      result->moves);
    }
}

/* --- runs --- */

struct table {
    double (*rows)[COLUMNS]; /* of the seeds of one load and policy */
    bool headed;
    struct gs_buf csv;
};

static int run_seeds(const struct report_timed *run, struct table *table, uint32_t load,
                     uint32_t policy, struct gs_error *err)
{
    struct gs_timed_spec spec = {.replay = run->replay, .moves_per_hour = run->moves};
    const char *name = gs_replay_policy_name(run->policies[policy]);
    spec.replay.policy = run->policies[policy];
    for (uint32_t i = 0; i < run->seeds; i++) {
        struct gs_timed_draw draw = run->draw;
        _cleanup_(gs_timed_workload_release) struct gs_timed_workload workload = {0};
        struct gs_timed_result result;
        draw.load_pct = run->loads.percent[load];
        draw.seed = spec.replay.seed = run->draw.seed + i;
        if (gs_timed_draw(run->trace, &draw, &workload, err) < 0)
            return -1;
        if (!table->headed)
            print_header(run, &workload);
        table->headed = true;
        if (gs_timed_replay(run->trace, &workload, &spec, &result, err) < 0)
            return -1;
        figures_of(&result, table->rows[i]);
        write_results(&table->csv, draw.load_pct, draw.seed, name, &result);
    }
    print_row(run->loads.percent[load], name, table->rows, run->seeds);
    return 0;
}

static int run_all(const struct report_timed *run, struct table *table, struct gs_error *err)
{
    gs_buf_puts(&table->csv, "load_pct,policy,seed,allocated_pct,lost_pct,longest_queue,class,pods,"
                             "mean_ms,p50_ms,p99_ms,max_ms,starved,waiting,moves\n");
    for (uint32_t l = 0; l < run->loads.count; l++) {
        for (uint32_t p = 0; p < run->policy_count; p++) {
            if (run_seeds(run, table, l, p, err) < 0)
                return -1;
        }
    }
    if (gs_buf_failed(&table->csv))
        return gs_fail_nomem(err);
    const struct gs_slice csv = {table->csv.data, table->csv.len};
    return run->results ? trace_files_write(run->results, csv, err) : 0;
}

int report_timed(const struct report_timed *run, struct gs_error *err)
{
    struct table table = {.csv = GS_BUF(RESULTS_BYTES_MAX)};
    if (!run->seeds || run->seeds > REPLAY_SEEDS_MAX)
        return gs_fail(err, GS_EINVAL, "%" PRIu32 " seeds: 1 to %d are possible", run->seeds,
                       REPLAY_SEEDS_MAX);
    table.rows = calloc(run->seeds, sizeof(*table.rows));
    int result = table.rows ? run_all(run, &table, err) : gs_fail_nomem(err);
    free(table.rows);
    gs_buf_release(&table.csv);
    return result;
}
