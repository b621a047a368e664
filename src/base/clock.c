/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/clock.h"

#include <stddef.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * GS_NS_PER_S + ts.tv_nsec;
}

static int64_t monotonic_ns(void *ctx)
{
    return read_clock(CLOCK_MONOTONIC);
}

static int64_t wall_ns(void *ctx)
{
    return read_clock(CLOCK_REALTIME);
}

const struct gs_clock *gs_clock_system(void)
{
    static const struct gs_clock system = {monotonic_ns, wall_ns, NULL};
    return &system;
}
