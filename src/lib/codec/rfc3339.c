/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/rfc3339.h"

#include <stdio.h>
#include <time.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"

static void advance(struct gs_slice *text, size_t len)
{
    text->at += len;
    text->len -= len;
}

/* Parses by a form such as "2:2": a digit stands for a number of that many digits, which is stored
 * in *numbers; another character for itself, in any case. */
static bool take_form(struct gs_slice *text, const char *form, int *numbers)
{
    for (; *form; form++) {
        const size_t width = gs_is_digit(*form) ? (size_t)(*form - '0') : 1;
        uint32_t value;
        if (text->len < width)
            return false;
        if (!gs_is_digit(*form)) {
            if (text->at[0] != *form && text->at[0] != (*form | 0x20))
                return false;
        } else if (gs_parse_u32(text->at, width, &value)) {
            *numbers++ = (int)value;
        } else {
            return false;
        }
        advance(text, width);
    }
    return true;
}

static bool take_fraction(struct gs_slice *text, int64_t *ret_ns)
{
    *ret_ns = 0;
    if (!take_form(text, ".", NULL))
        return true;
    int64_t place = GS_NS_PER_S / 10;
    size_t digits = 0;
    for (; digits < 9 && text->len && gs_is_digit(text->at[0]); digits++) {
        *ret_ns += (text->at[0] - '0') * place;
        place /= 10;
        advance(text, 1);
    }
    return digits > 0;
}

static bool take_zone(struct gs_slice *text, int *ret_minutes)
{
    int offset[2] = {0}; /* hours, minutes */
    const bool west = text->len && text->at[0] == '-';
    if (!take_form(text, "Z", NULL) && !take_form(text, west ? "-2:2" : "+2:2", offset))
        return false;
    *ret_minutes = (offset[0] * 60 + offset[1]) * (west ? -1 : 1);
    return offset[0] <= 23 && offset[1] <= 59;
}

/* timegm() makes another one of a day that the month does not have. */
static bool seconds_of(const int numbers[6], int64_t *ret)
{
    struct tm day = {.tm_year = numbers[0] - 1900, .tm_mon = numbers[1] - 1, .tm_mday = numbers[2]};
    *ret = timegm(&day) + (numbers[3] * 60 + numbers[4]) * 60 + numbers[5];
    return day.tm_mon == numbers[1] - 1 && day.tm_mday == numbers[2] && numbers[3] <= 23 &&
           numbers[4] <= 59 && numbers[5] <= 60;
}

bool gs_rfc3339_parse(struct gs_slice text, int64_t *ret_ns)
{
    int numbers[6], zone_minutes;
    int64_t fraction_ns, seconds, ns;
    if (!take_form(&text, "4-2-2T2:2:2", numbers) || !take_fraction(&text, &fraction_ns) ||
        !take_zone(&text, &zone_minutes) || text.len != 0 || !seconds_of(numbers, &seconds) ||
        __builtin_mul_overflow(seconds - zone_minutes * 60, GS_NS_PER_S, &ns) ||
        __builtin_add_overflow(ns, fraction_ns, &ns))
        return false;
    *ret_ns = ns;
    return true;
}

char *gs_rfc3339_format(int64_t wall_ns, int digits, char out[GS_RFC3339_BYTES])
{
    int64_t fraction_ns = wall_ns % GS_NS_PER_S;
    time_t seconds = (time_t)(wall_ns / GS_NS_PER_S);
    if (fraction_ns < 0) {
        fraction_ns += GS_NS_PER_S;
        seconds--;
    }
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t len = strftime(out, GS_RFC3339_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + len, GS_RFC3339_BYTES - len, ".%09d", (int)fraction_ns);
    memcpy(out + len + (digits ? digits + 1 : 0), "Z", sizeof("Z"));
    return out;
}
