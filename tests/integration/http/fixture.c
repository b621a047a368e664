/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <stdarg.h>
#include <time.h>

static void hello(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    res->content_type = "text/plain";
    gs_buf_puts(&res->body, "hello");
}

static void empty(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
}

static void echo(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    if (req->body[req->body_len] != '\0')
        gs_http_error(res, 500, "the body is not terminated");
    gs_buf_append(&res->body, req->body, req->body_len);
}

static void show(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    const char *query = gs_http_query(req, "a");
    const char *header = gs_http_header(req, "x-TEST");
    gs_http_add_header(res, "X-One", "1");
    gs_http_add_header(res, "X-Two", "2");
    res->status = 201;
    gs_buf_printf(&res->body, "%s|%s|%s|%s|%s|%zu", req->method, req->path, req->rest,
                  query ? query : "(none)", header ? header : "(none)", req->body_len);
}

static void where(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    gs_buf_printf(&res->body, "%p", (const void *)req->body);
}

static void broken(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    gs_buf_reserve(&res->body, res->body.max + 1);
}

static void bad_header(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    gs_http_add_header(res, "X-Bad", "a\r\nX-Injected: b");
}

static void wait_gate(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct fixture *fix = ctx;
    atomic_fetch_add(&fix->waiting, 1);
    while (!atomic_load(&fix->gate))
        sleep_ms(1);
    gs_buf_puts(&res->body, "waited");
}

static void much(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    char *to = gs_buf_reserve(&res->body, MUCH_BYTES);
    if (!to)
        return;
    memset(to, 'x', MUCH_BYTES);
    gs_buf_advance(&res->body, MUCH_BYTES);
}

/* Where it may not sleep, it says that it would. */
static void wait_elsewhere(void *ctx, const struct gs_http_request *req,
                           struct gs_http_response *res)
{
    gs_buf_puts(&res->body, req->may_block ? "" : "dropped");
    res->wants_worker = !req->may_block;
    res->worker_group = (uint8_t)req->body_len;
    if (req->may_block)
        wait_gate(ctx, req, res);
}

static void stream_closed(void *ctx)
{
    struct fixture *fix = ctx;
    atomic_fetch_add(&fix->streams_closed, 1);
}

static void watch(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct fixture *fix = ctx;
    struct gs_http_stream *stream =
        gs_http_stream_new(fix->stream_ceiling_bytes, stream_closed, fix);
    gs_http_respond_stream(res, stream);
    if (gs_http_query(req, "early"))
        gs_http_stream_write(stream, "early", 5, NULL);
    if (gs_http_query(req, "broken"))
        res->status = 99;
    if (gs_http_query(req, "end"))
        gs_http_stream_end(stream);
    gs_http_stream_unref(atomic_exchange(&fix->stream, stream));
}

static const struct gs_http_route routes[] = {
    {"GET", "/hello", hello, 0},
    {"GET", "/empty", empty, 0},
    {"POST", "/echo", echo, 0},
    {"PUT", "/echo", echo, 0},
    {NULL, "/show/", show, GS_HTTP_PREFIX},
    {"POST", "/where", where, 0},
    {"GET", "/broken", broken, 0},
    {"GET", "/header", bad_header, 0},
    {"POST", "/wait", wait_gate, GS_HTTP_BLOCKING},
    {"GET", "/wait", wait_gate, GS_HTTP_BLOCKING},
    {"GET", "/wait-elsewhere", wait_elsewhere, 0},
    {"POST", "/wait-elsewhere", wait_elsewhere, 0},
    {"POST", "/echo-slowly", echo, GS_HTTP_BLOCKING},
    {"GET", "/compute", wait_gate, GS_HTTP_HEAVY},
    {"POST", "/plain-wait", wait_gate, 0},
    {"POST", "/small", echo, GS_HTTP_SMALL},
    {"GET", "/much", much, 0},
    {"GET", "/watch", watch, 0},
    {"PUT", "/show/hello", hello, 0}, /* behind the prefix that takes it */
    {"POST", "/beyond", hello, 0},    /* that is not in the table */
};

