/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_peer.h"

#include "alloc_fail.h"
#include "gpushare/grpc/kubelet_link.h"
#include "grpc/server.h"

/*
 * The n-th allocation of this layer fails, for every n: nothing may crash or leak (the sanitizer
 * looks), and who waits gets an answer or a broken connection. Those inside nghttp2 are not ours.
 */

/* ---- the service ---- */

static void allocate(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *wanted,
                     size_t count)
{
    const struct gs_dp_pair pair = {"k", "v"};
    const char *const name = "v.c/d=0";
    const struct gs_dp_path path = {"/h", "/c"};
    const struct gs_dp_container answer = {&pair, 1, &path, 1, &path, 1, &pair, 1, &name, 1};
    gs_dp_allocate_reply(call, &answer, 1);
}

static void pre_start(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *ids)
{
    struct gs_error why = {0};
    gs_fail(&why, GS_EIO, "100%%");
    gs_dp_call_fail(call, &why);
}

static const struct gs_dp_ops ops = {allocate, pre_start};
static const char *const device = "a";

/* As peer_run(), but only our own side runs out of memory. */
static void run(struct peer *peer)
{
    for (int quiet = 0; quiet < 3; quiet++) {
        alloc_fail_pause(false);
        gs_loop_step(peer->loop, 0, NULL);
        alloc_fail_pause(true);
        if (!peer->eof && peer_turn(peer))
            quiet = 0;
    }
}

/* Whether so many allocations were needed. */
static bool serve_once(unsigned nth)
{
    struct gs_loop *loop = NULL;
    struct gs_dp *dp = NULL;
    struct peer peer;
    assert_int_equal(gs_loop_new(gs_clock_system(), &loop, NULL), 0);
    int fd = peer_open(&peer, loop, false);
    alloc_fail_begin(nth);
    int result = gs_dp_new(loop, &ops, NULL, &dp, NULL);
    if (result == 0)
        result = gs_dp_set_devices(dp, &device, 1, NULL);
    if (result == 0)
        result = gs_dp_adopt(dp, fd, NULL);
    else
        close(fd);
    alloc_fail_pause(true);
    if (result == 0) {
        static const char *const paths[] = {
            PEER_GRPC_HEADERS("/v1beta1.DevicePlugin/ListAndWatch"),
            PEER_GRPC_HEADERS("/v1beta1.DevicePlugin/GetDevicePluginOptions"),
            PEER_GRPC_HEADERS("/v1beta1.DevicePlugin/Allocate") "grpc-timeout: 5S\n",
            PEER_GRPC_HEADERS("/v1beta1.DevicePlugin/PreStartContainer"),
        };
        for (size_t i = 0; i < GS_COUNT_OF(paths); i++) {
            bool is_allocate = i == 2;
            struct peer_stream *stream = peer_request(
                &peer, paths[i], is_allocate ? "\0\0\0\0\5\x0A\3\x0A\1x" : "\0\0\0\0\0",
                is_allocate ? 10 : 5, true);
            run(&peer);
            assert_true(i == 0 || stream->closed || peer.eof);
        }
    }
    bool reached = alloc_fail_end();
    if (dp)
        gs_dp_free(dp);
    peer_close(&peer);
    gs_loop_free(loop);
    return reached;
}

static void a_server_survives_every_failing_allocation(void **state)
{
    unsigned nth = 1;
    while (nth < 10000 && serve_once(nth))
        nth++;
    assert_in_range(nth, 10, 9999); /* there were some, and in the end none was left to fail */
}

/* ---- the clients ---- */

static void answer_empty(struct gs_grpc_call *call, const void *message, size_t len, void *ctx)
{
    uint8_t *body;
    gs_grpc_call_reply(call, gs_grpc_message_new(0, &body));
}

static const struct gs_grpc_method methods[] = {
    {"/v1beta1.Registration/Register", answer_empty, NULL},
};

static void on_link(void *ctx, enum gs_kubelet_link_event event, const struct gs_error *failure)
{
    if (event == GS_KUBELET_LINK_REGISTERED)
        ++*(unsigned *)ctx;
}

static bool link_once(const char *dir, unsigned nth)
{
    char path[128];
    struct gs_loop *loop = NULL;
    struct gs_dp *dp = NULL;
    struct gs_grpc_server *kubelet = NULL;
    struct gs_kubelet_link *link = NULL;
    unsigned registered = 0;
    const struct gs_kubelet_link_options options = {.dir = dir,
                                                    .endpoint = "p.sock",
                                                    .resource_name = "r",
                                                    .event = on_link,
                                                    .ctx = &registered};
    snprintf(path, sizeof(path), "%s/kubelet.sock", dir);
    assert_int_equal(gs_loop_new(gs_clock_system(), &loop, NULL), 0);
    assert_int_equal(gs_dp_new(loop, &ops, NULL, &dp, NULL), 0);
    assert_int_equal(gs_grpc_server_new(loop, methods, 1, NULL, &kubelet, NULL), 0);
    assert_int_equal(gs_grpc_server_listen(kubelet, path, NULL), 0);
    alloc_fail_begin(nth);
    int linked = gs_kubelet_link_new(loop, dp, &options, &link, NULL);
    for (int i = 0; i < 400 && (i < 30 || (linked == 0 && registered == 0)); i++)
        gs_loop_step(loop, GS_NS_PER_MS, NULL);
    bool reached = alloc_fail_end();
    assert_true(linked < 0 || registered > 0); /* it got there in the end */
    if (link)
        gs_kubelet_link_free(link);
    gs_grpc_server_free(kubelet);
    gs_dp_free(dp);
    gs_loop_free(loop);
    return reached;
}

static void clients_survive_every_failing_allocation(void **state)
{
    char dir[64] = "/tmp/gs-nomem-XXXXXX";
    unsigned nth = 1;
    assert_non_null(mkdtemp(dir));
    while (nth < 1000 && link_once(dir, nth))
        nth++;
    assert_in_range(nth, 10, 999);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_survives_every_failing_allocation),
        cmocka_unit_test(clients_survive_every_failing_allocation),
    };
    return GS_RUN(tests);
}
