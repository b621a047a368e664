/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/backoff.h"

static const struct backoff_row {
    const char *row;
    uint32_t attempt;
    int64_t min_ns, max_ns;
    int64_t low_ns, high_ns; /* every wait lies between */
} backoffs[] = {
    {"first", 0, 800, 30000, 800, 1600},
    {"fifth", 4, 800, 30000, 12800, 25600},
    {"sixth meets the ceiling", 5, 800, 30000, 25600, 30000},
    {"the largest attempt", UINT32_MAX, 800, 30000, 30000, 30000},
    {"without a ceiling", UINT32_MAX, 1, INT64_MAX, INT64_MAX, INT64_MAX},
    {"floor above the ceiling", 0, 50, 20, 20, 20},
    {"nothing to wait for", 3, 0, 0, 0, 0},
};

static void waits_double_and_are_spread(void **state)
{
    GS_FOR_EACH_ROW (r, backoffs) {
        int64_t least = INT64_MAX, most = INT64_MIN;
        for (int i = 0; i < 2000; i++) {
            int64_t wait_ns = gs_backoff_ns(r->attempt, r->min_ns, r->max_ns);
            least = wait_ns < least ? wait_ns : least;
            most = wait_ns > most ? wait_ns : most;
        }
        row_true(r->row, least >= r->low_ns);
        row_true(r->row, most <= r->high_ns);
        /* most of the room is used: clients do not come back together */
        row_true(r->row, most - least >= (r->high_ns - r->low_ns) * 9 / 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_double_and_are_spread),
    };
    return GS_RUN(tests);
}
