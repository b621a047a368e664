/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server_internal.h"

/* Room for the words of a struct gs_error, all escaped; peers have small ceilings for headers. */
#define MAX_TEXT_BYTES 1024

static void drop(struct gs_grpc_message **message)
{
    gs_grpc_message_unrefp(message);
    *message = NULL;
}

/* ---- life ---- */

static void release_request(struct gs_grpc_call *call)
{
    if (call->conn)
        call->conn->server->buffered -= call->reader.body.len;
    gs_frame_release(&call->reader);
}

static void unref(struct gs_grpc_call *call)
{
    if (--call->refs > 0)
        return;
    drop(&call->sending);
    drop(&call->waiting);
    free(call->text);
    free(call);
}

/* Tells the handler that the call has ended; it may call gs_grpc_call_finish() from within. */
static void tell_ended(struct gs_grpc_call *call)
{
    if (call->started && !call->finished && call->method->ended)
        call->method->ended(call, call->conn->server->ctx);
}

void gs_grpc_call_detach(struct gs_grpc_call *call)
{
    struct gs_grpc_conn *conn = call->conn;
    bool was_answered = call->answered;
    release_request(call);
    gs_loop_timer_disarm(conn->server->loop, &call->deadline);
    call->answered = true;
    nghttp2_session_set_stream_user_data(conn->h2.session, call->stream_id, NULL);
    LIST_REMOVE(call, link);
    if (!was_answered)
        tell_ended(call);
    call->conn = NULL;
    drop(&call->sending);
    drop(&call->waiting);
    unref(call);
}

/* ---- the answer ---- */

enum { STATUS_CHARS = 4 };

/* Fills in grpc-status and, if there is one, grpc-message; returns how many. The caller owns the
 * texts. */
static size_t fill_status(const struct gs_grpc_call *call, char status[STATUS_CHARS],
                          nghttp2_nv ret[2])
{
    int len = snprintf(status, STATUS_CHARS, "%u", (unsigned)call->status);
    ret[0] = gs_h2_nv("grpc-status", status, (size_t)len);
    if (!call->text)
        return 1;
    ret[1] = gs_h2_nv("grpc-message", call->text, strlen(call->text));
    return 2;
}

static int submit_trailers(struct gs_grpc_call *call)
{
    char status[STATUS_CHARS];
    nghttp2_nv nv[2];
    return nghttp2_submit_trailer(call->conn->h2.session, call->stream_id, nv,
                                  fill_status(call, status, nv));
}

/* Moves on to the next message; false when there is none. */
static bool next_message(struct gs_grpc_call *call)
{
    drop(&call->sending);
    call->sent = 0;
    call->sending = call->waiting;
    call->waiting = NULL;
    return call->sending != NULL;
}

static bool all_sent(const struct gs_grpc_call *call)
{
    return !call->sending || call->sent == call->sending->len;
}

/* nghttp2 asks for the body of the answer. */
static ssize_t read_body(nghttp2_session *session, int32_t stream_id, uint8_t *to, size_t room,
                         uint32_t *data_flags, nghttp2_data_source *source, void *user_data)
{
    struct gs_grpc_call *call = source->ptr;
    size_t done = 0;
    while (done < room && (!all_sent(call) || next_message(call)))
        done += gs_grpc_message_copy(call->sending, &call->sent, to + done, room - done);
    if (!all_sent(call) || call->waiting)
        return (ssize_t)done;
    drop(&call->sending);
    call->sent = 0;
    if (call->answered) {
        *data_flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (submit_trailers(call) != 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* nghttp2 sends RST_STREAM */
    } else if (done == 0) {
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)done;
}

/* Without a message, headers and trailers are one block ("Trailers-Only"). */
static int submit_status_only(struct gs_grpc_call *call)
{
    char status[STATUS_CHARS];
    nghttp2_nv nv[5] = {
        gs_h2_nv(":status", "200", 3),
        gs_h2_nv("content-type", "application/grpc", 16),
        gs_h2_nv("grpc-accept-encoding", "identity", 8),
    };
    return nghttp2_submit_response(call->conn->h2.session, call->stream_id, nv,
                                   3 + fill_status(call, status, nv + 3), NULL);
}

static int submit_headers(struct gs_grpc_call *call)
{
    const nghttp2_nv nv[] = {
        gs_h2_nv(":status", "200", 3),
        gs_h2_nv("content-type", "application/grpc", 16),
    };
    const nghttp2_data_provider body = {.source.ptr = call, .read_callback = read_body};
    return nghttp2_submit_response(call->conn->h2.session, call->stream_id, nv, 2, &body);
}

/* Submits new data to nghttp2. */
static void push(struct gs_grpc_call *call)
{
    nghttp2_session *session = call->conn->h2.session;
    int failed = 0;
    if (call->submitted)
        nghttp2_session_resume_data(session,
                                    call->stream_id); /* fails harmlessly if not deferred */
    else if (call->sending || call->waiting)
        failed = submit_headers(call);
    else
        failed = submit_status_only(call);
    call->submitted = true;
    if (failed)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, call->stream_id,
                                  NGHTTP2_INTERNAL_ERROR);
    gs_h2_kick(&call->conn->h2);
}

static char *encode_text(const char *text)
{
    struct gs_buf buf = GS_BUF(MAX_TEXT_BYTES);
    gs_grpc_message_encode(&buf, text, strlen(text));
    return gs_buf_steal(&buf);
}

/* Sets the call's final status. */
static void answer(struct gs_grpc_call *call, enum gs_grpc_status status, const char *text)
{
    call->answered = true;
    call->status = status;
    call->text = text && *text ? encode_text(text) : NULL;
    gs_loop_timer_disarm(call->conn->server->loop, &call->deadline);
    push(call);
}

