/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static const char json_type[] = "application/json";

void gs_answer_prepare(struct gs_http_conn *conn)
{
    conn->response.status = 200;
    conn->response.content_type = json_type;
    conn->response.stream = NULL;
    conn->response.wants_worker = false;
    gs_buf_reset(&conn->response.body);
    gs_buf_reset(&conn->response.headers);
}

void gs_http_error(struct gs_http_response *res, unsigned status, const char *fmt, ...)
{
    char words[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    res->status = status;
    res->content_type = json_type;
    gs_buf_reset(&res->body);
    gs_buf_puts(&res->body, "{\"error\":");
    gs_buf_json_text(&res->body, words);
    gs_buf_puts(&res->body, "}\n");
}

/* libmicrohttpd refuses an empty value; a line break would be another header. */
static bool is_header_text(const char *text)
{
    bool any = *text != '\0';
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    }
    return any;
}

void gs_http_add_header(struct gs_http_response *res, const char *name, const char *value)
{
    if (!is_header_text(name) || !is_header_text(value)) {
        res->headers.failed = GS_EINVAL;
        return;
    }
    gs_buf_append(&res->headers, name, strlen(name) + 1);
    gs_buf_append(&res->headers, value, strlen(value) + 1);
}

void gs_http_respond_stream(struct gs_http_response *res, struct gs_http_stream *stream)
{
    res->stream = gs_http_stream_ref(stream);
}

/* Ends a handler's stream that will not be sent. */
void gs_answer_drop_stream(struct gs_http_response *res)
{
    struct gs_http_stream *stream = res->stream;
    res->stream = NULL;
    if (stream) {
        gs_stream_detach(stream);
        gs_http_stream_unref(stream);
    }
}

/* Replaces a handler's answer. */
static void replace(struct gs_http_response *res, unsigned status, const char *words)
{
    gs_answer_drop_stream(res);
    gs_buf_reset(&res->headers);
    gs_buf_release(&res->body);
    gs_http_error(res, status, "%s", words);
}

/* An answer that its client has not read counts as memory, like a request's body. */
static void settle_size(struct gs_http_conn *conn)
{
    struct gs_http_response *res = &conn->response;
    if (gs_conn_claim(conn, res->body.len, res->body.len))
        return;
    gs_count(&conn->loop->server->stats.memory_full);
    gs_conn_drop_body(conn);
    replace(res, 503, "too many responses are waiting for slow clients");
}

/* Replaces a handler's answer if it cannot be sent. */
static void settle(struct gs_http_response *res)
{
    int failed =
        gs_buf_failed(&res->headers) ? gs_buf_failed(&res->headers) : gs_buf_failed(&res->body);
    if (failed || res->status < 200 || res->status > 599)
        replace(res, 500,
                failed == GS_ETOOBIG  ? "the response is too large"
                : failed == GS_ENOMEM ? "out of memory"
                                      : "the response is not valid");
}

static bool add_headers(struct MHD_Response *out, const struct gs_http_response *res, bool last)
{
    enum MHD_Result ok =
        MHD_add_response_header(out, MHD_HTTP_HEADER_CONTENT_TYPE, res->content_type);
    const char *at = res->headers.data;
    const char *end = at + res->headers.len;
    while (ok == MHD_YES && at < end) {
        const char *value = at + strlen(at) + 1;
        ok = MHD_add_response_header(out, at, value);
        at = value + strlen(value) + 1;
    }
    if (ok == MHD_YES && last)
        ok = MHD_add_response_header(out, MHD_HTTP_HEADER_CONNECTION, "close");
    return ok == MHD_YES;
}

static struct MHD_Response *create(const struct gs_http_conn *conn)
{
    const struct gs_http_response *res = &conn->response;
    /* libmicrohttpd 0.9.75 would send the last chunk's "0" after the head that HEAD asked for. */
    if (res->stream && !conn->head)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, gs_stream_read,
                                                 res->stream, NULL);
    /* "Persistent": the memory is the connection's, and is not touched before the request is
     * completed (gs_conn_completed). */
    return MHD_create_response_from_buffer(res->body.len, res->body.data, MHD_RESPMEM_PERSISTENT);
}

enum MHD_Result gs_answer_send(struct gs_http_conn *conn)
{
    struct gs_http_server *server = conn->loop->server;
    struct gs_http_response *res = &conn->response;
    settle(res);
    settle_size(conn);
    struct MHD_Response *out = create(conn);
    if (!out)
        return MHD_NO;
    if (!add_headers(out, res, conn->last || atomic_load(&server->stopping))) {
        MHD_destroy_response(out);
        return MHD_NO;
    }
    conn->phase = GS_PHASE_ANSWERED;
    gs_count(&server->stats.requests[res->status / 100]);
    struct gs_http_stream *stream = res->stream;
    res->stream = NULL; /* the connection owns it now */
    if (stream)
        gs_conn_attach_stream(conn, stream);
    else
        gs_conn_set_state(conn, GS_CONN_SENDING);
    enum MHD_Result ok = MHD_queue_response(conn->mhd, res->status, out);
    MHD_destroy_response(out);
    return ok;
}
