/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"
#include "inspect/common.h"
#include "inspect/doc.h"
#include "inspect/grid.h"
#include "inspect/limits.h"
#include "inspect/terminal.h"

/* kubectl inspect gpushare usage: what was asked for, what of it is truly used and ever was, and so
 * what people should ask for instead. Who uses more than his share stands first, then most waste.
 */

enum by { BY_OWNER, BY_POD, BY_NAMESPACE, BY_NODE };
enum sort { SORT_DEFAULT, SORT_OVER, SORT_NEVER, SORT_ASKED, SORT_USED, SORT_PEAK, SORT_NAME };

/* Pods that one line is about. Sums are over all of their GPUs. */
struct row {
    const struct usage_pod *pod; /* the first of them */
    const char *where;           /* its namespace, or node */
    const char *name;            /* in there; "" where the line is of all */
    uint32_t pods, counted;      /* counted: it is known of all their GPUs what they use */
    uint64_t asked_bytes;        /* of all; what follows, of those that are counted */
    uint64_t used_bytes, peak_bytes, unneeded_bytes;
    uint64_t over_bytes, over_peak_bytes; /* more than their share: now, and at the peak */
    uint64_t ask_for_bytes;               /* what each of them has to ask for: whole GiB */
};

struct sizing {
    struct common common;
    enum by by;
    enum sort sort;
    bool over;
    enum format format;
    const char *node;
    struct row *rows;
    size_t count;
    struct row sum; /* of all rows */
};

static bool set_by(void *to, const char *text)
{
    static const char *const words[] = {"owner", "pod", "namespace", "node", NULL};
    return word_parse(words, to, text);
}

static bool set_sort(void *to, const char *text)
{
    static const char *const words[] = {"default", "over", "never", "asked",
                                        "used",    "peak", "name",  NULL};
    return word_parse(words, to, text);
}

static void read_options(struct sizing *sizing, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_CUSTOM(
            "by", &sizing->by, set_by, "owner|pod|namespace|node",
            "one line for all pods of a Deployment, Job, …, for each pod, for each namespace or "
            "node (owner)"),
        OPT_FLAG("over", &sizing->over, "only who uses, or used, more than his share"),
        OPT_CUSTOM("sort", &sizing->sort, set_sort, "default|over|never|asked|used|peak|name",
                   "what has most of it first; default: who is over, then what was never used"),
        OPT_FORMAT(&sizing->format),
        OPT_FLAG("all-namespaces", &sizing->common.all_namespaces,
                 "pods of all, also with --namespace", .key = 'A'),
        USAGE_OPTIONS(&sizing->common),
        COMMON_OPTIONS(&sizing->common, "only pods of this namespace"),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc =
            "GPU memory that pods asked for beside what they truly use and ever used: first those "
            "that use more than their share, then those that never used most of it: what to ask "
            "for instead. Of device plugins that run with --pod-usage=on, where the kernel "
            "counts, or the driver.",
        .operands = "[NODE]",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .max_operands = 1,
        .quiet = true,
    };
    int first = gs_options_parse(&command, argc, argv);
    if (first < argc)
        sizing->node = argv[first];
}

/* ---- rows ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A plugin may say any number: sums end at the largest one. */
static void add(uint64_t *sum, uint64_t more)
{
    *sum = gs_sat_add_u64(*sum, more);
}

/* Rounded up; one of what was never used, as nobody can ask for less. */
static uint64_t whole_gib(uint64_t bytes)
{
    const uint64_t gib = UINT64_C(1) << 30;
    return bytes > gib ? gs_sat_mul_u64(bytes / gib + (bytes % gib > 0), gib) : gib;
}

static struct row row_of(const struct sizing *sizing, const struct usage_pod *pod)
{
    struct row row = {.pod = pod, .where = pod->ns, .name = "", .pods = 1};
    if (sizing->by == BY_NODE)
        row.where = pod->node;
    else if (sizing->by != BY_NAMESPACE)
        row.name = sizing->by == BY_OWNER && pod->owner[0] ? pod->owner : pod->name;
    row.asked_bytes = gs_sat_mul_u64(pod->given_bytes, pod->gpu_count);
    for (uint32_t i = 0; i < pod->gpu_count; i++) {
        const struct usage_gpu *gpu = &pod->gpus[i];
        if (!gpu->known)
            return row;
    }
    row.counted = pod->gpu_count > 0;
    row.unneeded_bytes = usage_never_used(pod);
    for (uint32_t i = 0; i < pod->gpu_count; i++) {
        const struct usage_gpu *gpu = &pod->gpus[i];
        add(&row.used_bytes, gpu->used_bytes);
        add(&row.peak_bytes, gpu->peak_bytes);
        add(&row.over_bytes, limits_over(pod, gpu->used_bytes));
        add(&row.over_peak_bytes, limits_over(pod, gpu->peak_bytes));
        row.ask_for_bytes = larger(row.ask_for_bytes, whole_gib(gpu->peak_bytes));
    }
    row.ask_for_bytes =
        gs_sat_mul_u64(row.ask_for_bytes, pod->gpu_count); /* each GPU has an equal part */
    return row;
}