void gs_grpc_call_send(struct gs_grpc_call *call, struct gs_grpc_message *message)
{
    if (!message || call->answered)
        return;
    drop(&call->waiting);
    message->refs++;
    call->waiting = message;
    push(call);
}

void gs_grpc_call_finish(struct gs_grpc_call *call, enum gs_grpc_status status, const char *text)
{
    call->finished = true;
    if (!call->answered)
        answer(call, status, text);
    unref(call);
}

void gs_grpc_call_reply(struct gs_grpc_call *call, struct gs_grpc_message *message)
{
    gs_grpc_call_send(call, message);
    if (message)
        gs_grpc_call_finish(call, GS_GRPC_OK, NULL);
    else
        gs_grpc_call_finish(call, GS_GRPC_INTERNAL, "the answer cannot be encoded");
    gs_grpc_message_unrefp(&message);
}

/* ---- the request ---- */

static void on_deadline(void *ctx)
{
    struct gs_grpc_call *call = ctx;
    release_request(call);
    answer(call, GS_GRPC_DEADLINE_EXCEEDED, "deadline exceeded");
    tell_ended(call);
}

struct gs_grpc_call *gs_grpc_call_new(struct gs_grpc_conn *conn, int32_t stream_id)
{
    struct gs_grpc_call *call = calloc(1, sizeof(*call));
    if (!call)
        return NULL;
    call->refs = 1;
    call->conn = conn;
    call->stream_id = stream_id;
    call->timeout_ns = INT64_MAX;
    call->deadline = (struct gs_loop_timer){.fn = on_deadline, .ctx = call};
    call->reader = GS_FRAME_READER(GS_SERVER_MAX_REQUEST_BYTES);
    LIST_INSERT_HEAD(&conn->calls, call, link);
    return call;
}

/* Not gRPC: an HTTP status without a body, as the specification asks. */
static void refuse_http(struct gs_grpc_call *call, const char *http_status)
{
    const nghttp2_nv nv[] = {gs_h2_nv(":status", http_status, 3)};
    call->answered = true;
    call->submitted = true;
    nghttp2_submit_response(call->conn->h2.session, call->stream_id, nv, 1, NULL);
    gs_h2_kick(&call->conn->h2);
}

void gs_grpc_call_headers_done(struct gs_grpc_call *call)
{
    call->headers_done = true;
    if (!call->has_path || !call->has_method || call->bad_header) {
        call->answered = true;
        nghttp2_submit_rst_stream(call->conn->h2.session, NGHTTP2_FLAG_NONE, call->stream_id,
                                  NGHTTP2_PROTOCOL_ERROR);
    } else if (!call->is_post) {
        refuse_http(call, "405");
    } else if (!call->is_grpc) {
        refuse_http(call, "415");
    } else if (!call->method) {
        answer(call, GS_GRPC_UNIMPLEMENTED, "unknown method");
    } else if (call->bad_timeout) {
        answer(call, GS_GRPC_INTERNAL, "malformed grpc-timeout");
    } else {
        gs_loop_timer_arm_in(call->conn->server->loop, &call->deadline, call->timeout_ns);
    }
}

static void feed_once(struct gs_grpc_call *call, const uint8_t *data, size_t len, size_t *ret_used)
{
    switch (gs_frame_feed(&call->reader, data, len, ret_used)) {
    case GS_FRAME_MORE:
        return;
    case GS_FRAME_MESSAGE:
        if (++call->messages > 1)
            answer(call, GS_GRPC_INTERNAL, "more than one request message");
        return;
    case GS_FRAME_COMPRESSED:
        /* Compressed: unimplemented if grpc-encoding announces it, else a protocol error. */
        answer(call, call->has_encoding ? GS_GRPC_UNIMPLEMENTED : GS_GRPC_INTERNAL,
               "compressed messages are not supported");
        return;
    case GS_FRAME_BAD_FLAG:
        answer(call, GS_GRPC_INTERNAL, "malformed message frame");
        return;
    case GS_FRAME_TOO_BIG:
        answer(call, GS_GRPC_RESOURCE_EXHAUSTED, "request message too large");
        return;
    case GS_FRAME_NOMEM:
        answer(call, GS_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
}

void gs_grpc_call_feed(struct gs_grpc_call *call, const uint8_t *data, size_t len)
{
    struct gs_grpc_server *server = call->conn->server;
    while (len > 0 && !call->answered) {
        size_t used = 0;
        size_t before = call->reader.body.len;
        feed_once(call, data, len, &used);
        server->buffered += call->reader.body.len - before;
        data += used;
        len -= used;
        if (server->buffered > GS_SERVER_MAX_BUFFERED && !call->answered)
            answer(call, GS_GRPC_RESOURCE_EXHAUSTED, "too many requests in flight");
    }
    if (call->answered)
        release_request(call);
}

void gs_grpc_call_request_done(struct gs_grpc_call *call)
{
    if (call->answered)
        return;
    if (call->messages != 1 || !gs_frame_at_boundary(&call->reader)) {
        answer(call, GS_GRPC_INTERNAL, "the request is not a single message");
        return;
    }
    struct gs_grpc_server *server = call->conn->server;
    struct gs_buf body = call->reader.body;
    call->reader.body = GS_BUF(0);
    server->buffered -= body.len;
    call->started = true;
    call->refs++;
    call->method->start(call, body.data ? body.data : "", body.len, server->ctx);
    gs_buf_release(&body);
}
