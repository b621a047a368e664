/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/rfc3339.h"

#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"

/* `width` digits at *text, taken. */
static bool take_number(struct gs_slice *text, size_t width, int *ret)
{
    uint32_t value;
    if (text->len < width || !gs_parse_u32(text->at, width, &value))
        return false;
    text->at += width;
    text->len -= width;
    *ret = (int)value;
    return true;
}

static bool take_char(struct gs_slice *text, char upper)
{
    if (text->len == 0 || (text->at[0] != upper && text->at[0] != (upper | 0x20)))
        return false;
    text->at++;
    text->len--;
    return true;
}

static bool take_date(struct gs_slice *text, struct tm *tm)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (!take_number(text, 4, &tm->tm_year) || !take_char(text, '-') ||
        !take_number(text, 2, &tm->tm_mon) || !take_char(text, '-') ||
        !take_number(text, 2, &tm->tm_mday))
        return false;
    if (tm->tm_mon < 1 || tm->tm_mon > 12 || tm->tm_mday < 1 || tm->tm_mday > days[tm->tm_mon - 1])
        return false;
    bool leap = tm->tm_year % 4 == 0 && (tm->tm_year % 100 != 0 || tm->tm_year % 400 == 0);
    if (tm->tm_mon == 2 && tm->tm_mday == 29 && !leap)
        return false;
    tm->tm_year -= 1900;
    tm->tm_mon -= 1;
    return true;
}

static bool take_time(struct gs_slice *text, struct tm *tm)
{
    return take_number(text, 2, &tm->tm_hour) && take_char(text, ':') &&
           take_number(text, 2, &tm->tm_min) && take_char(text, ':') &&
           take_number(text, 2, &tm->tm_sec) && tm->tm_hour <= 23 && tm->tm_min <= 59 &&
           tm->tm_sec <= 60;
}

static bool take_fraction(struct gs_slice *text, int64_t *ret_ns)
{
    *ret_ns = 0;
    if (!take_char(text, '.'))
        return true;
    int64_t place = GS_NS_PER_S / 10;
    size_t digits = 0;
    for (; digits < 9 && text->len && text->at[0] >= '0' && text->at[0] <= '9'; digits++) {
        *ret_ns += (text->at[0] - '0') * place;
        place /= 10;
        text->at++;
        text->len--;
    }
    return digits > 0;
}

static bool take_zone(struct gs_slice *text, int *ret_minutes)
{
    int hours, minutes;
    *ret_minutes = 0;
    if (take_char(text, 'Z'))
        return true;
    if (text->len == 0 || (text->at[0] != '+' && text->at[0] != '-'))
        return false;
    bool west = text->at[0] == '-';
    text->at++;
    text->len--;
    if (!take_number(text, 2, &hours) || !take_char(text, ':') || !take_number(text, 2, &minutes) ||
        hours > 23 || minutes > 59)
        return false;
    *ret_minutes = (hours * 60 + minutes) * (west ? -1 : 1);
    return true;
}

/* timegm() without its lock and its look at the time zone: lists bring hundreds of thousands. March
 * is the first month, so that the leap day is a year's last. */
static int64_t seconds_of(const struct tm *tm)
{
    enum { DAYS_TO_1970 = 719468 };
    int64_t month = tm->tm_mon >= 2 ? tm->tm_mon - 2 : tm->tm_mon + 10;
    int64_t year = tm->tm_year + 1900 - (tm->tm_mon < 2);
    int64_t days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 +
                   tm->tm_mday - 1 - DAYS_TO_1970;
    return ((days * 24 + tm->tm_hour) * 60 + tm->tm_min) * 60 + tm->tm_sec;
}

bool gs_rfc3339_parse(struct gs_slice text, int64_t *ret_ns)
{
    struct tm tm = {0};
    int64_t fraction_ns, ns;
    int zone_minutes;
    if (!take_date(&text, &tm) || !take_char(&text, 'T') || !take_time(&text, &tm) ||
        !take_fraction(&text, &fraction_ns) || !take_zone(&text, &zone_minutes) || text.len != 0)
        return false;
    int64_t seconds = seconds_of(&tm) - (int64_t)zone_minutes * 60;
    if (__builtin_mul_overflow(seconds, GS_NS_PER_S, &ns) ||
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
    int width = digits > 9 ? 9 : digits;
    for (int cut = width; cut < 9; cut++)
        fraction_ns /= 10;
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t len = strftime(out, GS_RFC3339_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
    if (width > 0)
        snprintf(out + len, GS_RFC3339_BYTES - len, ".%0*dZ", width, (int)fraction_ns);
    else
        snprintf(out + len, GS_RFC3339_BYTES - len, "Z");
    return out;
}
