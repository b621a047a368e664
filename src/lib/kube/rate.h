/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * How fast requests may follow each other: a token bucket, as client-go's flowcontrol limiter (QPS
 * and Burst of its rest.Config). Not thread-safe; the caller brings the time.
 */
struct gs_rate {
    int64_t interval_ns; /* per request; 0: no limit */
    int64_t burst_ns;    /* of a burst */
    int64_t next_ns;     /* when the bucket is full again */
};

/* qps 0: no limit; burst 0 is 1. */
void gs_rate_init(struct gs_rate *rate, uint32_t qps, uint32_t burst);

/* Takes one: how long to wait before it goes. -1: longer than most_ns, and nothing was taken. */
int64_t gs_rate_take(struct gs_rate *rate, int64_t now_ns, int64_t most_ns);
