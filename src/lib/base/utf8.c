/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/utf8.h"

#include <string.h>

/* Well-formed sequences by their first byte (Unicode 15, table 3-7): the bounds of the second keep
 * out overlong forms, surrogates and what lies above U+10FFFF. */
static const struct {
    unsigned char first, last, low, high;
    unsigned width;
} forms[] = {
    {0x00, 0x7F, 0x00, 0x00, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
    {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
    {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

static bool is_between(unsigned char byte, unsigned char low, unsigned char high)
{
    return byte >= low && byte <= high;
}

size_t gs_utf8_width(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t form = 0, width;
    while (form < sizeof(forms) / sizeof(forms[0]) &&
           !is_between(s[0], forms[form].first, forms[form].last))
        form++;
    if (form == sizeof(forms) / sizeof(forms[0]) || forms[form].width > len)
        return 0;
    width = forms[form].width;
    if (width > 1 && !is_between(s[1], forms[form].low, forms[form].high))
        return 0;
    for (size_t i = 2; i < width; i++) {
        if (!is_between(s[i], 0x80, 0xBF))
            return 0;
    }
    return width;
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
