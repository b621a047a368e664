/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <time.h>

#include "gpushare/base/clock.h"

static void a_moment_to_wait_for_is_as_far_away_on_the_waiting_clock(void **state)
{
    static const struct {
        const char *row;
        int64_t in_ns, least_ns;
    } rows[] = {{"past", -5 * GS_NS_PER_S, 0},
                {"now", 0, 0},
                {"in an hour", 3600 * GS_NS_PER_S, 3600 * GS_NS_PER_S}};
    GS_FOR_EACH_ROW (r, rows) {
        struct timespec now;
        int64_t at_ns = gs_clock_now_ns(gs_clock_system()) + r->in_ns;
        clock_gettime(CLOCK_MONOTONIC, &now);
        struct timespec until = gs_clock_wait_until(at_ns);
        int64_t away_ns = (until.tv_sec - now.tv_sec) * GS_NS_PER_S + (until.tv_nsec - now.tv_nsec);
        print_message("%s\n", r->row);
        assert_in_range(away_ns + GS_NS_PER_S, r->least_ns, r->least_ns + 10 * GS_NS_PER_S);
        assert_in_range(until.tv_nsec, 0, GS_NS_PER_S - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moment_to_wait_for_is_as_far_away_on_the_waiting_clock),
    };
    return GS_RUN(tests);
}
