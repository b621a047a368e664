/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device plugin's connection, fed with any bytes. An even first byte means that HTTP/2's preface
 * and an empty SETTINGS frame go before the rest, so that mutations need not find them. The first
 * byte also says how late held calls are answered. Every call must be answered once, and none may
 * be left.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "gpushare/grpc/device_plugin.h"

#define MAX_INPUT 65536
#define MAX_HELD  64
#define ROUNDS    12

struct world {
    int64_t now_ns;
    struct gs_dp_call *held[MAX_HELD];
    size_t held_count;
};

static int64_t read_clock(void *ctx)
{
    return ((struct world *)ctx)->now_ns;
}

static void answer(struct gs_dp_call *call, const struct gs_dp_ids *wanted, size_t count)
{
    const struct gs_dp_pair env = {"IDS", count > 0 && wanted->count > 0 ? wanted->ids[0] : ""};
    const struct gs_dp_container one = {.envs = &env, .env_count = 1};
    gs_dp_allocate_reply(call, &one, 1);
}

static void on_allocate(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *wanted,
                        size_t count)
{
    struct world *world = ctx;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < wanted[i].count; k++)
            bytes += strlen(wanted[i].ids[k]);
    }
    FUZZ_CHECK(bytes <= MAX_INPUT);
    if (wanted[0].count % 2 == 1 && world->held_count < MAX_HELD)
        world->held[world->held_count++] = call;
    else
        answer(call, wanted, count);
}

static void on_pre_start(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *ids)
{
    struct gs_error why = {0};
    if (ids->count % 2 == 0) {
        gs_dp_pre_start_reply(call);
        return;
    }
    gs_fail(&why, GS_EIO, "%s", ids->ids[0]);
    gs_dp_call_fail(call, &why);
}

static void answer_held(struct world *world)
{
    while (world->held_count > 0)
        answer(world->held[--world->held_count], NULL, 0);
}

static void feed(int fd, const uint8_t *data, size_t size)
{
    static const uint8_t opening[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    if (data[0] % 2 == 0)
        FUZZ_CHECK(send(fd, opening, sizeof(opening) - 1, MSG_NOSIGNAL) > 0);
    if (size > 1)
        FUZZ_CHECK(send(fd, data + 1, size - 1, MSG_NOSIGNAL) == (ssize_t)(size - 1));
}

static void run(struct world *world, struct gs_loop *loop, struct gs_dp *dp, int fd, uint8_t when)
{
    const char *const devices[2] = {"a", "b"};
    uint8_t sink[16384];
    for (int round = 0; round < ROUNDS; round++) {
        world->now_ns += 100 * GS_NS_PER_MS;
        FUZZ_CHECK(gs_loop_step(loop, 0, NULL) == 0);
        while (recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0) {
        }
        if (round == when % ROUNDS)
            answer_held(world);
        if (round == 2)
            FUZZ_CHECK(gs_dp_set_devices(dp, devices, 1 + when % 2, NULL) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct gs_dp_ops ops = {on_allocate, on_pre_start};
    struct world world = {.now_ns = GS_NS_PER_S};
    const struct gs_clock clock = {read_clock, read_clock, &world};
    struct gs_loop *loop = NULL;
    struct gs_dp *dp = NULL;
    int fds[2];
    if (size == 0 || size > MAX_INPUT)
        return 0;
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    FUZZ_CHECK(gs_loop_new(&clock, &loop, NULL) == 0);
    FUZZ_CHECK(gs_dp_new(loop, &ops, &world, &dp, NULL) == 0);
    FUZZ_CHECK(gs_dp_adopt(dp, fds[1], NULL) == 0);
    feed(fds[0], data, size);
    run(&world, loop, dp, fds[0], data[0] / 2);
    close(fds[0]);
    FUZZ_CHECK(gs_loop_step(loop, 0, NULL) == 0);
    FUZZ_CHECK(gs_dp_streams(dp) == 0);
    gs_dp_free(dp);
    answer_held(&world);
    gs_loop_free(loop);
    return 0;
}
