/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_METER_H
#define GPUSHARE_SERVICE_METER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/buf.h"

/* Counts requests of one verb and their time, without locks. */
enum { GS_METER_BUCKETS = 18 };

struct gs_meter {
    atomic_ullong errors;
    atomic_ullong sum_ns;
    atomic_ullong buckets[GS_METER_BUCKETS + 1]; /* the last one: slower than all bounds */
};

void gs_meter_add(struct gs_meter *meter, int64_t took_ns, bool error);

/* How many were added, and how many of these as errors. */
uint64_t gs_meter_count(struct gs_meter *meter, uint64_t *ret_errors);

/* The samples of one histogram child: NAME_bucket, NAME_sum, NAME_count with label="value". */
void gs_meter_print(struct gs_meter *meter, const char *name, const char *label, const char *value,
                    struct gs_buf *out);

#endif
