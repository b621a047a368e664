/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "gpushare/base/slice.h"

/* Times as Kubernetes writes them: "2026-11-21T10:00:00Z", microseconds in a Lease. Pure. */

/* Years 1678 to 2262 (what nanoseconds in 64 bits can hold), any zone offset, up to 9 digits after
 * the point, a leap second counts as the next second; else false, *ret_ns untouched. */
bool gs_rfc3339_parse(struct gs_slice text, int64_t *ret_ns);

/* In UTC, cut (not rounded) to 0, 3, 6 or 9 digits after the point. Returns out. */
enum { GS_RFC3339_BYTES = 40 };
char *gs_rfc3339_format(int64_t wall_ns, int digits, char out[GS_RFC3339_BYTES]);
