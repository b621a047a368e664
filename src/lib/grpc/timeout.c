/* SPDX-License-Identifier: Apache-2.0 */
#include "timeout.h"

#include "gpushare/base/num.h"

struct unit {
    char letter;
    int64_t ns;
};

static const struct unit units[] = {
    {'n', 1},          {'u', 1000},        {'m', 1000000},
    {'S', 1000000000}, {'M', 60000000000}, {'H', 3600000000000},
};

#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))
#define MAX_DIGITS 8

bool gs_grpc_timeout_parse(const char *text, size_t len, int64_t *ret_ns)
{
    if (len < 2 || len > MAX_DIGITS + 1)
        return false;
    uint32_t value;
    if (!gs_parse_u32(text, len - 1, &value))
        return false;
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (units[i].letter != text[len - 1])
            continue;
        int64_t ns;
        *ret_ns = __builtin_mul_overflow((int64_t)value, units[i].ns, &ns) ? INT64_MAX : ns;
        return true;
    }
    return false;
}
