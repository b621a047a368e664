/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/clock.h"

#include <errno.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * GS_NS_PER_S + ts.tv_nsec;
}

static int64_t monotonic_ns(void *ctx)
{
    return read_clock(CLOCK_BOOTTIME);
}

static int64_t wall_ns(void *ctx)
{
    return read_clock(CLOCK_REALTIME);
}

const struct gs_clock *gs_clock_system(void)
{
    static const struct gs_clock system = {.monotonic_ns = monotonic_ns, .wall_ns = wall_ns};
    return &system;
}

void gs_clock_sleep(const struct gs_clock *clock, int64_t ns)
{
    struct timespec left = {.tv_sec = ns / GS_NS_PER_S, .tv_nsec = ns % GS_NS_PER_S};
    if (clock->sleep) {
        clock->sleep(clock->ctx, ns);
        return;
    }
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

struct timespec gs_clock_wait_until(int64_t at_ns)
{
    int64_t left_ns = at_ns - read_clock(CLOCK_BOOTTIME);
    int64_t until_ns = read_clock(CLOCK_MONOTONIC) + (left_ns > 0 ? left_ns : 0);
    return (struct timespec){until_ns / GS_NS_PER_S, until_ns % GS_NS_PER_S};
}

void gs_clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}
