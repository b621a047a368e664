/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cluster.h"
#include "gpushare/base/array.h"
#include "gpushare/base/index.h"
#include "tree.h"

/*
 * Inside sim only: what a cluster is made of, and its three transactions. Each compares what it
 * expects with what is there and swaps under the lock; nothing is parsed or sorted there.
 */

/* One write, kept for watches. */
struct gs_sim_log_entry {
    struct gs_sim_object *now;    /* DELETED: the last content under the deletion's version */
    struct gs_sim_object *before; /* NULL for ADDED */
    enum gs_sim_change change;
};

/* A ring; entries[seq % cap] for first <= seq < end. */
struct gs_sim_log {
    struct gs_sim_log_entry *entries;
    uint32_t cap;
    uint64_t first;
    uint64_t end;
    uint64_t forgotten; /* version of the newest entry that is gone: watches may start from it */
};

/* Forgets all entries; lock held. */
void gs_sim_log_clear(struct gs_sim_log *log, uint64_t version);

struct gs_sim_table {
    struct gs_index index;
    struct gs_sim_object **slots; /* NULL: free */
    struct gs_pool pool;          /* of slots */
    struct gs_sim_log log;
};

/* A list under way: refcounted, because a page may be in use when it is thrown out. */
struct gs_sim_snapshot {
    atomic_uint refs;
    uint64_t id;
    uint64_t version;
    size_t count;
    struct gs_sim_object *objects[];
};

enum { GS_SIM_SNAPSHOTS_MAX = 32 };

struct gs_sim_cluster {
    const struct gs_clock *clock;
    uint32_t log_max;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    uint64_t uid_state;
    uint64_t version;
    uint64_t wakes;
    uint64_t cuts;
    uint64_t next_snapshot;
    struct gs_sim_table tables[GS_SIM_KINDS];
    struct gs_sim_snapshot *snapshots[GS_SIM_SNAPSHOTS_MAX];
};

/* A reference, or NULL when there is no such object. */
struct gs_sim_object *gs_sim_store_get(struct gs_sim_cluster *cluster, enum gs_sim_kind kind,
                                       const char *ns, const char *name);

/* 0: done; 1: another write came first (a creation: the name exists); -1: GS_ENOMEM, GS_ETOOBIG.
 * expected NULL: create. ret may be NULL. */
int gs_sim_store_put(struct gs_sim_cluster *cluster, const struct gs_sim_object *expected,
                     const struct gs_sim_draft *draft, struct gs_sim_object **ret,
                     struct gs_error *err);
int gs_sim_store_remove(struct gs_sim_cluster *cluster, struct gs_sim_object *expected,
                        struct gs_sim_object **ret, struct gs_error *err);

/* A random (version 4) UUID from the cluster's seed. */
void gs_sim_store_uid(struct gs_sim_cluster *cluster, char ret[37]);

/* Lock not held. Everything that matches, in order, as of one version; NULL when out of memory. */
struct gs_sim_selector;
struct gs_sim_snapshot *gs_sim_snapshot_take(struct gs_sim_cluster *cluster, enum gs_sim_kind kind,
                                             const struct gs_sim_selector *selector);
void gs_sim_snapshot_unref(struct gs_sim_snapshot *snapshot);
