/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/kube/pages.h"

#include <pthread.h>
#include <string.h>

/* How often a list may restart because its continue token expired. */
enum { RESTARTS_MAX = 5 };

/* A page that is too large is requested again with this part of its size. */
enum { SHRINK = 8 };

/* Later pages have as many objects as fit into this many bytes, at most GROW times the first
 * page's: few requests for small objects, little memory for large ones. */
enum { PAGE_BYTES = 2 << 20, GROW = 8 };

/* A list fails beyond this many objects, several times the largest clusters' number. A page counts
 * as PAGE_WEIGHT objects, so that empty pages end, too. */
enum { LIST_MAX = 1000000, PAGE_WEIGHT = 20 };

/* A page: its request and its content. */
struct page {
    struct pages *pages;
    char token[GS_CONTINUE_BYTES]; /* "": the first */
    uint32_t limit;
    struct gs_buf body;
    int result, status;
    struct gs_error why;
};

/* A list in progress. Two pages' bodies are kept only where the next is on its way (`ahead`) while
 * one is read; else one body's memory serves them all. */
struct pages {
    const struct gs_pages *of;
    struct page page[2];
    uint32_t turn; /* index of the page to read next */
    bool ahead;    /* `fetcher` is fetching it */
    pthread_t fetcher;
    struct gs_list_meta meta;
    bool done; /* the last page was read */
    uint32_t limit;
    uint32_t restarts;
    uint64_t items; /* of the page being read */
    uint64_t weight;
    struct gs_error *err;
};

static int on_item(void *ctx, struct gs_scan *scan)
{
    struct pages *pages = ctx;
    pages->items++;
    return pages->of->item(pages->of->ctx, scan, pages->err);
}

static int fetch(struct page *page, struct gs_error *err)
{
    const struct gs_pages *of = page->pages->of;
    _cleanup_(gs_buf_release) struct gs_buf query = GS_BUF(64 << 10);
    gs_buf_printf(&query, "limit=%u", page->limit);
    if (page->token[0]) {
        gs_buf_puts(&query, "&continue=");
        gs_url_escape(&query, page->token);
    }
    if (of->query)
        gs_buf_printf(&query, "&%s", of->query);
    page->body.max = page->limit > 1 ? of->page_max_bytes : of->object_max_bytes;
    if (gs_buf_failed(&query))
        return gs_fail(err, GS_EINVAL, "the list's query is too long");
    struct gs_kube_request request = {
        .method = "GET", .path = of->path, .query = query.data, .timeout_ns = of->page_timeout_ns};
    const int64_t left_ns = of->clock ? of->deadline_ns - gs_clock_now_ns(of->clock) : INT64_MAX;
    if (left_ns <= 0)
        return gs_fail(err, GS_ETIMEOUT, "timeout while listing");
    if (of->clock && (!request.timeout_ns || request.timeout_ns > left_ns))
        request.timeout_ns = left_ns;
    return of->ask(of->ask_ctx, &request, &page->status, &page->body, err);
}

static void *run_fetch(void *arg)
{
    struct page *page = arg;
    gs_error_clear(&page->why);
    page->result = fetch(page, &page->why);
    return NULL;
}

/* Returns the next page, fetched. */
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

/* API servers send the next page's token before the items, so the next page can be fetched while
 * one is read. Without a thread, or if objects are large, pages are fetched in turn. */
static void fetch_ahead(struct pages *pages, const struct page *page)
{
    struct gs_list_meta head;
    if (!pages->of->ahead || page->body.len > PAGE_BYTES ||
        !gs_codec_list_head((struct gs_slice){page->body.data, page->body.len}, &head, NULL) ||
        !head.continue_token[0])
        return;
    struct page *next = &pages->page[pages->turn ^ 1];
    aim(next, head.continue_token, pages->limit);
    pages->ahead = pthread_create(&pages->fetcher, NULL, run_fetch, next) == 0;
}

