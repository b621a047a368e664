/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

/* Upper bounds: 50 µs doubling up to 6.6 s, since bind waits for the API server. */
enum { FIRST_BOUND_NS = 50000 };

static int64_t bound_ns(int bucket)
{
    return (int64_t)FIRST_BOUND_NS << bucket;
}

void gs_meter_add(struct gs_meter *meter, int64_t took_ns, bool error)
{
    int bucket = 0;
    while (bucket < GS_METER_BUCKETS && took_ns > bound_ns(bucket))
        bucket++;
    atomic_fetch_add_explicit(&meter->buckets[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&meter->sum_ns, (unsigned long long)took_ns, memory_order_relaxed);
    if (error)
        atomic_fetch_add_explicit(&meter->errors, 1, memory_order_relaxed);
}

uint64_t gs_meter_count(struct gs_meter *meter, uint64_t *ret_errors)
{
    /* errors first: it is counted last, so it never exceeds the rest */
    uint64_t errors = atomic_load(&meter->errors), count = 0;
    for (int i = 0; i <= GS_METER_BUCKETS; i++)
        count += atomic_load(&meter->buckets[i]);
    *ret_errors = errors;
    return count;
}

void gs_meter_print(struct gs_meter *meter, const char *name, const char *label, const char *value,
                    struct gs_buf *out)
{
    unsigned long long count = 0;
    for (int i = 0; i < GS_METER_BUCKETS; i++) {
        count += atomic_load(&meter->buckets[i]);
        gs_buf_printf(out, "%s_bucket{%s=\"%s\",le=\"%g\"} %llu\n", name, label, value,
                      (double)bound_ns(i) / 1e9, count);
    }
    count += atomic_load(&meter->buckets[GS_METER_BUCKETS]);
    gs_buf_printf(out, "%s_bucket{%s=\"%s\",le=\"+Inf\"} %llu\n", name, label, value, count);
    gs_buf_printf(out, "%s_sum{%s=\"%s\"} %.9g\n", name, label, value,
                  (double)atomic_load(&meter->sum_ns) / 1e9);
    gs_buf_printf(out, "%s_count{%s=\"%s\"} %llu\n", name, label, value, count);
}
