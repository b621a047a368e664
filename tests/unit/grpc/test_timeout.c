/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "../../../src/grpc/timeout.h"

static const struct {
    const char *row;
    const char *text;
    bool ok;
    int64_t ns;
} parsed[] = {
    {"what the kubelet sends", "29999977u", true, 29999977000},
    {"nanoseconds", "1n", true, 1},
    {"milliseconds", "5m", true, 5000000},
    {"seconds", "30S", true, 30000000000},
    {"minutes", "2M", true, 120000000000},
    {"hours", "1H", true, 3600000000000},
    {"zero", "0n", true, 0},
    {"leading zeros", "00000001S", true, 1000000000},
    {"eight digits", "99999999S", true, 99999999000000000},
    {"above int64", "99999999H", true, INT64_MAX},
    {"largest hours below int64", "2562047H", true, 2562047 * 3600000000000},
    {"smallest hours above int64", "2562048H", true, INT64_MAX},
    {"nine digits", "100000000n", false, 0},
    {"empty", "", false, 0},
    {"unit only", "S", false, 0},
    {"number only", "30", false, 0},
    {"unknown unit", "1s", false, 0},
    {"two units", "1mS", false, 0},
    {"sign", "-1S", false, 0},
    {"plus", "+1S", false, 0},
    {"space", "1 S", false, 0},
    {"fraction", "1.5S", false, 0},
};

static void timeouts_are_read_whole_or_not(void **state)
{
    GS_FOR_EACH_ROW (r, parsed) {
        int64_t ns = 4711;
        row_equal(r->row, gs_grpc_timeout_parse(r->text, strlen(r->text), &ns), r->ok);
        row_equal(r->row, ns, r->ok ? r->ns : 4711);
    }
}

static const struct {
    const char *row;
    int64_t ns;
    const char *text;
} formatted[] = {
    {"zero", 0, "0n"},
    {"below zero", -5, "0n"},
    {"eight digits of nanoseconds", 99999999, "99999999n"},
    {"rounded up to microseconds", 100000001, "100001u"},
    {"half a second", 500000000, "500000u"},
    {"thirty seconds", 30000000000, "30000000u"},
    {"an hour and a bit", 3600000000001, "3600001m"},
    {"largest", INT64_MAX, "2562048H"},
};

static void timeouts_are_written_in_eight_digits(void **state)
{
    GS_FOR_EACH_ROW (r, formatted) {
        char out[GS_GRPC_TIMEOUT_CHARS];
        row_equal(r->row, gs_grpc_timeout_format(out, r->ns), strlen(r->text));
        row_text(r->row, out, r->text);
    }
}

static void what_is_written_is_never_shorter(void **state)
{
    for (int64_t ns = 1; ns < INT64_MAX / 7; ns = ns * 7 + 3) {
        char out[GS_GRPC_TIMEOUT_CHARS];
        int64_t back = -1;
        size_t len = gs_grpc_timeout_format(out, ns);
        assert_true(gs_grpc_timeout_parse(out, len, &back));
        assert_true(back >= ns);
        assert_true((double)back <= (double)ns * 1.02);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeouts_are_read_whole_or_not),
        cmocka_unit_test(timeouts_are_written_in_eight_digits),
        cmocka_unit_test(what_is_written_is_never_shorter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