static void add_row(struct row *sum, const struct row *row)
{
    sum->pods += row->pods;
    sum->counted += row->counted;
    add(&sum->asked_bytes, row->asked_bytes);
    add(&sum->used_bytes, row->used_bytes);
    add(&sum->peak_bytes, row->peak_bytes);
    add(&sum->unneeded_bytes, row->unneeded_bytes);
    add(&sum->over_bytes, row->over_bytes);
    add(&sum->over_peak_bytes, row->over_peak_bytes);
    sum->ask_for_bytes = larger(sum->ask_for_bytes, row->ask_for_bytes);
}

/* Rows that become one come together, before they are put in order. */
static int by_name(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = strcmp(x->where, y->where);
    if (order == 0)
        order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->pod->uid, y->pod->uid);
}

static int most_first(uint64_t x, uint64_t y)
{
    return x == y ? 0 : x < y ? 1 : -1;
}

static int by_sort(const void *a, const void *b, void *ctx)
{
    const struct row *x = a, *y = b;
    const enum sort sort = ((const struct sizing *)ctx)->sort;
    int order = 0;
    if (sort != SORT_ASKED && sort != SORT_NAME)
        order = most_first(x->counted > 0, y->counted > 0);
    if (order == 0 && (sort == SORT_DEFAULT || sort == SORT_OVER))
        order = most_first(x->over_bytes, y->over_bytes);
    if (order == 0 && (sort == SORT_DEFAULT || sort == SORT_OVER))
        order = most_first(x->over_peak_bytes, y->over_peak_bytes);
    if (order == 0 && (sort == SORT_DEFAULT || sort == SORT_NEVER))
        order = most_first(x->unneeded_bytes, y->unneeded_bytes);
    if (order == 0 && sort == SORT_ASKED)
        order = most_first(x->asked_bytes, y->asked_bytes);
    if (order == 0 && sort == SORT_USED)
        order = most_first(x->used_bytes, y->used_bytes);
    if (order == 0 && sort == SORT_PEAK)
        order = most_first(x->peak_bytes, y->peak_bytes);
    return order ? order : by_name(a, b);
}

/* A pod without an owner is a line of its own, and so is each pod where they are listed. */
static bool same_row(const struct sizing *sizing, const struct row *row, const struct row *other)
{
    bool one = sizing->by == BY_NAMESPACE || sizing->by == BY_NODE ||
               (sizing->by == BY_OWNER && row->pod->owner[0] && other->pod->owner[0]);
    return one && strcmp(row->name, other->name) == 0 && strcmp(row->where, other->where) == 0;
}

static void join_rows(struct sizing *sizing)
{
    size_t kept = 0;
    qsort(sizing->rows, sizing->count, sizeof(*sizing->rows), by_name);
    for (size_t i = 0; i < sizing->count; i++) {
        const struct row row = sizing->rows[i];
        if (kept && same_row(sizing, &sizing->rows[kept - 1], &row))
            add_row(&sizing->rows[kept - 1], &row);
        else
            sizing->rows[kept++] = row;
    }
    sizing->count = kept;
}

static int find_rows(struct sizing *sizing, const struct usage *usage, const char *ns)
{
    sizing->rows = calloc(HASH_COUNT(usage->pods) + 1, sizeof(*sizing->rows));
    if (!sizing->rows)
        return -1;
    for (const struct usage_pod *pod = usage->pods; pod; pod = pod->hh.next) {
        const struct row row = row_of(sizing, pod);
        if ((ns && strcmp(ns, pod->ns) != 0) || (sizing->over && !row.over_peak_bytes))
            continue;
        sizing->rows[sizing->count++] = row;
        add_row(&sizing->sum, &row);
    }
    join_rows(sizing);
    qsort_r(sizing->rows, sizing->count, sizeof(*sizing->rows), by_sort, sizing);
    return 0;
}

