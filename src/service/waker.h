/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_WAKER_H
#define GPUSHARE_SERVICE_WAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/arena.h"

/*
 * Waking. kube-scheduler parks a refused pod until an event concerns it, for minutes. Its caches
 * may see memory come free before our ledger does, and then it asks too early; another pod's bind
 * may be faster than this one's; the API may fail a bind; this program may have been away. So a
 * pod that waits and would fit now, on a node that it may use, gets an annotation touched, which
 * makes kube-scheduler look again. Each pod at a growing distance, shorter again when memory came
 * free since, all pods together at a bounded rate.
 *
 * Who is not woken: pods with scheduling gates, pods of schedulers that do not work with us, pods
 * for which filter named a node within the last second, pods that an offer stands for.
 *
 * Who goes first, of those that are due: pods whose preemption was held up; then the highest
 * priority; in that, namespaces in turn; in these, who was woken least; then who fits where memory
 * came free last. One of five goes to who was woken least whatever its priority, so that nobody
 * waits for pods that are woken in vain for ever.
 *
 * A tick looks at GS_WAITERS_PER_TICK pods and about GS_NODES_PER_TICK nodes at most, and goes on
 * there in the next one. When all were looked at, GS_WAKES_PER_TICK are woken for each tick that
 * it took.
 */
enum {
    GS_WAITERS_PER_TICK = 8192,
    GS_NODES_PER_TICK = 1 << 18,
    GS_WAKES_PER_TICK = 5,
    GS_WAKES_PER_PASS = 50,
    GS_GAINS_PER_PASS = 256,
};

/* Of the thread that ticks, alone. */
struct due;
struct gs_waker {
    uint64_t woken_epoch; /* gains up to here were looked at */
    uint64_t gain_epoch;  /* gains up to here will have been, after this pass */
    uint32_t gain_cursor;
    uint64_t lost_epoch; /* a pod lost its node that was refused then; 0: none did */
    int64_t next_again_ns;

    /* A pass over the waiting pods, which may take several ticks. */
    bool under_way;
    uint64_t pass_epoch; /* what came free until it began */
    uint32_t ticks;
    struct due *due; /* in the arena */
    uint32_t due_count;
    uint32_t slots[GS_GAINS_PER_PASS]; /* nodes that gained memory since the last one */
    uint32_t slot_count;
    uint32_t gained_units; /* what is free on one GPU of the best of these nodes */

    uint64_t last_ns;      /* hash of the namespace whose turn it was last */
    struct gs_arena arena; /* of one pass */
};

struct gs_service;

void gs_waker_tick(struct gs_service *service, int64_t now_ns);

#endif
