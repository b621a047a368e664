/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/error.h"
#include "gpushare/base/utf8.h"

void gs_buf_release(struct gs_buf *buf)
{
    size_t max = buf->max;
    free(buf->data);
    *buf = GS_BUF(max);
}

void gs_buf_wipe(struct gs_buf *buf)
{
    if (buf->data)
        explicit_bzero(buf->data, buf->cap);
    gs_buf_release(buf);
}

void gs_buf_reset(struct gs_buf *buf)
{
    buf->len = 0;
    buf->failed = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

char *gs_buf_steal(struct gs_buf *buf)
{
    char *data = NULL;
    if (!buf->failed) {
        gs_buf_append(buf, "", 0);
        data = buf->data;
        buf->data = NULL;
    }
    gs_buf_release(buf);
    return data;
}

static int grow(struct gs_buf *buf, size_t need)
{
    size_t cap = buf->cap ? buf->cap : 64;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    char *data = realloc(buf->data, cap);
    if (!data) {
        buf->failed = GS_ENOMEM;
        return -1;
    }
    buf->data = data;
    buf->cap = cap;
    return 0;
}

char *gs_buf_reserve(struct gs_buf *buf, size_t extra)
{
    if (buf->failed)
        return NULL;
    size_t need;
    if (__builtin_add_overflow(buf->len, extra, &need) || need > buf->max || need == SIZE_MAX) {
        buf->failed = GS_ETOOBIG;
        return NULL;
    }
    if (need + 1 > buf->cap && grow(buf, need + 1) < 0)
        return NULL;
    return buf->data + buf->len;
}

void gs_buf_advance(struct gs_buf *buf, size_t written)
{
    buf->len += written;
    buf->data[buf->len] = '\0';
}

void gs_buf_append(struct gs_buf *buf, const void *bytes, size_t len)
{
    char *to = gs_buf_reserve(buf, len);
    if (!to)
        return;
    if (len)
        memcpy(to, bytes, len);
    gs_buf_advance(buf, len);
}

void gs_buf_puts(struct gs_buf *buf, const char *text)
{
    gs_buf_append(buf, text, strlen(text));
}

void gs_buf_putc(struct gs_buf *buf, char c)
{
    gs_buf_append(buf, &c, 1);
}

void gs_buf_vprintf(struct gs_buf *buf, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    char small[256];
    int len = vsnprintf(small, sizeof(small), fmt, ap);
    char *to = len < 0 ? NULL : gs_buf_reserve(buf, (size_t)len);
    if (to) {
        if ((size_t)len < sizeof(small))
            memcpy(to, small, (size_t)len);
        else
            vsnprintf(to, (size_t)len + 1, fmt, again);
        gs_buf_advance(buf, (size_t)len);
    }
    va_end(again);
}

void gs_buf_printf(struct gs_buf *buf, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    gs_buf_vprintf(buf, fmt, ap);
    va_end(ap);
}

/* Beyond U+FFFF as the two halves of a pair. */
static void escape(struct gs_buf *buf, unsigned code_point)
{
    static const char plain[] = "\"\\\n\r\t", letters[] = "\"\\nrt";
    const char *known =
        code_point < 0x80 ? memchr(plain, (int)code_point, sizeof(plain) - 1) : NULL;
    if (known) {
        gs_buf_printf(buf, "\\%c", letters[known - plain]);
        return;
    }
    if (code_point >= 0x10000) {
        gs_buf_printf(buf, "\\u%04x", 0xD800 + ((code_point - 0x10000) >> 10));
        code_point = 0xDC00 + ((code_point - 0x10000) & 0x3FF);
    }
    gs_buf_printf(buf, "\\u%04x", code_point);
}

void gs_buf_json_string(struct gs_buf *buf, const char *text, size_t len)
{
    gs_buf_putc(buf, '"');
    size_t plain = 0; /* start of the run that needs no escape */
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];
        size_t width = c < 0x80 ? 1 : gs_utf8_width(text + i, len - i);
        bool acts = c < 0x80 ? c < 0x20 || c == 0x7f || c == '"' || c == '\\'
                             : width && gs_utf8_acts(text + i, width);
        if (width && !acts) {
            i += width;
            continue;
        }
        gs_buf_append(buf, text + plain, i - plain);
        if (width)
            escape(buf, gs_utf8_get(text + i, width));
        else
            gs_buf_append(buf, "\xEF\xBF\xBD", 3);
        i += width ? width : 1;
        plain = i;
    }
    gs_buf_append(buf, text + plain, len - plain);
    gs_buf_putc(buf, '"');
}

void gs_buf_json_text(struct gs_buf *buf, const char *text)
{
    gs_buf_json_string(buf, text, strlen(text));
}

void gs_buf_consume(struct gs_buf *buf, size_t count)
{
    if (count >= buf->len) {
        buf->len = 0;
    } else {
        memmove(buf->data, buf->data + count, buf->len - count);
        buf->len -= count;
    }
    if (buf->data)
        buf->data[buf->len] = '\0';
}
