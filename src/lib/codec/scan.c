/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/scan.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "gpushare/base/num.h"
#include "gpushare/base/utf8.h"
#include "scan_pass.h"

void gs_scan_init(struct gs_scan *scan, struct gs_slice text)
{
    *scan = (struct gs_scan){.at = text.at, .begin = text.at, .end = text.at + text.len};
}

bool gs_scan_refuse(struct gs_scan *scan, const char *what, const char *why)
{
    if (!scan->failed) {
        scan->failed = true;
        scan->what = what;
        scan->why = why;
    }
    return false;
}

__attribute__((cold, noinline)) static bool bad_syntax(struct gs_scan *scan)
{
    return gs_scan_refuse(scan, NULL,
                          scan->at == scan->end ? "unexpected end of input" : "invalid syntax");
}

static inline void skip_space(struct gs_scan *scan)
{
    const char *at = scan->at;
    while (at < scan->end && (unsigned char)*at <= ' ' &&
           (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    scan->at = at;
}

/* The next byte that is no space, or 0 at the end and after a failure: no value begins with it. */
static inline char peek_byte(struct gs_scan *scan)
{
    if (scan->failed)
        return 0;
    if (scan->at < scan->end && (unsigned char)*scan->at > ' ')
        return *scan->at;
    skip_space(scan);
    return scan->at < scan->end ? *scan->at : 0;
}

enum gs_scan_type gs_scan_peek(struct gs_scan *scan)
{
    char c = peek_byte(scan);
    switch (c) {
    case '{':
        return GS_SCAN_OBJECT;
    case '[':
        return GS_SCAN_ARRAY;
    case '"':
        return GS_SCAN_STRING;
    case 't':
    case 'f':
        return GS_SCAN_BOOL;
    case 'n':
        return GS_SCAN_NULL;
    default:
        return c == '-' || gs_is_digit(c) ? GS_SCAN_NUMBER : GS_SCAN_NOTHING;
    }
}

/*
 * The first byte at or after `at` that ends a run of plain ASCII in a string: a quote, a backslash,
 * a control character, or a byte of a longer UTF-8 sequence. Sixteen bytes at a time where the
 * machine can: nearly all of what API servers send is such runs.
 */
static inline const char *plain_run(const char *at, const char *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(' ');
    for (; end - at >= 16; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        /* as signed bytes, 0x80 and above are below the space too */
        __m128i stop = _mm_or_si128(
            _mm_cmplt_epi8(bytes, space),
            _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)));
        int mask = _mm_movemask_epi8(stop);
        if (mask)
            return at + __builtin_ctz((unsigned)mask);
    }
#endif
    /* signed, as above: plain char is unsigned on arm64 */
    while (at < end && (signed char)*at >= ' ' && *at != '"' && *at != '\\')
        at++;
    return at;
}

/* Length of the escape at the backslash `at`, 0 when it is none; a surrogate counts with its
 * partner only. */
static size_t escape_width(const char *at, const char *end)
{
    if (end - at < 2)
        return 0;
    if (at[1] != 'u')
        return memchr("\"\\/bfnrt", at[1], 8) ? 2 : 0;
    int unit = gs_scan_hex4(at + 2, end);
    if (unit < 0 || (unit & 0xFC00) == 0xDC00)
        return 0;
    if ((unit & 0xFC00) != 0xD800)
        return 6;
    if (end - at < 12 || at[6] != '\\' || at[7] != 'u')
        return 0;
    return (gs_scan_hex4(at + 8, end) & 0xFC00) == 0xDC00 ? 12 : 0;
}

/* The width of the character where plain_run() stopped; 0: invalid in a string. */
static size_t odd_width(struct gs_scan *scan, const char *at, bool *escaped)
{
    if (*at == '\\') {
        *escaped = true;
        return escape_width(at, scan->end);
    }
    if ((unsigned char)*at < ' ')
        return 0;
    return gs_utf8_width(at, (size_t)(scan->end - at));
}

/* Reads the rest of a string that is not plain ASCII from `at` on. Out of line: most strings do not
 * need it, and callers need no stack frame. */
__attribute__((noinline)) static bool take_odd_string(struct gs_scan *scan, const char *begin,
                                                      const char *at, struct gs_scan_text *ret)
{
    bool escaped = false;
    for (;; at = plain_run(at, scan->end)) {
        if (at == scan->end) {
            scan->at = at;
            return bad_syntax(scan);
        }
        if (*at == '"')
            break;
        size_t width = odd_width(scan, at, &escaped);
        if (width == 0) {
            scan->at = at;
            return gs_scan_refuse(scan, NULL, "invalid character in a string");
        }
        at += width;
    }
    *ret = (struct gs_scan_text){begin, (size_t)(at - begin), escaped};
    scan->at = at + 1;
    return true;
}

