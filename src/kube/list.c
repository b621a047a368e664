/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <string.h>

#include "client_private.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"

/* How often one list may begin anew because the server forgot its continue token. */
enum { RESTARTS_MAX = 5 };

/* A page that is too large is asked for in so much smaller ones. */
enum { SHRINK = 8 };

/* Later pages hold as many objects as weigh this much, at most GROW times as many as the first: few
 * requests where objects are small, little memory where they are large. */
enum { PAGE_BYTES = 2 << 20, GROW = 8 };

/* One page: what it is asked for with, and what came. */
struct page {
    struct pages *pages;
    char token[GS_CONTINUE_BYTES]; /* "": the first */
    uint32_t limit;
    struct gs_buf body; /* its memory serves every other page */
    int result, status;
    struct gs_error why;
};

/* A list in progress: while one page is read, the next is on its way. */
struct pages {
    struct gs_kube_client *client;
    struct gs_runner *runner;
    const struct gs_listing *listing;
    struct page page[2];
    uint32_t turn; /* which of them is to be read */
    bool ahead;    /* it is being fetched by `fetcher` */
    pthread_t fetcher;
    struct gs_list_meta meta;
    uint32_t limit;
    uint32_t restarts;
    uint64_t items; /* of the page being read */
    struct gs_error *err;
};

static int on_item(void *ctx, struct gs_scan *scan)
{
    struct pages *pages = ctx;
    pages->items++;
    return pages->listing->item(pages->listing->ctx, scan, pages->err);
}

static void build_query(const struct page *page, struct gs_buf *query)
{
    const char *selector = page->pages->listing->field_selector;
    gs_buf_printf(query, "limit=%u", page->limit);
    if (page->token[0]) {
        gs_buf_puts(query, "&continue=");
        gs_url_escape(query, page->token);
    }
    if (selector) {
        gs_buf_puts(query, "&fieldSelector=");
        gs_url_escape(query, selector);
    }
}

static int fetch(struct page *page, struct gs_error *err)
{
    const struct pages *pages = page->pages;
    _cleanup_(gs_buf_release) struct gs_buf query = GS_BUF(64 << 10);
    build_query(page, &query);
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
    return gs_call(pages->client, pages->runner, &request, &page->status, &page->body, err);
}

static void *run_fetch(void *arg)
{
    struct page *page = arg;
    gs_error_clear(&page->why);
    page->result = fetch(page, &page->why);
    return NULL;
}

/* The page whose turn it is, fetched. */
static struct page *await_page(struct pages *pages)
{
    struct page *page = &pages->page[pages->turn];
    if (pages->ahead)
        pthread_join(pages->fetcher, NULL);
    else
        run_fetch(page);
    pages->ahead = false;
    return page;
}

static void aim(struct page *page, const char *token, uint32_t limit)
{
    memcpy(page->token, token, sizeof(page->token));
    page->limit = limit;
}

/*
 * API servers tell the next page's token before the items. Only for watches, whose runner can be
 * woken while it fetches, so that stopping waits for nothing; other lists go in turn, and so does
 * one that gets no thread.
 */
static void fetch_ahead(struct pages *pages, const struct page *page)
{
    struct gs_list_meta head;
    if (!pages->runner ||
        !gs_codec_list_head((struct gs_slice){page->body.data, page->body.len}, &head) ||
        !head.continue_token[0])
        return;
    struct page *next = &pages->page[pages->turn ^ 1];
    aim(next, head.continue_token, pages->limit);
    pages->ahead = pthread_create(&pages->fetcher, NULL, run_fetch, next) == 0;
}

/* The pages so far are void. */
static int begin_anew(struct pages *pages)
{
    const struct gs_listing *listing = pages->listing;
    if (!listing->begin || pages->restarts++ >= RESTARTS_MAX)
        return gs_fail(pages->err, GS_EGONE, "the server lost the list in its middle");
    pages->page[pages->turn].token[0] = '\0';
    return listing->begin(listing->ctx, pages->err);
}

static void choose_limit(struct pages *pages, size_t bytes)
{
    const uint64_t most = (uint64_t)pages->client->options.page_limit * GROW;
    if (pages->items == 0)
        return;
    uint64_t limit = PAGE_BYTES * pages->items / bytes;
    limit = limit < 1 ? 1 : limit > most ? most : limit;
    pages->limit = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
}

/* Reads it, and says which is next. *ret_done: it was the last. */
static int read_page(struct pages *pages, const struct page *page, bool *ret_done)
{
    const struct gs_slice text = {page->body.data ? page->body.data : "", page->body.len};
    fetch_ahead(pages, page);
    pages->items = 0;
    if (gs_codec_list_items(text, on_item, pages, &pages->meta, pages->err) < 0)
        return -1;
    GS_COUNT(pages->client, pages, 1);
    choose_limit(pages, page->body.len);
    pages->turn ^= 1;
    *ret_done = pages->meta.continue_token[0] == '\0';
    if (!pages->ahead)
        aim(&pages->page[pages->turn], pages->meta.continue_token, pages->limit);
    return 0;
}

static int next_page(struct pages *pages, bool *ret_done)
{
    struct page *page = await_page(pages);
    if (page->result < 0) {
        if (page->why.code != GS_ETOOBIG || page->limit == 1)
            return gs_fail(pages->err, page->why.code, "%s", page->why.msg);
        pages->limit = page->limit > SHRINK ? page->limit / SHRINK : 1;
        page->limit = pages->limit;
        return 0;
    }
    if (page->status == 410 && page->token[0])
        return begin_anew(pages);
    if (page->status != 200)
        return gs_kube_fail_status(page->status, page->body.data ? page->body.data : "",
                                   page->body.len, pages->err);
    return read_page(pages, page, ret_done);
}

int gs_list_pages(struct gs_kube_client *client, struct gs_runner *runner,
                  const struct gs_listing *listing, char ret_rv[GS_RV_BYTES], struct gs_error *err)
{
    struct gs_error failure = {0};
    struct pages pages = {
        .client = client,
        .runner = runner,
        .listing = listing,
        .limit = client->options.page_limit,
        .err = &failure,
    };
    for (int i = 0; i < 2; i++)
        pages.page[i] = (struct page){.pages = &pages,
                                      .limit = client->options.page_limit,
                                      .body = GS_BUF(client->options.body_max_bytes)};
    int result = listing->begin ? listing->begin(listing->ctx, &failure) : 0;
    for (bool done = false; result == 0 && !done;)
        result = next_page(&pages, &done);
    if (pages.ahead)
        await_page(&pages);
    gs_buf_release(&pages.page[0].body);
    gs_buf_release(&pages.page[1].body);
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