/* Discards the pages that were read. */
static int begin_anew(struct pages *pages)
{
    const struct gs_pages *of = pages->of;
    if (!of->begin || pages->restarts++ >= RESTARTS_MAX)
        return gs_fail(pages->err, GS_EGONE,
                       "the list expired on the API server before its last page");
    pages->page[pages->turn].token[0] = '\0';
    return of->begin(of->ctx, pages->err);
}

static void choose_limit(struct pages *pages, size_t bytes)
{
    const uint64_t most = (uint64_t)pages->of->page_limit * GROW;
    if (pages->items == 0)
        return;
    uint64_t limit = PAGE_BYTES * pages->items / bytes;
    limit = limit < 1 ? 1 : limit > most ? most : limit;
    pages->limit = limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
}

static void aim_at_next(struct pages *pages)
{
    pages->done = pages->meta.continue_token[0] == '\0';
    if (!pages->ahead)
        aim(&pages->page[pages->turn], pages->meta.continue_token, pages->limit);
}

/* Skips an object above the ceiling. The answer's head has its name and the next token. */
static int pass_over(struct pages *pages, const struct page *page)
{
    const struct gs_pages *of = pages->of;
    const struct gs_slice text = {page->body.data ? page->body.data : "", page->body.len};
    struct gs_error why = {0};
    char name[GS_OBJECT_NAME_BYTES];
    if (!of->passed_over || !gs_codec_list_head(text, &pages->meta, name))
        return gs_fail(pages->err, page->why.code, "%s", page->why.msg);
    gs_fail(&why, GS_ETOOBIG, "%s is larger than %zu MiB", name, of->object_max_bytes >> 20);
    of->passed_over(of->ctx, &why);
    aim_at_next(pages);
    return 0;
}

/* Reads the page, and sets the next one. */
static int read_page(struct pages *pages, struct page *page)
{
    const struct gs_slice text = {page->body.data ? page->body.data : "", page->body.len};
    fetch_ahead(pages, page);
    pages->items = 0;
    if (gs_codec_list_items(text, on_item, pages, &pages->meta, pages->err) < 0)
        return -1;
    pages->weight += pages->items + PAGE_WEIGHT;
    const char *next = pages->meta.continue_token;
    if (pages->weight > LIST_MAX || (next[0] && strcmp(next, page->token) == 0))
        return gs_fail(pages->err, GS_ETOOBIG, "the API server's list does not end");
    choose_limit(pages, page->body.len);
    pages->turn ^= pages->ahead;
    if (page->body.len > PAGE_BYTES)
        gs_buf_release(&page->body);
    aim_at_next(pages);
    return 0;
}

static int next_page(struct pages *pages)
{
    struct page *page = await_page(pages);
    if (page->result < 0) {
        if (page->why.code != GS_ETOOBIG)
            return gs_fail(pages->err, page->why.code, "%s", page->why.msg);
        if (page->limit == 1)
            return pass_over(pages, page);
        pages->limit = page->limit > SHRINK ? page->limit / SHRINK : 1;
        page->limit = pages->limit;
        return 0;
    }
    if (page->status == 410 && page->token[0])
        return begin_anew(pages);
    if (page->status != 200)
        return gs_kube_fail_status(page->status, page->body.data ? page->body.data : "",
                                   page->body.len, pages->err);
    return read_page(pages, page);
}

int gs_pages_read(const struct gs_pages *of, char ret_rv[GS_RV_BYTES], struct gs_error *err)
{
    struct gs_error failure = {0};
    struct pages pages = {.of = of, .limit = of->page_limit, .err = &failure};
    for (int i = 0; i < 2; i++)
        pages.page[i] = (struct page){.pages = &pages, .limit = of->page_limit};
    int result = of->begin ? of->begin(of->ctx, &failure) : 0;
    while (result == 0 && !pages.done)
        result = next_page(&pages);
    if (pages.ahead)
        await_page(&pages);
    gs_buf_release(&pages.page[0].body);
    gs_buf_release(&pages.page[1].body);
    if (result < 0)
        return gs_fail(err, failure.code, "%s", failure.msg);
    if (ret_rv)
        memcpy(ret_rv, pages.meta.resource_version, GS_RV_BYTES);
    return 0;
}
