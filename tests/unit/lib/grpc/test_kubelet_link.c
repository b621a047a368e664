/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_peer.h"

#include <sys/stat.h>

#include "gpushare/grpc/kubelet_link.h"
#include "grpc/server.h"

/* A kubelet in miniature: Registration on kubelet.sock, and a ListAndWatch stream back. */
struct fixture {
    char dir[64];
    char own[96];
    char kubelet_path[96];
    int64_t skew_ns;    /* added to the real clock, … */
    int64_t stopped_ns; /* … or to this, where it is not 0 */
    struct gs_clock clock;
    struct gs_loop *loop;
    struct gs_dp *dp;
    struct gs_kubelet_link *link;
    struct gs_grpc_server *kubelet;
    enum gs_grpc_status status; /* what Register answers */
    bool silent;                /* it does not answer */
    struct gs_grpc_call *waiting;
    char request[256];
    size_t request_len;
    unsigned requests;
    char log[200]; /* R registered, L lost, F failed */
    struct gs_error failure;
};

static int64_t skewed_clock(void *ctx)
{
    const struct fixture *f = ctx;
    return (f->stopped_ns ? f->stopped_ns : gs_clock_now_ns(gs_clock_system())) + f->skew_ns;
}

static void on_register(struct gs_grpc_call *call, const void *message, size_t len, void *ctx)
{
    struct fixture *f = ctx;
    f->requests++;
    f->request_len = len;
    assert_true(len <= sizeof(f->request));
    memcpy(f->request, message, len);
    if (f->silent) {
        f->waiting = call;
        return;
    }
    uint8_t *body;
    if (f->status == GS_GRPC_OK)
        gs_grpc_call_reply(call, gs_grpc_message_new(0, &body));
    else
        gs_grpc_call_finish(call, f->status, "the resource is taken");
}

static void on_register_ended(struct gs_grpc_call *call, void *ctx)
{
    struct fixture *f = ctx;
    f->waiting = NULL;
    gs_grpc_call_finish(call, GS_GRPC_OK, NULL);
}

static const struct gs_grpc_method methods[] = {
    {"/v1beta1.Registration/Register", on_register, on_register_ended}};

static void on_event(void *ctx, enum gs_kubelet_link_event event, const struct gs_error *failure)
{
    struct fixture *f = ctx;
    size_t len = strlen(f->log);
    assert_true(len + 1 < sizeof(f->log));
    f->log[len] = event == GS_KUBELET_LINK_REGISTERED ? 'R'
                  : event == GS_KUBELET_LINK_LOST     ? 'L'
                                                      : 'F';
    assert_int_equal(failure != NULL, event == GS_KUBELET_LINK_FAILED);
    if (failure)
        f->failure = *failure;
}

static void allocate(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *wanted,
                     size_t count)
{
    gs_dp_allocate_reply(call, NULL, 0);
}

static void pre_start(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *ids)
{
    gs_dp_pre_start_reply(call);
}

static int setup(void **state)
{
    static const struct gs_dp_ops ops = {allocate, pre_start};
    struct fixture *f = calloc(1, sizeof(*f));
    snprintf(f->dir, sizeof(f->dir), "/tmp/gs-link-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->own, sizeof(f->own), "%s/gpu.sock", f->dir);
    snprintf(f->kubelet_path, sizeof(f->kubelet_path), "%s/kubelet.sock", f->dir);
    f->clock = (struct gs_clock){skewed_clock, skewed_clock, f};
    assert_int_equal(gs_loop_new(&f->clock, &f->loop, NULL), 0);
    assert_int_equal(gs_dp_new(f->loop, &ops, f, &f->dp, NULL), 0);
    *state = f;
    return 0;
}

static void start_kubelet(struct fixture *f)
{
    assert_int_equal(gs_grpc_server_new(f->loop, methods, 1, f, &f->kubelet, NULL), 0);
    assert_int_equal(gs_grpc_server_listen(f->kubelet, f->kubelet_path, NULL), 0);
}

static void stop_kubelet(struct fixture *f)
{
    if (f->kubelet)
        gs_grpc_server_free(f->kubelet);
    f->kubelet = NULL;
}

static void start_link(struct fixture *f)
{
    const struct gs_kubelet_link_options options = {
        .dir = f->dir,
        .endpoint = "gpu.sock",
        .resource_name = "aliyun.com/gpu-mem",
        .event = on_event,
        .ctx = f,
    };
    assert_int_equal(gs_kubelet_link_new(f->loop, f->dp, &options, &f->link, NULL), 0);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->link)
        gs_kubelet_link_free(f->link);
    stop_kubelet(f);
    gs_dp_free(f->dp);
    gs_loop_free(f->loop);
    rmdir(f->dir);
    free(f);
    return 0;
}

