/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/base/utf8.h"

enum gs_grpc_status gs_grpc_status_parse(const char *text, size_t len)
{
    uint32_t number;
    if (!gs_parse_u32(text, len, &number) || number > GS_GRPC_UNAUTHENTICATED)
        return GS_GRPC_UNKNOWN;
    return (enum gs_grpc_status)number;
}

enum gs_grpc_status gs_grpc_status_from_code(enum gs_code code)
{
    switch (code) {
    case GS_EINVAL:
    case GS_EPROTO:
        return GS_GRPC_INVALID_ARGUMENT;
    case GS_ETOOBIG:
    case GS_ENOMEM:
        return GS_GRPC_RESOURCE_EXHAUSTED;
    default:
        return GS_GRPC_UNAVAILABLE;
    }
}

/* ---- grpc-message ---- */

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* A character is appended whole or not at all. */
static bool put(struct gs_buf *buf, const char *bytes, size_t len)
{
    char out[13] = ""; /* four bytes of UTF-8, each as %XX */
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        n += (size_t)snprintf(out + n, sizeof(out) - n,
                              c >= ' ' && c <= '~' && c != '%' ? "%c" : "%%%02X", c);
    }
    if (n > buf->max - buf->len)
        return false;
    gs_buf_append(buf, out, n);
    return !gs_buf_failed(buf);
}

/* Invalid UTF-8 and NUL become U+FFFD. */
void gs_grpc_message_encode(struct gs_buf *buf, const char *text, size_t len)
{
    bool room = true;
    for (size_t i = 0; i < len && room;) {
        size_t width = text[i] != '\0' ? gs_utf8_width(text + i, len - i) : 0;
        room = width > 0 ? put(buf, text + i, width) : put(buf, REPLACEMENT, strlen(REPLACEMENT));
        i += width > 0 ? width : 1;
    }
}
