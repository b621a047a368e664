/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/num.h"

static const struct integer_row {
    const char *row;
    const char *text;
    bool ok_u64, ok_u32, ok_i64;
    uint64_t value;
} integers[] = {
    {"empty", "", false, false, false, 0},
    {"leading zeros", "007", true, true, true, 7},
    {"largest u32", "4294967295", true, true, true, UINT32_MAX},
    {"largest i64", "9223372036854775807", true, false, true, INT64_MAX},
    {"above i64", "9223372036854775808", true, false, false, (uint64_t)INT64_MAX + 1},
    {"largest u64", "18446744073709551615", true, false, false, UINT64_MAX},
    {"above u64 by one", "18446744073709551616", false, false, false, 0},
    {"minus one", "-1", false, false, true, (uint64_t)-1},
    {"minus zero", "-0", false, false, true, 0},
    {"smallest i64", "-9223372036854775808", false, false, true, (uint64_t)INT64_MIN},
    {"minus alone", "-", false, false, false, 0},
    {"space after", "1 ", false, false, false, 0},
    {"newline after", "1\n", false, false, false, 0},
    {"hexadecimal", "0x10", false, false, false, 0},
    {"colon, the byte after 9", "1:", false, false, false, 0},
    {"slash, the byte before 0", "1/", false, false, false, 0},
};

static void integers_are_whole_and_in_range(void **state)
{
    GS_FOR_EACH_ROW (r, integers) {
        size_t len = strlen(r->text);
        uint64_t u64 = 4711;
        uint32_t u32 = 4711;
        int64_t i64 = 4711;
        row_equal(r->row, gs_parse_u64(r->text, len, &u64), r->ok_u64);
        row_equal(r->row, gs_parse_u32(r->text, len, &u32), r->ok_u32);
        row_equal(r->row, gs_parse_i64(r->text, len, &i64), r->ok_i64);
        row_equal(r->row, u64, r->ok_u64 ? r->value : 4711); /* untouched on failure */
        row_equal(r->row, u32, r->ok_u32 ? r->value : 4711);
        row_equal(r->row, i64, r->ok_i64 ? r->value : 4711);
    }
}

static void durations(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        bool ok;
        int64_t ns;
    } rows[] = {
        {"bare zero", "0", true, 0},
        {"nanoseconds", "7ns", true, 7},
        {"microseconds", "7us", true, 7000},
        {"milliseconds", "150ms", true, 150000000},
        {"hours", "2h", true, 7200000000000},
        {"sum", "1m30s", true, 90000000000},
        {"long sum", "1h2m3s4ms5us6ns", true, 3723004005006},
        {"largest", "9223372036854775807ns", true, INT64_MAX},
        {"above the largest", "9223372036854775808ns", false, 0},
        {"sum overflows", "9223372036854775807ns1ns", false, 0},
        {"product overflows", "2562048h", false, 0},
        {"empty", "", false, 0},
        {"no unit", "5", false, 0},
        {"no unit at the end", "5s5", false, 0},
        {"unknown unit", "5d", false, 0},
        {"negative", "-5s", false, 0},
        {"fraction", "1.5s", true, 1500000000},
        {"fractions of a sum", "0.25h1.001ms", true, 900001001000},
        {"a fraction of nothing", ".5s", false, 0},
        {"an exponent", "1.5e3s", false, 0},
        {"a fraction above the largest", "9223372036.9s", false, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        int64_t ns = -4711;
        row_equal(r->row, gs_parse_duration_ns(r->text, &ns), r->ok);
        row_equal(r->row, ns, r->ok ? r->ns : -4711);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_whole_and_in_range),
        cmocka_unit_test(durations),
    };
    return GS_RUN(tests);
}
