/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"

/* Sends `first`, then `drip` again and again, slowly enough to be late and often enough never to be
 * inactive; returns after how many milliseconds the server cut the connection. */
static int64_t drip(struct fixture *fix, struct http_probe *probe, const char *first,
                    const char *drip)
{
    int64_t passed_ms = 0;
    bool alive = http_probe_text(probe, "%s", first);
    probe->timeout_ms = 10;
    for (; alive && passed_ms < 100000; passed_ms += 40) {
        alive = http_probe_text(probe, "%s", drip) && !http_probe_closed(probe);
        assert_int_equal(probe->len, 0);
        if (alive)
            fixture_pass(fix, 40);
    }
    return passed_ms;
}

static void slow_requests_are_cut_while_a_good_client_is_served(void **state)
{
    static const struct {
        const char *name, *before, *first, *drip;
        const char *begun; /* up to 150 ms before the first: one deadline */
    } rows[] = {
        {"request line", NULL, "G", "E"},
        {"headers", NULL, "GET /hello HTTP/1.1\r\nHost: x\r\n", "X-A: b\r\n"},
        {"body by length", NULL, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n",
         "a"},
        {"body that is thrown away", NULL,
         "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n", "a"},
        {"headers of a second request", "/hello", "GET /hello HTTP/1.1\r\n", "X-A: b\r\n"},
        {"body of a second request", "/hello",
         "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n", "a"},
        {"body after a slow head", "/hello", "Content-Length: 60000\r\n\r\n", "a",
         "POST /echo HTTP/1.1\r\nHost: x\r\n"},
    };
    struct fixture *fix = *state;
    uint64_t timeouts = 0;
    fix->config.threads = 1;
    fix->config.request_timeout_ns = GS_NS_PER_S * 2 / 10;
    fix->config.idle_timeout_ns = 3600 * GS_NS_PER_S;
    fixture_stop_clock(fix);
    fixture_start(fix);
    struct http_probe *good = open_probe(fix);
    GS_FOR_EACH_ROW (r, rows) {
        struct http_probe *slow = open_probe(fix);
        print_message("  %s\n", r->name);
        if (r->before)
            expect_get(slow, r->before, 200);
        wait_buffered(fix, 0);
        for (int pass = 0; r->begun && pass < 5; pass++) { /* it is seen idle, then to begin */
            assert_true(pass != 2 || http_probe_text(slow, "%s", r->begun));
            fixture_pass(fix, 50);
        }
        /* a busy machine begins to receive it later, never sooner */
        const int64_t passed_ms = drip(fix, slow, r->first, r->drip);
        assert_in_range(passed_ms, r->begun ? 40 : 200, r->begun ? 199 : 99999);
        assert_int_equal(fixture_stats(fix).request_timeouts, ++timeouts);
        expect_get(good, "/hello", 200); /* the same connection all the time */
    }
}

static void idle_connections_have_their_own_time(void **state)
{
    struct fixture *fix = *state;
    fix->config.request_timeout_ns = GS_NS_PER_S / 10;
    fix->config.idle_timeout_ns = GS_NS_PER_S;
    fix->config.threads = 1; /* it knows both when it has answered the second */
    fixture_stop_clock(fix);
    fixture_start(fix);
    struct http_probe *fresh = open_probe(fix), *used = open_and_get(fix, "/hello", 200);
    fixture_pass(fix, 500); /* far beyond the request's deadline */
    assert_int_equal(fixture_stats(fix).idle_timeouts, 0);
    expect_get(used, "/hello", 200);
    wait_buffered(fix, 0);
    fixture_pass(fix, 501);
    assert_int_equal(fixture_stats(fix).idle_timeouts, 1);
    assert_true(http_probe_closed(fresh));
    fixture_pass(fix, 500);
    assert_true(http_probe_closed(used));
    assert_int_equal(fixture_stats(fix).idle_timeouts, 2);
    assert_int_equal(fixture_stats(fix).request_timeouts, 0);
}

static void a_client_that_does_not_take_its_answer_is_cut(void **state)
{
    struct fixture *fix = *state;
    fix->config.response_timeout_ns = GS_NS_PER_S / 2;
    fixture_start(fix);
    open_and_send(fix, GET_MUCH);
    wait_buffered(fix, MUCH_BYTES);
    wait_open(fix, 0);
    assert_int_equal(fixture_stats(fix).response_timeouts, 1);
}