void fixture_init(struct fixture *fix)
{
    *fix = (struct fixture){.config = GS_HTTP_CONFIG_DEFAULTS, .stream_ceiling_bytes = 1 << 20};
    fix->config.routes = routes;
    fix->config.route_count = GS_COUNT_OF(routes) - 1;
    fix->config.ctx = fix;
    fix->config.workers = 2;
}

static int64_t stopped_clock(void *ctx)
{
    const struct fixture *fix = ctx;
    return atomic_load(&fix->now_ns);
}

void fixture_stop_clock(struct fixture *fix)
{
    atomic_store(&fix->now_ns, 1000 * GS_NS_PER_S);
    fix->clock = (struct gs_clock){.monotonic_ns = stopped_clock, .ctx = fix};
    fix->config.clock = &fix->clock;
}

void fixture_pass(struct fixture *fix, int64_t ms)
{
    uint64_t before = fixture_stats(fix).sweeps;
    atomic_fetch_add(&fix->now_ns, ms * GS_NS_PER_MS);
    WAIT_UNTIL(fixture_stats(fix).sweeps != before);
}

void fixture_start(struct fixture *fix)
{
    struct gs_error err = {0};
    if (gs_http_server_start(&fix->config, &fix->server, &err) < 0)
        fail_msg("%s", err.msg);
    fix->port = gs_http_server_port(fix->server);
    assert_int_not_equal(fix->port, 0);
}

void fixture_stop(struct fixture *fix)
{
    atomic_store(&fix->gate, 1);
    for (; fix->probe_count; fix->probe_count--)
        http_probe_close(&fix->probes[fix->probe_count - 1]);
    gs_http_server_free(fix->server);
    fix->server = NULL;
    gs_http_stream_unref(atomic_exchange(&fix->stream, NULL));
}

struct gs_http_stats fixture_stats(const struct fixture *fix)
{
    struct gs_http_stats stats;
    gs_http_server_stats(fix->server, &stats);
    return stats;
}

void sleep_ms(int ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

void wait_open(const struct fixture *fix, uint64_t most)
{
    WAIT_UNTIL(fixture_stats(fix).connections_open <= most);
}

void wait_buffered(const struct fixture *fix, uint64_t bytes)
{
    WAIT_UNTIL(fixture_stats(fix).buffered_bytes == bytes);
}

void wait_for(const atomic_int *value, int want)
{
    WAIT_UNTIL(atomic_load(value) >= want);
}

int fixture_setup(void **state)
{
    *state = test_malloc(sizeof(struct fixture));
    fixture_init(*state);
    return 0;
}

int fixture_teardown(void **state)
{
    fixture_stop(*state);
    test_free(*state);
    return 0;
}

struct http_probe *open_probe(struct fixture *fix)
{
    assert_true(fix->probe_count < FIXTURE_PROBES);
    struct http_probe *probe = &fix->probes[fix->probe_count++];
    assert_true(http_probe_open(probe, fix->port));
    return probe;
}

struct http_probe *open_and_send(struct fixture *fix, const char *fmt, ...)
{
    struct http_probe *probe = open_probe(fix);
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    assert_in_range(len, 0, sizeof(text) - 1);
    assert_true(http_probe_send(probe, text, (size_t)len));
    return probe;
}

struct http_probe *open_and_post(struct fixture *fix, const char *path, size_t len)
{
    return open_and_send(fix, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", path,
                         len);
}

struct http_answer expect_answer(struct http_probe *probe, int status)
{
    struct http_answer answer = {0};
    assert_true(http_probe_answer(probe, &answer));
    assert_int_equal(answer.status, status);
    return answer;
}

void expect_header(const struct http_answer *answer, const char *name, const char *value)
{
    char text[64];
    assert_true(http_answer_header(answer, name, text, sizeof(text)));
    assert_string_equal(text, value);
}

void expect_get(struct http_probe *probe, const char *path, int status)
{
    assert_true(http_probe_text(probe, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path));
    expect_answer(probe, status);
}

struct http_probe *open_and_get(struct fixture *fix, const char *path, int status)
{
    struct http_probe *probe = open_probe(fix);
    expect_get(probe, path, status);
    return probe;
}
