/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/num.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool gs_parse_u64(const char *text, size_t len, uint64_t *ret)
{
    if (len == 0)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
            return false;
    }
    *ret = value;
    return true;
}

bool gs_parse_u32(const char *text, size_t len, uint32_t *ret)
{
    uint64_t value;
    if (!gs_parse_u64(text, len, &value) || value > UINT32_MAX)
        return false;
    *ret = (uint32_t)value;
    return true;
}

bool gs_parse_i64(const char *text, size_t len, int64_t *ret)
{
    bool negative = len > 0 && text[0] == '-';
    uint64_t value;
    if (!gs_parse_u64(text + negative, len - negative, &value))
        return false;
    if (value > (uint64_t)INT64_MAX + negative)
        return false;
    *ret = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool gs_parse_bool(const char *text, bool *ret)
{
    static const struct {
        const char *word;
        bool value;
    } words[] = {{"true", true}, {"false", false}, {"yes", true}, {"no", false},
                 {"on", true},   {"off", false},   {"1", true},   {"0", false}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(words[i].word, text) == 0) {
            *ret = words[i].value;
            return true;
        }
    }
    return false;
}

/* Length of the unit at text, and its size; 0 when there is none. "ms" is tried before "m". */
static size_t duration_unit(const char *text, int64_t *ret_ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"ns", 1},         {"us", 1000},         {"ms", 1000000},
                 {"s", 1000000000}, {"m", 60000000000LL}, {"h", 3600000000000LL}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t width = strlen(units[i].name);
        if (strncmp(text, units[i].name, width) == 0) {
            *ret_ns = units[i].ns;
            return width;
        }
    }
    return 0;
}

bool gs_parse_duration_ns(const char *text, int64_t *ret_ns)
{
    int64_t total = 0, count, unit_ns = 1;
    bool zero = strcmp(text, "0") == 0;
    do {
        const size_t digits = strspn(text, "0123456789");
        const char *point = text + digits;
        const char *unit = *point == '.' ? point + 1 + strspn(point + 1, "0123456789") : point;
        size_t width = zero ? 0 : duration_unit(unit, &unit_ns);
        const int64_t part = unit > point ? (int64_t)(strtod(point, NULL) * (double)unit_ns) : 0;
        if (!gs_parse_i64(text, digits, &count) || (width == 0 && !zero) ||
            __builtin_mul_overflow(count, unit_ns, &count) ||
            __builtin_add_overflow(total, count, &total) ||
            __builtin_add_overflow(total, part, &total))
            return false;
        text = unit + width;
    } while (*text);
    *ret_ns = total;
    return true;
}

uint32_t gs_clamp_u32(int64_t value)
{
    return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}
