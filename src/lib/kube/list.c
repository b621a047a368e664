/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/kube/pages.h"
#include "watch_private.h"

static int ask(void *ctx, const struct gs_kube_request *request, int *ret_status,
               struct gs_buf *body, struct gs_error *err)
{
    struct gs_watcher *watcher = ctx;
    return gs_call(watcher->client, watcher->runner.multi ? &watcher->runner : NULL, request,
                   ret_status, body, err);
}

static void count_passed_over(void *ctx, const struct gs_error *why)
{
    gs_client_broken(((struct gs_watcher *)ctx)->client, why);
}

int gs_watcher_prepare(struct gs_watcher *watcher, struct gs_error *err)
{
    const char *node = watcher->spec->node;
    const bool pods = watcher->spec->kind == GS_KIND_POD;
    _cleanup_(gs_buf_release) struct gs_buf selector = GS_BUF(1024);
    watcher->path = pods ? "/api/v1/pods" : "/api/v1/nodes";
    if (!node)
        return 0;
    /* Excludes finished pods, whose number has no limit. */
    gs_buf_printf(&selector,
                  pods ? "spec.nodeName=%s,status.phase!=Succeeded,status.phase!=Failed"
                       : "metadata.name=%s",
                  node);
    if (gs_buf_failed(&selector))
        return gs_fail_nomem(err);
    gs_buf_puts(&watcher->query, "fieldSelector=");
    gs_url_escape(&watcher->query, selector.data);
    return gs_buf_failed(&watcher->query) ? gs_fail_nomem(err) : 0;
}

void gs_watcher_release(struct gs_watcher *watcher)
{
    gs_pod_release(&watcher->pod);
    gs_node_release(&watcher->node);
    gs_buf_release(&watcher->lines.rest);
    gs_buf_release(&watcher->body);
    gs_buf_release(&watcher->query);
}

/* Only a watch's runner fetches ahead: its request can be woken, so stopping does not wait for it.
 */
int gs_watcher_list(struct gs_watcher *watcher, int (*begin)(void *ctx, struct gs_error *err),
                    int64_t page_timeout_ns, int64_t deadline_ns, char ret_rv[GS_RV_BYTES],
                    struct gs_error *err)
{
    const struct gs_kube_options *options = &watcher->client->options;
    const struct gs_pages pages = {
        .ask = ask,
        .ask_ctx = watcher,
        .path = watcher->path,
        .query = watcher->query.data,
        .page_limit = options->page_limit,
        .page_max_bytes = options->page_max_bytes,
        .object_max_bytes = options->object_max_bytes,
        .clock = options->clock,
        .deadline_ns = deadline_ns,
        .page_timeout_ns = page_timeout_ns,
        .ahead = watcher->runner.multi != NULL,
        .begin = begin,
        .item = gs_watcher_item,
        .passed_over = count_passed_over,
        .ctx = watcher,
    };
    return gs_pages_read(&pages, ret_rv, err);
}

int gs_op_list_pods(void *ctx, const char *node, int64_t timeout_ns,
                    int (*each)(void *each_ctx, const struct gs_pod *pod), void *each_ctx,
                    struct gs_error *err)
{
    struct gs_kube_client *client = ctx;
    const struct gs_watch_spec spec = {.kind = GS_KIND_POD, .node = node};
    const struct gs_watch_sink sink = {.pod = each, .ctx = each_ctx};
    struct gs_watcher watcher = GS_WATCHER(client, &spec, &sink);
    const int64_t deadline_ns = gs_clock_now_ns(client->options.clock) + timeout_ns;
    int result = gs_watcher_prepare(&watcher, err);
    if (result == 0)
        result = gs_watcher_list(&watcher, NULL, timeout_ns, deadline_ns, NULL, err);
    gs_watcher_release(&watcher);
    return result;
}