/* ---- telling ---- */

static void put_bytes(struct grid *grid, uint64_t bytes, bool known)
{
    char text[USAGE_TEXT_BYTES] = "-";
    if (known)
        usage_text(bytes, GS_UNIT_GIB, text);
    grid_cell(grid, GRID_PLAIN, "%s", text);
}

/* "1.0", or "1.0 at peak" of who is not over any more. */
static void put_over(struct grid *grid, const struct row *row)
{
    char text[USAGE_TEXT_BYTES];
    usage_text(row->over_bytes ? row->over_bytes : row->over_peak_bytes, GS_UNIT_GIB, text);
    if (!row->over_peak_bytes)
        grid_cell(grid, GRID_PLAIN, "-");
    else
        grid_cell(grid, GRID_BAD, "%s%s", text, row->over_bytes ? "" : " at peak");
}

/* A pod asks, or all of an owner's with one template. */
static bool is_asked(const struct sizing *sizing)
{
    return sizing->by == BY_POD || sizing->by == BY_OWNER;
}

static void put_row(struct grid *grid, const struct sizing *sizing, const struct row *row)
{
    const bool pod = sizing->by == BY_POD, counted = row->counted > 0;
    grid_row(grid);
    grid_cell(grid, GRID_PLAIN, "%s", row->where);
    if (is_asked(sizing))
        grid_cell(grid, GRID_PLAIN, "%s%s", !pod && !row->pod->owner[0] ? "Pod/" : "", row->name);
    if (pod)
        grid_cell(grid, GRID_PLAIN, "%s", row->pod->node);
    else if (counted && row->counted < row->pods)
        grid_cell(grid, GRID_PLAIN, "%" PRIu32 " of %" PRIu32, row->counted, row->pods);
    else
        grid_cell(grid, GRID_PLAIN, "%" PRIu32, row->pods);
    put_bytes(grid, row->asked_bytes, true);
    put_bytes(grid, row->used_bytes, counted);
    put_bytes(grid, row->peak_bytes, counted);
    put_bytes(grid, row->unneeded_bytes, counted);
    if (is_asked(sizing))
        put_bytes(grid, row->ask_for_bytes, counted);
    put_over(grid, row);
    if (pod)
        grid_cell(grid, GRID_PLAIN, "%s", gs_enforced_name(row->pod->enforced));
}

static void put_head(struct grid *grid, const struct sizing *sizing)
{
    grid_column(grid, false, sizing->by == BY_NODE ? "NODE" : "NAMESPACE");
    if (is_asked(sizing))
        grid_column(grid, false, sizing->by == BY_OWNER ? "OWNER" : "POD");
    grid_column(grid, sizing->by != BY_POD, sizing->by == BY_POD ? "NODE" : "PODS");
    grid_column(grid, true, "ASKED(GiB)");
    grid_column(grid, true, "USED");
    grid_column(grid, true, "PEAK");
    grid_column(grid, true, "NEVER USED");
    if (is_asked(sizing))
        grid_column(grid, true, "ASK FOR");
    grid_column(grid, false, "OVER");
    if (sizing->by == BY_POD)
        grid_column(grid, false, "ENFORCED");
}

static void print_sum(const struct row *sum)
{
    char used[USAGE_TEXT_BYTES], unneeded[USAGE_TEXT_BYTES], over[USAGE_TEXT_BYTES];
    if (!sum->counted) {
        puts("nothing counts what they use (docs/limits.md says what can)");
        return;
    }
    usage_text(sum->used_bytes, GS_UNIT_GIB, used);
    usage_text(sum->unneeded_bytes, GS_UNIT_GIB, unneeded);
    usage_text(sum->over_bytes, GS_UNIT_GIB, over);
    printf("%" PRIu32 " of %" PRIu32 " pods are counted: they use %s GiB, and never used %s GiB of "
           "their shares; above these they use %s GiB now\n",
           sum->counted, sum->pods, used, unneeded, over);
}

static int print_table(const struct sizing *sizing)
{
    struct grid grid;
    if (!sizing->count)
        return 0;
    grid_open(&grid, sizing->common.app->terminal.colour);
    put_head(&grid, sizing);
    for (size_t i = 0; i < sizing->count; i++)
        put_row(&grid, sizing, &sizing->rows[i]);
    _cleanup_free_ char *text = grid_text(&grid);
    grid_close(&grid);
    if (!text)
        return -1;
    fputs(text, stdout);
    print_sum(&sizing->sum);
    return 0;
}

