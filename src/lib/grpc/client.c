/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpushare/base/num.h"
#include "h2.h"
#include "unix_socket.h"

#define MAX_TEXT_BYTES 1024

/* Whatever ends the call, the report is made by `report` in the loop's next round: never from
 * within nghttp2, and never from within gs_grpc_unary_start(). */
struct gs_grpc_unary {
    struct gs_h2 h2;
    struct gs_loop *loop;
    gs_grpc_unary_fn *done;
    void *ctx;
    int32_t stream_id;
    struct gs_loop_timer deadline;
    struct gs_loop_timer report;

    struct gs_grpc_message *request;
    size_t request_sent;

    unsigned http_status;
    bool is_grpc;
    bool has_status;
    struct gs_frame_reader reader;
    unsigned messages;

    bool over; /* status and text are final */
    enum gs_grpc_status status;
    struct gs_buf text;
};

/* ---- the end ---- */

static void settle(struct gs_grpc_unary *call, enum gs_grpc_status status)
{
    call->over = true;
    call->status = status;
    gs_loop_timer_disarm(call->loop, &call->deadline);
    gs_loop_timer_arm(call->loop, &call->report, INT64_MIN);
}

static void __attribute__((format(printf, 3, 4)))
fail(struct gs_grpc_unary *call, enum gs_grpc_status status, const char *fmt, ...)
{
    if (call->over)
        return;
    va_list ap;
    gs_buf_reset(&call->text);
    va_start(ap, fmt);
    gs_buf_vprintf(&call->text, fmt, ap);
    va_end(ap);
    settle(call, status);
}

void gs_grpc_unary_cancel(struct gs_grpc_unary *call)
{
    gs_loop_timer_disarm(call->loop, &call->deadline);
    gs_loop_timer_disarm(call->loop, &call->report);
    gs_h2_close(&call->h2);
    gs_frame_release(&call->reader);
    gs_buf_release(&call->text);
    gs_grpc_message_unref(call->request);
    free(call);
}

static void on_report(void *ctx)
{
    struct gs_grpc_unary *call = ctx;
    struct gs_grpc_reply reply = {
        .status = call->status,
        .text = call->text.data ? call->text.data : "",
    };
    if (call->status == GS_GRPC_OK) {
        reply.message = call->reader.body.data ? call->reader.body.data : "";
        reply.len = call->reader.body.len;
    }
    gs_h2_close(&call->h2);
    call->done(call->ctx, &reply);
    gs_grpc_unary_cancel(call);
}

static void on_deadline(void *ctx)
{
    fail(ctx, GS_GRPC_DEADLINE_EXCEEDED, "no answer before the deadline");
}

static void on_broken(void *ctx)
{
    struct gs_grpc_unary *call = ctx;
    gs_h2_close(&call->h2);
    fail(call, GS_GRPC_UNAVAILABLE, "the connection was closed before the answer came");
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                           void *user_data)
{
    struct gs_grpc_unary *call = user_data;
    if (call->over || stream_id != call->stream_id)
        return 0;
    if (call->has_status && call->status != GS_GRPC_OK)
        settle(call, call->status);
    else if (call->http_status != 0 && call->http_status != 200)
        fail(call, GS_GRPC_UNAVAILABLE, "HTTP status %u", call->http_status);
    else if (!call->has_status)
        fail(call, GS_GRPC_INTERNAL, "the call was reset: %s", nghttp2_http2_strerror(error_code));
    else if (!call->is_grpc)
        fail(call, GS_GRPC_UNKNOWN, "the answer is not gRPC");
    else if (call->messages != 1 || !gs_frame_at_boundary(&call->reader))
        fail(call, GS_GRPC_INTERNAL, "the answer is not a single message");
    else
        settle(call, GS_GRPC_OK);
    return 0;
}

/* ---- the answer ---- */

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t len, uint8_t flags,
                     void *user_data)
{
    struct gs_grpc_unary *call = user_data;
    const char *text = (const char *)value;
    if (call->over || frame->hd.stream_id != call->stream_id)
        return 0;
    if (gs_h2_is(name, name_len, ":status")) {
        uint32_t number = 0;
        gs_parse_u32(text, len, &number);
        call->http_status = number;
    } else if (gs_h2_is(name, name_len, "content-type")) {
        call->is_grpc = len >= 16 && memcmp(text, "application/grpc", 16) == 0;
    } else if (gs_h2_is(name, name_len, "grpc-status")) {
        call->has_status = true;
        call->status = gs_grpc_status_parse(text, len);
    } else if (gs_h2_is(name, name_len, "grpc-message")) {
        gs_buf_reset(&call->text);
        gs_buf_append(&call->text, text, len < MAX_TEXT_BYTES ? len : MAX_TEXT_BYTES);
    }
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t stream_id,
                         const uint8_t *data, size_t len, void *user_data)
{
    struct gs_grpc_unary *call = user_data;
    while (len > 0 && !call->over && call->http_status == 200 && call->is_grpc) {
        size_t used = 0;
        switch (gs_frame_feed(&call->reader, data, len, &used)) {
        case GS_FRAME_MORE:
            break;
        case GS_FRAME_MESSAGE:
            call->messages++;
            break;
        case GS_FRAME_COMPRESSED:
        case GS_FRAME_BAD_FLAG:
            fail(call, GS_GRPC_INTERNAL, "the answer's frame is malformed or compressed");
            break;
        case GS_FRAME_TOO_BIG:
            fail(call, GS_GRPC_RESOURCE_EXHAUSTED, "the response is larger than %zu bytes",
                 call->reader.body.max);
            break;
        case GS_FRAME_NOMEM:
            fail(call, GS_GRPC_RESOURCE_EXHAUSTED, "out of memory");
            break;
        }
        data += used;
        len -= used;
    }
    return 0;
}

