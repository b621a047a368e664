/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/fetch.h"

#include <string.h>

#include "gpushare/codec/list.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "inspect/calm.h"
#include "inspect/terminal.h"

/* A page of 500 pods is a few megabytes. One that is too large is asked for in smaller ones; a list
 * whose continue token the server forgot begins anew, so often. */
enum { PAGE_LIMIT = 500, SHRINK = 8, RESTARTS_MAX = 5 };

/* One list in progress. */
struct list {
    const struct fetch *fetch;
    const struct gs_watch_sink *sink;
    enum gs_kind kind;
    const char *path;
    struct gs_buf selectors; /* "&fieldSelector=…", encoded */
    struct gs_buf body;
    struct gs_list_meta meta;
    struct gs_pod pod;
    struct gs_node node;
    uint32_t limit;
    uint32_t restarts;
    uint64_t seen;
    uint64_t broken;
    struct progress progress;
    struct gs_error *err;
};

static void tell(struct list *list)
{
    int64_t left = list->meta.remaining;
    progress_tell(&list->progress, list->seen, left > 0 ? list->seen + (uint64_t)left : 0,
                  list->kind == GS_KIND_NODE ? "nodes" : "pods");
}

static int on_item(void *ctx, struct gs_scan *scan)
{
    struct list *list = ctx;
    const struct gs_names *names = list->fetch->names;
    struct gs_error why = {0};
    bool is_node = list->kind == GS_KIND_NODE;
    int result = is_node ? gs_codec_node_take(names, scan, &list->node, &why)
                         : gs_codec_pod_take(names, scan, &list->pod, &why);
    if (scan->failed)
        return 0; /* the list itself is broken, and says so */
    list->seen++;
    if (result < 0 && why.code != GS_ENOMEM) {
        list->broken++;
        return 0;
    }
    if (result == 0 && is_node) {
        calm_node(&list->node.arena, &list->node);
        result = list->sink->node(list->sink->ctx, &list->node);
    } else if (result == 0) {
        calm_pod(&list->pod.arena, &list->pod);
        result = list->sink->pod(list->sink->ctx, &list->pod);
    }
    return result < 0 ? gs_fail_nomem(list->err) : 0;
}

static int begin(struct list *list)
{
    list->meta.continue_token[0] = '\0';
    list->seen = list->broken = 0;
    if (list->sink->list_begin(list->sink->ctx, list->kind) < 0)
        return gs_fail_nomem(list->err);
    return 0;
}

static int get_page(struct list *list, struct gs_error *why)
{
    _cleanup_(gs_buf_release) struct gs_buf query = GS_BUF(64 << 10);
    gs_buf_printf(&query, "limit=%u", list->limit);
    if (list->selectors.len)
        gs_buf_puts(&query, list->selectors.data);
    if (list->meta.continue_token[0]) {
        gs_buf_puts(&query, "&continue=");
        source_escape(&query, list->meta.continue_token);
    }
    if (gs_buf_failed(&query))
        return gs_fail(why, GS_EINVAL, "the selector is too long");
    return source_get(list->fetch->source, list->path, query.data, &list->body, why);
}

static int next_page(struct list *list, bool *ret_done)
{
    struct gs_error why = {0};
    if (get_page(list, &why) < 0) {
        if (why.code == GS_ETOOBIG && list->limit > 1) {
            list->limit = list->limit > SHRINK ? list->limit / SHRINK : 1;
            return 0;
        }
        if (why.code == GS_EGONE && list->meta.continue_token[0] && list->restarts++ < RESTARTS_MAX)
            return begin(list);
        return gs_fail(list->err, why.code, "%s", why.msg);
    }
    if (gs_codec_list_items((struct gs_slice){list->body.data, list->body.len}, on_item, list,
                            &list->meta, list->err) < 0)
        return -1;
    *ret_done = list->meta.continue_token[0] == '\0';
    tell(list);
    return 0;
}

static void add_selector(struct gs_buf *query, const char *name, const char *value)
{
    gs_buf_printf(query, "&%s=", name);
    source_escape(query, value);
}

