/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_ARRIVALS_H
#define GPUSHARE_SERVICE_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/clock.h"

/*
 * Binds that were read and wait for their turn: for a worker, and in the first seconds of a process
 * for what the one before may have sent. Their places are reserved from when they were read:
 * kube-scheduler goes on with the next pods meanwhile, and filter would know nothing of these.
 * Guarded by the store's lock.
 */
struct gs_arrivals {
    struct gs_arrival *all;
};

/* No turn comes for one that the server's queue has no room for. */
#define GS_ARRIVAL_NS (30 * GS_NS_PER_S)

/* False: no memory. */
bool gs_arrivals_add(struct gs_arrivals *arrivals, const char *uid, int64_t now_ns);
/* Its turn has come; whether it was there. */
bool gs_arrivals_take(struct gs_arrivals *arrivals, const char *uid);
/* One that has waited longer than GS_ARRIVAL_NS; NULL: none. *Borrowed until* it is taken. */
const char *gs_arrivals_overdue(const struct gs_arrivals *arrivals, int64_t now_ns);
void gs_arrivals_release(struct gs_arrivals *arrivals);

#endif
