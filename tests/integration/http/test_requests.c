/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

enum { MAX_BODY = 100000 };

static int start(void **state)
{
    struct fixture *fix = test_malloc(sizeof(*fix));
    fixture_init(fix);
    fix->config.max_body_bytes = MAX_BODY;
    fixture_start(fix);
    *state = fix;
    return 0;
}

static int stop(void **state)
{
    fixture_stop(*state);
    test_free(*state);
    return 0;
}

#define POST "POST /echo HTTP/1.1\r\nHost: x\r\n"

static void requests_are_answered_by_their_bytes(void **state)
{
    const struct fixture *fix = *state;
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
        struct http_probe probe;
        struct http_answer answer;
        print_message("  %s\n", r->name);
        assert_true(http_probe_open(&probe, fix->port));
        assert_true(http_probe_text(&probe, "%s", r->request));
        assert_int_equal(http_probe_answer(&probe, &answer) ? answer.status : 0, r->status);
        if (r->body)
            assert_string_equal(answer.body, r->body);
        if (r->after == CLOSES)
            assert_true(http_probe_closed(&probe));
        if (r->after == STAYS)
            expect_get(&probe, "/hello", 200);
        http_probe_close(&probe);
    }
}

static void errors_are_json_and_name_the_allowed_methods(void **state)
{
    const struct fixture *fix = *state;
    struct http_probe probe;
    struct http_answer answer;
    char value[64];
    assert_true(http_probe_open(&probe, fix->port));
    http_probe_text(&probe, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(http_probe_answer(&probe, &answer));
    assert_int_equal(answer.status, 405);
    assert_true(http_answer_header(&answer, "Allow", value, sizeof(value)));
    assert_string_equal(value, "POST, PUT");
    assert_true(http_answer_header(&answer, "Content-Type", value, sizeof(value)));
    assert_string_equal(value, "application/json");
    http_probe_text(&probe, "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    assert_true(http_probe_answer(&probe, &answer));
    assert_true(http_answer_header(&answer, "Allow", value, sizeof(value)));
    assert_string_equal(value, "GET, HEAD");
    http_probe_close(&probe);
}

static void handlers_choose_type_and_headers(void **state)
{
    const struct fixture *fix = *state;
    struct http_probe probe;
    struct http_answer answer;
    char value[64];
    assert_true(http_probe_open(&probe, fix->port));
    http_probe_text(&probe, "GET /show/x HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(http_probe_answer(&probe, &answer));
    assert_true(http_answer_header(&answer, "X-One", value, sizeof(value)));
    assert_string_equal(value, "1");
    http_probe_text(&probe, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(http_probe_answer(&probe, &answer));
    assert_false(http_answer_header(&answer, "X-One", value, sizeof(value)));
    assert_true(http_answer_header(&answer, "Content-Type", value, sizeof(value)));
    assert_string_equal(value, "text/plain");
    http_probe_close(&probe);
}

static void head_is_get_without_its_body(void **state)
{
    const struct fixture *fix = *state;
    struct http_probe probe;
    struct http_answer answer;
    char value[64];
    assert_true(http_probe_open(&probe, fix->port));
    http_probe_text(&probe, "HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\n"
                            "HEAD /show/x HTTP/1.1\r\nHost: x\r\n\r\n"
                            "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(http_probe_head(&probe, &answer));
    assert_int_equal(answer.status, 200);
    assert_true(http_answer_header(&answer, "Content-Length", value, sizeof(value)));
    assert_string_equal(value, "5");
    assert_true(http_probe_head(&probe, &answer));
    assert_int_equal(answer.status, 201);
    assert_true(http_answer_header(&answer, "Content-Length", value, sizeof(value)));
    assert_string_equal(value, "29");
    assert_true(http_probe_answer(&probe, &answer));
    assert_string_equal(answer.body, "hello");
    http_probe_close(&probe);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    const struct fixture *fix = *state;
    struct http_probe probe;
    struct http_answer answer;
    enum { COUNT = 200 };
    assert_true(http_probe_open(&probe, fix->port));
    char *text = test_calloc(COUNT, 128);
    size_t len = 0;
    for (int i = 0; i < COUNT; i++) {
        /* every third one goes to a worker thread, which must not let the next one pass */
        len += (size_t)snprintf(text + len, 128,
                                "POST /echo%s HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n%04d",
                                i % 3 ? "" : "-slowly", i);
    }
    assert_true(http_probe_send(&probe, text, len));
    for (int i = 0; i < COUNT; i++) {
        char want[8];
        snprintf(want, sizeof(want), "%04d", i);
        assert_true(http_probe_answer(&probe, &answer));
        assert_string_equal(answer.body, want);
    }
    test_free(text);
    http_probe_close(&probe);
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
    const struct fixture *fix = *state;
    static const struct {
        size_t len;
        int status;
    } rows[] = {{1, 200},        {1000, 200},         {MAX_BODY - 1, 200},
                {MAX_BODY, 200}, {MAX_BODY + 1, 413}, {MAX_BODY * 4, 413}};
    GS_FOR_EACH_ROW (r, rows) {
        struct http_probe probe;
        print_message("  %zu bytes\n", r->len);
        assert_true(http_probe_open(&probe, fix->port));
        assert_int_equal(send_body(&probe, r->len), r->status);
        http_probe_close(&probe);
    }
    assert_int_equal(fixture_stats(fix).too_large, 2);
    wait_buffered(fix, 0);
}

/* The address sanitizer never gives freed memory out again so soon: the same address means that the
 * connection has kept its buffer. */
static void a_connection_keeps_its_buffer(void **state)
{
    const struct fixture *fix = *state;
    struct http_probe probe;
    struct http_answer answer;
    char first[32] = "";
    static char body[MAX_BODY];
    assert_true(http_probe_open(&probe, fix->port));
    for (int i = 0; i < 10; i++) {
        http_probe_text(&probe, "POST /where HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
                        MAX_BODY - i);
        http_probe_send(&probe, body, MAX_BODY - (size_t)i);
        assert_true(http_probe_answer(&probe, &answer));
        if (i == 0)
            snprintf(first, sizeof(first), "%s", answer.body);
        assert_string_equal(answer.body, first);
    }
    http_probe_close(&probe);
}

/* A client that finds its connection reset while it still sends may never look for an answer (Go's
 * does not), so the socket goes on taking bytes for a moment. */
static void a_client_that_is_refused_may_go_on_sending(void **state)
{
    const struct fixture *fix = *state;
    struct http_probe probe;
    struct http_answer answer;
    static char piece[50000];
    assert_true(http_probe_open(&probe, fix->port));
    http_probe_text(&probe, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n");
    assert_true(http_probe_send(&probe, piece, sizeof(piece)));
    assert_true(http_probe_answer(&probe, &answer)); /* before the body is complete */
    assert_int_equal(answer.status, 413);
    for (size_t sent = sizeof(piece); sent < 3000000; sent += sizeof(piece)) {
        assert_true(http_probe_send(&probe, piece, sizeof(piece)));
        sleep_ms(2);
    }
    assert_true(http_probe_closed(&probe));
    http_probe_close(&probe);
}

static void endless_chunks_are_cut(void **state)
{
    const struct fixture *fix = *state;
    struct http_probe probe;
    static char chunk[65536];
    assert_true(http_probe_open(&probe, fix->port));
    http_probe_text(&probe, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    int sent = 0;
    while (sent < 1000 && http_probe_text(&probe, "10000\r\n") &&
           http_probe_send(&probe, chunk, sizeof(chunk)) && http_probe_text(&probe, "\r\n"))
        sent++;
    assert_true(sent < 1000); /* 64 MiB would have gone through */
    http_probe_close(&probe);
}

static void huge_heads_are_refused(void **state)
{
    const struct fixture *fix = *state;
    struct http_probe probe;
    struct http_answer answer;
    char *filler = test_malloc(200001);
    memset(filler, 'x', 200000);
    filler[200000] = '\0';
    assert_true(http_probe_open(&probe, fix->port));
    http_probe_text(&probe, "GET /hello HTTP/1.1\r\nHost: x\r\nX-Long: %s\r\n\r\n", filler);
    if (http_probe_answer(&probe, &answer)) /* the reset may be faster than the answer */
        assert_int_equal(answer.status, 431);
    http_probe_close(&probe);
    assert_true(http_probe_open(&probe, fix->port));
    http_probe_text(&probe, "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", filler);
    if (http_probe_answer(&probe, &answer))
        assert_int_equal(answer.status, 414);
    http_probe_close(&probe);
    test_free(filler);
    assert_int_equal(http_probe_get(fix->port, "/hello"), 200);
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
    struct fixture fix;
    fixture_init(&fix);
    fixture_stop_clock(&fix);
    fix.config.max_head_bytes = 8192;
    fixture_start(&fix);
    for (int keys = 0; keys < 400; keys += keys < 200 ? 7 : 50)
        for (size_t filler = 0; filler < 8192; filler += 500) {
            unsigned status = status_of(&fix, keys, filler, 0);
            if (status != 1 && status != 200 && status != 414 && status != 431)
                fail_msg("%d keys and %zu bytes: %u", keys, filler, status);
            if (keys <= 50 && filler <= 2000)
                assert_int_equal(status, 200);
            if (keys >= 200)
                assert_int_not_equal(status, 200);
        }
    for (int headers = 0; headers < 300; headers += 7) {
        unsigned status = status_of(&fix, 20, 0, headers);
        if (status != 1 && status != 200 && status != 431)
            fail_msg("%d headers: %u", headers, status);
    }
    fixture_stop(&fix);
}

static void many_headers_fit(void **state)
{
    const struct fixture *fix = *state;
    struct http_probe probe;
    struct http_answer answer;
    assert_true(http_probe_open(&probe, fix->port));
    http_probe_text(&probe, "GET /hello HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 100; i++)
        http_probe_text(&probe, "X-Header-%d: some value of usual length %d\r\n", i, i);
    http_probe_text(&probe, "\r\n");
    assert_true(http_probe_answer(&probe, &answer));
    assert_int_equal(answer.status, 200);
    http_probe_close(&probe);
}

static void all_bodies_together_have_a_ceiling(void **state)
{
    struct fixture fix;
    fixture_init(&fix);
    fix.config.max_body_bytes = 100000;
    fix.config.max_buffered_bytes = 150000;
    fixture_start(&fix);
    struct http_probe first, second;
    static char half[60000];
    memset(half, 'x', sizeof(half));
    assert_true(http_probe_open(&first, fix.port));
    http_probe_text(&first, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    http_probe_send(&first, half, sizeof(half));
    wait_buffered(&fix, sizeof(half));
    assert_true(http_probe_open(&second, fix.port));
    assert_int_equal(send_body(&second, 99000), 503);
    assert_int_equal(fixture_stats(&fix).memory_full, 1);
    wait_buffered(&fix, sizeof(half));
    assert_int_equal(send_body(&second, 25000), 200); /* and as much in its answer */
    http_probe_close(&first);                         /* in mid-body */
    wait_buffered(&fix, 0);
    assert_int_equal(send_body(&second, 50000), 200);
    assert_int_equal(fixture_stats(&fix).requests[0], 1);
    http_probe_close(&second);
    fixture_stop(&fix);
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
    const struct fixture *fix = *state;
    static const char bytes[(64 << 10) + 1];
    for (size_t i = 0; i < GS_COUNT_OF(rows); i++) {
        struct http_probe probe;
        struct http_answer answer;
        print_message("  %s\n", rows[i].name);
        assert_true(http_probe_open(&probe, fix->port));
        http_probe_text(&probe, "POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
                        rows[i].bytes);
        http_probe_send(&probe, bytes, rows[i].bytes);
        assert_true(http_probe_answer(&probe, &answer));
        assert_int_equal(answer.status, rows[i].status);
        http_probe_close(&probe);
    }
}

/* Clients that ask and do not read: what they are owed is memory like a body. */
static void answers_that_nobody_reads_have_a_ceiling(void **state)
{
    struct fixture fix;
    fixture_init(&fix);
    fix.config.max_buffered_bytes = 3 * (size_t)MUCH_BYTES;
    fixture_start(&fix);
    struct http_probe held[2], late;
    for (int i = 0; i < 2; i++) {
        assert_true(http_probe_open(&held[i], fix.port));
        http_probe_text(&held[i], "GET /much HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    wait_buffered(&fix, 2 * MUCH_BYTES);
    assert_true(http_probe_open(&late, fix.port));
    expect_get(&late, "/much", 503);
    assert_int_equal(fixture_stats(&fix).memory_full, 1);
    expect_get(&late, "/hello", 200);
    for (int i = 0; i < 2; i++)
        http_probe_close(&held[i]);
    wait_buffered(&fix, 0);
    expect_get(&late, "/much", 200);
    http_probe_close(&late);
    fixture_stop(&fix);
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
    struct fixture fix;
    fixture_init(&fix);
    fix.config.max_body_bytes = 100000;
    fix.config.max_buffered_bytes = 150000;
    fixture_start(&fix);
    struct http_probe held[4], probe;
    static char bytes[27500];
    memset(bytes, 'x', sizeof(bytes));
    for (int i = 0; i < 4; i++) {
        assert_true(http_probe_open(&held[i], fix.port));
        http_probe_text(&held[i],
                        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n");
        http_probe_send(&held[i], bytes, sizeof(bytes));
    }
    wait_buffered(&fix, 4 * sizeof(bytes));
    GS_FOR_EACH_ROW (r, rows) {
        print_message("  %s\n", r->row);
        assert_true(http_probe_open(&probe, fix.port));
        assert_int_equal(send_body(&probe, r->bytes), r->status);
        http_probe_close(&probe);
    }
    for (int i = 0; i < 4; i++)
        http_probe_close(&held[i]);
    fixture_stop(&fix);
}

static void answers_are_counted_by_class(void **state)
{
    struct fixture fix;
    fixture_init(&fix);
    fixture_start(&fix);
    struct http_probe probe;
    assert_true(http_probe_open(&probe, fix.port));
    expect_get(&probe, "/hello", 200);
    expect_get(&probe, "/show/x", 201);
    expect_get(&probe, "/nothing", 404);
    expect_get(&probe, "/broken", 500);
    struct gs_http_stats stats = fixture_stats(&fix);
    assert_int_equal(stats.requests[2], 2);
    assert_int_equal(stats.requests[4], 1);
    assert_int_equal(stats.requests[5], 1);
    assert_int_equal(stats.requests[0], 0);
    assert_int_equal(stats.connections, 1);
    assert_int_equal(stats.connections_open, 1);
    http_probe_close(&probe);
    wait_open(&fix, 0);
    fixture_stop(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_are_answered_by_their_bytes, start, stop),
        cmocka_unit_test_setup_teardown(errors_are_json_and_name_the_allowed_methods, start, stop),
        cmocka_unit_test_setup_teardown(handlers_choose_type_and_headers, start, stop),
        cmocka_unit_test_setup_teardown(head_is_get_without_its_body, start, stop),
        cmocka_unit_test_setup_teardown(pipelined_requests_are_answered_in_order, start, stop),
        cmocka_unit_test_setup_teardown(bodies_up_to_the_ceiling_and_not_beyond, start, stop),
        cmocka_unit_test_setup_teardown(a_connection_keeps_its_buffer, start, stop),
        cmocka_unit_test_setup_teardown(a_client_that_is_refused_may_go_on_sending, start, stop),
        cmocka_unit_test_setup_teardown(endless_chunks_are_cut, start, stop),
        cmocka_unit_test_setup_teardown(huge_heads_are_refused, start, stop),
        cmocka_unit_test(whoever_asks_too_much_hears_it_at_once),
        cmocka_unit_test_setup_teardown(many_headers_fit, start, stop),
        cmocka_unit_test(all_bodies_together_have_a_ceiling),
        cmocka_unit_test(answers_that_nobody_reads_have_a_ceiling),
        cmocka_unit_test_setup_teardown(small_routes_take_small_bodies, start, stop),
        cmocka_unit_test(large_bodies_leave_room_for_small_ones),
        cmocka_unit_test(answers_are_counted_by_class),
    };
    return cmocka_run_group_tests_name("http requests", tests, NULL, NULL);
}
