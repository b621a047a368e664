/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_STORE_H
#define GPUSHARE_SERVICE_STORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpushare/cluster/cluster.h"

/*
 * The one lock and what it guards. Never held over I/O.
 *
 * `frees` counts the moments at which memory came free: a pod that was refused at count N can only
 * fit now on nodes whose last gain is above N. The place that a pod or its group gave up is no gain
 * to itself.
 */
struct gs_store {
    pthread_rwlock_t lock;
    struct gs_cluster cluster;
    uint64_t frees;
    struct gs_gain {
        uint64_t at; /* the count when that node last gained, ... */
        uint64_t
            owner; /* ... the hash of the pod's UID, or of the group, that gave it up; 0: none */
        uint64_t before;       /* the last gain that was not that owner's */
        uint32_t older, newer; /* slots of nodes that gained, by `at`; GS_INDEX_NONE */
    } * gained;                /* by slot */
    uint32_t gained_cap;
    uint32_t newest; /* GS_INDEX_NONE: none gained */

    pthread_mutex_t gain_lock; /* taken last */
    pthread_cond_t gain;
    uint64_t gains; /* `frees` for those who wait; guarded by gain_lock */
};

/* owner and ctx: the cluster's. */
int gs_store_init(struct gs_store *store, const struct gs_cluster_owner *owner, void *ctx);
void gs_store_release(struct gs_store *store);

void gs_store_read(const struct gs_store *store);
void gs_store_write(struct gs_store *store);
void gs_store_unlock(const struct gs_store *store);

/* As placement sees the node; NULL: there is none. Lock held. */
static inline const struct gs_node_view *gs_store_view(const struct gs_store *store,
                                                       const char *node)
{
    return gs_ledger_view(store->cluster.ledger, gs_slice_of(node));
}

/* Calls fn for every node, under the lock for reading, which is given up now and then: a page of
 * thousands of nodes takes longer to write than a bind should wait. So it shows no single moment,
 * but each node as it was at one. */
typedef void gs_store_node_fn(void *ctx, const struct gs_store *store,
                              const struct gs_node_view *view);
void gs_store_each_node(const struct gs_store *store, gs_store_node_fn *fn, void *ctx);

/* Notes that a node gained free memory, as in gs_gain. GS_INDEX_NONE is fine. Lock held for
 * writing.
 */
void gs_store_freed(struct gs_store *store, uint32_t slot, uint64_t owner);

/* The node whose last gain is the first after epoch; GS_INDEX_NONE. *work: less those after it. */
uint32_t gs_store_gain_after(const struct gs_store *store, uint64_t epoch, int64_t *work);

/* Zeros where there was none. */
static inline struct gs_gain gs_store_gain(const struct gs_store *store, uint32_t slot)
{
    return slot < store->gained_cap ? store->gained[slot] : (struct gs_gain){0};
}

/* Waits until `frees` is above epoch: true, or false when gs_clock_system() shows until_ns before.
 * No lock held. */
bool gs_store_wait_freed(struct gs_store *store, uint64_t epoch, int64_t until_ns);

#endif
