/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/amount.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/model/gpu.h"

const char *amount_text(uint64_t number, char to[AMOUNT_TEXT_BYTES])
{
    char digits[24];
    const int len = snprintf(digits, sizeof(digits), "%" PRIu64, number);
    char *at = to;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return to;
}

const char *amount_of_memory(uint64_t units, const char *unit, char to[AMOUNT_TEXT_BYTES])
{
    enum { SIX_DIGITS = 999999, MIB_OF_TIB = 1 << 20 };
    enum gs_unit known = GS_UNIT_UNKNOWN;
    char text[AMOUNT_TEXT_BYTES], tib[AMOUNT_TEXT_BYTES];
    gs_unit_parse(unit, strlen(unit), &known);
    const uint64_t tenths = (uint64_t)((double)units * gs_unit_mib(known) / MIB_OF_TIB * 10 + 0.5);
    snprintf(to, AMOUNT_TEXT_BYTES, "%.24s %.12s", amount_text(units, text), unit);
    if (units > SIX_DIGITS && tenths) {
        const size_t len = strlen(to);
        snprintf(to + len, AMOUNT_TEXT_BYTES - len, " (%.18s.%u TiB)",
                 amount_text(tenths / 10, tib), (unsigned)(tenths % 10));
    }
    return to;
}
