/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/utf8.h"

#include <string.h>

static int is_tail(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

size_t gs_utf8_width(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xC2 && s[0] <= 0xDF)
        return len >= 2 && is_tail(s[1]) ? 2 : 0;
    if ((s[0] & 0xF0) == 0xE0) {
        if (len < 3 || !is_tail(s[1]) || !is_tail(s[2]))
            return 0;
        if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F))
            return 0;
        return 3;
    }
    if (s[0] >= 0xF0 && s[0] <= 0xF4) {
        if (len < 4 || !is_tail(s[1]) || !is_tail(s[2]) || !is_tail(s[3]))
            return 0;
        if ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
            return 0;
        return 4;
    }
    return 0;
}

size_t gs_utf8_put(char out[4], unsigned code_point)
{
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (char)(0xC0 | (code_point >> 6));
        out[1] = (char)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (char)(0xE0 | (code_point >> 12));
        out[1] = (char)(0x80 | ((code_point >> 6) & 0x3F));
        out[2] = (char)(0x80 | (code_point & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | (code_point >> 18));
    out[1] = (char)(0x80 | ((code_point >> 12) & 0x3F));
    out[2] = (char)(0x80 | ((code_point >> 6) & 0x3F));
    out[3] = (char)(0x80 | (code_point & 0x3F));
    return 4;
}

/* A sequence of that many bytes, which is well-formed. */
static int is_calm(const unsigned char *s, size_t width)
{
    if (width == 1)
        return s[0] >= 0x20 && s[0] != 0x7F;
    if (width == 2)
        return s[0] != 0xC2 || s[1] >= 0xA0;
    if (width == 3 && s[0] == 0xE2)
        return !(s[1] == 0x80 && s[2] >= 0xAA && s[2] <= 0xAE) &&
               !(s[1] == 0x81 && s[2] >= 0xA6 && s[2] <= 0xA9);
    return 1;
}

void gs_utf8_calm(char *text)
{
    size_t left = strlen(text), width;
    for (char *at = text; left; at += width, left -= width) {
        width = gs_utf8_width(at, left);
        if (width && is_calm((const unsigned char *)at, width))
            continue;
        width = width ? width : 1;
        memset(at, strchr("\t\n\v\f\r", *at) ? ' ' : '?', width);
    }
}
