/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "inspect/common.h"
#include "inspect/doc.h"
#include "inspect/grid.h"
#include "inspect/terminal.h"

/* kubectl inspect gpushare usage: what was given, what of it is truly used and ever was, and so
 * what people should ask for instead. Most waste first. */

enum by { BY_OWNER, BY_POD };

/* Pods of one owner, or one pod. */
struct row {
    const struct usage_pod *pod; /* the first of them */
    const char *name;
    uint32_t pods;
    bool known;              /* the kernel counts it, of some */
    uint64_t given_bytes;    /* of each GPU of a pod: the most of any */
    uint64_t used_bytes;     /* likewise, now */
    uint64_t peak_bytes;     /* likewise, ever */
    uint64_t unneeded_bytes; /* all pods and GPUs together: given, and never used */
};

struct sizing {
    struct common common;
    enum by by;
    enum format format;
    const char *node;
    struct row *rows;
    size_t count;
    uint64_t given_bytes, unneeded_bytes; /* of all whose use is known */
};

static bool set_by(void *to, const char *text)
{
    static const char *const words[] = {"owner", "pod", NULL};
    return word_parse(words, to, text);
}

static void read_options(struct sizing *sizing, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_CUSTOM("by", &sizing->by, set_by, "owner|pod",
                   "one line for all pods of a Deployment, Job, …, or for each pod (owner)"),
        OPT_FORMAT(&sizing->format),
        OPT_FLAG("all-namespaces", &sizing->common.all_namespaces,
                 "pods of all, also with --namespace", .key = 'A'),
        USAGE_OPTIONS(&sizing->common),
        COMMON_OPTIONS(&sizing->common, "only pods of this namespace"),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc = "GPU memory that pods were given beside what they truly use and ever used, those "
               "first that never used most of it: what to ask for instead. Of device plugins that "
               "run with --pod-usage=on, where the kernel counts.",
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

static void raise(uint64_t *most, uint64_t bytes)
{
    if (bytes > *most)
        *most = bytes;
}

static void add_pod(struct sizing *sizing, struct row *row, const struct usage_pod *pod)
{
    const uint64_t unneeded = usage_never_used(pod);
    row->pods++;
    raise(&row->given_bytes, pod->given_bytes);
    row->unneeded_bytes += unneeded;
    sizing->unneeded_bytes += unneeded;
    for (uint32_t i = 0; i < pod->gpu_count; i++) {
        const struct usage_gpu *gpu = &pod->gpus[i];
        if (!gpu->known)
            continue;
        row->known = true;
        raise(&row->used_bytes, gpu->used_bytes);
        raise(&row->peak_bytes, gpu->peak_bytes);
        sizing->given_bytes += pod->given_bytes;
    }
}

static bool has_owner(const struct sizing *sizing, const struct usage_pod *pod)
{
    return sizing->by == BY_OWNER && pod->owner[0];
}

/* Rows of one owner come together, before they are ordered by waste. */
static int by_owner(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = strcmp(x->pod->ns, y->pod->ns);
    if (order == 0)
        order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->pod->uid, y->pod->uid);
}

static int by_waste(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->known != y->known)
        return x->known ? -1 : 1;
    if (x->unneeded_bytes != y->unneeded_bytes)
        return x->unneeded_bytes < y->unneeded_bytes ? 1 : -1;
    return by_owner(a, b);
}

static bool same_row(const struct sizing *sizing, const struct row *row, const struct row *other)
{
    return has_owner(sizing, row->pod) && has_owner(sizing, other->pod) &&
           strcmp(row->name, other->name) == 0 && strcmp(row->pod->ns, other->pod->ns) == 0;
}

static int find_rows(struct sizing *sizing, const struct usage *usage, const char *ns)
{
    size_t kept = 0;
    sizing->rows = calloc(HASH_COUNT(usage->pods) + 1, sizeof(*sizing->rows));
    if (!sizing->rows)
        return -1;
    for (const struct usage_pod *pod = usage->pods; pod; pod = pod->hh.next)
        if (!ns || strcmp(ns, pod->ns) == 0)
            sizing->rows[sizing->count++] =
                (struct row){.pod = pod, .name = has_owner(sizing, pod) ? pod->owner : pod->name};
    qsort(sizing->rows, sizing->count, sizeof(*sizing->rows), by_owner);
    for (size_t i = 0; i < sizing->count; i++) {
        const struct row row = sizing->rows[i];
        if (!kept || !same_row(sizing, &sizing->rows[kept - 1], &row))
            sizing->rows[kept++] = row;
        add_pod(sizing, &sizing->rows[kept - 1], row.pod);
    }
    sizing->count = kept;
    qsort(sizing->rows, sizing->count, sizeof(*sizing->rows), by_waste);
    return 0;
}

