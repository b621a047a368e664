/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sys/socket.h>

#include "fixture.h"

static struct fixture *start(void **state)
{
    struct fixture *fix = *state;
    fix->config.response_timeout_ns = GS_NS_PER_S * 8 / 10;
    fixture_start(fix);
    return fix;
}

/* Opens a watch and reads the head, which must come before any byte of the body. */
static struct gs_http_stream *open_watch(struct fixture *fix, struct http_probe **ret)
{
    struct http_answer answer;
    *ret = open_and_send(fix, "GET /watch HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(http_probe_head(*ret, &answer));
    assert_int_equal(answer.status, 200);
    expect_header(&answer, "Transfer-Encoding", "chunked");
    return atomic_load(&fix->stream);
}

static void expect_chunk(struct http_probe *probe, const char *want)
{
    size_t len;
    const char *chunk = http_probe_chunk(probe, &len);
    assert_non_null(chunk);
    assert_string_equal(chunk, want);
    assert_int_equal(len, strlen(want));
}

static void expect_closed(const struct fixture *fix, int count)
{
    wait_for(&fix->streams_closed, count);
    WAIT_UNTIL(fixture_stats(fix).streams_open == 0);
    assert_int_equal(atomic_load(&fix->streams_closed), count);
}

static void each_write_arrives_at_once(void **state)
{
    struct fixture *fix = start(state);
    struct http_probe *probe;
    struct gs_http_stream *stream = open_watch(fix, &probe);
    for (int i = 0; i < 200; i++) {
        char line[32];
        snprintf(line, sizeof(line), "event %d\n", i);
        assert_int_equal(gs_http_stream_write(stream, line, strlen(line), NULL), 0);
        expect_chunk(probe, line);
    }
    assert_int_equal(gs_http_stream_write(stream, "", 0, NULL),
                     0); /* sends nothing, ends nothing */
    gs_http_stream_write(stream, "last", 4, NULL);
    gs_http_stream_end(stream);
    expect_chunk(probe, "last");
    expect_chunk(probe, "");
    expect_closed(fix, 1);
    struct gs_error err = {0};
    assert_int_equal(gs_http_stream_write(stream, "more", 4, &err), -1);
    assert_int_equal(err.code, GS_ECANCELED);
    expect_get(probe, "/hello", 200); /* the connection lives on */
}

static void what_the_handler_wrote_comes_first(void **state)
{
    struct fixture *fix = start(state);
    struct http_probe *probe =
        open_and_send(fix, "GET /watch?early&end HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_string_equal(expect_answer(probe, 200).body, "early");
    expect_closed(fix, 1);
    http_probe_text(probe, "GET /watch?end HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(expect_answer(probe, 200).body_len, 0);
    expect_closed(fix, 2);
}

enum { PRODUCERS = 4, LINES = 500 };

static void *produce(void *arg)
{
    for (int i = 0; i < LINES; i++) {
        if (gs_http_stream_write(arg, "0123456789abcde\n", 16, NULL) < 0)
            fail();
    }
    return NULL;
}

static void several_threads_may_write(void **state)
{
    struct fixture *fix = start(state);
    struct http_probe *probe;
    pthread_t threads[PRODUCERS];
    struct gs_http_stream *stream = open_watch(fix, &probe);
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, produce, stream), 0);
    size_t lines = 0;
    while (lines < PRODUCERS * LINES) {
        size_t len;
        const char *chunk = http_probe_chunk(probe, &len);
        assert_non_null(chunk);
        assert_true(len > 0);
        for (size_t i = 0; i < len; i++)
            lines += chunk[i] == '\n';
    }
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(gs_http_stream_pending_bytes(stream), 0);
    http_probe_close(probe);
    expect_closed(fix, 1);
}

static void a_client_that_leaves_or_resets_is_noticed_without_a_write(void **state)
{
    struct fixture *fix = start(state);
    for (int resets = 0; resets < 2; resets++) {
        const struct linger linger = {.l_onoff = resets};
        struct http_probe *probe;
        open_watch(fix, &probe);
        assert_int_equal(fixture_stats(fix).streams_open, 1);
        setsockopt(probe->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
        http_probe_close(probe);
        expect_closed(fix, 1 + resets);
    }
}

static void a_client_that_does_not_read_reaches_the_ceiling(void **state)
{
    struct fixture *fix = start(state);
    struct http_probe *probe;
    static char block[65536];
    struct gs_error err = {0};
    struct gs_http_stream *stream = open_watch(fix, &probe);
    int written = 0;
    while (written < 10000 && gs_http_stream_write(stream, block, sizeof(block), &err) == 0) {
        written++;
        assert_true(gs_http_stream_pending_bytes(stream) <= fix->stream_ceiling_bytes);
    }
    assert_int_equal(err.code, GS_ETOOBIG);
    expect_closed(fix, 1);
    assert_int_equal(gs_http_stream_pending_bytes(stream), 0);
    size_t len;
    const char *chunk;
    while ((chunk = http_probe_chunk(probe, &len)) != NULL)
        assert_true(len > 0); /* never the proper end */
}

static void a_client_that_stalls_is_cut(void **state)
{
    struct fixture *fix = start(state);
    struct http_probe *probe;
    static char block[65536];
    struct gs_http_stream *stream = open_watch(fix, &probe);
    /* fill the sockets' buffers, until something stays waiting */
    while (gs_http_stream_pending_bytes(stream) < fix->stream_ceiling_bytes / 2) {
        assert_int_equal(gs_http_stream_write(stream, block, sizeof(block), NULL), 0);
        if (gs_http_stream_pending_bytes(stream) >= fix->stream_ceiling_bytes / 2)
            sleep_ms(100);
    }
    expect_closed(fix, 1);
    assert_int_equal(fixture_stats(fix).response_timeouts, 1);
}

static void a_quiet_stream_is_not_cut(void **state)
{
    struct fixture *fix = start(state);
    struct http_probe *probe;
    struct gs_http_stream *stream = open_watch(fix, &probe);
    gs_http_stream_write(stream, "a", 1, NULL);
    expect_chunk(probe, "a");
    sleep_ms(1000); /* more than response_timeout_ns */
    assert_int_equal(gs_http_stream_write(stream, "b", 1, NULL), 0);
    expect_chunk(probe, "b");
}

static void abort_cuts_in_mid_body(void **state)
{
    struct fixture *fix = start(state);
    struct http_probe *probe;
    struct gs_http_stream *stream = open_watch(fix, &probe);
    gs_http_stream_write(stream, "a", 1, NULL);
    expect_chunk(probe, "a");
    gs_http_stream_abort(stream);
    assert_true(http_probe_closed(probe));
    expect_closed(fix, 1);
    gs_http_stream_abort(stream);
}

static void stop_ends_streams_properly(void **state)
{
    struct fixture *fix = start(state);
    struct http_probe *probe;
    struct gs_http_stream *stream = open_watch(fix, &probe);
    gs_http_stream_write(stream, "a", 1, NULL);
    gs_http_server_stop(fix->server, 10 * GS_NS_PER_S);
    expect_chunk(probe, "a");
    expect_chunk(probe, "");
    assert_true(http_probe_closed(probe));
    assert_int_equal(atomic_load(&fix->streams_closed), 1);
}

static void head_of_a_stream_ends_it(void **state)
{
    struct fixture *fix = start(state);
    struct http_answer answer;
    struct http_probe *probe = open_and_send(fix, "HEAD /watch HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(http_probe_head(probe, &answer));
    expect_closed(fix, 1);
    expect_get(probe, "/hello", 200);
}

static void a_stream_with_a_wrong_answer_is_closed(void **state)
{
    struct fixture *fix = start(state);
    open_and_get(fix, "/watch?broken", 500);
    expect_closed(fix, 1);
    assert_int_equal(gs_http_stream_write(atomic_load(&fix->stream), "x", 1, NULL), -1);
}

static void a_stream_nobody_sent_is_freed_silently(void **state)
{
    struct gs_http_stream *stream = gs_http_stream_new(10, NULL, NULL);
    assert_int_equal(gs_http_stream_write(stream, "0123456789", 10, NULL), 0);
    gs_http_stream_unref(gs_http_stream_ref(stream));
    struct gs_error err = {0};
    assert_int_equal(gs_http_stream_write(stream, "x", 1, &err), -1);
    assert_int_equal(err.code, GS_ETOOBIG);
    gs_http_stream_unref(stream);
    gs_http_stream_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(each_write_arrives_at_once),
        WITH_FIXTURE(what_the_handler_wrote_comes_first),
        WITH_FIXTURE(several_threads_may_write),
        WITH_FIXTURE(a_client_that_leaves_or_resets_is_noticed_without_a_write),
        WITH_FIXTURE(a_client_that_does_not_read_reaches_the_ceiling),
        WITH_FIXTURE(a_client_that_stalls_is_cut),
        WITH_FIXTURE(a_quiet_stream_is_not_cut),
        WITH_FIXTURE(abort_cuts_in_mid_body),
        WITH_FIXTURE(stop_ends_streams_properly),
        WITH_FIXTURE(head_of_a_stream_ends_it),
        WITH_FIXTURE(a_stream_with_a_wrong_answer_is_closed),
        cmocka_unit_test(a_stream_nobody_sent_is_freed_silently),
    };
    return GS_RUN(tests);
}
