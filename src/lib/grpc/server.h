/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"
#include "gpushare/base/error.h"
#include "gpushare/grpc/loop.h"
#include "status.h"

/*
 * A gRPC server on a unix socket: methods that take one message and answer with none, one or many.
 * Knows nothing of protobuf; device_plugin.h is the typed service above it. Loop thread only.
 *
 * What it takes care of: framing, grpc-timeout (an expired call is answered DEADLINE_EXCEEDED),
 * cancellation, flow control, unknown methods (UNIMPLEMENTED), compressed messages (UNIMPLEMENTED),
 * ceilings: 64 connections, 32 calls per connection, 4 MiB per request, 16 MiB of requests in
 * flight altogether. An :authority that is a file path is accepted, as kubelets before 1.26 send
 * it.
 */
struct gs_grpc_server;

/* One call in progress. It belongs to the method's handler from start() until
 * gs_grpc_call_finish(), which must come exactly once, also when the peer went away meanwhile: what
 * is sent then is dropped. It outlives its connection and the server. */
struct gs_grpc_call;

struct gs_grpc_method {
    const char *path; /* "/v1beta1.DevicePlugin/Allocate" */

    /* A whole request came; message is *borrowed until start() returns*. */
    void (*start)(struct gs_grpc_call *call, const void *message, size_t len, void *ctx);

    /* May be NULL. The call ended before it was finished: cancelled, out of time, connection or
     * server gone. It still wants its gs_grpc_call_finish(), which may be called right here. */
    void (*ended)(struct gs_grpc_call *call, void *ctx);
};

/* methods is *borrowed until gs_grpc_server_free()*, ctx is handed to them. */
int gs_grpc_server_new(struct gs_loop *loop, const struct gs_grpc_method *methods, size_t count,
                       void *ctx, struct gs_grpc_server **ret, struct gs_error *err);

/*
 * Makes the socket `path` (mode 0600) and serves it. Called again, with the same or another path,
 * it moves there: a kubelet that starts has deleted the old one. Connections that exist stay.
 *
 * One owner per path: a socket that somebody answers on is never removed. A stale one is.
 * GS_EEXIST: another process serves this path, or the path is not a socket; GS_EINVAL: too long for
 * a socket address; GS_EIO. After a failure the server serves what it served before.
 */
int gs_grpc_server_listen(struct gs_grpc_server *server, const char *path, struct gs_error *err);

/* Serves a connected stream socket; fd is *taken*, also on failure. For tests and fuzzing. */
int gs_grpc_server_adopt(struct gs_grpc_server *server, int fd, struct gs_error *err);

/* Closes everything; calls in progress get ended(). Removes the socket if it is still ours. */
void gs_grpc_server_free(struct gs_grpc_server *server);

/* ---- calls ---- */

/* Sends a message; keeps a reference of its own. A message of this call that has not begun to
 * leave is replaced, not queued: streams here carry states, of which the newest counts. NULL (out
 * of memory) finishes nothing and sends nothing. */
void gs_grpc_call_send(struct gs_grpc_call *call, struct gs_grpc_message *message);

/* Sends message (*taken*), and ends the call with OK. NULL: with INTERNAL, "the answer cannot be
 * encoded". */
void gs_grpc_call_reply(struct gs_grpc_call *call, struct gs_grpc_message *message);

/* Ends the call after what was sent; text (NULL: none) is *copied*. The call is gone for the
 * caller. */
void gs_grpc_call_finish(struct gs_grpc_call *call, enum gs_grpc_status status, const char *text);
