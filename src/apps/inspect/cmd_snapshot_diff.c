/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/manifest.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "inspect/calm.h"
#include "inspect/diff.h"
#include "inspect/doc.h"
#include "inspect/fetch.h"
#include "inspect/grid.h"
#include "inspect/snapshot_file.h"
#include "inspect/terminal.h"

/* snapshot --diff OLD [NEW]: what changed between two files, or a file and now. */

struct reading {
    const struct gs_names *names;
    struct gs_watch_sink to;
    uint64_t nodes;
};

static int take(void *ctx, const char *version, const char *kind, struct gs_slice json,
                struct gs_error *err)
{
    struct reading *reading = ctx;
    int result = 0;
    if (strcmp(kind, "Node") == 0) {
        struct gs_node node = {0};
        result = gs_codec_node(reading->names, json, &node, err);
        if (result == 0) {
            calm_node(&node.arena, &node);
            result = reading->to.node(reading->to.ctx, &node) < 0 ? gs_fail_nomem(err) : 0;
        }
        gs_node_release(&node);
        reading->nodes++;
    } else if (strcmp(kind, "Pod") == 0) {
        struct gs_pod pod = {0};
        result = gs_codec_pod(reading->names, json, &pod, err);
        if (result == 0) {
            calm_pod(&pod.arena, &pod);
            result = reading->to.pod(reading->to.ctx, &pod) < 0 ? gs_fail_nomem(err) : 0;
        }
        gs_pod_release(&pod);
    }
    return result;
}

static int read_file(const char *path, const struct gs_names *names, struct snapshot *ret,
                     struct gs_error *err)
{
    if (snapshot_init(ret, err) < 0)
        return -1;
    struct reading reading = {.names = names, .to = snapshot_sink(ret)};
    if (gs_manifest_read(path, take, &reading, err) < 0)
        return -1;
    return reading.nodes ? 0 : gs_fail(err, GS_EINVAL, "%.200s has no node: no snapshot", path);
}

/* ---- in words ---- */

/* Of each kind; -o json has all of them. */
enum { ROWS_MAX = 40 };

static int print_changes(const struct diff *diff)
{
    struct grid grid;
    uint32_t told[DIFF_KINDS] = {0};
    grid_open(&grid, false);
    grid_column(&grid, false, "CHANGE");
    grid_column(&grid, false, "WHAT");
    grid_column(&grid, false, "BEFORE");
    grid_column(&grid, false, "AFTER");
    for (size_t i = 0; i < diff->count; i++) {
        const struct diff_change *change = &diff->all[i];
        if (told[change->kind]++ >= ROWS_MAX)
            continue;
        grid_row(&grid);
        grid_cell(&grid, GRID_PLAIN, "%s", diff_words(change->kind));
        grid_cell(&grid, GRID_PLAIN, "%s", change->name);
        grid_cell(&grid, GRID_PLAIN, "%s", change->before[0] ? change->before : "-");
        grid_cell(&grid, GRID_PLAIN, "%s", change->after[0] ? change->after : "-");
    }
    _cleanup_free_ char *text = grid_text(&grid);
    grid_close(&grid);
    if (!text)
        return -1;
    fputs(text, stdout);
    for (int kind = 0; kind < DIFF_KINDS; kind++) {
        if (told[kind] > ROWS_MAX)
            printf("and %" PRIu32 " more: %s (-o json has them)\n", told[kind] - ROWS_MAX,
                   diff_words((enum diff_kind)kind));
    }
    return 0;
}

static void print_figures(const struct diff *diff)
{
    for (uint32_t i = 0; i < diff->figures; i++) {
        const struct view_figure *was = &diff->before[i], *is = &diff->after[i];
        if (was->number != is->number)
            printf("%s: %" PRIu64 " before, %" PRIu64 " after\n", is->key, was->number, is->number);
    }
    if (diff->waited != diff->waits)
        printf("waiting: %" PRIu64 " before, %" PRIu64 " after\n", diff->waited, diff->waits);
}

static int print(const struct diff *diff)
{
    if (!diff->count) {
        puts("No node, no GPU and no pod with GPU memory changed.");
        return 0;
    }
    for (int kind = 0, any = 0; kind < DIFF_KINDS; kind++) {
        if (diff->counts[kind])
            printf("%s%s: %" PRIu32, any++ ? ", " : "", diff_words((enum diff_kind)kind),
                   diff->counts[kind]);
    }
    putchar('\n');
    if (print_changes(diff) < 0)
        return -1;
    print_figures(diff);
    return 0;
}

/* ---- for programs ---- */

static int document(const struct diff *diff, bool yaml)
{
    struct doc doc;
    doc_open(&doc, stdout, yaml);
    doc_text(&doc, "unit", diff->unit);
    doc_list(&doc, "changes");
    for (size_t i = 0; i < diff->count; i++) {
        const struct diff_change *change = &diff->all[i];
        doc_object(&doc, NULL);
        doc_text(&doc, "change", diff_label(change->kind));
        doc_text(&doc, "name", change->name);
        doc_text(&doc, "before", change->before);
        doc_text(&doc, "after", change->after);
        doc_end(&doc);
    }
    doc_end(&doc);
    for (int after = 0; after < 2; after++) {
        doc_object(&doc, after ? "after" : "before");
        for (uint32_t i = 0; i < diff->figures; i++)
            doc_number(&doc, diff->after[i].key, (after ? diff->after : diff->before)[i].number);
        doc_number(&doc, "waiting", after ? diff->waits : diff->waited);
        doc_end(&doc);
    }
    return doc_close(&doc);
}

/* ---- both ---- */

static int compare(const struct common *common, struct snapshot *old, struct snapshot *new,
                   enum format format, struct gs_error *err)
{
    const struct view_options options = {.waits = true, .now_s = common_now_s(common)};
    struct view before = {0}, after = {0};
    struct diff diff = {0};
    int result = view_build(old, &options, &before, err);
    if (result == 0)
        result = view_build(new, &options, &after, err);
    if (result == 0)
        result = diff_find(&before, &after, &diff, err);
    if (result == 0 &&
        ((format == FORMAT_TEXT ? print(&diff) : document(&diff, format == FORMAT_YAML)) < 0 ||
         fflush(stdout) != 0))
        result = fail_output(err);
    diff_release(&diff);
    view_release(&before);
    view_release(&after);
    return result;
}

int snapshot_compare(const struct common *common, const char *old_path, const char *new_path,
                     enum format format, struct gs_error *err)
{
    const struct fetch fetch = {.common = common};
    struct snapshot old = {0}, new = {0};
    int result = read_file(old_path, &common->names, &old, err);
    if (result == 0)
        result = new_path ? read_file(new_path, &common->names, &new, err)
                          : fetch_cluster(&fetch, &new, NULL, err);
    if (result == 0)
        result = compare(common, &old, &new, format, err);
    snapshot_release(&old);
    snapshot_release(&new);
    return result;
}
