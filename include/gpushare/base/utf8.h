/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_BASE_UTF8_H
#define GPUSHARE_BASE_UTF8_H

#include <stddef.h>

/* Length in bytes (1 to 4) of the well-formed UTF-8 sequence at text, or 0 when the bytes are none:
 * overlong forms, surrogates, above U+10FFFF, cut short (Unicode 15, table 3-7). len > 0. */
size_t gs_utf8_width(const char *text, size_t len);

/* Writes one code point (at most U+10FFFF, no surrogate) as 1 to 4 bytes; returns how many. */
size_t gs_utf8_put(char out[4], unsigned code_point);

#endif