/* ---- the request ---- */

static ssize_t read_request(nghttp2_session *session, int32_t stream_id, uint8_t *to, size_t room,
                            uint32_t *data_flags, nghttp2_data_source *source, void *user_data)
{
    struct gs_grpc_unary *call = source->ptr;
    size_t take = gs_grpc_message_copy(call->request, &call->request_sent, to, room);
    if (call->request_sent == call->request->len)
        *data_flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)take;
}

static int submit(struct gs_grpc_unary *call, nghttp2_session *session,
                  const struct gs_grpc_unary_options *options)
{
    const nghttp2_nv nv[] = {
        gs_h2_nv(":method", "POST", 4),
        gs_h2_nv(":scheme", "http", 4),
        gs_h2_nv(":path", options->method_path, strlen(options->method_path)),
        gs_h2_nv(":authority", "localhost", 9),
        gs_h2_nv("te", "trailers", 8),
        gs_h2_nv("content-type", "application/grpc", 16),
        gs_h2_nv("user-agent", "gpushare/" GS_VERSION, strlen("gpushare/" GS_VERSION)),
    };
    const nghttp2_data_provider body = {.source.ptr = call, .read_callback = read_request};
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
    if (nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 1) != 0)
        return -1;
    call->stream_id =
        nghttp2_submit_request(session, NULL, nv, sizeof(nv) / sizeof(nv[0]), &body, NULL);
    return call->stream_id < 0 ? -1 : 0;
}

static nghttp2_session *make_session(struct gs_grpc_unary *call,
                                     const struct gs_grpc_unary_options *options)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_session *session = NULL;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return NULL;
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    if (nghttp2_session_client_new(&session, callbacks, call) != 0)
        session = NULL;
    nghttp2_session_callbacks_del(callbacks);
    if (session && submit(call, session, options) < 0) {
        nghttp2_session_del(session);
        session = NULL;
    }
    return session;
}

/* ---- the beginning ---- */

int gs_grpc_unary_start_fd(struct gs_loop *loop, int fd,
                           const struct gs_grpc_unary_options *options,
                           struct gs_grpc_message *request, struct gs_grpc_unary **ret,
                           struct gs_error *err)
{
    struct gs_grpc_unary *call = request ? calloc(1, sizeof(*call)) : NULL;
    if (!call) {
        close(fd);
        gs_grpc_message_unrefp(&request);
        return gs_fail_nomem(err);
    }
    *call = (struct gs_grpc_unary){
        .h2 = {.fd = fd, .broken = on_broken, .ctx = call},
        .loop = loop,
        .done = options->done,
        .ctx = options->ctx,
        .deadline = {.fn = on_deadline, .ctx = call},
        .report = {.fn = on_report, .ctx = call},
        .request = request,
        .reader = GS_FRAME_READER(options->max_reply_bytes),
        .text = GS_BUF(MAX_TEXT_BYTES),
    };
    nghttp2_session *session = make_session(call, options);
    if ((session ? gs_h2_start(&call->h2, loop, fd, session, err) : gs_fail_nomem(err)) < 0) {
        gs_grpc_unary_cancel(call);
        return -1;
    }
    gs_loop_timer_arm_in(loop, &call->deadline, options->timeout_ns);
    *ret = call;
    return 0;
}

int gs_grpc_unary_start(struct gs_loop *loop, const struct gs_grpc_unary_options *options,
                        struct gs_grpc_message *request, struct gs_grpc_unary **ret,
                        struct gs_error *err)
{
    int fd = -1;
    int errnum = gs_unix_connect(options->socket_path, &fd);
    if (errnum == 0)
        return gs_grpc_unary_start_fd(loop, fd, options, request, ret, err);
    gs_grpc_message_unrefp(&request);
    return gs_fail_errno(err, errnum == ENAMETOOLONG ? GS_EINVAL : GS_EIO, errnum,
                         "cannot connect to %s", options->socket_path);
}
