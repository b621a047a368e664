/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/queue.h>

#include "h2.h"
#include "server.h"
#include "unix_socket.h"

/* server.c: socket and connections. server_session.c: nghttp2's callbacks for a connection.
 * server_call.c: a call's answer. */
#define GS_SERVER_MAX_CONNECTIONS   64
#define GS_SERVER_MAX_CALLS         32 /* per connection */
#define GS_SERVER_MAX_REQUEST_BYTES ((size_t)4 << 20)
#define GS_SERVER_MAX_BUFFERED      ((size_t)16 << 20) /* requests in flight, all connections */

struct gs_grpc_conn;

struct gs_grpc_server {
    struct gs_loop *loop;
    const struct gs_grpc_method *methods;
    size_t method_count;
    void *ctx;
    struct gs_unix_listener listener;
    struct gs_loop_fd acceptable;
    struct gs_loop_timer accept_again;
    LIST_HEAD(, gs_grpc_conn) conns;
    size_t conn_count;
    size_t buffered; /* bytes of request messages held now */
};

struct gs_grpc_conn {
    struct gs_grpc_server *server;
    struct gs_h2 h2;
    LIST_HEAD(, gs_grpc_call) calls;
    LIST_ENTRY(gs_grpc_conn) link;
};

struct gs_grpc_call {
    unsigned
        refs; /* held by the connection while the stream exists, and by the handler once started */
    struct gs_grpc_conn *conn; /* NULL: the stream has ended */
    LIST_ENTRY(gs_grpc_call) link;
    int32_t stream_id;

    /* The request. */
    const struct gs_grpc_method *method; /* NULL: unknown */
    bool has_path, has_method, is_post, is_grpc, has_encoding, bad_header, bad_timeout;
    bool headers_done;
    unsigned messages;
    struct gs_frame_reader reader;
    int64_t timeout_ns;
    struct gs_loop_timer deadline;

    /* The answer. */
    bool started;   /* the handler was started */
    bool finished;  /* the handler has finished */
    bool answered;  /* the status is final: only the messages below are still sent */
    bool submitted; /* the answer's headers were submitted to nghttp2 */
    enum gs_grpc_status status;
    char *text;                      /* percent-encoded, or NULL */
    struct gs_grpc_message *sending; /* partly sent: `sent` bytes, including the frame header */
    struct gs_grpc_message *waiting; /* a newer message replaces it until it is sent */
    size_t sent;
};

/* server_session.c: a new nghttp2 session of this connection, SETTINGS submitted. */
int gs_grpc_conn_session(struct gs_grpc_conn *conn, nghttp2_session **ret, struct gs_error *err);

/* server_call.c */
struct gs_grpc_call *gs_grpc_call_new(struct gs_grpc_conn *conn, int32_t stream_id);
void gs_grpc_call_headers_done(struct gs_grpc_call *call);
void gs_grpc_call_feed(struct gs_grpc_call *call, const uint8_t *data, size_t len);
void gs_grpc_call_request_done(struct gs_grpc_call *call);
void gs_grpc_call_detach(struct gs_grpc_call *call); /* the stream has ended */
