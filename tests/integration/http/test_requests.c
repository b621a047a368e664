/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "gpushare/base/cleanup.h"

enum { MAX_BODY = 100000 };

static struct fixture *start(void **state)
{
    struct fixture *fix = *state;
    fix->config.max_body_bytes = MAX_BODY;
    fixture_start(fix);
    return fix;
}

#define POST "POST /echo HTTP/1.1\r\nHost: x\r\n"

static void requests_are_answered_by_their_bytes(void **state)
{
    struct fixture *fix = start(state);
    static const struct {
        const char *name, *request;
        int status;
        const char *body;                    /* NULL: not compared */
        enum { STAYS, CLOSES, NOISE } after; /* libmicrohttpd 0.9.75 sends some heads twice */
    } rows[] = {
        {"plain", "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", 200, "hello", STAYS},
        {"no body at all", "GET /empty HTTP/1.1\r\nHost: x\r\n\r\n", 200, "", STAYS},
        {"HTTP/1.0 closes", "GET /hello HTTP/1.0\r\n\r\n", 200, "hello", CLOSES},
        {"asked to close", "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200,
         "hello", CLOSES},
        {"unknown path", "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", 404,
         "{\"error\":\"path not found\"}\n", STAYS},
        {"longer than an exact path", "GET /hello/ HTTP/1.1\r\nHost: x\r\n\r\n", 404, NULL, STAYS},
        {"prefix without more", "GET /show/ HTTP/1.1\r\nHost: x\r\n\r\n", 404, NULL, STAYS},
        {"absolute form", "GET http://x/hello HTTP/1.1\r\nHost: x\r\n\r\n", 404, NULL, STAYS},
        {"beyond the table", "POST /beyond HTTP/1.1\r\nHost: x\r\n\r\n", 404, NULL, STAYS},
        {"another method of that", "GET /beyond HTTP/1.1\r\nHost: x\r\n\r\n", 404, NULL, STAYS},
        {"the first row wins", "PUT /show/hello HTTP/1.1\r\nHost: x\r\n\r\n", 201, NULL, STAYS},
        {"method in lower case", "get /hello HTTP/1.1\r\nHost: x\r\n\r\n", 405, NULL, STAYS},
        {"beginning of a path", "GET /hell HTTP/1.1\r\nHost: x\r\n\r\n", 404, NULL, STAYS},
        {"wrong method", "DELETE /echo HTTP/1.1\r\nHost: x\r\n\r\n", 405,
         "{\"error\":\"method not allowed\"}\n", STAYS},
        {"unknown path with a body that is skipped",
         "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345", 404, NULL, STAYS},
        {"query, decoded", "GET /show/q?b=1&a=x%20y+z%3D HTTP/1.1\r\nHost: x\r\n\r\n", 201,
         "GET|/show/q|q|x y z=|(none)|0", STAYS},
        {"query without a value", "GET /show/q?a HTTP/1.1\r\nHost: x\r\n\r\n", 201,
         "GET|/show/q|q||(none)|0", STAYS},
        {"path, decoded", "GET /show/%61%2Fb HTTP/1.1\r\nHost: x\r\n\r\n", 201,
         "GET|/show/a/b|a/b|(none)|(none)|0", STAYS},
        {"escaped NUL stays", "GET /show/a%00b?a=%00 HTTP/1.1\r\nHost: x\r\n\r\n", 201,
         "GET|/show/a%00b|a%00b|%00|(none)|0", STAYS},
        {"escaped NUL does not shorten", "GET /hello%00 HTTP/1.1\r\nHost: x\r\n\r\n", 404, NULL,
         STAYS},
        {"broken escapes stay", "GET /show/%%4%zz% HTTP/1.1\r\nHost: x\r\n\r\n", 201,
         "GET|/show/%%4%zz%|%%4%zz%|(none)|(none)|0", STAYS},
        {"header of any case", "GET /show/h HTTP/1.1\r\nHost: x\r\nX-Test:  v v\r\n\r\n", 201,
         "GET|/show/h|h|(none)|v v|0", STAYS},
        {"any method", "PURGE /show/m HTTP/1.1\r\nHost: x\r\n\r\n", 201,
         "PURGE|/show/m|m|(none)|(none)|0", STAYS},
        {"body by length", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n12345", 200,
         "12345", STAYS},
        {"empty body", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 200, "",
         STAYS},
        {"body by chunks",
         "PUT /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
         "A;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n",
         411, "{\"error\":\"missing Content-Length\"}\n", CLOSES},
        {"blocking route", "POST /echo-slowly HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok",
         200, "ok", STAYS},
        {"100-continue",
         "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok",
         200, "ok", STAYS},
        {"100-continue for an unknown path",
         "POST /no HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", 404,
         NULL, CLOSES},
        {"failed body", "GET /broken HTTP/1.1\r\nHost: x\r\n\r\n", 500,
         "{\"error\":\"the response is too large\"}\n", STAYS},
        {"header injection", "GET /header HTTP/1.1\r\nHost: x\r\n\r\n", 500,
         "{\"error\":\"the response is not valid\"}\n", STAYS},
        {"no host", "GET /hello HTTP/1.1\r\n\r\n", 400,
         "{\"error\":\"the Host header is missing\"}\n", STAYS},
        {"space in the path", "GET /hello x HTTP/1.1\r\nHost: x\r\n\r\n", 404, NULL, STAYS},
        {"not HTTP", "hello\r\n\r\n", 0, NULL, CLOSES},
        {"length is no number", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5x\r\n\r\n", 400,
         NULL, NOISE},
        {"length is negative", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400,
         NULL, NOISE},
        {"length is empty", POST "Content-Length: \r\n\r\n", 400, NULL, NOISE},
        {"length is a list", POST "Content-Length: 2, 2\r\n\r\n", 400, NULL, NOISE},
        {"length has a sign", POST "Content-Length: +2\r\n\r\n", 400, NULL, NOISE},
        {"length overflows",
         "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 413,
         NULL, NOISE},
        {"length and chunks",
         "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
         "0\r\n\r\n",
         400, "{\"error\":\"ambiguous request length (Content-Length, Transfer-Encoding)\"}\n",
         CLOSES},
        {"unknown coding", "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nxxxx",
         411, NULL, CLOSES},
        {"far too long a body",
         "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4294967296\r\n\r\n", 413,
         "{\"error\":\"the request body is too large\"}\n", CLOSES},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct http_probe *probe = open_and_send(fix, "%s", r->request);
        struct http_answer answer;
        row_equal(r->name, http_probe_answer(probe, &answer) ? answer.status : 0, r->status);
        if (r->body)
            row_text(r->name, answer.body, r->body);
        if (r->after == CLOSES)
            row_true(r->name, http_probe_closed(probe));
        if (r->after == STAYS)
            expect_get(probe, "/hello", 200);
    }
}