static void handlers_have_no_deadline(void **state)
{
    struct fixture *fix = *state;
    fix->config.request_timeout_ns = fix->config.idle_timeout_ns = fix->config.response_timeout_ns =
        GS_NS_PER_S / 10;
    fixture_stop_clock(fix);
    fixture_start(fix);
    struct http_probe *probe = open_and_post(fix, "/wait", 0);
    wait_for(&fix->waiting, 1);
    fixture_pass(fix, 1000);
    atomic_store(&fix->gate, 1);
    assert_string_equal(expect_answer(probe, 200).body, "waited");
}

static struct http_probe *open_as_stranger(struct fixture *fix)
{
    assert_true(fix->probe_count < FIXTURE_PROBES);
    struct http_probe *probe = &fix->probes[fix->probe_count++];
    assert_true(http_probe_open_from(probe, fix->port, INADDR_LOOPBACK + 1));
    expect_get(probe, "/hello", 200);
    return probe;
}

static void at_the_limit_the_longest_idle_goes(void **state)
{
    static const struct {
        const char *row;
        unsigned in_all, per_address;
    } rows[] = {{"of all", 8, 0}, {"of an address", 100, 8}};
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture fix;
        struct http_probe *probes[8];
        fixture_init(&fix);
        fix.config.max_connections = r->in_all;
        fix.config.max_connections_per_address = r->per_address;
        fix.config.threads = 1; /* the order of answers is the order of becoming idle */
        fixture_start(&fix);
        struct http_probe *stranger = r->per_address ? open_as_stranger(&fix) : NULL;
        for (int i = 0; i < 8; i++)
            probes[i] = open_and_get(&fix, "/hello", 200);
        expect_get(probes[0], "/hello", 200); /* now probes[1] is idle longest */
        wait_buffered(&fix, 0);               /* it is idle a moment after its client has it */
        for (int round = 1; round < 4; round++) {
            open_and_get(&fix, "/hello", 200);
            row_true(r->row, http_probe_closed(probes[round]));
            row_equal(r->row, fixture_stats(&fix).connections_evicted, round);
        }
        expect_get(probes[0], "/hello", 200);
        if (stranger) /* who is idle longest of all */
            expect_get(stranger, "/hello", 200);
        row_equal(r->row, fixture_stats(&fix).connections_refused, 0);
        fixture_stop(&fix);
    }
}

static void connections_that_never_asked_go_before_others(void **state)
{
    struct fixture *fix = *state;
    fix->config.max_connections = 8;
    fix->config.threads = 1; /* the order of answers is the order of becoming idle */
    fixture_start(fix);
    struct http_probe *good = open_and_get(fix, "/hello", 200);
    for (int i = 0; i < 7; i++)
        open_probe(fix);
    WAIT_UNTIL(fixture_stats(fix).connections_open >= 8);
    sleep_ms(50);
    open_and_get(fix, "/hello", 200);
    assert_int_equal(fixture_stats(fix).connections_evicted, 1);
    expect_get(good, "/hello", 200); /* older than all of them */
}

/* An hour would be their time, and a part of it their peace, were they in a stranger's way. */
static void a_flood_of_slow_requests_leaves_room(void **state)
{
    enum { LIMIT = 50 };
    static const struct {
        const char *row;
        unsigned in_all, per_address;
    } rows[] = {{"of many", LIMIT, 0}, {"of one address", 100, LIMIT}};
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture fix;
        fixture_init(&fix);
        fix.config.max_connections = r->in_all;
        fix.config.max_connections_per_address = r->per_address;
        if (r->per_address)
            fix.config.request_timeout_ns = 3600 * GS_NS_PER_S;
        fixture_start(&fix);
        for (int i = 0; i < LIMIT; i++)
            http_probe_text(open_and_post(&fix, "/echo", 9), "12");
        wait_buffered(&fix, 2 * LIMIT);
        /* the probe gives up before the deadline of 15 s makes room */
        row_equal(r->row, http_probe_get(fix.port, "/hello"), 200);
        row_equal(r->row, fixture_stats(&fix).connections_evicted, 1);
        row_equal(r->row, fixture_stats(&fix).connections_refused, 0);
        fixture_stop(&fix);
    }
}

