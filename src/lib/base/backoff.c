/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/backoff.h"

#include <sys/random.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"
#include "gpushare/base/splitmix.h"

uint64_t gs_random_seed(void)
{
    uint64_t seed;
    /* Early at boot the kernel may have nothing yet: then two clocks must do. */
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed)) {
        const struct gs_clock *clock = gs_clock_system();
        seed = (uint64_t)clock->wall_ns(clock->ctx) ^
               ((uint64_t)clock->monotonic_ns(clock->ctx) << 32);
    }
    return seed;
}

int64_t gs_pause_ns(uint32_t attempt, int64_t min_ns, int64_t max_ns)
{
    int64_t wait = min_ns;
    for (uint32_t i = 0; i < attempt && wait < max_ns; i++) {
        if (__builtin_mul_overflow(wait, 2, &wait))
            wait = max_ns;
    }
    return wait < max_ns ? wait : max_ns;
}

int64_t gs_backoff_ns(uint64_t *random, uint32_t attempt, int64_t min_ns, int64_t max_ns)
{
    int64_t wait = gs_pause_ns(attempt, min_ns, max_ns);
    if (__builtin_add_overflow(wait, (int64_t)gs_splitmix_below(random, (uint64_t)wait + 1),
                               &wait) ||
        wait > max_ns)
        wait = max_ns;
    return wait;
}

bool gs_retry_after_ns(const char *text, size_t len, int64_t max_ns, int64_t *ret_ns)
{
    uint64_t seconds;
    int64_t ns;
    if (!gs_parse_u64(text, len, &seconds))
        return false;
    if (__builtin_mul_overflow(seconds, GS_NS_PER_S, &ns) || ns > max_ns)
        ns = max_ns;
    *ret_ns = ns;
    return true;
}
