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
    int64_t wall_s = clock->wall_ns(clock->ctx) / GS_NS_PER_S;
    assert_in_range(time(NULL) - wall_s, 0, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_system_clock_runs_in_nanoseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
