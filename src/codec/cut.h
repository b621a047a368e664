/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CODEC_CUT_H
#define GPUSHARE_CODEC_CUT_H

#include <stddef.h>

/* Private: the length of well-formed UTF-8 text cut to `max` bytes, at a character's end. */
static inline size_t gs_cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    while (max > 0 && ((unsigned char)text[max] & 0xC0) == 0x80)
        max--;
    return max;
}

#endif
