/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_peer.h"

#include "gpushare/grpc/kubelet_link.h"
#include "gpushare/grpc/pod_resources.h"
#include "gpushare/grpc/server.h"

/*
 * The n-th allocation of this layer fails, for every n: nothing may crash or leak (the sanitizer
 * looks), and who waits gets an answer or a broken connection. The linker's --wrap sends our
 * objects' allocations here; those inside nghttp2 are not ours.
 */
static long countdown = -1; /* allocations until one fails; below zero: none */

static bool fails_now(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *mem, size_t size);
void *__real_reallocarray(void *mem, size_t count, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t len);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *mem, size_t size);
void *__wrap_reallocarray(void *mem, size_t count, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *mem, size_t size)
{
    return fails_now() ? NULL : __real_realloc(mem, size);
}

void *__wrap_reallocarray(void *mem, size_t count, size_t size)
{
    return fails_now() ? NULL : __real_reallocarray(mem, count, size);
}

char *__wrap_strdup(const char *text)
{
    return fails_now() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t len)
{
    return fails_now() ? NULL : __real_strndup(text, len);
}

/* ---- the service ---- */

static void allocate(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *wanted,
                     size_t count)
{
    const struct gs_dp_pair pair = {"k", "v"};
    const char *const name = "v.c/d=0";
    const struct gs_dp_container answer = {&pair, 1, &pair, 1, &name, 1};
    gs_dp_allocate_reply(call, &answer, 1);
}

static void pre_start(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *ids)
{
    struct gs_error why = {0};
    gs_fail(&why, GS_EIO, "100%%");
    gs_dp_call_fail(call, &why);
}

static const struct gs_dp_ops ops = {allocate, pre_start, NULL};
static const struct gs_dp_device device = {"a", true, 1};

/* As peer_run(), but only our own side runs out of memory. */
static void run(struct peer *peer, long *left)
{
    for (int quiet = 0; quiet < 3; quiet++) {
        countdown = *left;
        gs_loop_step(peer->loop, 0, NULL);
        *left = countdown;
        countdown = -1;
        if (!peer->eof && peer_turn(peer))
            quiet = 0;
    }
}

static void serve_once(long nth, bool *ret_reached)
{
    struct gs_loop *loop = NULL;
    struct gs_dp *dp = NULL;
    struct peer peer;
    long left = -1;
    assert_int_equal(gs_loop_new(gs_clock_system(), &loop, NULL), 0);
    int fd = peer_open(&peer, loop, false);
    countdown = nth;
    int result = gs_dp_new(loop, &ops, NULL, &dp, NULL);
    if (result == 0)
        result = gs_dp_set_devices(dp, &device, 1, NULL);
    if (result == 0)
        result = gs_dp_adopt(dp, fd, NULL);
    else
        close(fd);
    left = countdown;
    countdown = -1;
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
            run(&peer, &left);
            assert_true(i == 0 || stream->closed || peer.eof);
        }
    }
    *ret_reached = left < 0;
    if (dp)
        gs_dp_free(dp);
    peer_close(&peer);
    gs_loop_free(loop);
}

static void a_server_survives_every_failing_allocation(void **state)
{
    bool reached = true;
    long nth = 0;
    for (; reached && nth < 10000; nth++)
        serve_once(nth, &reached);
    assert_in_range(nth, 20, 9999); /* there were some, and in the end none was left to fail */
}

/* ---- the clients ---- */

static void answer_empty(struct gs_grpc_call *call, const void *message, size_t len, void *ctx)
{
    struct gs_grpc_message *empty = gs_grpc_message_take(calloc(1, 1), 0);
    gs_grpc_call_send(call, empty);
    gs_grpc_message_unrefp(&empty);
    gs_grpc_call_finish(call, GS_GRPC_OK, NULL);
}

static const struct gs_grpc_method methods[] = {
    {"/v1beta1.Registration/Register", answer_empty, NULL},
    {"/v1.PodResourcesLister/List", answer_empty, NULL},
};

static void on_pods(void *ctx, const struct gs_podres_list *list, const struct gs_error *failure)
{
    ++*(unsigned *)ctx;
}

static void on_link(void *ctx, enum gs_kubelet_link_event event, const struct gs_error *failure)
{
    if (event == GS_KUBELET_LINK_REGISTERED)
        ++*(unsigned *)ctx;
}

static void link_once(const char *dir, long nth, bool *ret_reached)
{
    char path[128];
    struct gs_loop *loop = NULL;
    struct gs_dp *dp = NULL;
    struct gs_grpc_server *kubelet = NULL;
    struct gs_kubelet_link *link = NULL;
    unsigned registered = 0, listed = 0;
    const struct gs_kubelet_link_options options = {.dir = dir,
                                                    .endpoint = "p.sock",
                                                    .resource_name = "r",
                                                    .event = on_link,
                                                    .ctx = &registered};
    snprintf(path, sizeof(path), "%s/kubelet.sock", dir);
    assert_int_equal(gs_loop_new(gs_clock_system(), &loop, NULL), 0);
    assert_int_equal(gs_dp_new(loop, &ops, NULL, &dp, NULL), 0);
    assert_int_equal(gs_grpc_server_new(loop, methods, 2, NULL, &kubelet, NULL), 0);
    assert_int_equal(gs_grpc_server_listen(kubelet, path, NULL), 0);
    countdown = nth;
    int linked = gs_kubelet_link_new(loop, dp, &options, &link, NULL);
    int asked = gs_podres_list_start(loop, path, GS_NS_PER_S, on_pods, &listed, NULL, NULL);
    for (int i = 0; i < 400 && (i < 30 || (linked == 0 && registered == 0)); i++)
        gs_loop_step(loop, GS_NS_PER_MS, NULL);
    *ret_reached = countdown < 0;
    countdown = -1;
    assert_true(linked < 0 || registered > 0); /* it got there in the end */
    assert_int_equal(listed, asked == 0 ? 1 : 0);
    if (link)
        gs_kubelet_link_free(link);
    gs_grpc_server_free(kubelet);
    gs_dp_free(dp);
    gs_loop_free(loop);
}

static void clients_survive_every_failing_allocation(void **state)
{
    char dir[64] = "/tmp/gs-nomem-XXXXXX";
    bool reached = true;
    long nth = 0;
    assert_non_null(mkdtemp(dir));
    for (; reached && nth < 1000; nth++)
        link_once(dir, nth, &reached);
    assert_in_range(nth, 20, 999);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_survives_every_failing_allocation),
        cmocka_unit_test(clients_survive_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
