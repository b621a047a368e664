/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_RECONCILE_H
#define GPUSHARE_SERVICE_RECONCILE_H

#include <stdint.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/recent.h"

/*
 * The full comparison of ledger and API: a list of all pods against the claims, by UID. The watch
 * keeps them equal. Where it is past a pod's revision and the ledger has something else, that is
 * drift, a bug: it is counted and logged, and the watch lists all pods again, which repairs it. It
 * also lists them again if a claim's pod was in neither of two lists.
 */
#define GS_RECONCILE_NS (300 * GS_NS_PER_S)

struct gs_service;

/* Of the thread that compares. */
struct gs_reconcile {
    int64_t next_ns;          /* 0: not started */
    struct gs_recent missing; /* UIDs of claims that the last list did not have */
};

/* Does what is due. Waits for the API as long as a list takes, a minute at most. */
void gs_reconcile_tick(struct gs_service *service, int64_t now_ns);

#endif
