/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/scan.h"

#include "gpushare/base/num.h"
#include "gpushare/base/utf8.h"

/* Takes apart what the scanner has checked: every escape is whole, every surrogate has its
 * partner. */

static unsigned hex4(const char *at)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++)
        value = value << 4 | (unsigned)gs_hex_value(at[i]);
    return value;
}

/* What the letter after a backslash stands for, when it is no 'u'. */
static inline char short_escape(char letter)
{
    switch (letter) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return letter; /* a quote, a backslash or a slash */
    }
}

/* One character's bytes, from 1 to 4; a plain byte counts as one character. */
static size_t next_bytes(const char **at, char out[4])
{
    const char *from = *at;
    if (*from != '\\') {
        out[0] = *from;
        *at = from + 1;
        return 1;
    }
    if (from[1] != 'u') {
        out[0] = short_escape(from[1]);
        *at = from + 2;
        return 1;
    }
    unsigned unit = hex4(from + 2);
    *at = from + 6;
    if ((unit & 0xFC00) == 0xD800) {
        unit = 0x10000 + ((unit & 0x3FF) << 10) + (hex4(from + 8) & 0x3FF);
        *at = from + 12;
    }
    return gs_utf8_put(out, unit);
}

/* No escape is shorter than what it stands for: `to` needs text.len bytes at most. */
static size_t unescape(struct gs_scan_text text, bool c_string, char *to)
{
    const char *at = text.at, *end = text.at + text.len;
    size_t len = 0;
    while (at < end) {
        char bytes[4];
        if (*at != '\\') {
            to[len++] = *at++;
            continue;
        }
        if (at[1] != 'u') {
            to[len++] = short_escape(at[1]);
            at += 2;
            continue;
        }
        size_t count = next_bytes(&at, bytes);
        if (c_string && bytes[0] == '\0')
            count = gs_utf8_put(bytes, 0xFFFD);
        memcpy(to + len, bytes, count);
        len += count;
    }
    return len;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

bool gs_scan_text_eq_escaped(struct gs_scan_text text, struct gs_slice other, bool any_case)
{
    const char *at = text.at, *end = text.at + text.len;
    size_t len = 0;
    while (at < end) {
        char bytes[4];
        size_t count = next_bytes(&at, bytes);
        for (size_t i = 0; i < count; i++, len++) {
            if (len == other.len)
                return false;
            char a = bytes[i], b = other.at[len];
            if (a != b && !(any_case && lower(a) == lower(b)))
                return false;
        }
    }
    return len == other.len;
}

bool gs_scan_text_slice(struct gs_arena *arena, struct gs_scan_text text, struct gs_slice *ret)
{
    if (!text.escaped) {
        *ret = (struct gs_slice){text.at ? text.at : "", text.len};
        return true;
    }
    char *to = gs_arena_alloc(arena, text.len);
    if (!to)
        return false;
    *ret = (struct gs_slice){to, unescape(text, false, to)};
    return true;
}

char *gs_scan_string_dup(struct gs_arena *arena, struct gs_scan_text text)
{
    if (!text.escaped)
        return gs_arena_strndup(arena, text.at, text.len);
    char *to = gs_arena_alloc(arena, text.len + 1);
    if (to)
        to[unescape(text, true, to)] = '\0';
    return to;
}

struct gs_scan_text gs_scan_text_head(struct gs_scan_text text, size_t bytes)
{
    const char *at = text.at, *end = text.at + text.len;
    char to[4];
    if (text.len <= bytes)
        return text;
    if (!text.escaped) {
        text.len = bytes;
        return text;
    }
    for (size_t len = 0; at < end && len < bytes;)
        len += next_bytes(&at, to);
    text.len = (size_t)(at - text.at);
    return text;
}

bool gs_scan_text_copy(struct gs_scan_text text, char *to, size_t size)
{
    /* measured first, so that a text that does not fit leaves the buffer alone */
    size_t len = text.len;
    if (text.escaped) {
        const char *at = text.at;
        char bytes[4];
        for (len = 0; at < text.at + text.len;) {
            size_t count = next_bytes(&at, bytes);
            len += bytes[0] == '\0' ? 3 : count;
        }
    }
    if (len >= size)
        return false;
    if (text.escaped)
        unescape(text, true, to);
    else if (len)
        memcpy(to, text.at, len);
    to[len] = '\0';
    return true;
}
