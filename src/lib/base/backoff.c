/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/backoff.h"

#include <stdlib.h>

#include "gpushare/base/num.h"
#include "gpushare/base/splitmix.h"

int64_t gs_pause_ns(uint32_t attempt, int64_t min_ns, int64_t max_ns)
{
    int64_t wait = min_ns;
    for (uint32_t i = 0; i < attempt && wait < max_ns; i++) {
        if (__builtin_mul_overflow(wait, 2, &wait))
            wait = max_ns;
    }
    return wait < max_ns ? wait : max_ns;
}

int64_t gs_backoff_ns(uint32_t attempt, int64_t min_ns, int64_t max_ns)
{
    uint64_t random;
    int64_t pause = gs_pause_ns(attempt, min_ns, max_ns);
    arc4random_buf(&random, sizeof(random));
    int64_t wait = gs_sat_add(pause, (int64_t)gs_splitmix_below(&random, (uint64_t)pause + 1));
    return wait < max_ns ? wait : max_ns;
}
