/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/error.h"

#include <stdio.h>
#include <string.h>

void gs_words(char *out, size_t size, const char *fmt, va_list ap)
{
    static const char more[] = "…";
    if (vsnprintf(out, size, fmt, ap) < (int)size)
        return;
    size_t end = size - sizeof(more);
    for (int back = 0; back < 3 && ((unsigned char)out[end] & 0xC0) == 0x80; back++)
        end--;
    memcpy(out + end, more, sizeof(more));
}

int gs_fail(struct gs_error *err, enum gs_code code, const char *fmt, ...)
{
    if (!err || err->code != GS_OK)
        return -1;
    err->code = code;
    va_list ap;
    va_start(ap, fmt);
    gs_words(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    return -1;
}

int gs_fail_nomem(struct gs_error *err)
{
    return gs_fail(err, GS_ENOMEM, "out of memory");
}

int gs_fail_errno(struct gs_error *err, enum gs_code code, int errnum, const char *fmt, ...)
{
    char words[200];
    va_list ap;
    va_start(ap, fmt);
    gs_words(words, sizeof(words), fmt, ap);
    va_end(ap);
    char reason[64];
    return gs_fail(err, code, "%s: %s", words, strerror_r(errnum, reason, sizeof(reason)));
}

int gs_error_prefix(struct gs_error *err, const char *fmt, ...)
{
    if (!err || err->code == GS_OK)
        return -1;
    const struct gs_error inner = *err;
    char context[sizeof(err->msg)];
    va_list ap;
    va_start(ap, fmt);
    gs_words(context, sizeof(context), fmt, ap);
    va_end(ap);
    gs_error_clear(err);
    return gs_fail(err, inner.code, "%s: %s", context, inner.msg);
}

void gs_error_clear(struct gs_error *err)
{
    err->code = GS_OK;
    err->msg[0] = '\0';
}
