/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_peer.h"

#include <signal.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "gpushare/base/num.h"

/* A plugin process of its own, asked ten thousand times: what does it hold, and does it grow? */
#define ROUNDS        10000
#define MAX_RSS_KB    3072
#define MAX_GROWTH_KB 128
/* Ids of 20 characters, NUMA nodes 0 and 1 in turn, and the frame. */
#define LIST_BYTES(devices) (5 + 33 * (size_t)(devices))
#define ALLOCATE            PEER_GRPC_HEADERS("/v1beta1.DevicePlugin/Allocate")

#ifdef __SANITIZE_ADDRESS__
#define COUNTS_MEMORY false /* the sanitizer's shadow would be measured */
#else
#define COUNTS_MEMORY true
#endif

struct fixture {
    char dir[64];
    char socket[96];
    pid_t pid;
    int to_child;
    FILE *from_child;
    struct gs_loop *loop;
};

static void expect_line(struct fixture *f, const char *word)
{
    char line[256] = "";
    do {
        assert_non_null(fgets(line, sizeof(line), f->from_child));
    } while (strncmp(line, word, strlen(word)) != 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    int in[2], out[2];
    snprintf(f->dir, sizeof(f->dir), "/tmp/gs-memory-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->socket, sizeof(f->socket), "%s/peer.sock", f->dir);
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    f->pid = fork();
    if (f->pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[1]);
        close(out[0]);
        execl(GS_BINARY_DIR "/tests/grpc_peer", "grpc_peer", f->dir, NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    f->to_child = in[1];
    f->from_child = fdopen(out[0], "r");
    assert_int_equal(gs_loop_new(gs_clock_system(), &f->loop, NULL), 0);
    expect_line(f, "listening");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    int status = -1;
    close(f->to_child); /* it stops at the end of its input */
    assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
    assert_int_equal(status, 0);
    fclose(f->from_child);
    gs_loop_free(f->loop);
    assert_int_equal(rmdir(f->dir), 0); /* it removed its socket */
    free(f);
    return 0;
}

static long status_kb(pid_t pid, const char *name)
{
    char path[64], line[256];
    long kb = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        const char *value = line + strlen(name) + 1;
        uint32_t number;
        if (strncmp(line, name, strlen(name)) != 0)
            continue;
        value += strspn(value, " \t");
        if (gs_parse_u32(value, strspn(value, "0123456789"), &number))
            kb = number;
    }
    fclose(file);
    return kb;
}

static void dial(struct fixture *f, struct peer *peer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, f->socket, sizeof(address.sun_path) - 1);
    close(peer_open(peer, f->loop, false));
    close(peer->fd);
    peer->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(connect(peer->fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

/* Waits for the other process, unlike peer_run(). */
static void wait_for(struct peer *peer, const struct peer_stream *stream, size_t body_len)
{
    while (!stream->closed && stream->body_len < body_len && !peer->eof) {
        if (!peer_turn(peer))
            usleep(20);
    }
}

static void allocate(struct peer *peer, unsigned round)
{
    char body[] = "\0\0\0\0\x0C\x0A\x0A\x0A\x08id------";
    snprintf(body + 11, 7, "%06u", round);
    struct peer_stream *stream = peer_request(peer, ALLOCATE, body, sizeof(body) - 1, true);
    wait_for(peer, stream, SIZE_MAX);
    assert_true(stream->closed);
    assert_string_equal(peer_header(stream, "grpc-status"), "0");
    free(stream->body);
    peer->stream_count--;
}

static void print_memory(const char *when, pid_t pid)
{
    print_message("%s: RSS %ld kB, anonymous %ld kB, threads %ld\n", when, status_kb(pid, "VmRSS"),
                  status_kb(pid, "RssAnon"), status_kb(pid, "Threads"));
}

static void ten_thousand_rounds_leave_no_trace(void **state)
{
    struct fixture *f = *state;
    struct peer peer;
    dial(f, &peer);
    struct peer_stream *list = peer_request(
        &peer, PEER_GRPC_HEADERS("/v1beta1.DevicePlugin/ListAndWatch"), "\0\0\0\0\0", 5, true);
    wait_for(&peer, list, LIST_BYTES(10));
    for (unsigned i = 0; i < ROUNDS / 10; i++)
        allocate(&peer, i);
    print_memory("after 1,000 rounds", f->pid);
    long before_kb = status_kb(f->pid, "RssAnon");
    for (unsigned i = ROUNDS / 10; i < ROUNDS; i++)
        allocate(&peer, i);
    print_memory("after 10,000 rounds", f->pid);
    if (COUNTS_MEMORY) {
        assert_in_range(status_kb(f->pid, "VmRSS"), 1, MAX_RSS_KB);
        assert_true(status_kb(f->pid, "RssAnon") - before_kb <= MAX_GROWTH_KB);
    }
    assert_int_equal(status_kb(f->pid, "Threads"), 1);
    peer_close(&peer);
}

static void connections_leave_no_trace(void **state)
{
    struct fixture *f = *state;
    long before_kb = 0;
    for (unsigned i = 0; i < ROUNDS / 10; i++) {
        struct peer peer;
        dial(f, &peer);
        allocate(&peer, i);
        peer_close(&peer);
        if (i == ROUNDS / 100)
            before_kb = status_kb(f->pid, "RssAnon");
    }
    print_memory("after 1,000 connections", f->pid);
    if (COUNTS_MEMORY)
        assert_true(status_kb(f->pid, "RssAnon") - before_kb <= MAX_GROWTH_KB);
}

static void a_long_list_is_given_back_after_use(void **state)
{
    struct fixture *f = *state;
    struct peer peer;
    static const char many[] = "devices 65000 65000\n", few[] = "devices 10 9\n";
    dial(f, &peer);
    struct peer_stream *list = peer_request(
        &peer, PEER_GRPC_HEADERS("/v1beta1.DevicePlugin/ListAndWatch"), "\0\0\0\0\0", 5, true);
    wait_for(&peer, list, LIST_BYTES(10));
    assert_int_equal(write(f->to_child, many, sizeof(many) - 1), sizeof(many) - 1);
    expect_line(f, "devices");
    wait_for(&peer, list, LIST_BYTES(10) + LIST_BYTES(65000));
    print_memory("with 65,000 devices", f->pid);
    assert_int_equal(write(f->to_child, few, sizeof(few) - 1), sizeof(few) - 1);
    expect_line(f, "devices");
    wait_for(&peer, list, LIST_BYTES(10) + LIST_BYTES(65000) + LIST_BYTES(10));
    usleep(100000);
    print_memory("with 10 devices again", f->pid);
    if (COUNTS_MEMORY)
        assert_in_range(status_kb(f->pid, "VmRSS"), 1, MAX_RSS_KB);
    peer_close(&peer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(ten_thousand_rounds_leave_no_trace),
        TEST(connections_leave_no_trace),
        TEST(a_long_list_is_given_back_after_use),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
