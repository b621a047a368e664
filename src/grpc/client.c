/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"
#include "h2.h"
#include "timeout.h"
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

    uint8_t *request; /* framed */
    size_t request_len;
    size_t request_sent;

    unsigned http_status;
    bool is_grpc;
    bool has_status;
    struct gs_frame_reader reader;
    unsigned messages;

    bool over; /* status and text are final */
    enum gs_grpc_status status;
    enum gs_code own_code; /* GS_OK: what the status says */
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
    free(call->request);
    free(call);
}

static void on_report(void *ctx)
{
    struct gs_grpc_unary *call = ctx;
    struct gs_grpc_reply reply = {
        .status = call->status,
        .code = call->own_code ? call->own_code : gs_grpc_status_to_code(call->status),
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
    fail(ctx, GS_GRPC_DEADLINE_EXCEEDED, "no answer in time");
}

static void on_broken(void *ctx)
{
    struct gs_grpc_unary *call = ctx;
    gs_h2_close(&call->h2);
    fail(call, GS_GRPC_UNAVAILABLE, "the connection was closed before the answer came");
}

/* https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, "Errors". */
static enum gs_grpc_status status_from_h2(uint32_t error_code)
{
    switch (error_code) {
    case NGHTTP2_REFUSED_STREAM:
        return GS_GRPC_UNAVAILABLE;
    case NGHTTP2_CANCEL:
        return GS_GRPC_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        return GS_GRPC_RESOURCE_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY:
        return GS_GRPC_PERMISSION_DENIED;
    default:
        return GS_GRPC_INTERNAL;
    }
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
        fail(call, gs_grpc_status_from_http(call->http_status), "HTTP status %u",
             call->http_status);
    else if (!call->has_status)
        fail(call, status_from_h2(error_code), "the call was reset: %s",
             nghttp2_http2_strerror(error_code));
    else if (!call->is_grpc)
        fail(call, GS_GRPC_UNKNOWN, "the answer is not gRPC");
    else if (call->messages != 1 || !gs_frame_at_boundary(&call->reader))
        fail(call, GS_GRPC_INTERNAL, "the answer is not one whole message");
    else
        settle(call, GS_GRPC_OK);
    return 0;
}

/* ---- the answer ---- */

static bool is(const uint8_t *bytes, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(bytes, word, len) == 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t len, uint8_t flags,
                     void *user_data)
{
    struct gs_grpc_unary *call = user_data;
    const char *text = (const char *)value;
    if (call->over || frame->hd.stream_id != call->stream_id)
        return 0;
    if (is(name, name_len, ":status")) {
        uint32_t number = 0;
        gs_parse_u32(text, len, &number);
        call->http_status = number;
    } else if (is(name, name_len, "content-type")) {
        call->is_grpc = len >= 16 && memcmp(text, "application/grpc", 16) == 0;
    } else if (is(name, name_len, "grpc-status")) {
        call->has_status = true;
        call->status = gs_grpc_status_parse(text, len);
    } else if (is(name, name_len, "grpc-message")) {
        gs_buf_reset(&call->text);
        gs_grpc_message_decode(&call->text, text, len);
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
            call->own_code = GS_ETOOBIG;
            fail(call, GS_GRPC_RESOURCE_EXHAUSTED, "the answer is larger than %zu bytes",
                 call->reader.body.max);
            break;
        case GS_FRAME_NOMEM:
            call->own_code = GS_ENOMEM;
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
    size_t left = call->request_len - call->request_sent;
    size_t take = left < room ? left : room;
    memcpy(to, call->request + call->request_sent, take);
    call->request_sent += take;
    if (take == left)
        *data_flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)take;
}

static int submit(struct gs_grpc_unary *call, nghttp2_session *session,
                  const struct gs_grpc_unary_options *options)
{
    char timeout[GS_GRPC_TIMEOUT_CHARS];
    size_t timeout_len = gs_grpc_timeout_format(timeout, options->timeout_ns);
    const nghttp2_nv nv[] = {
        gs_h2_nv(":method", "POST", 4),
        gs_h2_nv(":scheme", "http", 4),
        gs_h2_nv(":path", options->method_path, strlen(options->method_path)),
        gs_h2_nv(":authority", "localhost", 9),
        gs_h2_nv("te", "trailers", 8),
        gs_h2_nv("grpc-timeout", timeout, timeout_len),
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

static void arm_deadline(struct gs_grpc_unary *call, int64_t timeout_ns)
{
    int64_t at_ns;
    if (!__builtin_add_overflow(gs_loop_now_ns(call->loop), timeout_ns, &at_ns))
        gs_loop_timer_arm(call->loop, &call->deadline, at_ns);
}

static struct gs_grpc_unary *make_call(struct gs_loop *loop,
                                       const struct gs_grpc_unary_options *options,
                                       const void *message, size_t len)
{
    struct gs_grpc_unary *call = calloc(1, sizeof(*call));
    if (!call)
        return NULL;
    call->request_len = GS_FRAME_HEADER_BYTES + len;
    call->request = malloc(call->request_len);
    if (!call->request) {
        free(call);
        return NULL;
    }
    gs_frame_header(call->request, (uint32_t)len);
    if (len > 0)
        memcpy(call->request + GS_FRAME_HEADER_BYTES, message, len);
    call->loop = loop;
    call->done = options->done;
    call->ctx = options->ctx;
    call->deadline = (struct gs_loop_timer){.fn = on_deadline, .ctx = call};
    call->report = (struct gs_loop_timer){.fn = on_report, .ctx = call};
    call->reader = GS_FRAME_READER(options->max_reply_bytes);
    call->text = GS_BUF(MAX_TEXT_BYTES);
    call->h2 = (struct gs_h2){.fd = -1, .broken = on_broken, .ctx = call};
    return call;
}

int gs_grpc_unary_start_fd(struct gs_loop *loop, int fd,
                           const struct gs_grpc_unary_options *options, const void *message,
                           size_t len, struct gs_grpc_unary **ret, struct gs_error *err)
{
    _cleanup_close_ int owned = fd;
    if (len > UINT32_MAX)
        return gs_fail(err, GS_ETOOBIG, "a gRPC message of %zu bytes", len);
    struct gs_grpc_unary *call = make_call(loop, options, message, len);
    if (!call)
        return gs_fail_nomem(err);
    nghttp2_session *session = make_session(call, options);
    if (!session) {
        gs_grpc_unary_cancel(call);
        return gs_fail_nomem(err);
    }
    owned = -1;
    if (gs_h2_start(&call->h2, loop, fd, session, err) < 0) {
        gs_grpc_unary_cancel(call);
        return -1;
    }
    arm_deadline(call, options->timeout_ns);
    if (ret)
        *ret = call;
    return 0;
}

int gs_grpc_unary_start(struct gs_loop *loop, const struct gs_grpc_unary_options *options,
                        const void *message, size_t len, struct gs_grpc_unary **ret,
                        struct gs_error *err)
{
    int fd = -1;
    int errnum = gs_unix_connect(options->socket_path, &fd);
    if (errnum == 0)
        return gs_grpc_unary_start_fd(loop, fd, options, message, len, ret, err);
    if (errnum == ENAMETOOLONG)
        return gs_fail(err, GS_EINVAL, "\"%s\" cannot be a socket's path", options->socket_path);
    struct gs_grpc_unary *call = make_call(loop, options, message, len);
    if (!call)
        return gs_fail_nomem(err);
    fail(call, GS_GRPC_UNAVAILABLE, "cannot connect to %s: %s", options->socket_path,
         strerrordesc_np(errnum));
    if (ret)
        *ret = call;
    return 0;
}
