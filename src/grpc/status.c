/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

#include <stdint.h>

#include "gpushare/base/num.h"
#include "gpushare/base/utf8.h"

static const char *const names[] = {
    [GS_GRPC_OK] = "OK",
    [GS_GRPC_CANCELLED] = "CANCELLED",
    [GS_GRPC_UNKNOWN] = "UNKNOWN",
    [GS_GRPC_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
    [GS_GRPC_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
    [GS_GRPC_NOT_FOUND] = "NOT_FOUND",
    [GS_GRPC_ALREADY_EXISTS] = "ALREADY_EXISTS",
    [GS_GRPC_PERMISSION_DENIED] = "PERMISSION_DENIED",
    [GS_GRPC_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
    [GS_GRPC_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
    [GS_GRPC_ABORTED] = "ABORTED",
    [GS_GRPC_OUT_OF_RANGE] = "OUT_OF_RANGE",
    [GS_GRPC_UNIMPLEMENTED] = "UNIMPLEMENTED",
    [GS_GRPC_INTERNAL] = "INTERNAL",
    [GS_GRPC_UNAVAILABLE] = "UNAVAILABLE",
    [GS_GRPC_DATA_LOSS] = "DATA_LOSS",
    [GS_GRPC_UNAUTHENTICATED] = "UNAUTHENTICATED",
};

#define STATUS_COUNT (sizeof(names) / sizeof(names[0]))

const char *gs_grpc_status_name(enum gs_grpc_status status)
{
    return (size_t)status < STATUS_COUNT ? names[status] : "UNKNOWN";
}

enum gs_grpc_status gs_grpc_status_parse(const char *text, size_t len)
{
    uint32_t number;
    if (!gs_parse_u32(text, len, &number) || number >= STATUS_COUNT)
        return GS_GRPC_UNKNOWN;
    return (enum gs_grpc_status)number;
}

enum gs_grpc_status gs_grpc_status_from_http(unsigned http_status)
{
    switch (http_status) {
    case 400:
        return GS_GRPC_INTERNAL;
    case 401:
        return GS_GRPC_UNAUTHENTICATED;
    case 403:
        return GS_GRPC_PERMISSION_DENIED;
    case 404:
        return GS_GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return GS_GRPC_UNAVAILABLE;
    default:
        return GS_GRPC_UNKNOWN;
    }
}

enum gs_grpc_status gs_grpc_status_from_code(enum gs_code code)
{
    switch (code) {
    case GS_OK:
        return GS_GRPC_OK;
    case GS_EINVAL:
    case GS_EPROTO:
        return GS_GRPC_INVALID_ARGUMENT;
    case GS_ETOOBIG:
    case GS_ENOMEM:
        return GS_GRPC_RESOURCE_EXHAUSTED;
    case GS_ENOENT:
    case GS_EGONE:
        return GS_GRPC_NOT_FOUND;
    case GS_EEXIST:
        return GS_GRPC_ALREADY_EXISTS;
    case GS_ECONFLICT:
        return GS_GRPC_FAILED_PRECONDITION;
    case GS_EAUTH:
        return GS_GRPC_UNAUTHENTICATED;
    case GS_EDENIED:
        return GS_GRPC_PERMISSION_DENIED;
    case GS_ETIMEOUT:
        return GS_GRPC_DEADLINE_EXCEEDED;
    case GS_EBUSY:
    case GS_EIO:
    case GS_ENOTREADY:
        return GS_GRPC_UNAVAILABLE;
    case GS_ECANCELED:
        return GS_GRPC_CANCELLED;
    case GS_EINTERNAL:
        return GS_GRPC_INTERNAL;
    }
    return GS_GRPC_UNKNOWN;
}

enum gs_code gs_grpc_status_to_code(enum gs_grpc_status status)
{
    switch (status) {
    case GS_GRPC_OK:
        return GS_OK;
    case GS_GRPC_CANCELLED:
        return GS_ECANCELED;
    case GS_GRPC_INVALID_ARGUMENT:
    case GS_GRPC_OUT_OF_RANGE:
        return GS_EINVAL;
    case GS_GRPC_DEADLINE_EXCEEDED:
        return GS_ETIMEOUT;
    case GS_GRPC_NOT_FOUND:
    case GS_GRPC_UNIMPLEMENTED:
        return GS_ENOENT;
    case GS_GRPC_ALREADY_EXISTS:
        return GS_EEXIST;
    case GS_GRPC_PERMISSION_DENIED:
        return GS_EDENIED;
    case GS_GRPC_RESOURCE_EXHAUSTED:
        return GS_EBUSY;
    case GS_GRPC_FAILED_PRECONDITION:
    case GS_GRPC_ABORTED:
        return GS_ECONFLICT;
    case GS_GRPC_INTERNAL:
    case GS_GRPC_DATA_LOSS:
        return GS_EPROTO;
    case GS_GRPC_UNAUTHENTICATED:
        return GS_EAUTH;
    case GS_GRPC_UNKNOWN:
    case GS_GRPC_UNAVAILABLE:
        return GS_EIO;
    }
    return GS_EIO;
}

/* ---- grpc-message ---- */

#define REPLACEMENT     "\xEF\xBF\xBD" /* U+FFFD */
#define REPLACEMENT_LEN 3

/* A character is appended whole or not at all. */
static bool put(struct gs_buf *buf, const char *bytes, size_t len)
{
    if (len > buf->max - buf->len)
        return false;
    gs_buf_append(buf, bytes, len);
    return !gs_buf_failed(buf);
}

static bool put_escaped(struct gs_buf *buf, const char *bytes, size_t len)
{
    static const char hex[] = "0123456789ABCDEF";
    char out[12]; /* four bytes of UTF-8, each as %XX */
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= ' ' && c <= '~' && c != '%') {
            out[n++] = (char)c;
        } else {
            out[n++] = '%';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        }
    }
    return put(buf, out, n);
}

void gs_grpc_message_encode(struct gs_buf *buf, const char *text, size_t len)
{
    bool room = true;
    for (size_t i = 0; i < len && room;) {
        size_t width = gs_utf8_width(text + i, len - i);
        room = width > 0 ? put_escaped(buf, text + i, width)
                         : put_escaped(buf, REPLACEMENT, REPLACEMENT_LEN);
        i += width > 0 ? width : 1;
    }
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The result is never longer than the text. */
static size_t unescape(char *out, const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        int high = text[i] == '%' && len - i > 2 ? hex_value(text[i + 1]) : -1;
        int low = high >= 0 ? hex_value(text[i + 2]) : -1;
        if (low >= 0) {
            out[n++] = (char)(high << 4 | low);
            i += 2;
        } else {
            out[n++] = text[i];
        }
    }
    return n;
}

void gs_grpc_message_decode(struct gs_buf *buf, const char *text, size_t len)
{
    struct gs_buf raw = GS_BUF(len);
    char *to = gs_buf_reserve(&raw, len);
    if (!to) {
        buf->failed = GS_ENOMEM;
        return;
    }
    size_t n = unescape(to, text, len);
    bool room = true;
    for (size_t i = 0; i < n && room;) {
        size_t width = to[i] != '\0' ? gs_utf8_width(to + i, n - i) : 0;
        room = width > 0 ? put(buf, to + i, width) : put(buf, REPLACEMENT, REPLACEMENT_LEN);
        i += width > 0 ? width : 1;
    }
    gs_buf_release(&raw);
}
