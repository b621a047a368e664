/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Length in bytes (1 to 4) of the well-formed UTF-8 sequence at text, or 0 when the bytes are none:
 * overlong forms, surrogates, above U+10FFFF, cut short (Unicode 15, table 3-7). len > 0. */
size_t gs_utf8_width(const char *text, size_t len);

/* Writes one code point (at most U+10FFFF, no surrogate) as 1 to 4 bytes; returns how many. */
size_t gs_utf8_put(char out[4], unsigned code_point);

/* A well-formed sequence that does more to a terminal or an editor than to show a character: C0, C1
 * and DEL, marks and turns of the direction of writing (U+061C, U+200E and F, U+202A to 202E,
 * U+2066 to 2069), ends of lines and paragraphs (U+2028, U+2029), tags and what else is never shown
 * in U+E0000 to U+E0FFF. */
bool gs_utf8_acts(const char *text, size_t width);

/* The code point of a well-formed sequence. */
unsigned gs_utf8_get(const char *text, size_t width);

/* The length of well-formed text cut to `max` bytes, at a character's end. */
size_t gs_utf8_cut(const char *text, size_t len, size_t max);

/* Makes foreign words fit for a line on a terminal, in place: white space becomes blanks; control
 * characters, which could move the cursor or speak to the terminal, everything else of which
 * gs_utf8_acts() speaks and bytes that are no UTF-8 become '?', one for each byte. The length
 * stays. */
void gs_utf8_calm(char *text);
