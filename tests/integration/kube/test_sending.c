/* SPDX-License-Identifier: Apache-2.0 */
/* When a request may go out, and what is known of one that failed. */
#include "fixture.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
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
        bool answered = false;
        fixture_start(&f, &r->rule, 1);
        assert_int_equal(fixture_bind(&f, 0, &answered), -1);
        row_text(r->row, gs_code_name(f.err.code), gs_code_name(GS_EIO));
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
    static const struct gs_clock clock = {read_machine, read_machine, NULL};
    enum gs_code code = GS_EBUSY;
    for (int sleeps_at = 2; code == GS_EBUSY; sleeps_at++) {
        struct fixture f = {.clock = &clock, .patience_ns = 15 * GS_NS_PER_S};
        machine.sleeps_at = 1000;
        fixture_start(&f, anything, 1);
        machine.reads = 0;
        machine.sleeps_at = sleeps_at;
        assert_int_equal(fixture_bind(&f, GS_NS_PER_S, NULL), -1);
        sleep_ms(20);
        code = f.err.code;
        if (code == GS_EBUSY && fake_api_count(f.api, "") > 0)
            fail_msg("asleep at reading %d: %s, but it was sent", sleeps_at, f.err.msg);
        assert_in_range(sleeps_at, 2, 50);
        fixture_stop(&f);
    }
    assert_int_equal(code, GS_ETIMEOUT);
}

/* A socket that listens, with room for so many and that much; fixture_start() for it. */
static int listen_for(struct fixture *f, int room_bytes, int backlog, struct sockaddr_in *ret_at)
{
    socklen_t len = sizeof(*ret_at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct gs_kube_config config = {0};
    *ret_at =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room_bytes, sizeof(room_bytes));
    assert_int_equal(bind(listener, (struct sockaddr *)ret_at, len), 0);
    assert_int_equal(listen(listener, backlog), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)ret_at, &len), 0);
    assert_true(asprintf(&config.server, "http://127.0.0.1:%d", ntohs(ret_at->sin_port)) > 0);
    fixture_start_with(f, NULL, 0, &config);
    return listener;
}

/* Its queue of connections is full: none is made, and nothing was sent. */
static void a_server_that_is_not_reached_in_time_has_done_nothing(void **state)
{
    struct fixture f = {0};
    struct sockaddr_in at;
    int listener = listen_for(&f, 1 << 16, 0, &at), fds[3];
    GS_FOR_EACH_ROW (fd, fds) {
        *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(*fd, (struct sockaddr *)&at, sizeof(at));
    }
    assert_int_equal(fixture_bind(&f, 200 * GS_NS_PER_MS, NULL), -1);
    assert_int_equal(f.err.code, GS_EBUSY);
    fixture_stop(&f);
    GS_FOR_EACH_ROW (fd, fds)
        close(*fd);
    close(listener);
}

/* What the kernel has not sent when a request is given up must not arrive when the network is back:
 * here the peer's window is full. */
static void what_is_given_up_is_not_sent_later(void **state)
{
    enum { BODY_BYTES = 8 << 20 };
    static const char bytes[BODY_BYTES];
    struct fixture f = {0};
    struct sockaddr_in at;
    int listener = listen_for(&f, 4096, 1, &at);
    const struct gs_kube_request request = {.method = "POST",
                                            .path = "/x",
                                            .body = bytes,
                                            .body_len = BODY_BYTES,
                                            .timeout_ns = 300 * GS_NS_PER_MS};
    assert_int_equal(fixture_send(&f, &request), 0);
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
    struct fixture f = {0};
    fixture_start(&f, anything, 1);
    assert_int_equal(fixture_get(&f, "/x"), 200);
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
