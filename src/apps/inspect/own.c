/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/own.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/utf8.h"
#include "gpushare/codec/pod.h"
#include "inspect/calm.h"
#include "inspect/grid.h"
#include "inspect/lookup.h"

/* ---- asking ---- */

static void release_pod(struct own_pod *pod)
{
    gs_pod_release(&pod->pod);
    free(pod->said);
    *pod = (struct own_pod){0};
}

void own_release(struct own *own)
{
    for (size_t i = 0; i < own->count; i++)
        release_pod(&own->pods[i]);
    free(own->pods);
    *own = (struct own){0};
}

static bool is_meant(const struct own_query *query, const struct gs_pod *pod)
{
    if (!gs_pod_wants_gpu(pod) || gs_pod_terminal(pod) || (query->waiting && pod->node_name[0]))
        return false;
    return !query->node || strcmp(query->node, pod->node_name) == 0;
}

static char *words_of(const struct gs_pod *pod, const json_t *item)
{
    const json_t *status = json_object_get(item, "status");
    const json_t *said = pod->node_name[0] ? NULL : lookup_condition(status, "PodScheduled");
    char *words = strdup(lookup_text(said, "message", NULL));
    if (words)
        gs_utf8_calm(words);
    return words;
}

/* One that cannot be read is passed over, as in any list. */
static int take(const struct own_query *query, const json_t *item, struct own *own,
                struct gs_error *err)
{
    struct gs_error ignored = {0};
    struct own_pod pod = {0};
    _cleanup_free_ char *text = json_dumps(item, JSON_COMPACT);
    if (!text)
        return gs_fail_nomem(err);
    if (gs_codec_pod(&query->common->names, gs_slice_of(text), &pod.pod, &ignored) < 0 ||
        !is_meant(query, &pod.pod)) {
        release_pod(&pod);
        return 0;
    }
    calm_pod(&pod.pod.arena, &pod.pod);
    if (own->count == OWN_PODS_MAX) {
        own->left_out++;
        release_pod(&pod);
        return 0;
    }
    struct own_pod *more = realloc(own->pods, (own->count + 1) * sizeof(*own->pods));
    own->pods = more ? more : own->pods;
    pod.said = words_of(&pod.pod, item);
    if (!more || !pod.said) {
        release_pod(&pod);
        return gs_fail_nomem(err);
    }
    own->pods[own->count++] = pod;
    return 0;
}

struct taking {
    const struct own_query *query;
    struct own *own;
};

static int take_item(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    struct taking *taking = ctx;
    json_auto_t *item = lookup_item(scan, err);
    return item ? take(taking->query, item, taking->own, err) : -!scan->failed;
}

static int take_list(const struct own_query *query, struct own *own, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    struct taking taking = {query, own};
    if (own->ns[0])
        source_pods(&path, own->ns, NULL);
    else
        gs_buf_puts(&path, "/api/v1/pods");
    if (gs_buf_failed(&path))
        return gs_fail_nomem(err);
    const struct gs_pages pages = {.path = path.data, .item = take_item, .ctx = &taking};
    return source_list(&query->common->source, pages, err);
}

static int by_name(const void *left, const void *right)
{
    const struct gs_pod *a = &((const struct own_pod *)left)->pod;
    const struct gs_pod *b = &((const struct own_pod *)right)->pod;
    int order = strcmp(a->ns, b->ns);
    return order ? order : strverscmp(a->name, b->name);
}

int own_fetch(const struct own_query *query, struct own *ret, struct gs_error *err)
{
    struct gs_error denied = {0};
    *ret = (struct own){0};
    snprintf(ret->ns, sizeof(ret->ns), "%s", query->ns ? query->ns : "");
    int result = take_list(query, ret, &denied);
    if (result < 0 && denied.code == GS_EDENIED && !query->ns) {
        own_release(ret);
        gs_error_clear(&denied);
        snprintf(ret->ns, sizeof(ret->ns), "%s", query->common->source.ns);
        result = take_list(query, ret, &denied);
    }
    if (result < 0)
        return gs_fail(err, denied.code, "%s", denied.msg);
    if (ret->count)
        qsort(ret->pods, ret->count, sizeof(*ret->pods), by_name);
    return 0;
}

