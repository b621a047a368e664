/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_EVICTION_WAIT_H
#define GPUSHARE_SERVICE_EVICTION_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/codec/extender.h"
#include "store.h"

/*
 * Nodes where evictions were approved for a pod, lately. kube-scheduler's caches may see a victim
 * go before our watch does, and releases from 1.32 on ask about the pod in the same moment:
 * refused, it would evict others on another node, for nothing. So filter gives the watch a moment
 * when it would refuse such a pod on such a node. Has its own lock, taken last.
 */
enum { GS_EVICTION_WAITS_MAX = 64, GS_EVICTION_WAITERS_MAX = 4 /* at a time */ };
#define GS_EVICTION_WAIT_NS        ((int64_t)250 * 1000000)  /* of one filter */
#define GS_EVICTION_WAIT_BUDGET_NS ((int64_t)1000 * 1000000) /* of all after one approval */

struct gs_eviction_waits {
    pthread_mutex_t lock;
    int64_t each_ns, budget_ns; /* as above */
    struct gs_eviction_wait {
        uint64_t pod;    /* hash of its UID */
        uint64_t *nodes; /* hashes of their names, ascending, each once */
        uint32_t count;
        int64_t left_ns;
    } items[GS_EVICTION_WAITS_MAX]; /* the oldest makes room */
    uint32_t next;
    uint32_t waiters; /* now */
    uint64_t waits;   /* begun ever */
};

void gs_eviction_waits_init(struct gs_eviction_waits *eviction_waits);
void gs_eviction_waits_release(struct gs_eviction_waits *eviction_waits);

/* Takes the place of what was approved for this pod before. Without memory nothing is remembered.
 */
void gs_eviction_waits_add(struct gs_eviction_waits *eviction_waits, const char *uid,
                           const struct gs_victims *nodes, uint32_t count);

/* Whether the next function would wait. */
bool gs_eviction_waits_due(struct gs_eviction_waits *eviction_waits, const char *uid,
                           const struct gs_slice *names, uint32_t count);

/*
 * One of the names is a node cleared for this pod: waits until memory came free after `epoch`, or
 * for *left_ns, which becomes what is left of it. True when memory came free: judge again. False at
 * once when nothing is to be waited for, or GS_EVICTION_WAITERS_MAX wait already. No lock held.
 */
bool gs_eviction_waits_wait(struct gs_eviction_waits *eviction_waits, struct gs_store *store,
                            const char *uid, const struct gs_slice *names, uint32_t count,
                            uint64_t epoch, int64_t *left_ns);

#endif
