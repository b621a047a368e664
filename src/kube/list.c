/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "client_private.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "gpushare/kube/pages.h"

/* A list of the client's: who asks, and whose items these are. */
struct asker {
    struct gs_kube_client *client;
    struct gs_runner *runner;
    const struct gs_listing *listing;
};

static int ask(void *ctx, const struct gs_kube_request *request, int *ret_status,
               struct gs_buf *body, struct gs_error *err)
{
    struct asker *asker = ctx;
    return gs_call(asker->client, asker->runner, request, ret_status, body, err);
}

static int begin_list(void *ctx, struct gs_error *err)
{
    const struct gs_listing *listing = ((struct asker *)ctx)->listing;
    return listing->begin(listing->ctx, err);
}

static int take_item(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    const struct gs_listing *listing = ((struct asker *)ctx)->listing;
    return listing->item(listing->ctx, scan, err);
}

static void count_page(void *ctx, const struct gs_list_meta *meta)
{
    GS_COUNT(((struct asker *)ctx)->client, pages, 1);
}

/* Only the runner of a watch can be woken while it fetches, so that stopping waits for nothing:
 * other lists do not fetch ahead. */
int gs_list_pages(struct gs_kube_client *client, struct gs_runner *runner,
                  const struct gs_listing *listing, char ret_rv[GS_RV_BYTES], struct gs_error *err)
{
    struct asker asker = {client, runner, listing};
    _cleanup_(gs_buf_release) struct gs_buf query = GS_BUF(16 << 10);
    if (listing->field_selector) {
        gs_buf_puts(&query, "fieldSelector=");
        gs_url_escape(&query, listing->field_selector);
    }
    if (gs_buf_failed(&query))
        return gs_fail_nomem(err);
    const struct gs_pages pages = {
        .ask = ask,
        .ask_ctx = &asker,
        .path = listing->path,
        .query = query.data,
        .page_limit = client->options.page_limit,
        .body_max_bytes = client->options.body_max_bytes,
        .clock = client->options.clock,
        .deadline_ns = listing->deadline_ns,
        .page_timeout_ns = listing->page_timeout_ns,
        .ahead = runner != NULL,
        .begin = listing->begin ? begin_list : NULL,
        .item = take_item,
        .page = count_page,
        .ctx = &asker,
    };
    return gs_pages_read(&pages, ret_rv, err);
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
    struct gs_kube_client *client = receiver->client;
    const struct gs_listing listing = {
        .path = path,
        .field_selector = selector,
        .page_timeout_ns = timeout_ns,
        .deadline_ns = gs_clock_now_ns(client->options.clock) + timeout_ns,
        .item = on_object,
        .ctx = receiver,
    };
    int result = gs_list_pages(client, NULL, &listing, NULL, err);
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
