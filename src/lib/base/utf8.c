/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/utf8.h"

#include <string.h>

enum { WIDTH_MAX = 4 };

/* By width: the bits of the first byte that say so, and the least code point that needs it. */
static const struct {
    unsigned lead, least;
} forms[WIDTH_MAX + 1] = {{0}, {0, 0}, {0xC0, 0x80}, {0xE0, 0x800}, {0xF0, 0x10000}};

unsigned gs_utf8_get(const char *text, size_t width)
{
    static const unsigned char lead[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    unsigned code_point = (unsigned char)text[0] & lead[width];
    for (size_t i = 1; i < width; i++)
        code_point = code_point << 6 | ((unsigned char)text[i] & 0x3Fu);
    return code_point;
}

size_t gs_utf8_width(const char *text, size_t len)
{
    const unsigned char first = (unsigned char)text[0];
    if (first < 0x80)
        return 1;
    size_t width = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC0 || first > 0xF4 || width > len)
        return 0;
    for (size_t i = 1; i < width; i++) {
        if (((unsigned char)text[i] & 0xC0) != 0x80)
            return 0;
    }
    unsigned code_point = gs_utf8_get(text, width);
    bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    return code_point < forms[width].least || code_point > 0x10FFFF || surrogate ? 0 : width;
}

size_t gs_utf8_put(char out[4], unsigned code_point)
{
    size_t width = WIDTH_MAX;
    while (code_point < forms[width].least)
        width--;
    for (size_t i = width; i-- > 1; code_point >>= 6)
        out[i] = (char)(0x80 | (code_point & 0x3F));
    out[0] = (char)(forms[width].lead | code_point);
    return width;
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

size_t gs_utf8_cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    while (max > 0 && ((unsigned char)text[max] & 0xC0) == 0x80)
        max--;
    return max;
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
