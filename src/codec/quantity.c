/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/quantity.h"

#include <stdbool.h>

#include "gpushare/base/num.h"

/* digits × 10^(exp10 - decimals) × 2^exp2 */
struct parts {
    bool negative;
    struct gs_slice whole; /* digits before the point */
    struct gs_slice part;  /* digits after it */
    int exp10;
    int exp2;
};

/* An exponent beyond this one overflows, or vanishes, whatever DIGITS_MAX digits come with it. */
enum { EXPONENT_MAX = 2000, DIGITS_MAX = 1000 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct gs_slice take_digits(struct gs_slice *text)
{
    struct gs_slice digits = {text->at, 0};
    while (digits.len < text->len && is_digit(text->at[digits.len]))
        digits.len++;
    text->at += digits.len;
    text->len -= digits.len;
    return digits;
}

static bool take_sign(struct gs_slice *text)
{
    if (text->len == 0 || (text->at[0] != '-' && text->at[0] != '+'))
        return false;
    bool negative = text->at[0] == '-';
    text->at++;
    text->len--;
    return negative;
}

static bool parse_exponent(struct gs_slice text, int *ret)
{
    bool negative = take_sign(&text);
    struct gs_slice digits = take_digits(&text);
    if (digits.len == 0 || text.len != 0)
        return false;
    uint32_t value;
    if (!gs_parse_u32(digits.at, digits.len, &value) || value > EXPONENT_MAX)
        value = EXPONENT_MAX;
    *ret = negative ? -(int)value : (int)value;
    return true;
}

static bool parse_suffix(struct gs_slice text, struct parts *parts)
{
    static const struct {
        char name[3];
        int exp10, exp2;
    } suffixes[] = {
        {"", 0, 0},    {"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0},  {"k", 3, 0},   {"M", 6, 0},
        {"G", 9, 0},   {"T", 12, 0},  {"P", 15, 0},  {"E", 18, 0},  {"Ki", 0, 10}, {"Mi", 0, 20},
        {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60},
    };
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        const char *name = suffixes[i].name;
        if (text.len < sizeof(suffixes[i].name) && memcmp(name, text.at, text.len) == 0 &&
            name[text.len] == '\0') {
            parts->exp10 = suffixes[i].exp10;
            parts->exp2 = suffixes[i].exp2;
            return true;
        }
    }
    if (text.at[0] != 'e' && text.at[0] != 'E')
        return false;
    return parse_exponent((struct gs_slice){text.at + 1, text.len - 1}, &parts->exp10);
}

static bool parse_quantity(struct gs_slice text, struct parts *parts)
{
    *parts = (struct parts){.negative = take_sign(&text)};
    parts->whole = take_digits(&text);
    parts->part = (struct gs_slice){text.at, 0};
    if (text.len && text.at[0] == '.') {
        text.at++;
        text.len--;
        parts->part = take_digits(&text);
    }
    if (parts->whole.len + parts->part.len == 0 || parts->whole.len > DIGITS_MAX ||
        parts->part.len > DIGITS_MAX)
        return false;
    return parse_suffix(text, parts);
}

/* The digit for 10^power, counted from the point. */
static unsigned digit_at(const struct parts *parts, int power)
{
    if (power >= 0) {
        size_t from_end = (size_t)power;
        return from_end < parts->whole.len
                   ? (unsigned)(parts->whole.at[parts->whole.len - 1 - from_end] - '0')
                   : 0;
    }
    size_t from_start = (size_t)(-power - 1);
    return from_start < parts->part.len ? (unsigned)(parts->part.at[from_start] - '0') : 0;
}

/*
 * Whole part of digits × 10^exp10 × 2^exp2, and whether anything was left of it. With a power of
 * two a fraction may still make up whole numbers ("0.5Ki"): it is multiplied digit by digit as in
 * writing, carry by carry.
 */
static bool evaluate(const struct parts *parts, uint64_t *ret, bool *ret_rest)
{
    uint64_t value = 0;
    bool rest = false;
    for (int power = (int)parts->whole.len - 1; power >= -parts->exp10; power--) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit_at(parts, power), &value))
            return false;
    }
    if (__builtin_mul_overflow(value, (uint64_t)1 << parts->exp2, &value))
        return false;
    /* the fraction × 2^exp2, from its last digit: carry = (digit × 2^exp2 + carry) / 10 */
    uint64_t carry = 0;
    for (int power = -(int)parts->part.len; power < -parts->exp10; power++) {
        unsigned __int128 now = ((unsigned __int128)digit_at(parts, power) << parts->exp2) + carry;
        rest |= now % 10 != 0;
        carry = (uint64_t)(now / 10);
    }
    if (__builtin_add_overflow(value, carry, &value))
        return false;
    *ret = value;
    *ret_rest = rest;
    return true;
}

/*
 * Up to nine digits with no suffix, "m", or a binary one: nearly every quantity there is. False:
 * the long way decides.
 */
static bool convert_short(struct gs_slice text, int exp10, int64_t *ret)
{
    enum { QUICK_DIGITS = 9 };
    int64_t value = 0;
    size_t i = 0;
    for (; i < text.len && i < QUICK_DIGITS && is_digit(text.at[i]); i++)
        value = value * 10 + (text.at[i] - '0');
    const char *suffix = text.at + i;
    const size_t left = text.len - i;
    if (i == 0 || left > 2)
        return false;
    if (left == 0) {
        *ret = exp10 == 3 ? value * 1000 : value;
        return true;
    }
    if (left == 1) {
        *ret = value;
        return suffix[0] == 'm' && exp10 == 3;
    }
    if (suffix[1] != 'i' || exp10 != 0)
        return false;
    const int exp2 = suffix[0] == 'K' ? 10 : suffix[0] == 'M' ? 20 : suffix[0] == 'G' ? 30 : 0;
    *ret = value << exp2;
    return exp2 != 0;
}

static enum gs_quantity convert(struct gs_slice text, int exp10, bool exact, int64_t *ret)
{
    struct parts parts;
    uint64_t value;
    int64_t whole;
    bool rest;
    if (convert_short(text, exp10, &whole)) {
        *ret = whole;
        return GS_QUANTITY_OK;
    }
    if (!parse_quantity(text, &parts))
        return GS_QUANTITY_MALFORMED;
    parts.exp10 += exp10;
    if (!evaluate(&parts, &value, &rest))
        return GS_QUANTITY_TOO_LARGE;
    if (rest && exact)
        return GS_QUANTITY_FRACTION;
    if (__builtin_add_overflow(value, (uint64_t)rest, &value) || value > INT64_MAX)
        return GS_QUANTITY_TOO_LARGE;
    *ret = parts.negative ? -(int64_t)value : (int64_t)value;
    return GS_QUANTITY_OK;
}

enum gs_quantity gs_quantity_milli(struct gs_slice text, int64_t *ret_milli)
{
    return convert(text, 3, false, ret_milli);
}

enum gs_quantity gs_quantity_value(struct gs_slice text, int64_t *ret)
{
    return convert(text, 0, false, ret);
}

enum gs_quantity gs_quantity_whole(struct gs_slice text, int64_t *ret)
{
    return convert(text, 0, true, ret);
}

const char *gs_quantity_why(enum gs_quantity result)
{
    static const char *const words[] = {
        [GS_QUANTITY_OK] = "",
        [GS_QUANTITY_MALFORMED] = "is not a quantity",
        [GS_QUANTITY_FRACTION] = "is not an integer",
        [GS_QUANTITY_TOO_LARGE] = "is too large",
    };
    return words[result];
}
