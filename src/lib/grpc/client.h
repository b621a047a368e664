/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "frame.h"
#include "gpushare/base/error.h"
#include "gpushare/grpc/loop.h"
#include "status.h"

/*
 * One unary gRPC call on a unix socket, with a deadline, on the loop. Each call has a connection of
 * its own: calls to the kubelet are rare. Knows nothing of protobuf. Loop thread only.
 */
struct gs_grpc_unary;

struct gs_grpc_reply {
    enum gs_grpc_status status; /* ours too: UNAVAILABLE (the connection broke),
                                   DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED (answer above the ceiling),
                                   INTERNAL (not gRPC) */
    const char *text;           /* why, when not OK, as the peer encoded it; never NULL */
    const void *message;        /* when OK */
    size_t len;
};

/* Called exactly once, from the loop, never from within gs_grpc_unary_start(). The reply is
 * *borrowed until done() returns*; the call is freed afterwards. */
typedef void gs_grpc_unary_fn(void *ctx, const struct gs_grpc_reply *reply);

struct gs_grpc_unary_options {
    const char *socket_path;
    const char *method_path; /* "/v1beta1.Registration/Register" */
    int64_t timeout_ns;      /* for everything, connecting included */
    size_t max_reply_bytes;  /* ceiling for the answer's message */
    gs_grpc_unary_fn *done;
    void *ctx;
};

/* request is *taken*, also on failure; NULL: GS_ENOMEM. options are *copied*. GS_EIO: no such
 * socket; GS_EINVAL: path too long. What goes wrong later is told to done(). *ret is valid until
 * done(). */
int gs_grpc_unary_start(struct gs_loop *loop, const struct gs_grpc_unary_options *options,
                        struct gs_grpc_message *request, struct gs_grpc_unary **ret,
                        struct gs_error *err);

/* The same on a connected stream socket; fd is *taken*, also on failure. For tests and fuzzing. */
int gs_grpc_unary_start_fd(struct gs_loop *loop, int fd,
                           const struct gs_grpc_unary_options *options,
                           struct gs_grpc_message *request, struct gs_grpc_unary **ret,
                           struct gs_error *err);

/* Gives up and frees; done() is not called. */
void gs_grpc_unary_cancel(struct gs_grpc_unary *call);
