/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/rate.h"

#include "gpushare/base/clock.h"
#include "rows.h"

#define MS GS_NS_PER_MS

static void waits_are_those_of_a_token_bucket(void **state)
{
    static const struct {
        const char *row;
        uint32_t qps, burst;
        struct {
            int64_t now_ms, most_ms, wait_ms;
        } takes[8]; /* up to one without time */
    } rows[] = {
        {"no limit", 0, 0, {{1, 0, 0}, {1, 0, 0}, {1, 0, 0}}},
        {"one at a time", 10, 1, {{1000, 999, 0}, {1000, 999, 100}, {1000, 999, 200}}},
        {"no burst is one", 10, 0, {{1000, 999, 0}, {1000, 999, 100}}},
        {"three at once",
         10,
         3,
         {{1000, 0, 0}, {1000, 0, 0}, {1000, 0, 0}, {1000, 999, 100}, {1000, 999, 200}}},
        {"what is too late takes nothing",
         10,
         1,
         {{1000, 0, 0}, {1000, 99, -1}, {1000, 50, -1}, {1000, 100, 100}, {1000, 100, -1}}},
        {"it fills with time", 10, 2, {{1000, 0, 0}, {1000, 0, 0}, {1100, 0, 0}, {1100, 0, -1}}},
        {"and no further",
         10,
         2,
         {{1000, 0, 0}, {99000, 0, 0}, {99000, 0, 0}, {99000, 0, -1}, {99050, 50, 50}}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_rate rate;
        gs_rate_init(&rate, r->qps, r->burst);
        for (size_t i = 0; i < 8 && r->takes[i].now_ms; i++) {
            int64_t ns = gs_rate_take(&rate, r->takes[i].now_ms * MS, r->takes[i].most_ms * MS);
            row_equal(r->row, ns < 0 ? -1 : ns / MS, r->takes[i].wait_ms);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(waits_are_those_of_a_token_bucket)};
    return GS_RUN(tests);
}
