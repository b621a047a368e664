/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "fixture.h"

static void post_wait(struct http_probe *probe, uint16_t port)
{
    assert_true(http_probe_open(probe, port));
    assert_true(
        http_probe_text(probe, "POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
}

static void expect_waited(struct http_probe *probe)
{
    struct http_answer answer;
    assert_true(http_probe_answer(probe, &answer));
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "waited");
}

static void expect_all_waited(struct http_probe *probes, int count)
{
    for (int i = 0; i < count; i++) {
        expect_waited(&probes[i]);
        http_probe_close(&probes[i]);
    }
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
    for (size_t row = 0; row < GS_COUNT_OF(rows); row++) {
        struct fixture fix;
        fixture_init(&fix);
        fix.config.threads = 1; /* the same thread reads all connections */
        fixture_start(&fix);
        print_message("  %s\n", rows[row].name);
        struct http_probe slow, good;
        assert_true(http_probe_open(&slow, fix.port));
        http_probe_text(&slow, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
                        rows[row].method, rows[row].path, rows[row].body_bytes);
        assert_true(http_probe_send(&slow, body, rows[row].body_bytes));
        wait_for(&fix.waiting, 1);
        assert_true(http_probe_open(&good, fix.port));
        for (int i = 0; i < 100; i++)
            expect_get(&good, "/hello", 200);
        assert_int_equal(atomic_load(&fix.gate), 0);
        atomic_store(&fix.gate, 1);
        expect_waited(&slow);
        expect_get(&slow, "/hello", 200);
        http_probe_close(&slow);
        http_probe_close(&good);
        fixture_stop(&fix);
    }
}

/* However many ask, one runs at a time */
static void heavy_requests_take_turns(void **state)
{
    struct fixture fix;
    fixture_init(&fix);
    fixture_start(&fix);
    struct http_probe probes[5];
    for (int i = 0; i < 5; i++) {
        assert_true(http_probe_open(&probes[i], fix.port));
        http_probe_text(&probes[i], "GET /compute HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    wait_for(&fix.waiting, 1);
    sleep_ms(50);
    assert_int_equal(atomic_load(&fix.waiting), 1);
    atomic_store(&fix.gate, 1);
    expect_all_waited(probes, 5);
    fixture_stop(&fix);
}

/* One thread reads, one takes heavy requests: neither sleeps. */
static void a_handler_that_would_sleep_runs_again_on_a_worker(void **state)
{
    enum { LONG = 300 << 10 };
    struct fixture fix;
    fixture_init(&fix);
    fix.config.threads = 1;
    fixture_start(&fix);
    struct http_probe probes[2];
    char *body = test_calloc(1, LONG);
    memset(body, 'x', LONG);
    assert_true(http_probe_open(&probes[0], fix.port));
    http_probe_text(&probes[0], "GET /wait-elsewhere HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(http_probe_open(&probes[1], fix.port));
    http_probe_text(&probes[1],
                    "POST /wait-elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", LONG);
    assert_true(http_probe_send(&probes[1], body, LONG));
    wait_for(&fix.waiting, 2);
    struct http_probe other, heavy;
    assert_true(http_probe_open(&other, fix.port));
    expect_get(&other, "/hello", 200);
    assert_true(http_probe_open(&heavy, fix.port));
    http_probe_text(&heavy, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", LONG);
    assert_true(http_probe_send(&heavy, body, LONG));
    struct http_answer answer;
    assert_true(http_probe_head(&heavy, &answer));
    assert_int_equal(answer.status, 200);
    atomic_store(&fix.gate, 1);
    expect_all_waited(probes, 2);
    http_probe_close(&other);
    http_probe_close(&heavy);
    test_free(body);
    fixture_stop(&fix);
}

static void wait_queued(struct fixture *fix, unsigned count)
{
    for (int i = 0; i < 5000 && fixture_stats(fix).queued != count; i++)
        sleep_ms(1);
    assert_int_equal(fixture_stats(fix).queued, count);
}

static void a_full_queue_is_answered_503(void **state)
{
    struct fixture fix;
    fixture_init(&fix);
    fix.config.workers = 2;
    fix.config.queue_max = 3;
    fixture_start(&fix);
    struct http_probe probes[2 + 3], late;
    struct http_answer answer;
    for (int i = 0; i < 2; i++)
        post_wait(&probes[i], fix.port);
    wait_for(&fix.waiting, 2);
    for (int i = 2; i < 5; i++)
        post_wait(&probes[i], fix.port);
    wait_queued(&fix, 3);
    assert_true(http_probe_open(&late, fix.port));
    http_probe_text(&late, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    late.timeout_ms = 2000;
    assert_true(http_probe_answer(&late, &answer));
    assert_int_equal(answer.status, 503);
    assert_string_equal(answer.body, "{\"error\":\"too many concurrent requests\"}\n");
    assert_int_equal(fixture_stats(&fix).queue_full, 1);
    expect_get(&late, "/hello", 200);
    http_probe_close(&late);
    atomic_store(&fix.gate, 1);
    expect_all_waited(probes, 5);
    fixture_stop(&fix);
}

/* A group's number is how long its bodies are. */
static void post_of_group(struct http_probe *probe, uint16_t port, int group)
{
    assert_true(http_probe_open(probe, port));
    http_probe_text(probe,
                    "POST /wait-elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%.*s",
                    group, group, "xxx");
}

static void a_group_leaves_workers_and_queue_to_others(void **state)
{
    struct fixture fix;
    fixture_init(&fix);
    fix.config.workers = 8;
    fix.config.queue_max = 8;
    fixture_start(&fix);
    struct http_probe probes[12], late;
    struct http_answer answer;
    for (int i = 0; i < 8; i++) {
        post_of_group(&probes[i], fix.port, 1);
        wait_for(&fix.waiting, i < 4 ? i + 1 : 4);
    }
    wait_queued(&fix, 4); /* alone it has half, of threads and queue */
    post_of_group(&late, fix.port, 1);
    assert_true(http_probe_answer(&late, &answer));
    assert_int_equal(answer.status, 503);
    http_probe_close(&late);
    for (int i = 8; i < 11; i++) {
        post_of_group(&probes[i], fix.port, 2);
        wait_for(&fix.waiting, i < 10 ? i - 3 : 6); /* as many as it leaves free */
    }
    wait_queued(&fix, 5);
    post_of_group(&late, fix.port, 2); /* beside others an eighth of the queue */
    assert_true(http_probe_answer(&late, &answer));
    assert_int_equal(answer.status, 503);
    http_probe_close(&late);
    post_of_group(&probes[11], fix.port, 3);
    wait_for(&fix.waiting, 7);
    atomic_store(&fix.gate, 1);
    expect_all_waited(probes, 12);
    fixture_stop(&fix);
}

static void a_client_that_left_does_not_disturb(void **state)
{
    struct fixture fix;
    fixture_init(&fix);
    fixture_start(&fix);
    struct http_probe probe;
    post_wait(&probe, fix.port);
    wait_for(&fix.waiting, 1);
    http_probe_close(&probe);
    atomic_store(&fix.gate, 1);
    wait_open(&fix, 0);
    assert_int_equal(http_probe_get(fix.port, "/hello"), 200);
    fixture_stop(&fix);
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

static void stop_lets_a_running_request_finish(void **state)
{
    struct fixture fix;
    fixture_init(&fix);
    fixture_start(&fix);
    struct http_probe running, idle, half;
    struct http_answer answer;
    char value[16];
    post_wait(&running, fix.port);
    wait_for(&fix.waiting, 1);
    assert_true(http_probe_open(&idle, fix.port));
    expect_get(&idle, "/hello", 200);
    assert_true(http_probe_open(&half, fix.port));
    http_probe_text(&half, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
    sleep_ms(50);

    struct stopper stopper = {.fix = &fix, .grace_ns = 600 * GS_NS_PER_S};
    assert_int_equal(pthread_create(&stopper.thread, NULL, stop_main, &stopper), 0);
    assert_true(http_probe_closed(&idle)); /* an idle one goes at once */
    struct http_probe late;
    for (int i = 0; i < 5000 && http_probe_open(&late, fix.port); i++) {
        http_probe_close(&late);
        sleep_ms(1);
    }
    assert_int_equal(late.fd, -1); /* nobody listens any more */
    assert_int_equal(atomic_load(&stopper.done), 0);

    http_probe_text(&half, "cd"); /* a request that has begun is read to its end */
    assert_true(http_probe_answer(&half, &answer));
    assert_string_equal(answer.body, "abcd");
    assert_true(http_answer_header(&answer, "Connection", value, sizeof(value)));
    assert_string_equal(value, "close");
    assert_int_equal(atomic_load(&stopper.done), 0);
    atomic_store(&fix.gate, 1);
    expect_waited(&running);
    assert_true(http_probe_closed(&running));
    pthread_join(stopper.thread, NULL); /* not the whole grace, which outlives this test */
    http_probe_close(&running);
    http_probe_close(&idle);
    http_probe_close(&half);
    fixture_stop(&fix);
}

static void stop_cuts_what_outlives_the_grace(void **state)
{
    struct fixture fix;
    fixture_init(&fix);
    fix.config.workers = 1;
    fixture_start(&fix);
    struct http_probe running, queued, half;
    post_wait(&running, fix.port);
    wait_for(&fix.waiting, 1);
    post_wait(&queued, fix.port);
    assert_true(http_probe_open(&half, fix.port));
    http_probe_text(&half, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
    sleep_ms(50);
    struct stopper stopper = {.fix = &fix, .grace_ns = GS_NS_PER_S / 10};
    assert_int_equal(pthread_create(&stopper.thread, NULL, stop_main, &stopper), 0);
    assert_true(http_probe_closed(&half));
    assert_true(http_probe_closed(&queued));
    assert_int_equal(atomic_load(&stopper.done), 0); /* the handler still runs */
    atomic_store(&fix.gate, 1);
    pthread_join(stopper.thread, NULL);
    assert_int_equal(atomic_load(&fix.waiting), 1); /* the queued one never ran */
    http_probe_close(&running);
    http_probe_close(&queued);
    http_probe_close(&half);
    fixture_stop(&fix);
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
        for (int i = 0; i < 5000 && fixture_stats(&fix).requests[2] <= 10; i++)
            sleep_ms(1);
        sleep_ms(50);
        gs_http_server_stop(fix.server, round % 2 ? 0 : GS_NS_PER_S / 20);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        struct gs_http_stats stats = fixture_stats(&fix);
        assert_int_equal(stats.connections_open, 0);
        assert_int_equal(stats.streams_open, 0);
        assert_int_equal(stats.buffered_bytes, 0);
        assert_true(stats.requests[2] > 10);
        fixture_stop(&fix);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_takes_long_does_not_stall_the_others),
        cmocka_unit_test(heavy_requests_take_turns),
        cmocka_unit_test(a_handler_that_would_sleep_runs_again_on_a_worker),
        cmocka_unit_test(a_full_queue_is_answered_503),
        cmocka_unit_test(a_group_leaves_workers_and_queue_to_others),
        cmocka_unit_test(a_client_that_left_does_not_disturb),
        cmocka_unit_test(stop_lets_a_running_request_finish),
        cmocka_unit_test(stop_cuts_what_outlives_the_grace),
        cmocka_unit_test(stop_in_the_middle_of_traffic_is_clean),
    };
    return cmocka_run_group_tests_name("http blocking handlers and stop", tests, NULL, NULL);
}
