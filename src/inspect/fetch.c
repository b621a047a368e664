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

static int on_item(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    struct list *list = ctx;
    const struct gs_names *names = &list->fetch->common->names;
    const struct gs_watch_sink *sink = list->sink;
    struct gs_error why = {0};
    const bool is_node = list->kind == GS_KIND_NODE;
    int result = is_node ? gs_codec_node_take(names, scan, &list->node, &why)
                         : gs_codec_pod_take(names, scan, &list->pod, &why);
    if (scan->failed)
        return 0; /* the list itself is broken, and says so */
    if (result < 0) {
        list->broken++;
        return why.code == GS_ENOMEM ? gs_fail_nomem(err) : 0;
    }
    if (is_node)
        calm_node(&list->node.arena, &list->node);
    else
        calm_pod(&list->pod.arena, &list->pod);
    if (is_meant(list))
        result = is_node ? sink->node(sink->ctx, &list->node) : sink->pod(sink->ctx, &list->pod);
    return result < 0 ? gs_fail_nomem(err) : 0;
}

static int begin(void *ctx, struct gs_error *err)
{
    struct list *list = ctx;
    list->broken = 0;
    return list->sink->list_begin(list->sink->ctx, list->kind) < 0 ? gs_fail_nomem(err) : 0;
}

static void put_selectors(const struct fetch *fetch, enum gs_kind kind, struct gs_buf *query)
{
    const bool of_nodes = kind == GS_KIND_NODE;
    if (of_nodes && fetch->selector) {
        gs_buf_puts(query, "labelSelector=");
        gs_url_escape(query, fetch->selector);
    }
    if (of_nodes && fetch->node)
        gs_buf_puts(query, query->len ? "&fieldSelector=metadata.name%3D"
                                      : "fieldSelector=metadata.name%3D");
    else if (!of_nodes)
        gs_buf_puts(query, "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed");
    if (!of_nodes && fetch->node)
        gs_buf_puts(query, "%2Cspec.nodeName%3D");
    if (fetch->node)
        gs_url_escape(query, fetch->node);
}

/* ns: of pods; NULL: all. */
static int fetch_list(const struct fetch *fetch, enum gs_kind kind, const char *ns,
                      const struct gs_watch_sink *sink, uint64_t *broken, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096), query = GS_BUF(16 << 10);
    struct list list = {.fetch = fetch, .sink = sink, .kind = kind};
    if (ns)
        source_pods(&path, ns, NULL);
    else
        gs_buf_puts(&path, kind == GS_KIND_NODE ? "/api/v1/nodes" : "/api/v1/pods");
    put_selectors(fetch, kind, &query);
    if (gs_buf_failed(&path) || gs_buf_failed(&query))
        return gs_fail(err, GS_EINVAL, "the namespace or selector is too long");
    const struct gs_pages pages = {.path = path.data,
                                   .query = query.data,
                                   .begin = begin,
                                   .item = on_item,
                                   .passed_over = pass_over,
                                   .ctx = &list};
    int result = source_list(&fetch->common->source, pages, err);
    if (result == 0 && sink->list_end && sink->list_end(sink->ctx, kind))
        result = gs_fail_nomem(err);
    *broken += list.broken;
    gs_pod_release(&list.pod);
    gs_node_release(&list.node);
    return result;
}

int fetch_pods(const struct fetch *fetch, const char *ns, const struct gs_watch_sink *sink,
               struct gs_error *err)
{
    uint64_t ignored = 0;
    return fetch_list(fetch, GS_KIND_POD, ns, sink, &ignored, err);
}

int fetch_cluster(const struct fetch *fetch, struct snapshot *ret, uint64_t *ret_broken,
                  struct gs_error *err)
{
    uint64_t broken = 0;
    if (snapshot_init(ret, err) < 0)
        return -1;
    ret->copies = fetch->copies;
    const struct gs_watch_sink sink = snapshot_sink(ret);
    if (fetch_list(fetch, GS_KIND_NODE, NULL, &sink, &broken, err) < 0 ||
        fetch_list(fetch, GS_KIND_POD, NULL, &sink, &broken, err) < 0)
        return -1;
    if (ret_broken)
        *ret_broken = broken;
    return 0;
}