/* scan->at is at the opening quote. */
static inline bool take_string(struct gs_scan *scan, struct gs_scan_text *ret)
{
    const char *begin = scan->at + 1;
    const char *at = plain_run(begin, scan->end);
    if (__builtin_expect(at == scan->end || *at != '"', 0))
        return take_odd_string(scan, begin, at, ret);
    *ret = (struct gs_scan_text){begin, (size_t)(at - begin), false};
    scan->at = at + 1;
    return true;
}

static size_t digit_run(const char *at, const char *end)
{
    size_t count = 0;
    while (at + count < end && gs_is_digit(at[count]))
        count++;
    return count;
}

/* RFC 8259, section 6. Returns the end, or NULL. */
static const char *number_end(const char *at, const char *end)
{
    if (at < end && *at == '-')
        at++;
    size_t digits = digit_run(at, end);
    if (digits == 0 || (digits > 1 && *at == '0'))
        return NULL;
    at += digits;
    if (at < end && *at == '.') {
        digits = digit_run(at + 1, end);
        if (digits == 0)
            return NULL;
        at += 1 + digits;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        digits = digit_run(at, end);
        if (digits == 0)
            return NULL;
        at += digits;
    }
    return at;
}

static bool take_number(struct gs_scan *scan, struct gs_slice *ret)
{
    const char *end = number_end(scan->at, scan->end);
    if (!end)
        return gs_scan_refuse(scan, NULL, "invalid number");
    *ret = (struct gs_slice){scan->at, (size_t)(end - scan->at)};
    scan->at = end;
    return true;
}

static bool take_word(struct gs_scan *scan, struct gs_slice word)
{
    if ((size_t)(scan->end - scan->at) < word.len || memcmp(scan->at, word.at, word.len) != 0)
        return gs_scan_refuse(scan, NULL, "invalid literal");
    scan->at += word.len;
    return true;
}

static inline bool enter(struct gs_scan *scan)
{
    if (scan->depth == GS_SCAN_DEPTH_MAX)
        return gs_scan_refuse(scan, NULL, "nested more than 64 levels deep");
    scan->at++;
    scan->depth++;
    scan->first = true;
    return true;
}

static inline void leave(struct gs_scan *scan)
{
    scan->at++;
    scan->depth--;
    scan->first = false;
}

/* A value is missing, or one of another type is here. */
__attribute__((cold, noinline)) static bool wrong_type(struct gs_scan *scan, const char *what,
                                                       const char *why)
{
    return !scan->failed && gs_scan_peek(scan) == GS_SCAN_NOTHING ? bad_syntax(scan)
                                                                  : gs_scan_refuse(scan, what, why);
}

bool gs_scan_object(struct gs_scan *scan, const char *what)
{
    return peek_byte(scan) == '{' ? enter(scan) : wrong_type(scan, what, "is not an object");
}

bool gs_scan_array(struct gs_scan *scan, const char *what)
{
    return peek_byte(scan) == '[' ? enter(scan) : wrong_type(scan, what, "is not an array");
}

/* Fast path for JSON without white space: a comma and a quote follow. */
static inline bool at_next_key(const struct gs_scan *scan)
{
    return !scan->failed && !scan->first && scan->end - scan->at >= 2 && scan->at[0] == ',' &&
           scan->at[1] == '"';
}

static inline bool take_key(struct gs_scan *scan, struct gs_scan_text *ret_key)
{
    if (!take_string(scan, ret_key))
        return false;
    if (peek_byte(scan) != ':')
        return bad_syntax(scan);
    scan->at++;
    return true;
}

bool gs_scan_key(struct gs_scan *scan, struct gs_scan_text *ret_key)
{
    if (at_next_key(scan)) {
        scan->at++;
        return take_key(scan, ret_key);
    }
    char c = peek_byte(scan);
    if (c == '}') {
        leave(scan);
        return false;
    }
    if (!scan->first) {
        if (c != ',')
            return bad_syntax(scan);
        scan->at++;
        c = peek_byte(scan);
    }
    scan->first = false;
    return c == '"' ? take_key(scan, ret_key) : bad_syntax(scan);
}

bool gs_scan_element(struct gs_scan *scan)
{
    char c = peek_byte(scan);
    if (c == ']') {
        leave(scan);
        return false;
    }
    if (c == 0)
        return bad_syntax(scan);
    if (!scan->first) {
        if (c != ',')
            return bad_syntax(scan);
        scan->at++;
    }
    scan->first = false;
    return true;
}

bool gs_scan_string(struct gs_scan *scan, const char *what, struct gs_scan_text *ret)
{
    if (peek_byte(scan) != '"')
        return wrong_type(scan, what, "is not a string");
    return take_string(scan, ret);
}

