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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_gives_the_published_numbers),
    };
    return GS_RUN(tests);
}
