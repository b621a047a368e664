/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's connection, answered with any bytes. An even first byte means that an empty SETTINGS
 * frame, which a server owes first, goes before the rest. The call must end exactly once, and with
 * a message only when its status is OK.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "grpc/client.h"

#define MAX_INPUT 65536
#define CEILING   1000

struct world {
    int64_t now_ns;
    unsigned done;
};

static int64_t read_clock(void *ctx)
{
    return ((struct world *)ctx)->now_ns;
}

static void on_done(void *ctx, const struct gs_grpc_reply *reply)
{
    struct world *world = ctx;
    world->done++;
    FUZZ_CHECK(reply->status <= GS_GRPC_UNAUTHENTICATED);
    FUZZ_CHECK((reply->message != NULL) == (reply->status == GS_GRPC_OK));
    FUZZ_CHECK(reply->len <= CEILING && reply->text != NULL && strlen(reply->text) <= 1024);
}

static void answer(int fd, const uint8_t *data, size_t size)
{
    if (data[0] % 2 == 0)
        FUZZ_CHECK(send(fd, "\0\0\0\4\0\0\0\0\0", 9, MSG_NOSIGNAL) == 9);
    if (size > 1)
        FUZZ_CHECK(send(fd, data + 1, size - 1, MSG_NOSIGNAL) == (ssize_t)(size - 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world = {.now_ns = GS_NS_PER_S};
    const struct gs_clock clock = {read_clock, read_clock, &world};
    const struct gs_grpc_unary_options options = {
        .method_path = "/t.T/Do",
        .timeout_ns = GS_NS_PER_S,
        .max_reply_bytes = CEILING,
        .done = on_done,
        .ctx = &world,
    };
    struct gs_loop *loop = NULL;
    int fds[2];
    if (size == 0 || size > MAX_INPUT)
        return 0;
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    FUZZ_CHECK(gs_loop_new(&clock, &loop, NULL) == 0);
    struct gs_grpc_unary *call;
    uint8_t *body;
    struct gs_grpc_message *request = gs_grpc_message_new(2, &body);
    memcpy(body, "hi", 2);
    FUZZ_CHECK(gs_grpc_unary_start_fd(loop, fds[1], &options, request, &call, NULL) == 0);
    FUZZ_CHECK(gs_loop_step(loop, 0, NULL) == 0); /* the request leaves before its answer comes */
    answer(fds[0], data, size);
    for (int round = 0; round < 16; round++) {
        world.now_ns += 100 * GS_NS_PER_MS; /* within these the deadline passes */
        FUZZ_CHECK(gs_loop_step(loop, 0, NULL) == 0);
    }
    FUZZ_CHECK(world.done == 1);
    close(fds[0]);
    gs_loop_free(loop);
    return 0;
}
