/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "server_internal.h"
#include "timeout.h"

/*
 * nghttp2's own checks of HTTP semantics are off: they reject a file path as :authority, which
 * older kubelets send. So the pseudo-headers that matter are checked here and in server_call.c.
 */

static bool starts(const uint8_t *bytes, size_t len, const char *word)
{
    return len >= strlen(word) && memcmp(bytes, word, strlen(word)) == 0;
}

static struct gs_grpc_call *call_of(nghttp2_session *session, int32_t stream_id)
{
    return nghttp2_session_get_stream_user_data(session, stream_id);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct gs_grpc_conn *conn = user_data;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct gs_grpc_call *call = gs_grpc_call_new(conn, frame->hd.stream_id);
    if (!call)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
    return 0;
}

static void take_path(struct gs_grpc_call *call, const uint8_t *value, size_t len)
{
    const struct gs_grpc_server *server = call->conn->server;
    call->bad_header |= call->has_path;
    call->has_path = true;
    for (size_t i = 0; i < server->method_count; i++) {
        if (gs_h2_is(value, len, server->methods[i].path))
            call->method = &server->methods[i];
    }
}

/* "application/grpc", or that with "+proto" or a parameter. */
static bool is_grpc_type(const uint8_t *value, size_t len)
{
    static const char type[] = "application/grpc";
    size_t base = sizeof(type) - 1;
    return starts(value, len, type) && (len == base || value[base] == '+' || value[base] == ';');
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t len, uint8_t flags,
                     void *user_data)
{
    struct gs_grpc_call *call = call_of(session, frame->hd.stream_id);
    if (!call || call->headers_done)
        return 0;
    if (gs_h2_is(name, name_len, ":path")) {
        take_path(call, value, len);
    } else if (gs_h2_is(name, name_len, ":method")) {
        call->bad_header |= call->has_method;
        call->has_method = true;
        call->is_post = gs_h2_is(value, len, "POST");
    } else if (gs_h2_is(name, name_len, "content-type")) {
        call->is_grpc = is_grpc_type(value, len);
    } else if (gs_h2_is(name, name_len, "grpc-encoding")) {
        call->has_encoding = !gs_h2_is(value, len, "identity");
    } else if (gs_h2_is(name, name_len, "grpc-timeout")) {
        call->bad_timeout = !gs_grpc_timeout_parse((const char *)value, len, &call->timeout_ns);
    }
    return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct gs_grpc_call *call = call_of(session, frame->hd.stream_id);
    if (!call)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && !call->headers_done)
        gs_grpc_call_headers_done(call);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        gs_grpc_call_request_done(call);
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream_id,
                         const uint8_t *data, size_t len, void *user_data)
{
    struct gs_grpc_call *call = call_of(session, stream_id);
    if (call)
        gs_grpc_call_feed(call, data, len);
    return 0;
}

/* The answer is out, but the peer still sends its request: tell it to stop. */
static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    if (frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    if (nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                  NGHTTP2_NO_ERROR);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                           void *user_data)
{
    struct gs_grpc_call *call = call_of(session, stream_id);
    if (call)
        gs_grpc_call_detach(call);
    return 0;
}

int gs_grpc_conn_session(struct gs_grpc_conn *conn, nghttp2_session **ret, struct gs_error *err)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GS_SERVER_MAX_CALLS},
    };
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    nghttp2_session *session = NULL;
    int failed = nghttp2_session_callbacks_new(&callbacks);
    if (!failed)
        failed = nghttp2_option_new(&option);
    if (!failed) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
        nghttp2_option_set_no_http_messaging(option, 1);
        nghttp2_option_set_no_closed_streams(option,
                                             1); /* closed streams are kept for priorities only */
        failed = nghttp2_session_server_new2(&session, callbacks, conn, option);
    }
    if (!failed)
        failed = nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 1);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    if (failed) {
        nghttp2_session_del(session);
        return gs_fail_nomem(err);
    }
    *ret = session;
    return 0;
}
