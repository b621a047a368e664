/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "grpc/timeout.h"

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
    {"eight digits", "99999999S", true, 99999999000000000},
    {"largest hours below int64", "2562047H", true, 2562047 * 3600000000000},
    {"smallest hours above int64", "2562048H", true, INT64_MAX},
    {"nine digits", "100000000n", false, 0},
    {"empty", "", false, 0},
    {"number only", "30", false, 0},
    {"unknown unit", "1s", false, 0},
    {"sign", "-1S", false, 0},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeouts_are_read_whole_or_not),
    };
    return GS_RUN(tests);
}
