/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "h2_peer.h"

#include "grpc/server_internal.h"

/* A server with methods that echo, fail, stream and wait; a rude client on a socket pair. */
struct fixture {
    int64_t now_ns;
    struct gs_clock clock;
    struct gs_loop *loop;
    struct gs_grpc_server *server;
    struct peer peer;
    struct gs_grpc_call *held[40]; /* calls that wait for the test */
    size_t held_count;
    unsigned started, ended;
    bool finish_in_ended;
};

static inline int64_t read_clock(void *ctx)
{
    return *(int64_t *)ctx;
}

static inline struct gs_grpc_message *message_of(const void *bytes, size_t len)
{
    uint8_t *body;
    struct gs_grpc_message *message = gs_grpc_message_new(len, &body);
    memcpy(body, bytes, len);
    return message;
}

static inline void send_bytes(struct gs_grpc_call *call, const void *bytes, size_t len)
{
    struct gs_grpc_message *message = message_of(bytes, len);
    gs_grpc_call_send(call, message);
    gs_grpc_message_unref(message);
}

static inline void echo(struct gs_grpc_call *call, const void *message, size_t len, void *ctx)
{
    ((struct fixture *)ctx)->started++;
    send_bytes(call, message, len);
    gs_grpc_call_finish(call, GS_GRPC_OK, NULL);
}

static inline void refuse(struct gs_grpc_call *call, const void *message, size_t len, void *ctx)
{
    gs_grpc_call_finish(call, GS_GRPC_FAILED_PRECONDITION, "100% \xC3\xA4\xFF");
}

static inline void hold(struct gs_grpc_call *call, const void *message, size_t len, void *ctx)
{
    struct fixture *f = ctx;
    f->started++;
    f->held[f->held_count++] = call;
}

static inline void hold_ended(struct gs_grpc_call *call, void *ctx)
{
    struct fixture *f = ctx;
    f->ended++;
    assert_true(call->answered);
    if (f->finish_in_ended)
        gs_grpc_call_finish(call, GS_GRPC_OK, NULL);
}

static const struct gs_grpc_method methods[] = {
    {"/t.T/Echo", echo, NULL},
    {"/t.T/Fail", refuse, NULL},
    {"/t.T/Hold", hold, hold_ended},
};

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->now_ns = GS_NS_PER_S;
    f->clock = (struct gs_clock){read_clock, read_clock, &f->now_ns};
    assert_int_equal(gs_loop_new(&f->clock, &f->loop, NULL), 0);
    assert_int_equal(gs_grpc_server_new(f->loop, methods, 3, f, &f->server, NULL), 0);
    int fd = peer_open(&f->peer, f->loop, false);
    assert_int_equal(gs_grpc_server_adopt(f->server, fd, NULL), 0);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    peer_close(&f->peer);
    if (f->server)
        gs_grpc_server_free(f->server);
    gs_loop_free(f->loop);
    free(f);
    return 0;
}

#define ECHO PEER_GRPC_HEADERS("/t.T/Echo")
#define HOLD PEER_GRPC_HEADERS("/t.T/Hold")

static inline void expect_status(const char *row, const struct peer_stream *stream,
                                 const char *status)
{
    row_text(row, peer_header(stream, "grpc-status"), status);
    row_text(row, peer_header(stream, ":status"), "200");
    row_text(row, peer_header(stream, "content-type"), "application/grpc");
    row_true(row, stream->ended);
}
