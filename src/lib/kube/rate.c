/* SPDX-License-Identifier: Apache-2.0 */
#include "rate.h"

#include "gpushare/base/clock.h"

void gs_rate_init(struct gs_rate *rate, uint32_t qps, uint32_t burst)
{
    int64_t interval_ns = qps ? GS_NS_PER_S / qps : 0;
    *rate =
        (struct gs_rate){.interval_ns = interval_ns, .burst_ns = interval_ns * (burst ? burst : 1)};
}

int64_t gs_rate_take(struct gs_rate *rate, int64_t now_ns, int64_t most_ns)
{
    if (!rate->interval_ns)
        return 0;
    int64_t next_ns = (rate->next_ns > now_ns ? rate->next_ns : now_ns) + rate->interval_ns;
    int64_t wait_ns = next_ns - rate->burst_ns - now_ns;
    if (wait_ns > most_ns)
        return -1;
    rate->next_ns = next_ns;
    return wait_ns > 0 ? wait_ns : 0;
}
