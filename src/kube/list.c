/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "client_private.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"

/* How often one list may begin anew because the server forgot its continue token. */
enum { RESTARTS_MAX = 5 };

/* A page that is too large is asked for in so much smaller ones. */
enum { SHRINK = 8 };

/* A list in progress. */
struct pages {
    struct gs_kube_client *client;
    struct gs_runner *runner;
    const struct gs_listing *listing;
    struct gs_buf body; /* one page, its memory serves all */
    struct gs_list_meta meta;
    uint32_t limit;
    uint32_t restarts;
    struct gs_error *err;
};

static int on_item(void *ctx, struct gs_scan *scan)
{
    struct pages *pages = ctx;
    return pages->listing->item(pages->listing->ctx, scan, pages->err);
}

static void build_query(const struct pages *pages, struct gs_buf *query)
{
    gs_buf_printf(query, "limit=%u", pages->limit);
    if (pages->meta.continue_token[0]) {
        gs_buf_puts(query, "&continue=");
        gs_url_escape(query, pages->meta.continue_token);
    }
    if (pages->listing->field_selector) {
        gs_buf_puts(query, "&fieldSelector=");
        gs_url_escape(query, pages->listing->field_selector);
    }
}

/* The pages so far are void. */
static int begin_anew(struct pages *pages)
{
    const struct gs_listing *listing = pages->listing;
    if (!listing->begin || pages->restarts++ >= RESTARTS_MAX)
        return gs_fail(pages->err, GS_EGONE, "the server lost the list in its middle");
    pages->meta.continue_token[0] = '\0';
    return listing->begin(listing->ctx, pages->err);
}

static int fetch(struct pages *pages, int *ret_status, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf query = GS_BUF(64 << 10);
    build_query(pages, &query);
    if (gs_buf_failed(&query))
        return gs_fail_nomem(err);
    int64_t left_ns = pages->listing->deadline_ns - gs_clock_now_ns(pages->client->options.clock);
    struct gs_kube_request request = {
        .method = "GET",
        .path = pages->listing->path,
        .query = query.data,
        .timeout_ns = pages->listing->page_timeout_ns,
    };
    if (left_ns <= 0)
        return gs_fail(err, GS_ETIMEOUT, "%s: the list took too long",
                       pages->client->config.server);
    if (request.timeout_ns > left_ns)
        request.timeout_ns = left_ns;
    return gs_call(pages->client, pages->runner, &request, ret_status, &pages->body, err);
}

/* One page. *ret_done: it was the last. */
static int next_page(struct pages *pages, bool *ret_done)
{
    struct gs_error why = {0};
    int status;
    if (fetch(pages, &status, &why) < 0) {
        if (why.code != GS_ETOOBIG || pages->limit == 1)
            return gs_fail(pages->err, why.code, "%s", why.msg);
        pages->limit = pages->limit > SHRINK ? pages->limit / SHRINK : 1;
        return 0;
    }
    if (status == 410 && pages->meta.continue_token[0])
        return begin_anew(pages);
    const char *text = pages->body.data ? pages->body.data : "";
    if (status != 200)
        return gs_kube_fail_status(status, text, pages->body.len, pages->err);
    if (gs_codec_list_items((struct gs_slice){text, pages->body.len}, on_item, pages, &pages->meta,
                            pages->err) < 0)
        return -1;
    GS_COUNT(pages->client, pages, 1);
    *ret_done = pages->meta.continue_token[0] == '\0';
    return 0;
}

int gs_list_pages(struct gs_kube_client *client, struct gs_runner *runner,
                  const struct gs_listing *listing, char ret_rv[GS_RV_BYTES], struct gs_error *err)
{
    struct gs_error failure = {0};
    struct pages pages = {
        .client = client,
        .runner = runner,
        .listing = listing,
        .body = GS_BUF(client->options.body_max_bytes),
        .limit = client->options.page_limit,
        .err = &failure,
    };
    int result = listing->begin ? listing->begin(listing->ctx, &failure) : 0;
    for (bool done = false; result == 0 && !done;)
        result = next_page(&pages, &done);
    gs_buf_release(&pages.body);
    if (result < 0)
        return gs_fail(err, failure.code, "%s", failure.msg);
    memcpy(ret_rv, pages.meta.resource_version, GS_RV_BYTES);
    return 0;
}

/* What list_pods and list_nodes hand on. */
struct receiver {
    struct gs_kube_client *client;
    int (*each_pod)(void *ctx, const struct gs_pod *pod);
    int (*each_node)(void *ctx, const struct gs_node *node);
    void *each_ctx;
    struct gs_pod pod;
    struct gs_node node;
};

static int on_object(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    struct receiver *receiver = ctx;
    const struct gs_names *names = receiver->client->options.names;
    struct gs_error why = {0};
    int result = receiver->each_pod ? gs_codec_pod_take(names, scan, &receiver->pod, &why)
                                    : gs_codec_node_take(names, scan, &receiver->node, &why);
    if (result < 0 && why.code == GS_ENOMEM)
        return gs_fail_nomem(err);
    if (scan->failed)
        return 0; /* the list itself is broken, and says so */
    if (result < 0) {
        gs_client_broken(receiver->client, &why);
        return 0;
    }
    result = receiver->each_pod ? receiver->each_pod(receiver->each_ctx, &receiver->pod)
                                : receiver->each_node(receiver->each_ctx, &receiver->node);
    return result < 0 ? gs_fail(err, GS_ECANCELED, "the receiver of the list ended it") : 0;
}

static int list(struct receiver *receiver, const char *path, const char *selector,
                int64_t timeout_ns, struct gs_error *err)
{
    char rv[GS_RV_BYTES];
    struct gs_kube_client *client = receiver->client;
    struct gs_listing listing = {
        .path = path,
        .field_selector = selector,
        .page_timeout_ns = timeout_ns,
        .deadline_ns = gs_clock_now_ns(client->options.clock) + timeout_ns,
        .item = on_object,
        .ctx = receiver,
    };
    int result = gs_list_pages(client, NULL, &listing, rv, err);
    gs_pod_release(&receiver->pod);
    gs_node_release(&receiver->node);
    return result;
}

int gs_op_list_pods(void *ctx, const char *node, int64_t timeout_ns,
                    int (*each)(void *each_ctx, const struct gs_pod *pod), void *each_ctx,
                    struct gs_error *err)
{
    struct receiver receiver = {.client = ctx, .each_pod = each, .each_ctx = each_ctx};
    _cleanup_(gs_buf_release) struct gs_buf selector = GS_BUF(1024);
    if (node)
        gs_buf_printf(&selector, "spec.nodeName=%s", node);
    if (gs_buf_failed(&selector))
        return gs_fail(err, GS_EINVAL, "the node's name is too long");
    return list(&receiver, "/api/v1/pods", selector.data, timeout_ns, err);
}

int gs_op_list_nodes(void *ctx, int64_t timeout_ns,
                     int (*each)(void *each_ctx, const struct gs_node *node), void *each_ctx,
                     struct gs_error *err)
{
    struct receiver receiver = {.client = ctx, .each_node = each, .each_ctx = each_ctx};
    return list(&receiver, "/api/v1/nodes", NULL, timeout_ns, err);
}