/* Runs the loop until the log is as expected, for 3 s at most, and then a little more. */
static void expect(struct fixture *f, const char *log)
{
    for (int i = 0; i < 300 && strcmp(f->log, log) != 0; i++)
        assert_int_equal(gs_loop_step(f->loop, 10 * GS_NS_PER_MS, NULL), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(gs_loop_step(f->loop, GS_NS_PER_MS, NULL), 0);
    assert_string_equal(f->log, log);
}

static int dial(struct fixture *f)
{
    int fd = peer_dial(f->own);
    assert_true(fd >= 0);
    return fd;
}

/* What the kubelet does after Register: dials the plugin and watches. */
static void watch_plugin(struct fixture *f, struct peer *peer)
{
    close(peer_open(peer, f->loop, false));
    close(peer->fd);
    peer->fd = dial(f);
    peer_request(peer, PEER_GRPC_HEADERS("/v1beta1.DevicePlugin/ListAndWatch"), "\0\0\0\0\0", 5,
                 true);
    peer_run(peer);
    assert_int_equal(gs_dp_streams(f->dp), 1);
}

static void a_kubelet_that_comes_later_is_found_and_asked_again(void **state)
{
    struct fixture *f = *state;
    start_link(f);
    for (int i = 0; i < 20; i++) {
        gs_loop_step(f->loop, 10 * GS_NS_PER_MS, NULL);
        f->skew_ns += GS_NS_PER_S;
    }
    assert_int_equal(f->log[0], 'F');
    assert_int_equal(f->failure.code, GS_EIO);
    memset(f->log, 0, sizeof(f->log));
    f->status = GS_GRPC_UNAVAILABLE;
    start_kubelet(f);
    while (!f->log[0])
        assert_int_equal(gs_loop_step(f->loop, 10 * GS_NS_PER_MS, NULL), 0);
    assert_non_null(strstr(f->failure.msg, "the resource is taken"));
    f->status = GS_GRPC_OK; /* the pauses are short again */
    expect(f, "FR");
}

static void a_restarted_kubelet_is_registered_with_at_once(void **state)
{
    struct fixture *f = *state;
    struct peer peer;
    start_kubelet(f);
    start_link(f);
    expect(f, "R");
    watch_plugin(f, &peer);
    stop_kubelet(f);
    expect(f, "RL");
    unlink(f->own); /* a starting kubelet 1.20 deletes it */
    start_kubelet(f);
    for (int i = 0; i < 300 && f->requests < 2; i++)
        gs_loop_step(f->loop, 10 * GS_NS_PER_MS, NULL);
    close(dial(f)); /* our socket is back */
    expect(f, "RLR");
    peer_close(&peer);
}

static void a_deleted_socket_of_ours_is_made_again(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    char away[80], old[96];
    start_kubelet(f);
    start_link(f);
    expect(f, "R");
    unlink(f->own);
    expect(f, "RR");
    assert_int_equal(lstat(f->own, &st), 0);
    close(dial(f));
    stop_kubelet(f);
    expect(f, "RRL");
    snprintf(away, sizeof(away), "%s.away", f->dir);
    snprintf(old, sizeof(old), "%s/gpu.sock", away);
    assert_int_equal(rename(f->dir, away), 0); /* another folder in its place */
    assert_int_equal(mkdir(f->dir, 0700), 0);
    start_kubelet(f);
    expect(f, "RRLR");
    close(dial(f));
    unlink(old);
    assert_int_equal(rmdir(away), 0);
}

static void without_a_stream_it_registers_again(void **state)
{
    struct fixture *f = *state;
    struct peer peer;
    start_kubelet(f);
    start_link(f);
    expect(f, "R");
    f->skew_ns += 11 * GS_NS_PER_S;
    expect(f, "RR");
    watch_plugin(f, &peer);
    f->skew_ns += 11 * GS_NS_PER_S;
    expect(f, "RR");
    f->skew_ns += 11 * GS_NS_PER_S;
    expect(f, "RR");
    peer_close(&peer);
    for (int i = 0; i < 5; i++)
        gs_loop_step(f->loop, 0, NULL);
    f->skew_ns += 11 * GS_NS_PER_S;
    expect(f, "RRR");
}

static void an_endpoint_is_a_name_not_a_path(void **state)
{
    struct fixture *f = *state;
    struct gs_error err = {0};
    const struct gs_kubelet_link_options options = {
        .dir = f->dir, .endpoint = "../gpu.sock", .resource_name = "r"};
    assert_int_equal(gs_kubelet_link_new(f->loop, f->dp, &options, &f->link, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    assert_null(f->link);
}

static void start_with_a_silent_kubelet(struct fixture *f)
{
    f->silent = true;
    start_kubelet(f);
    start_link(f);
    while (f->requests == 0)
        assert_int_equal(gs_loop_step(f->loop, 10 * GS_NS_PER_MS, NULL), 0);
}

static void a_cancelled_registration_is_never_told(void **state)
{
    struct fixture *f = *state;
    start_with_a_silent_kubelet(f);
    gs_kubelet_link_free(f->link);
    f->link = NULL;
    expect(f, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_kubelet_that_comes_later_is_found_and_asked_again),
        TEST(a_restarted_kubelet_is_registered_with_at_once),
        TEST(a_deleted_socket_of_ours_is_made_again),
        TEST(without_a_stream_it_registers_again),
        TEST(an_endpoint_is_a_name_not_a_path),
        TEST(a_cancelled_registration_is_never_told),
    };
    return GS_RUN(tests);
}