static void select_nodes(struct list *list)
{
    const struct fetch *fetch = list->fetch;
    _cleanup_(gs_buf_release) struct gs_buf field = GS_BUF(4096);
    gs_buf_puts(&field, "metadata.name=");
    if (fetch->selector)
        add_selector(&list->selectors, "labelSelector", fetch->selector);
    if (!fetch->node)
        return;
    gs_buf_puts(&field, fetch->node);
    add_selector(&list->selectors, "fieldSelector", gs_buf_failed(&field) ? "" : field.data);
}

static void select_pods(struct list *list)
{
    _cleanup_(gs_buf_release) struct gs_buf field = GS_BUF(4096);
    gs_buf_puts(&field, "status.phase!=Succeeded,status.phase!=Failed");
    if (list->fetch->node)
        gs_buf_printf(&field, ",spec.nodeName=%s", list->fetch->node);
    add_selector(&list->selectors, "fieldSelector", gs_buf_failed(&field) ? "" : field.data);
}

static int run(struct list *list, uint64_t *broken)
{
    bool done = false;
    if (list->kind == GS_KIND_NODE)
        select_nodes(list);
    else
        select_pods(list);
    if (gs_buf_failed(&list->selectors))
        return gs_fail(list->err, GS_EINVAL, "the selector is too long");
    int result = begin(list);
    while (result == 0 && !done)
        result = next_page(list, &done);
    if (result == 0 && list->sink->list_end(list->sink->ctx, list->kind) < 0)
        result = gs_fail_nomem(list->err);
    progress_end(&list->progress);
    *broken += list->broken;
    return result;
}

static int fetch_kind(const struct fetch *fetch, enum gs_kind kind,
                      const struct gs_watch_sink *sink, uint64_t *broken, struct gs_error *err)
{
    struct gs_error own = {0};
    struct list list = {
        .fetch = fetch,
        .sink = sink,
        .kind = kind,
        .path = kind == GS_KIND_NODE ? "/api/v1/nodes" : "/api/v1/pods",
        .selectors = GS_BUF(16 << 10),
        .body = GS_BUF(SOURCE_BODY_MAX),
        .limit = PAGE_LIMIT,
        .err = &own,
    };
    progress_begin(&list.progress, fetch->progress);
    int result = run(&list, broken);
    gs_buf_release(&list.selectors);
    gs_buf_release(&list.body);
    gs_pod_release(&list.pod);
    gs_node_release(&list.node);
    return result < 0 ? gs_fail(err, own.code, "%s", own.msg) : 0;
}

int fetch_cluster(const struct fetch *fetch, const struct gs_watch_sink *sink, uint64_t *ret_broken,
                  struct gs_error *err)
{
    uint64_t broken = 0;
    if (fetch_kind(fetch, GS_KIND_NODE, sink, &broken, err) < 0 ||
        fetch_kind(fetch, GS_KIND_POD, sink, &broken, err) < 0)
        return -1;
    if (ret_broken)
        *ret_broken = broken;
    return 0;
}

/* ---- which nodes a selector means ---- */

static int select_one(void *ctx, const struct gs_node *node)
{
    struct snap_node *known = snapshot_node(ctx, node->name);
    if (known)
        known->selected = true;
    return 0;
}

static int select_begin(void *ctx, enum gs_kind kind)
{
    struct snapshot *snapshot = ctx;
    for (struct snap_node *node = snapshot->nodes; node; node = node->hh.next)
        node->selected = false;
    return 0;
}

static int select_end(void *ctx, enum gs_kind kind)
{
    return 0;
}

int fetch_selected(const struct fetch *fetch, struct snapshot *snapshot, struct gs_error *err)
{
    const struct gs_watch_sink sink = {
        .ctx = snapshot, .list_begin = select_begin, .list_end = select_end, .node = select_one};
    uint64_t broken = 0;
    return fetch_kind(fetch, GS_KIND_NODE, &sink, &broken, err);
}