/* ---- telling ---- */

static void put_bytes(struct grid *grid, const struct row *row, uint64_t bytes, bool known)
{
    char text[USAGE_TEXT_BYTES] = "-";
    if (known)
        usage_text(bytes, GS_UNIT_GIB, text);
    grid_cell(grid, known && bytes > row->given_bytes ? GRID_BAD : GRID_PLAIN, "%s", text);
}

static void put_row(struct grid *grid, const struct sizing *sizing, const struct row *row)
{
    char text[USAGE_TEXT_BYTES] = "-";
    grid_row(grid);
    grid_cell(grid, GRID_PLAIN, "%s", row->pod->ns);
    grid_cell(grid, GRID_PLAIN, "%s%s", sizing->by == BY_OWNER && !row->pod->owner[0] ? "Pod/" : "",
              row->name);
    if (sizing->by == BY_OWNER)
        grid_cell(grid, GRID_PLAIN, "%" PRIu32, row->pods);
    else
        grid_cell(grid, GRID_PLAIN, "%s", row->pod->node);
    put_bytes(grid, row, row->given_bytes, true);
    put_bytes(grid, row, row->used_bytes, row->known);
    put_bytes(grid, row, row->peak_bytes, row->known);
    if (row->known)
        usage_text(row->unneeded_bytes, GS_UNIT_GIB, text);
    grid_cell(grid, GRID_PLAIN, "%s", text);
    if (sizing->by == BY_POD)
        grid_cell(grid, GRID_PLAIN, "%s", gs_enforced_name(row->pod->enforced));
}

static int print_table(const struct sizing *sizing)
{
    char given[USAGE_TEXT_BYTES], unneeded[USAGE_TEXT_BYTES];
    struct grid grid;
    if (!sizing->count)
        return 0;
    grid_open(&grid, sizing->common.app->terminal.colour);
    grid_column(&grid, false, "NAMESPACE");
    grid_column(&grid, false, sizing->by == BY_OWNER ? "OWNER" : "POD");
    grid_column(&grid, sizing->by == BY_OWNER, sizing->by == BY_OWNER ? "PODS" : "NODE");
    grid_column(&grid, true, "GIVEN(GiB)");
    grid_column(&grid, true, "USED");
    grid_column(&grid, true, "PEAK");
    grid_column(&grid, true, "NEVER USED");
    if (sizing->by == BY_POD)
        grid_column(&grid, false, "ENFORCED");
    for (size_t i = 0; i < sizing->count; i++)
        put_row(&grid, sizing, &sizing->rows[i]);
    _cleanup_free_ char *text = grid_text(&grid);
    grid_close(&grid);
    if (!text)
        return -1;
    usage_text(sizing->given_bytes, GS_UNIT_GIB, given);
    usage_text(sizing->unneeded_bytes, GS_UNIT_GIB, unneeded);
    fputs(text, stdout);
    if (sizing->given_bytes)
        printf("%s of %s GiB were never used\n", unneeded, given);
    else
        puts("the kernel counts nothing of it (docs/limits.md says where it does)");
    return 0;
}

static int print_document(const struct sizing *sizing)
{
    struct doc doc;
    doc_open(&doc, stdout, sizing->format == FORMAT_YAML);
    doc_list(&doc, "items");
    for (size_t i = 0; i < sizing->count; i++) {
        const struct row *row = &sizing->rows[i];
        doc_object(&doc, NULL);
        doc_text(&doc, "namespace", row->pod->ns);
        if (sizing->by == BY_POD || !row->pod->owner[0]) {
            doc_text(&doc, "name", row->pod->name);
            doc_text(&doc, "node", row->pod->node);
            doc_text(&doc, "enforced", gs_enforced_name(row->pod->enforced));
        }
        doc_text(&doc, "owner", row->pod->owner);
        doc_number(&doc, "pods", row->pods);
        doc_number(&doc, "givenBytes", row->given_bytes);
        if (row->known) {
            doc_number(&doc, "usedBytes", row->used_bytes);
            doc_number(&doc, "peakBytes", row->peak_bytes);
            doc_number(&doc, "neverUsedBytes", row->unneeded_bytes);
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
        fputs("No pod there has GPU memory.\n", stderr);
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
