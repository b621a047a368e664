/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "common/list_watch.h"
#include "gpushare/base/clock.h"

#define LIST      "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[1]}"
#define LISTED    "/v1?limit=500&x=y\n"
#define WATCHED   "/v1?x=y&watch=true&resourceVersion=7&timeoutSeconds=290\n"
#define NO_RV     "{\"items\":[1]}"
#define FORBIDDEN "{\"message\":\"no right\"}"

/* An API server that answers lists and watches by a script. */
struct server {
    int v1, v2, watch; /* status; 0: no answer */
    const char *list;  /* body of a 200 */
    const char *next;  /* of the page after it */
    char asked[2000];
    char items[40]; /* of the list that was begun last: the first byte of each */
};

static const char *const paths[] = {"/v1", "/v2", NULL};

static int ask(void *ctx, const struct gs_kube_request *request, int *ret_status,
               struct gs_buf *body, struct gs_error *err)
{
    struct server *server = ctx;
    const size_t len = strlen(server->asked);
    int status = strcmp(request->path, "/v1") == 0 ? server->v1 : server->v2;
    if (request->first_bytes)
        status = server->watch;
    snprintf(server->asked + len, sizeof(server->asked) - len, "%s?%s\n", request->path,
             request->query ? request->query : "");
    gs_buf_reset(body);
    if (!status)
        return gs_fail(err, GS_EIO, "cut");
    const bool next = request->query && strstr(request->query, "continue=");
    gs_buf_puts(body, status != 200 ? FORBIDDEN : next ? server->next : server->list);
    *ret_status = status;
    return gs_buf_failed(body) ? gs_fail(err, GS_ETOOBIG, "too large") : 0;
}

static int begin(void *ctx, struct gs_error *err)
{
    ((struct server *)ctx)->items[0] = '\0';
    return 0;
}

static int take_item(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    struct server *server = ctx;
    struct gs_slice item;
    gs_scan_raw(scan, &item);
    strncat(server->items, item.at, 1);
    return *item.at == '9' ? gs_fail(err, GS_EPROTO, "a nine") : 0;
}

static struct list_watch watch_of(struct server *server, const char *select)
{
    return (struct list_watch){.ask = ask,
                               .ctx = server,
                               .paths = paths,
                               .select = select,
                               .begin = begin,
                               .item = take_item,
                               .items_ctx = server};
}

static void who_listed_waits_for_news_and_lists_again(void **state)
{
    static const struct {
        const char *row;
        struct server first, then;
        enum gs_code code; /* of the second */
        int64_t pause_s;   /* after it */
        const char *asked; /* by it */
    } rows[] = {
        {"news", {200, 0, 0, LIST}, {200, 0, 200, LIST}, GS_OK, 1, WATCHED LISTED},
        {"that version is gone", {200, 0, 0, LIST}, {200, 0, 410, LIST}, GS_OK, 1, WATCHED LISTED},
        {"no right to watch", {200, 0, 0, LIST}, {200, 0, 403, LIST}, GS_OK, 10, WATCHED LISTED},
        {"the watch was interrupted",
         {200, 0, 0, LIST},
         {200, 0, 0, LIST},
         GS_OK,
         10,
         WATCHED LISTED},
        {"an older version",
         {404, 200, 0, LIST},
         {404, 200, 200, LIST},
         GS_OK,
         1,
         "/v2?x=y&watch=true&resourceVersion=7&timeoutSeconds=290\n/v1?limit=500&x=y\n"
         "/v2?limit=500&x=y\n"},
        {"none",
         {404, 404, 0, LIST},
         {404, 404, 0, LIST},
         GS_ENOENT,
         60,
         "/v1?limit=500&x=y\n/v2?limit=500&x=y\n"},
        {"no right to list", {403, 0, 0, LIST}, {403, 0, 0, LIST}, GS_EDENIED, 60, LISTED},
        {"the right was taken",
         {200, 0, 0, LIST},
         {403, 0, 200, LIST},
         GS_EDENIED,
         60,
         WATCHED LISTED},
        {"it failed before", {0, 0, 0, LIST}, {200, 0, 0, LIST}, GS_OK, 1, LISTED},
        {"it fails", {200, 0, 0, LIST}, {0, 0, 200, LIST}, GS_EIO, 10, WATCHED LISTED},
        {"without a version", {200, 0, 0, NO_RV}, {200, 0, 200, NO_RV}, GS_OK, 10, LISTED},
        {"an empty answer", {200, 0, 0, LIST}, {200, 0, 200, ""}, GS_EPROTO, 10, WATCHED LISTED},
        {"an item that is not understood",
         {200, 0, 0, LIST},
         {200, 0, 200, "{\"items\":[1,9]}"},
         GS_EPROTO,
         10,
         WATCHED LISTED},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct server server = r->first;
        struct gs_error err = {0}, ignored = {0};
        struct list_watch watch = watch_of(&server, "x=y");
        (void)list_watch_next(&watch, &ignored);
        server = r->then;
        row_equal(r->row, list_watch_next(&watch, &err), r->code == GS_OK ? 0 : -1);
        row_equal(r->row, err.code, r->code);
        row_text(r->row, server.asked, r->asked);
        row_equal(r->row, list_watch_pause_ns(&watch), r->pause_s * GS_NS_PER_S);
        if (r->code == GS_OK)
            row_text(r->row, server.items, "1");
    }
}

/* Ten thousand budgets are 20 MiB, and one of them changes every second. No page is as large as
 * that: which the second page tells is counted with the first. */
static void what_is_large_is_listed_less_often(void **state)
{
    enum { BYTES = 6 << 20 };
    static const char first[] =
        "{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"c\"},\"items\":[1,2]}";
    _cleanup_free_ char *large = malloc(BYTES + 1);
    assert_non_null(large);
    memset(large, ' ', BYTES);
    memcpy(large, first, strlen(first));
    large[BYTES] = '\0';
    struct server server = {.v1 = 200, .watch = 200, .list = large, .next = LIST};
    struct gs_error err = {0};
    struct list_watch watch = watch_of(&server, NULL);
    assert_int_equal(list_watch_next(&watch, &err), 0);
    assert_string_equal(server.items, "121");
    assert_string_equal(server.asked, "/v1?limit=500\n/v1?limit=1&continue=c\n");
    assert_int_equal(list_watch_pause_ns(&watch), 7 * GS_NS_PER_S);
    server.list = LIST;
    assert_int_equal(list_watch_next(&watch, &err), 0);
    assert_string_equal(server.items, "1");
    assert_int_equal(list_watch_pause_ns(&watch), GS_NS_PER_S);
}

static void all_are_asked_for_without_a_selector(void **state)
{
    struct server server = {.v1 = 200, .watch = 200, .list = LIST};
    struct gs_error err = {0};
    struct list_watch watch = watch_of(&server, NULL);
    for (int i = 0; i < 2; i++)
        assert_int_equal(list_watch_next(&watch, &err), 0);
    assert_string_equal(server.asked, "/v1?limit=500\n/v1?watch=true&resourceVersion=7"
                                      "&timeoutSeconds=290\n/v1?limit=500\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_listed_waits_for_news_and_lists_again),
        cmocka_unit_test(what_is_large_is_listed_less_often),
        cmocka_unit_test(all_are_asked_for_without_a_selector),
    };
    return GS_RUN(tests);
}