/* Asks for more than the kernel takes off the server's hands, and does not read it. */
static struct http_probe *ask_and_do_not_read(struct fixture *fix)
{
    struct http_probe *probe = open_probe(fix);
    assert_int_equal(setsockopt(probe->fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int)), 0);
    assert_true(http_probe_text(probe, GET_MUCH));
    return probe;
}

/* Waits until so many answers are under way. */
static void wait_sending(const struct fixture *fix, uint64_t count)
{
    wait_buffered(fix, count * MUCH_BYTES);
}

static void a_flood_of_answers_that_are_not_read_leaves_room(void **state)
{
    enum { LIMIT = 6 };
    static const struct {
        const char *row;
        unsigned per_address;
        int sweeps; /* until the newcomer comes; 0: the machine's time goes on */
    } rows[] = {
        {"that have just begun", 0, 0},
        {"that are known to stall", 0, 2},
        {"of one address", LIMIT, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture fix;
        print_message("  %s\n", r->row);
        fixture_init(&fix);
        fix.config.max_connections = r->per_address ? 1000 : LIMIT;
        fix.config.max_connections_per_address = r->per_address;
        fix.config.response_timeout_ns = 3600 * GS_NS_PER_S;
        if (r->sweeps) {
            fix.config.request_timeout_ns = 2 * GS_NS_PER_S; /* likewise */
            fixture_stop_clock(&fix);
        }
        fixture_start(&fix);
        for (int k = 0; k < LIMIT; k++)
            ask_and_do_not_read(&fix);
        wait_sending(&fix, LIMIT);
        for (int k = 0; k < r->sweeps; k++)
            fixture_pass(&fix, 500);
        for (int k = 1; k < 4; k++) {
            assert_int_equal(http_probe_get(fix.port, "/hello"), 200);
            assert_true(fixture_stats(&fix).connections_evicted >= 1);
        }
        assert_int_equal(fixture_stats(&fix).response_timeouts, 0);
        fixture_stop(&fix);
    }
}

/* Room for two, and a clock that stands still. */
static void start_for_two(struct fixture *fix)
{
    fix->config.max_connections = 2;
    fix->config.request_timeout_ns = 2 * GS_NS_PER_S; /* it looks four times a second */
    fixture_stop_clock(fix);
    fixture_start(fix);
}

static void the_longest_idle_of_all_threads_goes(void **state)
{
    struct fixture *fix = *state;
    fix->config.threads = 2;
    start_for_two(fix);
    struct http_probe *oldest = open_and_get(fix, "/hello", 200);
    wait_buffered(fix, 0); /* it is idle a moment after its client has it */
    fixture_pass(fix, 500);
    struct http_probe *other = open_and_get(fix, "/hello", 200);
    wait_buffered(fix, 0);
    fixture_pass(fix, 500);
    struct http_probe *newest = open_and_get(fix, "/hello", 200);
    assert_true(http_probe_closed(oldest));
    wait_buffered(fix, 0);
    fixture_pass(fix, 500);
    open_and_get(fix, "/hello", 200);
    assert_true(http_probe_closed(other));
    expect_get(newest, "/hello", 200);
}

static void who_does_not_read_goes_before_who_is_idle(void **state)
{
    struct fixture *fix = *state;
    start_for_two(fix);
    struct http_probe *idle = open_and_get(fix, "/hello", 200);
    ask_and_do_not_read(fix);
    wait_sending(fix, 1);
    for (int i = 0; i < 2; i++)
        fixture_pass(fix, 500);
    open_and_get(fix, "/hello", 200);
    assert_int_equal(fixture_stats(fix).connections_evicted, 1);
    expect_get(idle, "/hello", 200);
}

static void who_has_just_begun_to_read_stays(void **state)
{
    struct fixture *fix = *state;
    start_for_two(fix);
    for (int i = 0; i < 2; i++)
        ask_and_do_not_read(fix);
    wait_sending(fix, 2);
    struct http_probe *newcomer = open_probe(fix);
    sleep_ms(50);
    assert_int_equal(fixture_stats(fix).connections_evicted, 0);
    fixture_pass(fix, 500);
    expect_get(newcomer, "/hello", 200);
}

static void read_bytes(const struct http_probe *probe, size_t count)
{
    char bytes[8192];
    for (ssize_t got; count > 0; count -= (size_t)got < count ? (size_t)got : count) {
        got = recv(probe->fd, bytes, sizeof(bytes), 0);
        assert_true(got > 0);
    }
}

static void who_reads_stays_when_another_does_not(void **state)
{
    struct fixture *fix = *state;
    start_for_two(fix);
    struct http_probe *reads = open_and_send(fix, GET_MUCH); /* is older */
    ask_and_do_not_read(fix);
    wait_sending(fix, 2);
    for (int i = 0; i < 3; i++) { /* slowly */
        read_bytes(reads, MUCH_BYTES / 8);
        fixture_pass(fix, 500);
    }
    open_and_get(fix, "/hello", 200);
    assert_int_equal(fixture_stats(fix).connections_evicted, 1);
    read_bytes(reads, MUCH_BYTES / 2); /* far more than any buffer between */
}

static void an_address_whose_connections_are_all_at_work_gets_no_more(void **state)
{
    struct fixture *fix = *state;
    fix->config.max_connections_per_address = 2;
    fixture_start(fix);
    struct http_probe *busy[2];
    for (int i = 0; i < 2; i++)
        busy[i] = open_and_post(fix, "/wait", 0);
    wait_for(&fix->waiting, 2);
    assert_true(http_probe_closed(open_probe(fix)));
    assert_int_equal(fixture_stats(fix).connections_refused, 1);
    atomic_store(&fix->gate, 1);
    for (int i = 0; i < 2; i++)
        expect_answer(busy[i], 200);
}

static long resident_kib(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long total = 0, resident = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &total, &resident), 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void two_thousand_connections_cost_little(void **state)
{
    enum { COUNT = 2000 };
    static const struct {
        const char *name, *bytes;
        long kib_each;
    } rows[] = {
        {"silent", "", 8},
        {"claiming 64 MiB",
         "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 67108864\r\n\r\n{\"Pod\":", 24},
    };
    struct http_probe *probes = test_calloc(COUNT, sizeof(*probes));
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture fix;
        fixture_init(&fix);
        fix.config.max_connections = COUNT + 100;
        fixture_start(&fix);
        assert_int_equal(http_probe_get(fix.port, "/hello"), 200);
        long before_kib = resident_kib();
        for (int i = 0; i < COUNT; i++) {
            assert_true(http_probe_open(&probes[i], fix.port));
            assert_true(http_probe_text(&probes[i], "%s", r->bytes));
        }
        WAIT_UNTIL(fixture_stats(&fix).connections_open >= COUNT);
        WAIT_UNTIL(http_probe_get(fix.port, "/hello") == 200); /* on a busy machine, too */
        assert_int_equal(fixture_stats(&fix).connections_evicted, 0);
        long used_kib = resident_kib() - before_kib;
        print_message("  %s: %ld KiB for %d connections\n", r->name, used_kib, COUNT);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        assert_in_range(used_kib, 0, COUNT * r->kib_each);
#endif
        for (int i = 0; i < COUNT; i++)
            http_probe_close(&probes[i]);
        fixture_stop(&fix);
    }
    test_free(probes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(slow_requests_are_cut_while_a_good_client_is_served),
        WITH_FIXTURE(idle_connections_have_their_own_time),
        WITH_FIXTURE(a_client_that_does_not_take_its_answer_is_cut),
        WITH_FIXTURE(handlers_have_no_deadline),
        cmocka_unit_test(at_the_limit_the_longest_idle_goes),
        WITH_FIXTURE(connections_that_never_asked_go_before_others),
        cmocka_unit_test(a_flood_of_slow_requests_leaves_room),
        cmocka_unit_test(a_flood_of_answers_that_are_not_read_leaves_room),
        WITH_FIXTURE(the_longest_idle_of_all_threads_goes),
        WITH_FIXTURE(who_does_not_read_goes_before_who_is_idle),
        WITH_FIXTURE(who_has_just_begun_to_read_stays),
        WITH_FIXTURE(who_reads_stays_when_another_does_not),
        WITH_FIXTURE(an_address_whose_connections_are_all_at_work_gets_no_more),
        cmocka_unit_test(two_thousand_connections_cost_little),
    };
    return GS_RUN(tests);
}
