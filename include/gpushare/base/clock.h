/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/*
 * Time as a parameter: code that waits or stamps takes a clock, so that tests and the simulator
 * bring their own. Thread-safe when its functions are.
 */
struct gs_clock {
    int64_t (*monotonic_ns)(void *ctx); /* never goes back; for deadlines and intervals */
    int64_t (*wall_ns)(void *ctx);      /* Unix nanoseconds; for annotations and events only */
    void *ctx;
    void (*sleep)(void *ctx, int64_t ns); /* NULL: the machine sleeps */
};

#define GS_NS_PER_MS ((int64_t)1000000)
#define GS_NS_PER_S  ((int64_t)1000000000)

/* The machine's clocks; static, never freed. Monotonic is CLOCK_BOOTTIME: time goes on while the
 * machine is suspended, so that a leader that wakes up knows that its lease has run out. */
const struct gs_clock *gs_clock_system(void);

/* A moment of gs_clock_system()'s monotonic time in CLOCK_MONOTONIC, which is what condition
 * variables and sleeps can wait for. */
struct timespec gs_clock_wait_until(int64_t at_ns);

/* A condition variable that waits until such moments. *caller frees* with pthread_cond_destroy().
 */
void gs_clock_cond_init(pthread_cond_t *cond);

/* Sleeps so long by this clock. */
void gs_clock_sleep(const struct gs_clock *clock, int64_t ns);

static inline int64_t gs_clock_now_ns(const struct gs_clock *clock)
{
    return clock->monotonic_ns(clock->ctx);
}
