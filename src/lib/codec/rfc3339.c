/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/rfc3339.h"

#include <stdio.h>
#include <time.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"

struct date_time {
    int year, month, day, hour, minute, second;
};

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

static bool is_valid(const struct date_time *time)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = time->year % 4 == 0 && (time->year % 100 != 0 || time->year % 400 == 0);
    return time->month >= 1 && time->month <= 12 && time->day >= 1 &&
           time->day <= days[time->month - 1] + (leap && time->month == 2) && time->hour <= 23 &&
           time->minute <= 59 && time->second <= 60;
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

/* timegm() without its lock and the time zone: lists contain hundreds of thousands of times. March
 * is the first month, so that the leap day is a year's last. */
static int64_t seconds_of(const struct date_time *time)
{
    enum { DAYS_TO_1970 = 719468 };
    int64_t month = time->month >= 3 ? time->month - 3 : time->month + 9;
    int64_t year = time->year - (time->month < 3);
    int64_t days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 +
                   time->day - 1 - DAYS_TO_1970;
    return ((days * 24 + time->hour) * 60 + time->minute) * 60 + time->second;
}

bool gs_rfc3339_parse(struct gs_slice text, int64_t *ret_ns)
{
    struct date_time time;
    int numbers[6], zone_minutes;
    int64_t fraction_ns, ns;
    if (!take_form(&text, "4-2-2T2:2:2", numbers) || !take_fraction(&text, &fraction_ns) ||
        !take_zone(&text, &zone_minutes) || text.len != 0)
        return false;
    memcpy(&time, numbers, sizeof(time));
    int64_t seconds = seconds_of(&time) - (int64_t)zone_minutes * 60;
    if (!is_valid(&time) || __builtin_mul_overflow(seconds, GS_NS_PER_S, &ns) ||
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
