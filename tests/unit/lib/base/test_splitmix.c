/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/splitmix.h"

/* Recorded runs depend on these numbers: another generator would be another cluster, or another
 * order of pods, for the same seed. */
static void a_seed_gives_the_published_numbers(void **state)
{
    static const uint64_t published[] = {6457827717110365317u, 3203168211198807973u,
                                         9817491932198370423u, 4593380528125082431u,
                                         16408922859458223821u};
    uint64_t random = 1234567;
    for (size_t i = 0; i < GS_COUNT_OF(published); i++)
        assert_true(gs_splitmix_next(&random) == published[i]);
}

static void a_bound_is_never_reached(void **state)
{
    static const struct {
        const char *row;
        uint64_t bound, most;
    } rows[] = {
        {"none", 0, 0},
        {"one", 1, 0},
        {"a few", 3, 2},
        {"beyond 32 bits", (uint64_t)1 << 33, ((uint64_t)1 << 33) - 1},
        {"largest", UINT64_MAX, UINT64_MAX - 1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        uint64_t random = 1, seen_most = 0;
        for (int i = 0; i < 1000; i++) {
            uint64_t drawn = gs_splitmix_below(&random, r->bound);
            row_true(r->row, drawn <= r->most);
            seen_most = drawn > seen_most ? drawn : seen_most;
        }
        row_true(r->row, seen_most >= r->most - r->most / 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_gives_the_published_numbers),
        cmocka_unit_test(a_bound_is_never_reached),
    };
    return GS_RUN(tests);
}
