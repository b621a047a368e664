/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
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

/* ---- grpc-message ---- */

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* A character is appended whole or not at all. */
static bool put(struct gs_buf *buf, const char *bytes, size_t len, bool escape)
{
    static const char hex[] = "0123456789ABCDEF";
    char out[12]; /* four bytes of UTF-8, each as %XX */
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (!escape || (c >= ' ' && c <= '~' && c != '%')) {
            out[n++] = (char)c;
        } else {
            out[n++] = '%';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        }
    }
    if (n > buf->max - buf->len)
        return false;
    gs_buf_append(buf, out, n);
    return !gs_buf_failed(buf);
}

/* Invalid UTF-8 and NUL become U+FFFD. */
static void put_text(struct gs_buf *buf, const char *text, size_t len, bool escape)
{
    bool room = true;
    for (size_t i = 0; i < len && room;) {
        size_t width = text[i] != '\0' ? gs_utf8_width(text + i, len - i) : 0;
        room = width > 0 ? put(buf, text + i, width, escape)
                         : put(buf, REPLACEMENT, strlen(REPLACEMENT), escape);
        i += width > 0 ? width : 1;
    }
}

void gs_grpc_message_encode(struct gs_buf *buf, const char *text, size_t len)
{
    put_text(buf, text, len, true);
}

void gs_grpc_message_decode(struct gs_buf *buf, const char *text, size_t len)
{
    _cleanup_free_ char *raw = malloc(len + 1); /* never longer than the text */
    size_t n = 0;
    if (!raw) {
        buf->failed = GS_ENOMEM;
        return;
    }
    for (size_t i = 0; i < len; i++) {
        int high = text[i] == '%' && len - i > 2 ? gs_hex_value(text[i + 1]) : -1;
        int low = high >= 0 ? gs_hex_value(text[i + 2]) : -1;
        raw[n++] = (char)(low >= 0 ? high << 4 | low : text[i]);
        i += low >= 0 ? 2 : 0;
    }
    put_text(buf, raw, n, false);
}
