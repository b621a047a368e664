/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/*
 * A growing byte buffer with a ceiling. Not thread-safe.
 *
 *   _cleanup_(gs_buf_release) struct gs_buf out = GS_BUF(1 << 20);
 *   gs_buf_puts(&out, "{\"Error\":");
 *   gs_buf_json_string(&out, msg, strlen(msg));
 *   gs_buf_putc(&out, '}');
 *   if (gs_buf_failed(&out)) ...            checked once, at the end
 *
 * A failed append (ceiling or memory) leaves what was there, marks the buffer failed, and every
 * later append does nothing: no call needs its own check. data is always terminated by a NUL that
 * len does not count; data is NULL while nothing was ever appended.
 */
struct gs_buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max; /* ceiling for len, in bytes */
    int failed; /* 0, or an enum gs_code: GS_ETOOBIG or GS_ENOMEM */
};

#define GS_BUF(ceiling_bytes) ((struct gs_buf){.max = (ceiling_bytes)})

/* Frees the memory; the buffer is empty and usable again, with its old ceiling. */
void gs_buf_release(struct gs_buf *buf);
/* The same for one that held a secret: what lies in it now is overwritten. */
void gs_buf_wipe(struct gs_buf *buf);

/* Empties it and keeps the memory; clears a failure. */
void gs_buf_reset(struct gs_buf *buf);

/* Hands out the memory: *caller frees*. NULL when failed or out of memory; the buffer is empty
 * afterwards either way. An empty buffer gives an empty string. */
char *gs_buf_steal(struct gs_buf *buf);

/* Makes room for `extra` bytes more; returns where they go, or NULL (and marks failed). Fill, then
 * gs_buf_advance(). */
char *gs_buf_reserve(struct gs_buf *buf, size_t extra);
void gs_buf_advance(struct gs_buf *buf, size_t written);

void gs_buf_append(struct gs_buf *buf, const void *bytes, size_t len);
void gs_buf_puts(struct gs_buf *buf, const char *text);
void gs_buf_putc(struct gs_buf *buf, char c);
void gs_buf_printf(struct gs_buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void gs_buf_vprintf(struct gs_buf *buf, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

/* Appends a JSON string with its quotes: RFC 8259 escapes, invalid UTF-8 becomes U+FFFD. */
void gs_buf_json_string(struct gs_buf *buf, const char *text, size_t len);
void gs_buf_json_text(struct gs_buf *buf, const char *text);

/* Drops the first `count` bytes (at most len). */
void gs_buf_consume(struct gs_buf *buf, size_t count);

static inline int gs_buf_failed(const struct gs_buf *buf)
{
    return buf->failed;
}
