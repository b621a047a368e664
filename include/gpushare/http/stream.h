/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gpushare/base/error.h"

/*
 * An answer whose body comes later and in pieces (a Kubernetes watch): chunked transfer, pushed by
 * any thread while the connection sleeps. Every function may be called from any thread.
 *
 *   static void handle_watch(void *ctx, const struct gs_http_request *req,
 *                            struct gs_http_response *res)
 *   {
 *       struct gs_http_stream *stream = gs_http_stream_new(1 << 20, on_close, watcher);
 *       if (!stream) { gs_http_error(res, 500, "out of memory"); return; }
 *       watcher->stream = stream;                 our reference: unref in on_close or later
 *       gs_http_respond_stream(res, stream);      the server's own reference
 *   }
 *   ... any thread, from now on (also before the handler has returned):
 *       gs_http_stream_write(stream, line, len);
 *
 * A stream ends in one of four ways: gs_http_stream_end(), the client goes away, the client reads
 * so slowly that the ceiling is reached, the server stops. In each of them on_close(ctx) runs
 * exactly once, on a thread of the server, with no lock of the server held, after which every write
 * fails; so it is the place to unregister the producer. It does not run for a stream that was never
 * given to gs_http_respond_stream().
 */
struct gs_http_stream;

typedef void gs_http_stream_on_close(void *ctx);

/* A stream with one reference, the *caller's*; NULL when memory is out. ceiling_bytes bounds what
 * waits to be sent. on_close may be NULL. */
struct gs_http_stream *gs_http_stream_new(size_t ceiling_bytes, gs_http_stream_on_close *on_close,
                                          void *ctx);

struct gs_http_stream *gs_http_stream_ref(struct gs_http_stream *stream);

/* Gives one reference back; the last one frees. Does not end the stream. NULL is fine. */
void gs_http_stream_unref(struct gs_http_stream *stream);

/* Appends bytes (*copied*) and wakes the connection. Each write goes out at once, none is held
 * back for more. Errors: GS_ECANCELED when the stream has ended or its client is gone; GS_ETOOBIG
 * when the ceiling would be passed, GS_ENOMEM: both cut the connection, because a gap in a stream
 * must not look like a stream. */
int gs_http_stream_write(struct gs_http_stream *stream, const void *bytes, size_t len,
                         struct gs_error *err);

/* Sends what waits, then ends the body properly. More writes fail. */
void gs_http_stream_end(struct gs_http_stream *stream);

/* Drops what waits and cuts the connection in mid-body, as a fault would. */
void gs_http_stream_abort(struct gs_http_stream *stream);

/* Bytes written and not yet handed to the connection. */
size_t gs_http_stream_pending_bytes(struct gs_http_stream *stream);

/* Makes the answer's body this stream (res->body is dropped); takes a reference of its own, which
 * the server gives back after on_close. At most once per stream and per answer. */
struct gs_http_response;
void gs_http_respond_stream(struct gs_http_response *res, struct gs_http_stream *stream);
