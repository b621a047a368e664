/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/scan.h"

#include "gpushare/base/num.h"
#include "gpushare/base/utf8.h"
#include "scan_pass.h"

/* Decodes strings that the scanner has validated: escapes and surrogate pairs are complete. */

int gs_scan_hex4(const char *at, const char *end)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = at + i < end ? gs_hex_value(at[i]) : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static unsigned hex4(const char *at)
{
    return (unsigned)gs_scan_hex4(at, at + 4);
}

/* The character that a backslash and this letter encode; not for 'u'. */
static inline char short_escape(char letter)
{
    static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
    const char *known = strchr(letters, letter);
    return known ? meant[known - letters] : letter; /* else a quote, a backslash or a slash */
}

/* One character's bytes, from 1 to 4; a plain byte counts as one character. */
static inline size_t next_bytes(const char **at, char *out)
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

/* An escape is never shorter than its character, so `to` needs at most text.len bytes. */
static size_t unescape(struct gs_scan_text text, bool c_string, char *to)
{
    const char *at = text.at, *end = text.at + text.len;
    size_t len = 0;
    while (at < end) {
        size_t count = next_bytes(&at, to + len);
        if (c_string && !to[len])
            count = gs_utf8_put(to + len, 0xFFFD);
        len += count;
    }
    return len;
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
            if (any_case ? strncasecmp(&bytes[i], other.at + len, 1) != 0
                         : bytes[i] != other.at[len])
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
    char to[4];
    if (text.len <= bytes)
        return text;
    const char *at = text.at, *end = at + text.len;
    for (size_t len = 0; text.escaped && at < end && len < bytes;)
        len += next_bytes(&at, to);
    text.len = text.escaped ? (size_t)(at - text.at) : bytes;
    return text;
}

bool gs_scan_text_copy(struct gs_scan_text text, char *to, size_t size)
{
    /* measured first: a text that does not fit must not change the buffer */
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
