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
 * when it would refuse such a pod on such a node, and what the victims leave is reserved
 * (nominations.h). Has its own lock, taken last.
 */
enum {
    GS_EVICTION_WAITS_MAX = 64,
    GS_EVICTION_WAITERS_MAX = 4,   /* at a time */
    GS_EVICTION_MERGED_MAX = 4096, /* victims of approvals in a row */
};
#define GS_EVICTION_WAIT_NS        ((int64_t)250 * 1000000)  /* of one filter */
#define GS_EVICTION_WAIT_BUDGET_NS ((int64_t)1000 * 1000000) /* of all after one approval */
#define GS_EVICTION_BEGINS_NS      (10 * GS_NS_PER_S)        /* after an approval, at most */

struct gs_eviction_waits {
    pthread_mutex_t lock;
    int64_t each_ns, budget_ns; /* as above */
    bool (*moved)(void *ctx, const char *uid, const char *node);
    void *ctx;
    struct gs_eviction_wait {
        char *uid;
        uint64_t ns; /* hash of its namespace */
        struct gs_eviction_victim {
            uint64_t node, pod; /* hashes of name and UID; pod 0: the node has no victims */
        } * victims, went;      /* ascending; the one that went for it, ... */
        char *node;             /* ... on this node; NULL: none did yet */
        bool settled;           /* the API showed that it goes there */
        uint32_t count;
        int64_t left_ns, since_ns;
        uint64_t order;             /* of the approvals */
    } items[GS_EVICTION_WAITS_MAX]; /* the oldest of the namespace that has most makes room */
    uint64_t approvals;
    uint32_t waiters; /* now */
    uint64_t waits;   /* begun ever */
};

/* moved(): this pod's victim went there; false: the pod is not known. Called with the lock held. */
void gs_eviction_waits_init(struct gs_eviction_waits *eviction_waits,
                            bool (*moved)(void *ctx, const char *uid, const char *node), void *ctx);
void gs_eviction_waits_release(struct gs_eviction_waits *eviction_waits);

/* In place of what was approved for this pod before, or beside it while no victim went. Without
 * memory nothing is remembered. */
void gs_eviction_waits_add(struct gs_eviction_waits *eviction_waits, const struct gs_pod *pod,
                           const struct gs_victims *nodes, uint32_t count, int64_t now_ns);

/*
 * Which victim went for which pod. kube-scheduler chooses one node of each answer and does not say
 * which; it may evict for several pods at a time, in any order. A pod is given the first of its
 * victims that goes. Of several that were approved the same one it is the last: what was chosen for
 * a pod before is not proposed again, unless all of them go to one node. A later victim, nomination
 * or bind may show that one was given to the wrong pod; then they are assigned again.
 */

/* A bound pod goes. */
void gs_eviction_waits_go(struct gs_eviction_waits *eviction_waits, const struct gs_pod *victim,
                          int64_t now_ns);
/* A pod was nominated or bound there; NULL: it ended. */
void gs_eviction_waits_settle(struct gs_eviction_waits *eviction_waits, const char *uid,
                              const char *node, int64_t now_ns);

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
