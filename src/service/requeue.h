/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_REQUEUE_H
#define GPUSHARE_SERVICE_REQUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/arena.h"
#include "pending.h"

/*
 * Requeueing. kube-scheduler parks a rejected pod until an event concerns it, for minutes. Its
 * caches may see memory come free before our ledger does, and then it evaluates the pod too early;
 * another pod's bind may be faster; the API may fail a bind; this program may have been away. So an
 * annotation of a pending pod that would fit now, on a node that it may use, is touched, which
 * makes kube-scheduler evaluate it again: after growing pauses, shorter again when memory came free
 * since, all pods together at a bounded rate.
 *
 * - Not requeued: pods with scheduling gates, pods of schedulers that do not use this extender,
 *   pods for which filter named a node within the last second, nominated pods.
 * - First, of those that are due: pods whose preemption was held up; then the highest priority; in
 *   that, namespaces in turn; in these, the least requeued; then the pod that fits where memory
 *   came free last. One of five is the least requeued whatever its priority, so that none waits for
 *   ever for pods that are requeued in vain.
 * - A tick does the work of about GS_NODES_PER_TICK comparisons of pods and nodes, each of a pod's
 *   rules about nodes counted as one more, and a pod as 32, and goes on there in the next one. In a
 *   pass, the pods of a namespace are compared with half of so many, a quarter in searches of all
 *   nodes, a pod with GS_NOMINATIONS_WORK. The rest goes on in the next passes, before any pod has
 *   another turn. A search that found none is not made again before the pod would be requeued
 *   again. When all were compared, GS_REQUEUES_PER_TICK are requeued for each tick that it took.
 */
enum {
    GS_NODES_PER_TICK = 1 << 18,
    GS_REQUEUES_PER_TICK = 5,
};

/* Of the thread that requeues, alone. */
struct due;
struct gs_requeue {
    /* A pass over the waiting pods, which may take several ticks. */
    bool under_way;
    uint32_t ticks;
    struct gs_turn {
        int64_t left, searches; /* what its pods may be compared with still */
        uint32_t turn;          /* over when all of its pods had it */
        bool more;              /* some had not, in this pass */
    } turns[GS_SHARES];         /* of namespaces, by hash */
    struct due *due;            /* in the arena */
    uint32_t due_count;

    atomic_bool said_unevaluated; /* of pods that no scheduler evaluates one line is enough */
    uint64_t last_ns;             /* hash of the namespace whose turn it was last */
    struct gs_arena arena;        /* of one pass */
};

struct gs_service;

void gs_requeue_tick(struct gs_service *service, int64_t now_ns);

#endif
