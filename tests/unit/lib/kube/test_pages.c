/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/kube/pages.h"

/* What is asked for, page by page, of a server that answers as a row says and then again. */
struct server {
    const struct answer {
        int status;        /* 0: the page is too large, and cut off in its first item */
        const char *token; /* of the next page */
        int items;
    } answers[4];
    size_t count, asked, begun, items;
    char queries[512], passed_over[64];
};

static int ask(void *ctx, const struct gs_kube_request *request, int *ret_status,
               struct gs_buf *body, struct gs_error *err)
{
    struct server *server = ctx;
    const struct answer *answer = &server->answers[server->asked++ % server->count];
    size_t len = strlen(server->queries);
    snprintf(server->queries + len, sizeof(server->queries) - len, "%s ", request->query);
    if (server->asked > 50)
        return gs_fail(err, GS_ECANCELED, "for ever");
    gs_buf_reset(body);
    assert_int_equal(body->max, strncmp(request->query, "limit=1&", 8) == 0 ? 1 << 20 : 1 << 19);
    gs_buf_printf(body, "{\"metadata\":{\"resourceVersion\":\"9\",\"continue\":\"%s\"},\"items\":[",
                  answer->token ? answer->token : "");
    if (!answer->status)
        gs_buf_puts(body, "{\"metadata\":{\"name\":\"big\",\"namespace\":\"a\",\"labels\":{\"");
    if (!answer->status)
        return gs_fail(err, GS_ETOOBIG, "too large");
    *ret_status = answer->status;
    for (int i = 0; i < answer->items; i++)
        gs_buf_puts(body, i ? ",{}" : "{}");
    gs_buf_puts(body, "]}");
    return 0;
}

static int begin(void *ctx, struct gs_error *err)
{
    ((struct server *)ctx)->begun++;
    return 0;
}

static int item(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    ((struct server *)ctx)->items++;
    gs_scan_skip(scan);
    return 0;
}

static void pass_over(void *ctx, const struct gs_error *why)
{
    struct server *server = ctx;
    snprintf(server->passed_over, sizeof(server->passed_over), "%.63s", why->msg);
}

/* Each page takes a hundred seconds. */
static int64_t now_ns(void *ctx)
{
    return 100 * GS_NS_PER_S * (int64_t)((struct server *)ctx)->asked;
}

static void a_list_is_asked_for_until_it_is_whole(void **state)
{
    static const struct {
        const char *row;
        struct server server;
        bool plain; /* it cannot begin anew */
        enum gs_code code;
        size_t begun, items;
        const char *queries; /* "": not looked at */
    } rows[] = {
        {"one page", {{{200, "", 2}}, 1}, true, GS_OK, 0, 2, "limit=100&a=b "},
        {"more of them, where objects are small",
         {{{200, "t+1=", 1}, {200, "", 1}}, 2},
         true,
         GS_OK,
         0,
         2,
         "limit=100&a=b limit=800&continue=t%2B1%3D&a=b "},
        {"too large",
         {{{0}, {0}, {200, "", 1}}, 3},
         false,
         GS_OK,
         1,
         1,
         "limit=100&a=b limit=12&a=b limit=1&a=b "},
        {"one object is too large: passed over",
         {{{0}, {0}, {0, "t"}, {200, "", 1}}, 4},
         false,
         GS_OK,
         1,
         1,
         "limit=100&a=b limit=12&a=b limit=1&a=b limit=1&continue=t&a=b "},
        {"and where that is not wanted", {{{0}}, 1}, true, GS_ETOOBIG, 0, 0, ""},
        {"lost in its middle, it begins anew",
         {{{200, "t"}, {410}, {200, "u"}, {200}}, 4},
         false,
         GS_OK,
         2,
         0,
         "limit=100&a=b limit=100&continue=t&a=b limit=100&a=b limit=100&continue=u&a=b "},
        {"but not for ever", {{{200, "t"}, {410}}, 2}, false, GS_EGONE, 6, 0, ""},
        {"or where that is not wanted", {{{200, "t", 1}, {410}}, 2}, true, GS_EGONE, 0, 1, ""},
        {"410 for the first page", {{{410}}, 1}, false, GS_EGONE, 1, 0, "limit=100&a=b "},
        {"it has its time", {{{200, "t", 1}, {200, "u", 1}}, 2}, true, GS_ETIMEOUT, 0, 3, ""},
        {"a page that leads to itself", {{{200, "t", 1}}, 1}, false, GS_ETOOBIG, 1, 2, ""},
        {"no end",
         {{{200, "t", 170000}, {200, "u", 170000}}, 2},
         false,
         GS_ETOOBIG,
         1,
         1020000,
         ""},
        {"refused", {{{403}}, 1}, true, GS_EDENIED, 0, 0, "limit=100&a=b "},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct server server = r->server;
        const struct gs_clock clock = {.monotonic_ns = now_ns, .wall_ns = now_ns, .ctx = &server};
        const struct gs_pages pages = {.ask = ask,
                                       .ask_ctx = &server,
                                       .path = "/x",
                                       .query = "a=b",
                                       .page_limit = 100,
                                       .page_max_bytes = 1 << 19,
                                       .object_max_bytes = 1 << 20,
                                       .clock = r->plain ? &clock : NULL,
                                       .deadline_ns = 250 * GS_NS_PER_S,
                                       .begin = r->plain ? NULL : begin,
                                       .item = item,
                                       .passed_over = r->plain ? NULL : pass_over,
                                       .ctx = &server};
        char version[GS_RV_BYTES] = "none";
        struct gs_error err = {0};
        row_equal(r->row, gs_pages_read(&pages, version, &err), r->code == GS_OK ? 0 : -1);
        row_text(r->row, gs_code_name(err.code), gs_code_name(r->code));
        row_text(r->row, version, r->code == GS_OK ? "9" : "none");
        row_equal(r->row, server.begun, r->begun);
        row_equal(r->row, server.items, r->items);
        row_text(r->row, server.passed_over,
                 strstr(r->row, "passed over") ? "a/big is larger than 1 MiB" : "");
        if (r->queries[0])
            row_text(r->row, server.queries, r->queries);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_asked_for_until_it_is_whole),
    };
    return GS_RUN(tests);
}
