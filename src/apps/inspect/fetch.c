/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/fetch.h"

#include <string.h>

#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "inspect/calm.h"
#include "inspect/terminal.h"

/* One list in progress. */
struct list {
    const struct fetch *fetch;
    const struct gs_watch_sink *sink;
    enum gs_kind kind;
    const char *path;
    struct gs_buf selectors; /* "fieldSelector=…", encoded */
    struct gs_pod pod;
    struct gs_node node;
    uint64_t broken;
};

static void pass_over(void *ctx, const struct gs_error *why)
{
    ((struct list *)ctx)->broken++;
}

/* A file knows no selector and answers with all. */
static bool is_meant(const struct list *list)
{
    const struct fetch *fetch = list->fetch;
    const char *of = list->kind == GS_KIND_NODE ? list->node.name : list->pod.node_name;
    return !fetch->node || fetch->common->source.kube.ops || strcmp(of, fetch->node) == 0;
}

static int deliver(const struct list *list, const struct gs_watch_sink *sink)
{
    if (list->kind == GS_KIND_NODE)
        return sink->node ? sink->node(sink->ctx, &list->node) : 0;
    return sink->pod(sink->ctx, &list->pod);
}

static int on_item(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    struct list *list = ctx;
    const struct gs_names *names = &list->fetch->common->names;
    struct gs_error why = {0};
    bool is_node = list->kind == GS_KIND_NODE;
    int result = is_node ? gs_codec_node_take(names, scan, &list->node, &why)
                         : gs_codec_pod_take(names, scan, &list->pod, &why);
    if (scan->failed)
        return 0; /* the list itself is broken, and says so */
    if (result < 0 && why.code != GS_ENOMEM) {
        list->broken++;
        return 0;
    }
    if (result == 0 && is_node)
        calm_node(&list->node.arena, &list->node);
    else if (result == 0)
        calm_pod(&list->pod.arena, &list->pod);
    if (result == 0 && !is_meant(list))
        return 0;
    if (result == 0 && list->fetch->first)
        result = deliver(list, list->fetch->first);
    if (result == 0)
        result = deliver(list, list->sink);
    return result < 0 ? gs_fail_nomem(err) : 0;
}

static int begin(void *ctx, struct gs_error *err)
{
    struct list *list = ctx;
    const struct gs_watch_sink *first = list->fetch->first;
    list->broken = 0;
    if (first && first->list_begin(first->ctx, list->kind) < 0)
        return gs_fail_nomem(err);
    return list->sink->list_begin(list->sink->ctx, list->kind) < 0 ? gs_fail_nomem(err) : 0;
}

static void add_selector(struct gs_buf *query, const char *name, const char *value)
{
    gs_buf_printf(query, "%s%s=", query->len ? "&" : "", name);
    gs_url_escape(query, value);
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

static int run(struct list *list, struct gs_error *err)
{
    if (list->kind == GS_KIND_NODE)
        select_nodes(list);
    else
        select_pods(list);
    if (gs_buf_failed(&list->selectors))
        return gs_fail(err, GS_EINVAL, "the selector is too long");
    const struct gs_pages pages = {.path = list->path,
                                   .query = list->selectors.data,
                                   .begin = begin,
                                   .item = on_item,
                                   .passed_over = pass_over,
                                   .ctx = list};
    int result = source_list(&list->fetch->common->source, pages, err);
    if (result == 0 && list->sink->list_end && list->sink->list_end(list->sink->ctx, list->kind))
        result = gs_fail_nomem(err);
    return result;
}

static int fetch_path(const struct fetch *fetch, enum gs_kind kind, const char *path,
                      const struct gs_watch_sink *sink, uint64_t *broken, struct gs_error *err)
{
    struct list list = {
        .fetch = fetch,
        .sink = sink,
        .kind = kind,
        .path = path,
        .selectors = GS_BUF(16 << 10),
    };
    int result = run(&list, err);
    *broken += list.broken;
    gs_buf_release(&list.selectors);
    gs_pod_release(&list.pod);
    gs_node_release(&list.node);
    return result;
}

static int fetch_kind(const struct fetch *fetch, enum gs_kind kind,
                      const struct gs_watch_sink *sink, uint64_t *broken, struct gs_error *err)
{
    return fetch_path(fetch, kind, kind == GS_KIND_NODE ? "/api/v1/nodes" : "/api/v1/pods", sink,
                      broken, err);
}

int fetch_pods(const struct fetch *fetch, const char *ns, const struct gs_watch_sink *sink,
               struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    uint64_t broken = 0;
    if (!ns)
        return fetch_kind(fetch, GS_KIND_POD, sink, &broken, err);
    source_pods(&path, ns, NULL);
    return gs_buf_failed(&path) ? gs_fail(err, GS_EINVAL, "the namespace name is too long")
                                : fetch_path(fetch, GS_KIND_POD, path.data, sink, &broken, err);
}

int fetch_cluster(const struct fetch *fetch, struct snapshot *ret, uint64_t *ret_broken,
                  struct gs_error *err)
{
    uint64_t broken = 0;
    if (snapshot_init(ret, err) < 0)
        return -1;
    ret->keeps_since = fetch->keeps_since;
    const struct gs_watch_sink sink = snapshot_sink(ret);
    if (fetch_kind(fetch, GS_KIND_NODE, &sink, &broken, err) < 0 ||
        fetch_kind(fetch, GS_KIND_POD, &sink, &broken, err) < 0)
        return -1;
    if (ret_broken)
        *ret_broken = broken;
    return 0;
}
