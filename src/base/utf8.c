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

unsigned gs_utf8_get(const char *text, size_t width)
{
    static const unsigned char lead[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    unsigned code_point = (unsigned char)text[0] & lead[width];
    for (size_t i = 1; i < width; i++)
        code_point = code_point << 6 | ((unsigned char)text[i] & 0x3Fu);
    return code_point;
}

bool gs_utf8_acts(const char *text, size_t width)
{
    static const struct {
        unsigned first, last;
    } acting[] = {
        {0x00, 0x1F},     {0x7F, 0x9F},     {0x061C, 0x061C},   {0x200E, 0x200F},
        {0x2028, 0x202E}, {0x2066, 0x2069}, {0xE0000, 0xE0FFF},
    };
    unsigned code_point = gs_utf8_get(text, width);
    for (size_t i = 0; i < sizeof(acting) / sizeof(acting[0]); i++) {
        if (code_point >= acting[i].first && code_point <= acting[i].last)
            return true;
    }
    return false;
}

void gs_utf8_calm(char *text)
{
    size_t left = strlen(text), width;
    for (char *at = text; left; at += width, left -= width) {
        width = gs_utf8_width(at, left);
        if (width && !gs_utf8_acts(at, width))
            continue;
        width = width ? width : 1;
        memset(at, strchr("\t\n\v\f\r", *at) ? ' ' : '?', width);
    }
}