/* ---- telling ---- */

void own_note(const struct own *own, char to[OWN_TEXT_BYTES])
{
    static const char *const rest = "; what is free, and what others use, is not known so "
                                    "(docs/cli.md, Rights)";
    if (own->ns[0])
        snprintf(to, OWN_TEXT_BYTES,
                 "this account may not list nodes and everybody's pods: here are those of "
                 "namespace %s%s",
                 own->ns, rest);
    else
        snprintf(to, OWN_TEXT_BYTES, "this account may not list nodes: here are the pods alone%s",
                 rest);
}

void own_row(const struct own_pod *pod, int64_t now_s, struct own_row *ret)
{
    waits_asks(&pod->pod, ret->asks);
    waits_since(pod->pod.created_s, now_s, ret->since);
    if (!gs_codec_idx_format(gs_pod_recorded(&pod->pod), ret->gpus)[0])
        snprintf(ret->gpus, sizeof(ret->gpus), "-");
}

static void put_row(struct grid *grid, const struct own_pod *own, int64_t now_s, bool words)
{
    const struct gs_pod *pod = &own->pod;
    struct own_row row;
    own_row(own, now_s, &row);
    grid_row(grid);
    grid_cell(grid, GRID_PLAIN, "%s", pod->ns);
    grid_cell(grid, GRID_PLAIN, "%s", pod->name);
    grid_cell(grid, GRID_PLAIN, "%s", row.asks);
    grid_cell(grid, GRID_PLAIN, "%s", row.since);
    grid_cell(grid, GRID_PLAIN, "%s", pod->node_name[0] ? pod->node_name : "-");
    grid_cell(grid, GRID_PLAIN, "%s", row.gpus);
    if (words)
        grid_cell(grid, GRID_PLAIN, "%s", own->said);
}

static bool has_words(const struct own *own)
{
    for (size_t i = 0; i < own->count; i++) {
        if (own->pods[i].said[0])
            return true;
    }
    return false;
}

/* The table on standard output, the note on standard error. -1: it cannot be written. */
static int print_own(const struct own *own, const struct common *common)
{
    struct grid grid;
    char note[OWN_TEXT_BYTES];
    bool words = has_words(own);
    own_note(own, note);
    fprintf(stderr, PROGRAM ": %s\n", note);
    if (!own->count) {
        fputs("No such pod has GPU memory.\n", stderr);
        return 0;
    }
    grid_open(&grid, common->app->terminal.colour);
    grid_column(&grid, false, "NAMESPACE");
    grid_column(&grid, false, "POD");
    grid_column(&grid, true, "ASKS");
    grid_column(&grid, true, "SINCE");
    grid_column(&grid, false, "NODE");
    grid_column(&grid, false, "GPU");
    if (words)
        grid_column(&grid, false, "KUBE-SCHEDULER SAID");
    for (size_t i = 0; i < own->count; i++)
        put_row(&grid, &own->pods[i], common_now_s(common), words);
    _cleanup_free_ char *text = grid_text(&grid);
    grid_close(&grid);
    if (text)
        fputs(text, stdout);
    if (own->left_out)
        printf("and %zu more\n", own->left_out);
    return text && fflush(stdout) == 0 ? 0 : -1;
}

int own_instead(const struct own_query *query, struct gs_error *err)
{
    struct own own;
    struct gs_error why = {0};
    if (err->code != GS_EDENIED)
        return -1;
    int result = own_fetch(query, &own, &why);
    if (result == 0) {
        gs_error_clear(err);
        result = print_own(&own, query->common) < 0 ? fail_output(err) : 0;
    }
    own_release(&own);
    return result;
}
