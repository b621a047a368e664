/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/http/stream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "internal.h"

enum { KEEP_BYTES = 16 << 10 };

enum stream_state { STREAM_OPEN, STREAM_ENDED, STREAM_DEAD };

struct gs_http_stream {
    atomic_uint refs;
    gs_http_stream_on_close *on_close;
    void *ctx;

    pthread_mutex_t lock;
    /* Guarded by lock. */
    enum stream_state state;
    struct gs_buf bytes;
    size_t sent_bytes;          /* at the beginning of `bytes` */
    struct MHD_Connection *mhd; /* NULL: not attached */
    int fd;                     /* open while attached */
    bool suspended;
    int64_t progress_ns; /* the connection took bytes, or bytes came when none waited */
};

struct gs_http_stream *gs_http_stream_new(size_t ceiling_bytes, gs_http_stream_on_close *on_close,
                                          void *ctx)
{
    struct gs_http_stream *stream = calloc(1, sizeof(*stream));
    if (!stream)
        return NULL;
    pthread_mutex_init(&stream->lock, NULL);
    atomic_init(&stream->refs, 1);
    stream->on_close = on_close;
    stream->ctx = ctx;
    stream->bytes = GS_BUF(ceiling_bytes);
    stream->fd = -1;
    return stream;
}

struct gs_http_stream *gs_http_stream_ref(struct gs_http_stream *stream)
{
    atomic_fetch_add(&stream->refs, 1);
    return stream;
}

void gs_http_stream_unref(struct gs_http_stream *stream)
{
    if (!stream || atomic_fetch_sub(&stream->refs, 1) > 1)
        return;
    gs_buf_release(&stream->bytes);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

static size_t pending(const struct gs_http_stream *stream)
{
    return stream->bytes.len - stream->sent_bytes;
}

static void wake(struct gs_http_stream *stream)
{
    if (stream->suspended) {
        stream->suspended = false;
        MHD_resume_connection(stream->mhd);
    }
}

static void kill_locked(struct gs_http_stream *stream)
{
    stream->state = STREAM_DEAD;
    gs_buf_release(&stream->bytes);
    stream->sent_bytes = 0;
    /* The loop may be waiting for the client to read; only the socket's end wakes it then. */
    if (stream->fd >= 0)
        shutdown(stream->fd, SHUT_RDWR);
    wake(stream);
}

/* Removes sent bytes once they are the larger part, so that the queue is not moved for every piece
 * that is sent. An idle stream frees a large buffer. */
static void compact(struct gs_http_stream *stream)
{
    if (stream->sent_bytes * 2 < stream->bytes.len)
        return;
    gs_buf_consume(&stream->bytes, stream->sent_bytes);
    stream->sent_bytes = 0;
    if (stream->bytes.len == 0 && stream->bytes.cap > KEEP_BYTES)
        gs_buf_release(&stream->bytes);
}

static int write_locked(struct gs_http_stream *stream, const void *bytes, size_t len,
                        struct gs_error *err)
{
    if (stream->state != STREAM_OPEN)
        return gs_fail(err, GS_ECANCELED, "the stream has ended");
    if (len == 0)
        return 0;
    if (pending(stream) == 0)
        stream->progress_ns = gs_now_ns();
    if (len > stream->bytes.max - stream->bytes.len) {
        gs_buf_consume(&stream->bytes, stream->sent_bytes);
        stream->sent_bytes = 0;
    }
    gs_buf_append(&stream->bytes, bytes, len);
    const int failed = gs_buf_failed(&stream->bytes);
    if (!failed) {
        wake(stream);
        return 0;
    }
    kill_locked(stream);
    return failed == GS_ETOOBIG ? gs_fail(err, GS_ETOOBIG, "the client reads too slowly")
                                : gs_fail_nomem(err);
}

int gs_http_stream_write(struct gs_http_stream *stream, const void *bytes, size_t len,
                         struct gs_error *err)
{
    pthread_mutex_lock(&stream->lock);
    int result = write_locked(stream, bytes, len, err);
    pthread_mutex_unlock(&stream->lock);
    return result;
}

void gs_http_stream_end(struct gs_http_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    if (stream->state == STREAM_OPEN) {
        stream->state = STREAM_ENDED;
        stream->progress_ns = gs_now_ns();
        wake(stream);
    }
    pthread_mutex_unlock(&stream->lock);
}

void gs_http_stream_abort(struct gs_http_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    if (stream->state != STREAM_DEAD)
        kill_locked(stream);
    pthread_mutex_unlock(&stream->lock);
}

size_t gs_http_stream_pending_bytes(struct gs_http_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    size_t bytes = pending(stream);
    pthread_mutex_unlock(&stream->lock);
    return bytes;
}

bool gs_stream_stalled(struct gs_http_stream *stream, int64_t before_ns)
{
    pthread_mutex_lock(&stream->lock);
    bool waits = pending(stream) > 0 || stream->state == STREAM_ENDED;
    bool stalled = waits && stream->progress_ns < before_ns;
    pthread_mutex_unlock(&stream->lock);
    return stalled;
}

void gs_stream_attach(struct gs_http_stream *stream, struct MHD_Connection *mhd, int fd)
{
    pthread_mutex_lock(&stream->lock);
    stream->mhd = mhd;
    stream->fd = fd;
    if (stream->state == STREAM_DEAD)
        shutdown(fd, SHUT_RDWR); /* aborted before it was attached */
    pthread_mutex_unlock(&stream->lock);
}

void gs_stream_detach(struct gs_http_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->state = STREAM_DEAD;
    stream->mhd = NULL;
    stream->fd = -1;
    pthread_mutex_unlock(&stream->lock);
    if (stream->on_close)
        stream->on_close(stream->ctx);
}

ssize_t gs_stream_read(void *cls, uint64_t pos, char *to, size_t max)
{
    struct gs_http_stream *stream = cls;
    ssize_t result = 0;
    pthread_mutex_lock(&stream->lock);
    size_t count = pending(stream) < max ? pending(stream) : max;
    if (stream->state == STREAM_DEAD) {
        result = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (count > 0) {
        memcpy(to, stream->bytes.data + stream->sent_bytes, count);
        stream->sent_bytes += count;
        stream->progress_ns = gs_now_ns();
        compact(stream);
        result = (ssize_t)count;
    } else if (stream->state == STREAM_ENDED) {
        result = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        /* Sleeps until wake(): zero bytes without suspending would make the loop spin. */
        stream->suspended = true;
        MHD_suspend_connection(stream->mhd);
    }
    pthread_mutex_unlock(&stream->lock);
    return result;
}
