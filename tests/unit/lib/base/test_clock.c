/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <time.h>

#include "gpushare/base/clock.h"

static void the_system_clock_runs_in_nanoseconds(void **state)
{
    const struct gs_clock *clock = gs_clock_system();
    int64_t before = gs_clock_now_ns(clock);
    nanosleep(&(struct timespec){.tv_nsec = 2 * GS_NS_PER_MS}, NULL);
    int64_t passed = gs_clock_now_ns(clock) - before;
    assert_in_range(passed, 2 * GS_NS_PER_MS, 60 * GS_NS_PER_S);
    struct timespec earlier, later;
    clock_gettime(CLOCK_REALTIME, &earlier);
    int64_t wall_ns = clock->wall_ns(clock->ctx);
    clock_gettime(CLOCK_REALTIME, &later);
    assert_in_range(wall_ns, earlier.tv_sec * GS_NS_PER_S + earlier.tv_nsec,
                    later.tv_sec * GS_NS_PER_S + later.tv_nsec);
}

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
        cmocka_unit_test(the_system_clock_runs_in_nanoseconds),
        cmocka_unit_test(a_moment_to_wait_for_is_as_far_away_on_the_waiting_clock),
    };
    return GS_RUN(tests);
}
