/* SPDX-License-Identifier: Apache-2.0 */
/* When a request may go out, and what is known of one that failed. */
#include "fixture.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* What the API server itself says is final; what a proxy says, or nobody, is not. */
static void the_servers_own_failure_is_told_from_a_lost_answer(void **state)
{
    static const char failed[] = "{\"kind\":\"Status\",\"code\":500,\"message\":\"a webhook\"}";
    static const char late[] = "{\"kind\":\"Status\",\"code\":504,\"message\":\"timeout\"}";
    static const struct {
        const char *row;
        struct fake_rule rule;
        bool answered;
    } rows[] = {
        {"a webhook failed", {.match = "", .status = 500, .body = failed}, true},
        {"its time was over", {.match = "", .status = 504, .body = late}, false},
        {"a proxy", {.match = "", .status = 502, .body = "<html>Bad Gateway</html>"}, false},
        {"no answer", {.match = "", .status = -1, .end = FAKE_CUT}, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f = {0};
        struct gs_error err = {0};
        bool answered = false;
        const struct gs_binding binding = {
            .ns = "d", .name = "p", .uid = "u", .node = "n", .ret_answered = &answered};
        fixture_start(&f, &r->rule, 1);
        assert_int_equal(f.kube.ops->bind(f.kube.ctx, &binding, &err), -1);
        row_text(r->row, gs_code_name(err.code), gs_code_name(GS_EIO));
        row_equal(r->row, answered, r->answered);
        fixture_stop(&f);
    }
}

/* A machine that falls asleep when the clock is read so often, and wakes after the binding's own
 * deadline, long before that of requests. */
static struct {
    _Atomic int reads, sleeps_at;
} machine;

static int64_t read_machine(void *ctx)
{
    int64_t now_ns = gs_clock_now_ns(gs_clock_system());
    return ++machine.reads >= machine.sleeps_at ? now_ns + 5 * GS_NS_PER_S : now_ns;
}

/* Curl's own timeout stands still meanwhile. Wherever it falls asleep, GS_EBUSY says that nothing
 * went out, until that is not true any more. */
static void nothing_is_sent_by_a_machine_that_slept_before(void **state)
{
    static const struct fake_rule rules[] = {{.match = "", .body = "{}"}};
    static const struct gs_clock clock = {read_machine, read_machine, NULL};
    enum gs_code code = GS_EBUSY;
    for (int sleeps_at = 2; code == GS_EBUSY; sleeps_at++) {
        struct fixture f = {.clock = &clock, .patience_ns = 15 * GS_NS_PER_S};
        struct gs_error err = {0};
        machine.sleeps_at = 1000;
        fixture_start(&f, rules, 1);
        const struct gs_binding binding = {.ns = "d",
                                           .name = "p",
                                           .uid = "u",
                                           .node = "n",
                                           .deadline_ns =
                                               gs_clock_now_ns(gs_clock_system()) + GS_NS_PER_S};
        machine.reads = 0;
        machine.sleeps_at = sleeps_at;
        assert_int_equal(f.kube.ops->bind(f.kube.ctx, &binding, &err), -1);
        nanosleep(&(const struct timespec){.tv_nsec = 20 * GS_NS_PER_MS}, NULL);
        code = err.code;
        if (code == GS_EBUSY && fake_api_count(f.api, "") > 0)
            fail_msg("asleep at reading %d: %s, but it was sent", sleeps_at, err.msg);
        assert_in_range(sleeps_at, 2, 50);
        fixture_stop(&f);
    }
    assert_int_equal(code, GS_ETIMEOUT);
}

/* Its queue of connections is full: none is made, and nothing was sent. */
static void a_server_that_is_not_reached_in_time_has_done_nothing(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fds[4];
    for (size_t i = 0; i < GS_COUNT_OF(fds); i++)
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fds[0], (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(fds[0], 0), 0);
    assert_int_equal(getsockname(fds[0], (struct sockaddr *)&at, &len), 0);
    for (size_t i = 1; i < GS_COUNT_OF(fds); i++)
        (void)connect(fds[i], (struct sockaddr *)&at, len);
    struct gs_kube_config config = {0};
    struct fixture f = {0};
    assert_true(asprintf(&config.server, "http://127.0.0.1:%d", ntohs(at.sin_port)) > 0);
    fixture_start_with(&f, NULL, 0, &config);
    fixture_bind_runs_out(&f);
    fixture_stop(&f);
    for (size_t i = 0; i < GS_COUNT_OF(fds); i++)
        close(fds[i]);
}

/* What the kernel has not sent when a request is given up must not arrive when the network is back:
 * here the peer's window is full. */
static void what_is_given_up_is_not_sent_later(void **state)
{
    enum { BODY_BYTES = 8 << 20 };
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int small = 4096, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    struct gs_kube_config config = {0};
    struct fixture f = {0};
    struct gs_error err = {0};
    assert_true(asprintf(&config.server, "http://127.0.0.1:%d", ntohs(at.sin_port)) > 0);
    fixture_start_with(&f, NULL, 0, &config);
    _cleanup_free_ char *bytes = calloc(1, BODY_BYTES);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(100);
    const struct gs_kube_request request = {.method = "POST",
                                            .path = "/x",
                                            .body = bytes,
                                            .body_len = BODY_BYTES,
                                            .timeout_ns = 300 * GS_NS_PER_MS};
    int status;
    assert_int_equal(gs_kube_request(f.client, &request, &status, &body, &err), -1);
    int peer = accept(listener, NULL, NULL);
    char part[4096];
    size_t got = 0;
    ssize_t n;
    while ((n = recv(peer, part, sizeof(part), 0)) > 0)
        got += (size_t)n;
    assert_int_equal(n, -1);
    assert_int_equal(errno, ECONNRESET);
    assert_true(got < BODY_BYTES);
    close(peer);
    close(listener);
    fixture_stop(&f);
}

static int option(int fd, int level, int name)
{
    int value = 0;
    socklen_t len = sizeof(value);
    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

/* The client's socket among this process's. */
static int find_socket(int port)
{
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in peer;
        socklen_t len = sizeof(peer);
        if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && ntohs(peer.sin_port) == port)
            return fd;
    }
    return -1;
}

static void a_dead_peer_is_found_in_ten_seconds(void **state)
{
    static const struct fake_rule rules[] = {{.match = "", .body = "{}"}};
    struct fixture f = {0};
    struct gs_error err = {0};
    fixture_start(&f, rules, 1);
    assert_int_equal(fixture_get(&f, "/x", NULL, &err), 200);
    int fd = find_socket(fake_api_port(f.api));
    assert_true(fd >= 0);
    assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    int first_s = option(fd, IPPROTO_TCP, TCP_KEEPIDLE);
    int every_s = option(fd, IPPROTO_TCP, TCP_KEEPINTVL);
    int given_up_ms = option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT);
    assert_in_range(given_up_ms, 1000 * first_s + 1, 10000); /* a probe goes out before */
    assert_int_equal((given_up_ms - 1000 * first_s) % (1000 * every_s), 0); /* at once when due */
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_servers_own_failure_is_told_from_a_lost_answer),
        cmocka_unit_test(nothing_is_sent_by_a_machine_that_slept_before),
        cmocka_unit_test(a_server_that_is_not_reached_in_time_has_done_nothing),
        cmocka_unit_test(what_is_given_up_is_not_sent_later),
        cmocka_unit_test(a_dead_peer_is_found_in_ten_seconds),
    };
    return GS_RUN(tests);
}
