/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "fixture.h"

static struct http_probe *post_wait(struct fixture *fix)
{
    return open_and_post(fix, "/wait", 0);
}

static void expect_waited(struct http_probe *probe)
{
    assert_string_equal(expect_answer(probe, 200).body, "waited");
}

static void expect_all_waited(struct http_probe *const *probes, int count)
{
    for (int i = 0; i < count; i++)
        expect_waited(probes[i]);
}

static void what_takes_long_does_not_stall_the_others(void **state)
{
    static const struct {
        const char *name, *method, *path;
        size_t body_bytes;
    } rows[] = {
        {"a blocking handler", "POST", "/wait", 0},
        {"a heavy one", "GET", "/compute", 0},
        {"a large body", "POST", "/plain-wait", 300000},
    };
    static const char body[300000];
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture fix;
        fixture_init(&fix);
        fix.config.threads = 1; /* the same thread reads all connections */
        fixture_start(&fix);
        print_message("  %s\n", r->name);
        struct http_probe *slow =
            open_and_send(&fix, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
                          r->method, r->path, r->body_bytes);
        assert_true(http_probe_send(slow, body, r->body_bytes));
        wait_for(&fix.waiting, 1);
        struct http_probe *good = open_probe(&fix);
        for (int i = 0; i < 100; i++)
            expect_get(good, "/hello", 200);
        atomic_store(&fix.gate, 1);
        expect_waited(slow);
        expect_get(slow, "/hello", 200);
        fixture_stop(&fix);
    }
}