static void put_names(struct doc *doc, const struct sizing *sizing, const struct row *row)
{
    if (sizing->by == BY_NODE) {
        doc_text(doc, "node", row->where);
        return;
    }
    doc_text(doc, "namespace", row->where);
    if (sizing->by == BY_NAMESPACE)
        return;
    if (sizing->by == BY_POD || !row->pod->owner[0]) {
        doc_text(doc, "name", row->pod->name);
        doc_text(doc, "node", row->pod->node);
        doc_text(doc, "enforced", gs_enforced_name(row->pod->enforced));
    }
    doc_text(doc, "owner", row->pod->owner);
}

static int print_document(const struct sizing *sizing)
{
    struct doc doc;
    doc_open(&doc, stdout, sizing->format == FORMAT_YAML);
    doc_list(&doc, "items");
    for (size_t i = 0; i < sizing->count; i++) {
        const struct row *row = &sizing->rows[i];
        doc_object(&doc, NULL);
        put_names(&doc, sizing, row);
        doc_number(&doc, "pods", row->pods);
        doc_number(&doc, "countedPods", row->counted);
        doc_number(&doc, "askedBytes", row->asked_bytes);
        if (row->counted) {
            doc_number(&doc, "usedBytes", row->used_bytes);
            doc_number(&doc, "peakBytes", row->peak_bytes);
            doc_number(&doc, "neverUsedBytes", row->unneeded_bytes);
            if (is_asked(sizing))
                doc_number(&doc, "askForBytes", row->ask_for_bytes);
            doc_number(&doc, "overBytes", row->over_bytes);
            doc_number(&doc, "overAtPeakBytes", row->over_peak_bytes);
        }
        doc_end(&doc);
    }
    doc_end(&doc);
    return doc_close(&doc);
}

/* What is missing, and why. */
static void say_missing(const struct sizing *sizing, const struct usage *usage)
{
    usage_say_missing(usage);
    if (!usage->asked)
        fprintf(stderr,
                PROGRAM ": no pod of the DaemonSet " USAGE_PLUGIN " is ready in namespace %s "
                        "(--system-namespace)\n",
                sizing->common.system_ns);
    else if (!usage->names_pods)
        fputs(PROGRAM ": no device plugin names pods: start them with --pod-usage=on "
                      "(docs/security.md says whom that tells what)\n",
              stderr);
    else if (!sizing->count)
        fputs(sizing->over
                  ? "No pod there is known to use more than its share, or to have done so.\n"
                  : "No pod there has GPU memory.\n",
              stderr);
}

static int tell(struct sizing *sizing, struct gs_error *err)
{
    const struct usage_query query = common_usage(&sizing->common, sizing->node);
    struct usage usage;
    int result = 0;
    usage_fetch(&query, &usage);
    const char *ns = sizing->common.all_namespaces ? NULL : sizing->common.ns;
    if (!usage.answered && usage.why.code == GS_ETIMEOUT)
        result =
            gs_fail(err, GS_ENOENT, "no device plugin was found, or answered, in time (--timeout)");
    else if (!usage.answered && usage.why.code != GS_OK)
        result = gs_fail(err, usage.why.code, "%s", usage.why.msg);
    else if (!usage.answered && sizing->format != FORMAT_TEXT)
        result = gs_fail(err, GS_ENOENT,
                         "no pod of the DaemonSet " USAGE_PLUGIN
                         " answered in namespace %s (--system-namespace)",
                         sizing->common.system_ns);
    else if (find_rows(sizing, &usage, ns) < 0)
        result = gs_fail_nomem(err);
    if (result == 0) {
        say_missing(sizing, &usage);
        int printed = sizing->format == FORMAT_TEXT ? print_table(sizing) : print_document(sizing);
        if (printed < 0 || fflush(stdout) != 0)
            result = fail_output(err);
    }
    free(sizing->rows);
    usage_release(&usage);
    return result;
}

int cmd_usage(const struct app *app, int argc, char **argv)
{
    struct sizing sizing = {.common = COMMON_DEFAULTS};
    struct gs_error err = {0};
    read_options(&sizing, argc, argv);
    int result = common_connect(&sizing.common, app, &err);
    if (result == 0)
        result = tell(&sizing, &err);
    source_close(&sizing.common.source);
    return result == 0 ? 0 : complain(&err);
}
