/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_RECONCILE_H
#define GPUSHARE_SERVICE_RECONCILE_H

#include <stdint.h>

#include "gpushare/base/clock.h"

/*
 * The full comparison of ledger and API: a list of all pods against the claims, by UID. The watch
 * keeps them equal, so what differs is either under way, or an event was lost, or there is a bug.
 *
 * What differs is looked at twice, a while apart: a difference whose object did not change in
 * between is drift. It is counted, told, and mended by feeding the pod to the sync, as its event
 * would have been. Nothing is compared while a watch is interrupted: what is not known then, it
 * tells when it stands again. Of the thread that ticks; the lock is never held over a call.
 */
enum { GS_SUSPECTS_MAX = 1024 }; /* per round; more are left to the next one */

#define GS_RECONCILE_NS       (300 * GS_NS_PER_S)
#define GS_RECONCILE_GRACE_NS (5 * GS_NS_PER_S) /* longer than an event is under way */

struct gs_service;
struct gs_suspect;

struct gs_reconcile {
    int64_t next_list_ns; /* 0: not started */
    int64_t next_look_ns; /* at the suspects */
    struct gs_suspect *suspects;
    uint32_t count;
};

void gs_reconcile_release(struct gs_reconcile *reconcile);

/* Does what is due. Waits for the API as long as a list takes, a minute at most. */
void gs_reconcile_tick(struct gs_service *service, int64_t now_ns);

#endif