/* However many ask, one runs at a time */
static void heavy_requests_take_turns(void **state)
{
    struct fixture *fix = *state;
    struct http_probe *probes[5];
    fixture_start(fix);
    for (int i = 0; i < 5; i++)
        probes[i] = open_and_send(fix, "GET /compute HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for(&fix->waiting, 1);
    sleep_ms(50);
    assert_int_equal(atomic_load(&fix->waiting), 1);
    atomic_store(&fix->gate, 1);
    expect_all_waited(probes, 5);
}

/* One thread reads, one takes heavy requests: neither sleeps. */
static void a_handler_that_would_sleep_runs_again_on_a_worker(void **state)
{
    enum { LONG = 300 << 10 };
    static const char body[LONG];
    struct fixture *fix = *state;
    struct http_answer answer;
    fix->config.threads = 1;
    fixture_start(fix);
    struct http_probe *probes[2] = {open_and_post(fix, "/wait-elsewhere", 0),
                                    open_and_post(fix, "/wait-elsewhere", LONG)};
    assert_true(http_probe_send(probes[1], body, LONG));
    wait_for(&fix->waiting, 2);
    open_and_get(fix, "/hello", 200);
    struct http_probe *heavy = open_and_post(fix, "/echo", LONG);
    assert_true(http_probe_send(heavy, body, LONG));
    assert_true(http_probe_head(heavy, &answer));
    assert_int_equal(answer.status, 200);
    atomic_store(&fix->gate, 1);
    expect_all_waited(probes, 2);
}

static void wait_queued(struct fixture *fix, unsigned count)
{
    WAIT_UNTIL(fixture_stats(fix).queued == count);
}

static void a_full_queue_is_answered_503(void **state)
{
    struct fixture *fix = *state;
    struct http_probe *probes[2 + 3];
    fix->config.queue_max = 3;
    fixture_start(fix);
    for (int i = 0; i < 5; i++) {
        probes[i] = post_wait(fix);
        wait_for(&fix->waiting, i < 2 ? i + 1 : 2);
    }
    wait_queued(fix, 3);
    struct http_probe *late = post_wait(fix);
    late->timeout_ms = 2000;
    assert_string_equal(expect_answer(late, 503).body,
                        "{\"error\":\"too many concurrent requests\"}\n");
    assert_int_equal(fixture_stats(fix).queue_full, 1);
    expect_get(late, "/hello", 200);
    http_probe_close(probes[4]); /* its client gives up: nobody begins with it */
    atomic_store(&fix->gate, 1);
    expect_all_waited(probes, 4);
    wait_queued(fix, 0);
    assert_int_equal(atomic_load(&fix->waiting), 4);
}

/* A group's number is how long its bodies are. */
static struct http_probe *post_of_group(struct fixture *fix, size_t group)
{
    struct http_probe *probe = open_and_post(fix, "/wait-elsewhere", group);
    assert_true(http_probe_send(probe, "xxx", group));
    return probe;
}

static void a_group_leaves_workers_and_queue_to_others(void **state)
{
    struct fixture *fix = *state;
    struct http_probe *probes[12];
    fix->config.workers = 8;
    fix->config.queue_max = 8;
    fixture_start(fix);
    for (int i = 0; i < 8; i++) {
        probes[i] = post_of_group(fix, 1);
        wait_for(&fix->waiting, i < 4 ? i + 1 : 4);
    }
    wait_queued(fix, 4); /* alone it has half, of threads and queue */
    expect_answer(post_of_group(fix, 1), 503);
    for (int i = 8; i < 11; i++) {
        probes[i] = post_of_group(fix, 2);
        wait_for(&fix->waiting, i < 10 ? i - 3 : 6); /* as many as it leaves free */
    }
    wait_queued(fix, 5);
    expect_answer(post_of_group(fix, 2), 503); /* beside others an eighth of the queue */
    probes[11] = post_of_group(fix, 3);
    wait_for(&fix->waiting, 7);
    atomic_store(&fix->gate, 1);
    expect_all_waited(probes, 12);
    expect_answer(post_of_group(fix, 1), 200); /* what is over is none of its share */
}

static void a_client_that_left_does_not_disturb(void **state)
{
    struct fixture *fix = *state;
    fixture_start(fix);
    struct http_probe *probe = post_wait(fix);
    wait_for(&fix->waiting, 1);
    http_probe_close(probe);
    atomic_store(&fix->gate, 1);
    wait_open(fix, 0);
    open_and_get(fix, "/hello", 200);
}

struct stopper {
    struct fixture *fix;
    int64_t grace_ns;
    pthread_t thread;
    atomic_int done;
};

static void *stop_main(void *arg)
{
    struct stopper *stopper = arg;
    gs_http_server_stop(stopper->fix->server, stopper->grace_ns);
    atomic_store(&stopper->done, 1);
    return NULL;
}

static void start_to_stop(struct stopper *stopper)
{
    assert_int_equal(pthread_create(&stopper->thread, NULL, stop_main, stopper), 0);
}

/* A request whose body is half there when it returns. */
static struct http_probe *post_half(struct fixture *fix)
{
    struct http_probe *half = open_and_post(fix, "/echo", 4);
    http_probe_text(half, "ab");
    wait_buffered(fix, 2);
    return half;
}

static void stop_lets_a_running_request_finish(void **state)
{
    struct fixture *fix = *state;
    fixture_start(fix);
    struct http_probe *running = post_wait(fix);
    wait_for(&fix->waiting, 1);
    struct http_probe *idle = open_and_get(fix, "/hello", 200), *half = post_half(fix);

    struct stopper stopper = {.fix = fix, .grace_ns = 600 * GS_NS_PER_S};
    start_to_stop(&stopper);
    assert_true(http_probe_closed(idle)); /* an idle one goes at once */
    struct http_probe late;
    for (int i = 0; i < 5000 && http_probe_open(&late, fix->port); i++) {
        http_probe_close(&late);
        sleep_ms(1);
    }
    assert_int_equal(late.fd, -1); /* nobody listens any more */
    assert_int_equal(atomic_load(&stopper.done), 0);

    http_probe_text(half, "cd"); /* a request that has begun is read to its end */
    struct http_answer answer = expect_answer(half, 200);
    assert_string_equal(answer.body, "abcd");
    expect_header(&answer, "Connection", "close");
    assert_int_equal(atomic_load(&stopper.done), 0);
    atomic_store(&fix->gate, 1);
    expect_waited(running);
    assert_true(http_probe_closed(running));
    pthread_join(stopper.thread, NULL); /* not the whole grace, which outlives this test */
}

static void stop_cuts_what_outlives_the_grace(void **state)
{
    struct fixture *fix = *state;
    fix->config.workers = 1;
    fixture_start(fix);
    post_wait(fix);
    wait_for(&fix->waiting, 1);
    struct http_probe *queued = post_wait(fix), *half = post_half(fix);
    wait_queued(fix, 1);
    struct stopper stopper = {.fix = fix, .grace_ns = GS_NS_PER_S / 10};
    start_to_stop(&stopper);
    assert_true(http_probe_closed(half));
    assert_true(http_probe_closed(queued));
    assert_int_equal(atomic_load(&stopper.done), 0); /* the handler still runs */
    atomic_store(&fix->gate, 1);
    pthread_join(stopper.thread, NULL);
    assert_int_equal(atomic_load(&fix->waiting), 1); /* the queued one never ran */
}

/* For the thread sanitizer: everything at once, then a stop without grace in the middle of it. */
static void *hammer(void *arg)
{
    const struct fixture *fix = arg;
    static const char *const requests[] = {
        "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /echo-slowly HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
        "GET /watch?early&end HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /watch?early HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
    };
    struct http_probe probe = {.fd = -1};
    for (unsigned i = 0;; i++) {
        struct http_answer answer;
        if (probe.fd < 0 && !http_probe_open(&probe, fix->port))
            return NULL;
        probe.timeout_ms = 20;
        if (!http_probe_text(&probe, "%s", requests[i % 5]) || !http_probe_answer(&probe, &answer))
            http_probe_close(&probe);
    }
}

static void stop_in_the_middle_of_traffic_is_clean(void **state)
{
    for (int round = 0; round < 5; round++) {
        struct fixture fix;
        pthread_t threads[4];
        fixture_init(&fix);
        fixture_start(&fix);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, hammer, &fix), 0);
        WAIT_UNTIL(fixture_stats(&fix).requests[2] > 10);
        sleep_ms(50);
        gs_http_server_stop(fix.server, round % 2 ? 0 : GS_NS_PER_S / 20);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        struct gs_http_stats stats = fixture_stats(&fix);
        assert_int_equal(stats.connections_open, 0);
        assert_int_equal(stats.streams_open, 0);
        assert_int_equal(stats.buffered_bytes, 0);
        fixture_stop(&fix);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_takes_long_does_not_stall_the_others),
        WITH_FIXTURE(heavy_requests_take_turns),
        WITH_FIXTURE(a_handler_that_would_sleep_runs_again_on_a_worker),
        WITH_FIXTURE(a_full_queue_is_answered_503),
        WITH_FIXTURE(a_group_leaves_workers_and_queue_to_others),
        WITH_FIXTURE(a_client_that_left_does_not_disturb),
        WITH_FIXTURE(stop_lets_a_running_request_finish),
        WITH_FIXTURE(stop_cuts_what_outlives_the_grace),
        cmocka_unit_test(stop_in_the_middle_of_traffic_is_clean),
    };
    return GS_RUN(tests);
}