uint32_t gs_scan_plain_strings(struct gs_scan *scan, struct gs_slice *ret, uint32_t max)
{
    uint32_t count = 0;
    bool first = scan->first;
    const char *at = scan->at, *end = scan->end;
    while (count < max && !scan->failed && end - at >= 2 && (first || *at == ',')) {
        const char *begin = first ? at : at + 1;
        if (*begin++ != '"')
            break;
        const char *quote = plain_run(begin, end);
        if (quote == end || *quote != '"')
            break;
        ret[count++] = (struct gs_slice){begin, (size_t)(quote - begin)};
        at = quote + 1;
        first = false;
    }
    scan->at = at;
    scan->first = first;
    return count;
}

bool gs_scan_bool(struct gs_scan *scan, const char *what, bool *ret)
{
    char c = peek_byte(scan);
    if (c != 't' && c != 'f')
        return wrong_type(scan, what, "is not true or false");
    if (!take_word(scan, c == 't' ? GS_SLICE("true") : GS_SLICE("false")))
        return false;
    *ret = c == 't';
    return true;
}

bool gs_scan_number(struct gs_scan *scan, const char *what, struct gs_slice *ret)
{
    if (gs_scan_peek(scan) != GS_SCAN_NUMBER)
        return wrong_type(scan, what, "is not a number");
    return take_number(scan, ret);
}

bool gs_scan_i64(struct gs_scan *scan, const char *what, int64_t *ret)
{
    struct gs_slice number;
    if (!gs_scan_number(scan, what, &number))
        return false;
    return gs_parse_i64(number.at, number.len, ret) ||
           gs_scan_refuse(scan, what, "is not an integer in range");
}

bool gs_scan_i32(struct gs_scan *scan, const char *what, int32_t *ret)
{
    int64_t wide;
    if (!gs_scan_i64(scan, what, &wide))
        return false;
    if (wide < INT32_MIN || wide > INT32_MAX)
        return gs_scan_refuse(scan, what, "is not an integer in range");
    *ret = (int32_t)wide;
    return true;
}

bool gs_scan_null_(struct gs_scan *scan)
{
    return peek_byte(scan) == 'n' && take_word(scan, GS_SLICE("null"));
}

/* scan->at is at the opening bracket. */
static bool pass(struct gs_scan *scan)
{
    const char *end = gs_scan_pass(scan->at, scan->end);
    scan->at = end ? end : scan->end;
    return end || bad_syntax(scan);
}

void gs_scan_skip_value(struct gs_scan *scan, struct gs_scan_text key)
{
    const bool unread = scan->unread;
    scan->unread |= gs_scan_text_is(key, "managedFields");
    gs_scan_skip(scan);
    scan->unread = unread;
}

bool gs_scan_skip(struct gs_scan *scan)
{
    struct gs_scan_text text;
    struct gs_slice number;
    const char c = peek_byte(scan);
    const bool too_deep = scan->unread && scan->depth == GS_SCAN_DEPTH_MAX;
    if ((scan->trusting || too_deep) && (c == '{' || c == '['))
        return pass(scan);
    switch (c) {
    case '"':
        return take_string(scan, &text);
    case '{':
        if (!enter(scan))
            return false;
        while (gs_scan_key(scan, &text))
            gs_scan_skip_value(scan, text);
        return !scan->failed;
    case '[':
        if (!enter(scan))
            return false;
        while (gs_scan_element(scan))
            gs_scan_skip(scan);
        return !scan->failed;
    case 't':
        return take_word(scan, GS_SLICE("true"));
    case 'f':
        return take_word(scan, GS_SLICE("false"));
    case 'n':
        return take_word(scan, GS_SLICE("null"));
    default:
        if (gs_scan_peek(scan) != GS_SCAN_NUMBER)
            return bad_syntax(scan);
        return take_number(scan, &number);
    }
}

bool gs_scan_raw(struct gs_scan *scan, struct gs_slice *ret)
{
    peek_byte(scan);
    const char *begin = scan->at;
    if (!gs_scan_skip(scan))
        return false;
    *ret = (struct gs_slice){begin, (size_t)(scan->at - begin)};
    return true;
}

int gs_scan_finish(struct gs_scan *scan, struct gs_error *err)
{
    if (!scan->failed) {
        skip_space(scan);
        if (scan->at != scan->end)
            gs_scan_refuse(scan, NULL, "unexpected data after the value");
    }
    if (!scan->failed)
        return 0;
    return gs_fail(err, GS_EPROTO, "%s %s at byte %zu",
                   scan->what ? scan->what : "JSON:", scan->why, (size_t)(scan->at - scan->begin));
}