#define CHUNK "\r\n\r\n2\r\nab\r\n0\r\n\r\n"
#define ROW(name, request)                                                                         \
    {                                                                                              \
        name, request, sizeof(request) - 1                                                         \
    }

/* A request whose end two parsers may see in two places: it is refused, and what stands behind it
 * is nobody's request. */
static void a_request_whose_end_is_in_doubt_is_the_last(void **state)
{
    struct fixture *fix = start(state);
    static const struct {
        const char *name, *request;
        size_t len;
    } rows[] = {
        ROW("two lengths", POST "Content-Length: 2\r\nContent-Length: 3\r\n\r\nab"),
        ROW("the longer first", POST "Content-Length: 3\r\nContent-Length: 2\r\n\r\nab"),
        ROW("the same length twice", POST "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab"),
        ROW("the first of two is none", POST "Content-Length: 0\r\nContent-Length: 2\r\n\r\nab"),
        ROW("a chunk size that ends with LF",
            POST "Transfer-Encoding: chunked\r\n\r\n2\nab\r\n0\r\n\r\n"),
        ROW("chunks", POST "Transfer-Encoding: chunked" CHUNK),
        ROW("two codings", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity" CHUNK),
        ROW("the same coding twice",
            POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked" CHUNK),
        ROW("a list of codings", POST "Transfer-Encoding: gzip, chunked" CHUNK),
        ROW("length, then coding", POST "Content-Length: 2\r\nTransfer-Encoding: chunked" CHUNK),
        ROW("coding, then length", POST "Transfer-Encoding: chunked\r\nContent-Length: 2" CHUNK),
        ROW("coding in HTTP/1.0", "POST /echo HTTP/1.0\r\nConnection: keep-alive\r\n"
                                  "Transfer-Encoding: chunked" CHUNK),
        ROW("blank before the length's colon", POST "Content-Length : 2\r\n\r\nab"),
        ROW("tab before the coding's colon", POST "Transfer-Encoding\t: chunked" CHUNK),
        ROW("a folded line", POST "X-A: b\r\n c\r\nContent-Length: 2\r\n\r\nab"),
        ROW("a coding on a folded line", POST "Transfer-Encoding:\r\n chunked" CHUNK),
        ROW("a line that begins with a blank", "POST /echo HTTP/1.1\r\n Host: x\r\n\r\n"),
        ROW("two hosts", POST "Host: y\r\nContent-Length: 2\r\n\r\nab"),
        ROW("NUL in a value", POST "X-A: b\0c\r\nContent-Length: 2\r\n\r\nab"),
        ROW("NUL at a value's end", POST "X-A: b\0\r\nContent-Length: 2\r\n\r\nab"),
        ROW("NUL in the last value", POST "Content-Length: 2\r\nX-A: b\0c\r\n\r\nab"),
        ROW("NUL in a name", POST "X\0-A: b\r\nContent-Length: 2\r\n\r\nab"),
        ROW("NUL at a line's begin", POST "\0X-A: b\r\nContent-Length: 2\r\n\r\nab"),
        ROW("NUL in the version", "GET /hello HTTP/1.1\0x\r\nHost: x\r\n\r\n"),
        ROW("lines that end with LF", "POST /echo HTTP/1.1\nHost: x\nContent-Length: 2\n\nab"),
        ROW("one line that ends with LF", POST "X-A: b\nContent-Length: 2\r\n\r\nab"),
        ROW("a head that ends with LF", POST "Content-Length: 2\r\n\nab"),
        ROW("CR in a value", POST "X-A: b\rContent-Length: 0\r\nContent-Length: 2\r\n\r\nab"),
        ROW("control in a value", POST "X-A: b\x01\r\nContent-Length: 2\r\n\r\nab"),
        ROW("no name", POST ": b\r\nContent-Length: 2\r\n\r\nab"),
        ROW("parenthesis in a name", POST "X(A: b\r\nContent-Length: 2\r\n\r\nab"),
        ROW("another version", "GET /hello HTTP/1.9\r\nHost: x\r\n\r\n"),
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct http_probe *probe = open_probe(fix);
        struct http_answer answer = {0};
        print_message("  %s\n", r->name);
        assert_true(http_probe_send(probe, r->request, r->len));
        http_probe_text(probe, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        bool answered = http_probe_answer(probe, &answer);
        assert_true(!answered || answer.status == 400 || answer.status == 411);
        while (answered && (answered = http_probe_answer(probe, &answer)))
            assert_int_equal(answer.status, 400); /* libmicrohttpd's own come twice */
        assert_true(http_probe_closed(probe));
    }
}

static void lines_may_be_written_in_more_than_one_way(void **state)
{
    struct fixture *fix = start(state);
    static const char *const heads[] = {
        "POST /echo HTTP/1.1\r\nhOST:x\r\ncontent-length:2\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: \t 2\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nX-Empty:\r\nContent-Length: 2\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nX-Empty: \r\nContent-Length: 2\r\nX-Last:\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nCookie: a=b; c=d\r\nContent-Length: 2\r\n\r\n",
        "POST /echo?a=b&c HTTP/1.1\r\nHost: x\r\nX-T: \xc3\xa4\tb \r\nContent-Length: 2\r\n\r\n",
        "POST /echo HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n",
    };
    struct http_probe *probe = open_probe(fix);
    GS_FOR_EACH_ROW (r, heads) { /* on one connection */
        print_message("  %s\n", *r);
        http_probe_text(probe, "%sab", *r);
        assert_string_equal(expect_answer(probe, 200).body, "ab");
    }
}

static void answers_have_their_headers(void **state)
{
    static const struct {
        const char *request;
        int status;
        const char *name, *value;
    } rows[] = {
        {"GET /echo", 405, "Allow", "POST, PUT"},
        {"DELETE /hello", 405, "Allow", "GET, HEAD"},
        {"GET /show/x", 201, "X-One", "1"},
        {"GET /show/x", 201, "X-Two", "2"},
        {"GET /echo", 405, "Content-Type", "application/json"},
        {"GET /hello", 200, "Content-Type", "text/plain"},
        {"GET /show/x", 201, "Content-Type", "application/json"},
    };
    struct http_probe *probe = open_probe(start(state));
    char value[8];
    GS_FOR_EACH_ROW (r, rows) {
        print_message("  %s: %s\n", r->request, r->name);
        http_probe_text(probe, "%s HTTP/1.1\r\nHost: x\r\n\r\n", r->request);
        struct http_answer answer = expect_answer(probe, r->status);
        expect_header(&answer, r->name, r->value);
        assert_int_equal(http_answer_header(&answer, "X-One", value, sizeof(value)),
                         r->status == 201);
    }
}

static void head_is_get_without_its_body(void **state)
{
    static const struct {
        int status;
        const char *length;
    } heads[] = {{200, "5"}, {201, "29"}};
    struct http_probe *probe =
        open_and_send(start(state), "HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\n"
                                    "HEAD /show/x HTTP/1.1\r\nHost: x\r\n\r\n"
                                    "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    GS_FOR_EACH_ROW (r, heads) {
        struct http_answer answer;
        assert_true(http_probe_head(probe, &answer));
        assert_int_equal(answer.status, r->status);
        expect_header(&answer, "Content-Length", r->length);
    }
    assert_string_equal(expect_answer(probe, 200).body, "hello");
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    enum { COUNT = 200 };
    struct http_probe *probe = open_probe(start(state));
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(COUNT * 128);
    for (int i = 0; i < COUNT; i++)
        /* every third one goes to a worker thread, which must not let the next one pass */
        gs_buf_printf(&text, "POST /echo%s HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n%04d",
                      i % 3 ? "" : "-slowly", i);
    assert_true(http_probe_send(probe, text.data, text.len));
    for (int i = 0; i < COUNT; i++) {
        char want[8];
        snprintf(want, sizeof(want), "%04d", i);
        assert_string_equal(expect_answer(probe, 200).body, want);
    }
}

/* Sends len bytes of a pattern; returns the status. */
static int send_body(struct http_probe *probe, size_t len)
{
    struct http_answer answer;
    char *body = test_malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        body[i] = (char)('a' + i % 23);
    http_probe_text(probe, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", len);
    http_probe_send(probe, body, len);
    int status = http_probe_answer(probe, &answer) ? answer.status : 0;
    if (status == 200) {
        assert_int_equal(answer.body_len, len);
        assert_memory_equal(answer.body, body, len);
    }
    test_free(body);
    return status;
}

static void bodies_up_to_the_ceiling_and_not_beyond(void **state)
{
    struct fixture *fix = start(state);
    static const struct {
        size_t len;
        int status;
    } rows[] = {{1, 200},        {1000, 200},         {MAX_BODY - 1, 200},
                {MAX_BODY, 200}, {MAX_BODY + 1, 413}, {MAX_BODY * 4, 413}};
    GS_FOR_EACH_ROW (r, rows) {
        print_message("  %zu bytes\n", r->len);
        assert_int_equal(send_body(open_probe(fix), r->len), r->status);
    }
    assert_int_equal(fixture_stats(fix).too_large, 2);
    wait_buffered(fix, 0);
}

/* The address sanitizer never gives freed memory out again so soon: the same address means that the
 * connection has kept its buffer. */
static void a_connection_keeps_its_buffer(void **state)
{
    struct http_probe *probe = open_probe(start(state));
    char first[32] = "";
    static char body[MAX_BODY];
    for (int i = 0; i < 10; i++) {
        http_probe_text(probe, "POST /where HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
                        MAX_BODY - i);
        http_probe_send(probe, body, MAX_BODY - (size_t)i);
        const char *at = expect_answer(probe, 200).body;
        if (i == 0)
            snprintf(first, sizeof(first), "%s", at);
        assert_string_equal(at, first);
    }
}

/* A client that finds its connection reset while it still sends may never look for an answer (Go's
 * does not), so the socket goes on taking bytes for a moment. */
static void a_client_that_is_refused_may_go_on_sending(void **state)
{
    static char piece[50000];
    struct http_probe *probe = open_and_post(start(state), "/echo", 3000000);
    assert_true(http_probe_send(probe, piece, sizeof(piece)));
    expect_answer(probe, 413); /* before the body is complete */
    for (size_t sent = sizeof(piece); sent < 3000000; sent += sizeof(piece)) {
        assert_true(http_probe_send(probe, piece, sizeof(piece)));
        sleep_ms(2);
    }
    assert_true(http_probe_closed(probe));
    int more = 0; /* for some two seconds */
    for (; more < 500 && http_probe_send(probe, piece, 1); more++)
        sleep_ms(10);
    assert_true(more < 500);
}

static void endless_chunks_are_cut(void **state)
{
    static char chunk[65536];
    struct http_probe *probe = open_and_send(
        start(state), "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    int sent = 0;
    while (sent < 1000 && http_probe_text(probe, "10000\r\n") &&
           http_probe_send(probe, chunk, sizeof(chunk)) && http_probe_text(probe, "\r\n"))
        sent++;
    assert_true(sent < 1000); /* 64 MiB would have gone through */
}

static void huge_heads_are_refused(void **state)
{
    static const struct {
        const char *before, *after;
        int status;
    } rows[] = {{"GET /hello HTTP/1.1\r\nHost: x\r\nX-Long: ", "\r\n\r\n", 431},
                {"GET /", " HTTP/1.1\r\nHost: x\r\n\r\n", 414}};
    struct fixture *fix = start(state);
    char *filler = test_calloc(200001, 1);
    memset(filler, 'x', 200000);
    GS_FOR_EACH_ROW (r, rows) {
        struct http_probe *probe = open_probe(fix);
        struct http_answer answer;
        http_probe_text(probe, "%s%s%s", r->before, filler, r->after);
        if (http_probe_answer(probe, &answer)) /* the reset may be faster than the answer */
            assert_int_equal(answer.status, r->status);
    }
    test_free(filler);
    open_and_get(fix, "/hello", 200);
}

static unsigned status_of(const struct fixture *fix, int keys, size_t filler, int headers)
{
    struct http_probe probe;
    struct http_answer answer;
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(1 << 20);
    gs_buf_puts(&text, "GET /hello?");
    for (int i = 0; i < keys; i++)
        gs_buf_printf(&text, "&k%d=%d", i, i);
    for (size_t i = 0; i < filler; i++)
        gs_buf_putc(&text, 'x');
    gs_buf_puts(&text, " HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < headers; i++)
        gs_buf_printf(&text, "H%d: %d\r\n", i, i);
    gs_buf_puts(&text, "\r\n");
    assert_true(http_probe_open(&probe, fix->port));
    probe.timeout_ms = 3000;
    http_probe_send(&probe, text.data, text.len);
    unsigned status = http_probe_answer(&probe, &answer) ? (unsigned)answer.status : 0;
    if (!status)
        status = http_probe_closed(&probe) ? 1 : 0; /* the reset was faster than the answer */
    http_probe_close(&probe);
    return status;
}

/* At whatever point libmicrohttpd's memory is full: nobody waits for a deadline. */
static void whoever_asks_too_much_hears_it_at_once(void **state)
{
    struct fixture *fix = *state;
    fixture_stop_clock(fix);
    fix->config.max_head_bytes = 8192;
    fixture_start(fix);
    for (int keys = 0; keys < 400; keys += keys < 200 ? 7 : 50)
        for (size_t filler = 0; filler < 8192; filler += 500) {
            unsigned status = status_of(fix, keys, filler, 0);
            if (status != 1 && status != 200 && status != 414 && status != 431)
                fail_msg("%d keys and %zu bytes: %u", keys, filler, status);
            if (keys <= 50 && filler <= 2000)
                assert_int_equal(status, 200);
            if (keys >= 200)
                assert_int_not_equal(status, 200);
        }
    for (int headers = 0; headers < 300; headers += 7) {
        unsigned status = status_of(fix, 20, 0, headers);
        if (status != 1 && status != 200 && status != 431)
            fail_msg("%d headers: %u", headers, status);
    }
}

static void many_headers_fit(void **state)
{
    struct http_probe *probe = open_and_send(start(state), "GET /hello HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 100; i++)
        http_probe_text(probe, "X-Header-%d: some value of usual length %d\r\n", i, i);
    http_probe_text(probe, "\r\n");
    expect_answer(probe, 200);
}

static void all_bodies_together_have_a_ceiling(void **state)
{
    struct fixture *fix = *state;
    static const char half[60000];
    fix->config.max_buffered_bytes = 150000;
    start(state);
    struct http_probe *first = open_and_post(fix, "/echo", MAX_BODY), *second = open_probe(fix);
    http_probe_send(first, half, sizeof(half));
    wait_buffered(fix, sizeof(half));
    assert_int_equal(send_body(second, 99000), 503);
    assert_int_equal(fixture_stats(fix).memory_full, 1);
    wait_buffered(fix, sizeof(half));
    assert_int_equal(send_body(second, 25000), 200); /* and as much in its answer */
    http_probe_close(first);                         /* in mid-body */
    wait_buffered(fix, 0);
    assert_int_equal(send_body(second, 50000), 200);
    assert_int_equal(fixture_stats(fix).requests[0], 1);
}

static void small_routes_take_small_bodies(void **state)
{
    static const struct {
        const char *name;
        size_t bytes;
        int status;
    } rows[] = {
        {"nothing", 0, 200},
        {"as much as fits", 64 << 10, 200},
        {"one too many", (64 << 10) + 1, 413},
    };
    struct fixture *fix = start(state);
    static const char bytes[(64 << 10) + 1];
    GS_FOR_EACH_ROW (r, rows) {
        print_message("  %s\n", r->name);
        struct http_probe *probe = open_and_post(fix, "/small", r->bytes);
        http_probe_send(probe, bytes, r->bytes);
        expect_answer(probe, r->status);
    }
}

/* Clients that ask and do not read: what they are owed is memory like a body. */
static void answers_that_nobody_reads_have_a_ceiling(void **state)
{
    struct fixture *fix = *state;
    struct http_probe *held[2];
    fix->config.max_buffered_bytes = 3 * (size_t)MUCH_BYTES;
    fixture_start(fix);
    for (int i = 0; i < 2; i++)
        held[i] = open_and_send(fix, GET_MUCH);
    wait_buffered(fix, 2 * MUCH_BYTES);
    struct http_probe *late = open_and_get(fix, "/much", 503);
    assert_int_equal(fixture_stats(fix).memory_full, 1);
    expect_get(late, "/hello", 200);
    for (int i = 0; i < 2; i++)
        http_probe_close(held[i]);
    wait_buffered(fix, 0);
    expect_get(late, "/much", 200);
}

/* Bodies that never end fill the memory that is for large ones. */
static void large_bodies_leave_room_for_small_ones(void **state)
{
    static const struct {
        const char *row;
        size_t bytes;
        int status;
    } rows[] = {{"as large", 30000, 503},
                {"a third of it", 10000, 503},
                {"small", 500, 200},
                {"tiny", 1, 200}};
    struct fixture *fix = *state;
    static const char bytes[27500];
    fix->config.max_buffered_bytes = 150000;
    start(state);
    for (int i = 0; i < 4; i++)
        http_probe_send(open_and_post(fix, "/echo", 30000), bytes, sizeof(bytes));
    wait_buffered(fix, 4 * sizeof(bytes));
    GS_FOR_EACH_ROW (r, rows)
        row_equal(r->row, send_body(open_probe(fix), r->bytes), r->status);
}

static void answers_are_counted_by_class(void **state)
{
    struct fixture *fix = start(state);
    struct http_probe *probe = open_and_get(fix, "/hello", 200);
    expect_get(probe, "/show/x", 201);
    expect_get(probe, "/nothing", 404);
    expect_get(probe, "/broken", 500);
    struct gs_http_stats stats = fixture_stats(fix);
    assert_int_equal(stats.requests[2], 2);
    assert_int_equal(stats.requests[4], 1);
    assert_int_equal(stats.requests[5], 1);
    assert_int_equal(stats.requests[0], 0);
    assert_int_equal(stats.connections, 1);
    assert_int_equal(stats.connections_open, 1);
    http_probe_close(probe);
    wait_open(fix, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(requests_are_answered_by_their_bytes),
        WITH_FIXTURE(a_request_whose_end_is_in_doubt_is_the_last),
        WITH_FIXTURE(lines_may_be_written_in_more_than_one_way),
        WITH_FIXTURE(answers_have_their_headers),
        WITH_FIXTURE(head_is_get_without_its_body),
        WITH_FIXTURE(pipelined_requests_are_answered_in_order),
        WITH_FIXTURE(bodies_up_to_the_ceiling_and_not_beyond),
        WITH_FIXTURE(a_connection_keeps_its_buffer),
        WITH_FIXTURE(a_client_that_is_refused_may_go_on_sending),
        WITH_FIXTURE(endless_chunks_are_cut),
        WITH_FIXTURE(huge_heads_are_refused),
        WITH_FIXTURE(whoever_asks_too_much_hears_it_at_once),
        WITH_FIXTURE(many_headers_fit),
        WITH_FIXTURE(all_bodies_together_have_a_ceiling),
        WITH_FIXTURE(small_routes_take_small_bodies),
        WITH_FIXTURE(answers_that_nobody_reads_have_a_ceiling),
        WITH_FIXTURE(large_bodies_leave_room_for_small_ones),
        WITH_FIXTURE(answers_are_counted_by_class),
    };
    return GS_RUN(tests);
}
