/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_BASE_UTF8_H
#define GPUSHARE_BASE_UTF8_H

#include <stddef.h>

/* Length in bytes (1 to 4) of the well-formed UTF-8 sequence at text, or 0 when the bytes are none:
 * overlong forms, surrogates, above U+10FFFF, cut short (Unicode 15, table 3-7). len > 0. */
size_t gs_utf8_width(const char *text, size_t len);

/* Writes one code point (at most U+10FFFF, no surrogate) as 1 to 4 bytes; returns how many. */
size_t gs_utf8_put(char out[4], unsigned code_point);

/* Makes foreign words fit for a line on a terminal, in place: white space becomes blanks; control
 * characters (C0, C1, DEL), which could move the cursor or speak to the terminal, marks that turn
 * the direction of writing (U+202A to 202E, U+2066 to 2069) and bytes that are no UTF-8 become '?',
 * one for each byte. The length stays. */
void gs_utf8_calm(char *text);

#endif
