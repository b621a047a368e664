/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/quantity.h"

#include "gpushare/base/num.h"

/* digits × 10^(exp10 - decimals) × 2^exp2 */
struct parts {
    bool negative;
    struct gs_slice whole; /* digits before the point */
    struct gs_slice part;  /* digits after it */
    int exp10;
    int exp2;
};

/* With a larger exponent every value of DIGITS_MAX digits overflows or becomes 0. */
enum { EXPONENT_MAX = 2000, DIGITS_MAX = 1000 };

static struct gs_slice take_digits(struct gs_slice *text)
{
    struct gs_slice digits = {text->at, 0};
    while (digits.len < text->len && gs_is_digit(text->at[digits.len]))
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
    static const char decimal[] = "num kMGTPE", binary[] = "KMGTPE"; /* in steps of 1000 and 1024 */
    const char *at;
    if (text.len == 0)
        return true;
    if (text.at[0] <= ' ')
        return false;
    if (text.len == 2 && text.at[1] == 'i' && (at = strchr(binary, text.at[0]))) {
        parts->exp2 = 10 * (int)(at - binary + 1);
        return true;
    }
    if (text.len == 1 && (at = strchr(decimal, text.at[0]))) {
        parts->exp10 = 3 * (int)(at - strchr(decimal, ' '));
        return true;
    }
    return (text.at[0] | 0x20) == 'e' &&
           parse_exponent((struct gs_slice){text.at + 1, text.len - 1}, &parts->exp10);
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

/* The i-th digit, counted across the decimal point; 0 outside. */
static unsigned digit_at(const struct parts *parts, int i)
{
    const int whole = (int)parts->whole.len;
    if (i < 0 || i >= whole + (int)parts->part.len)
        return 0;
    return (unsigned)((i < whole ? parts->whole.at[i] : parts->part.at[i - whole]) - '0');
}

/*
 * Whole part of digits × 10^exp10 × 2^exp2, and whether anything was left of it. With a power of
 * two a fraction may still make up whole numbers ("0.5Ki"): it is multiplied digit by digit as in
 * writing, carry by carry.
 */
static bool evaluate(const struct parts *parts, uint64_t *ret, bool *ret_rest)
{
    const int point = (int)parts->whole.len + parts->exp10;
    uint64_t value = 0, carry = 0;
    bool rest = false;
    for (int i = 0; i < point; i++) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit_at(parts, i), &value))
            return false;
    }
    if (__builtin_mul_overflow(value, (uint64_t)1 << parts->exp2, &value))
        return false;
    /* the fraction × 2^exp2, from its last digit: carry = (digit × 2^exp2 + carry) / 10 */
    for (int i = (int)(parts->whole.len + parts->part.len) - 1; i >= point; i--) {
        unsigned __int128 now = ((unsigned __int128)digit_at(parts, i) << parts->exp2) + carry;
        rest |= now % 10 != 0;
        carry = (uint64_t)(now / 10);
    }
    *ret_rest = rest;
    return !__builtin_add_overflow(value, carry, ret);
}

enum gs_quantity gs_quantity_read(struct gs_slice text, enum gs_quantity_as as, int64_t *ret)
{
    const int exp10 = as == GS_QUANTITY_MILLI ? 3 : 0;
    struct parts parts;
    uint64_t value;
    bool rest;
    if (!parse_quantity(text, &parts))
        return GS_QUANTITY_MALFORMED;
    parts.exp10 += exp10;
    if (!evaluate(&parts, &value, &rest))
        return GS_QUANTITY_TOO_LARGE;
    if (rest && as == GS_QUANTITY_WHOLE)
        return GS_QUANTITY_FRACTION;
    if (__builtin_add_overflow(value, (uint64_t)rest, &value) || value > INT64_MAX)
        return GS_QUANTITY_TOO_LARGE;
    *ret = parts.negative ? -(int64_t)value : (int64_t)value;
    return GS_QUANTITY_OK;
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
