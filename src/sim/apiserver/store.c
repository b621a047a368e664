/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include "gpushare/base/clock.h"
#include "gpushare/base/splitmix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOG_MAX_DEFAULT = 65536, LOG_CAP_MIN = 64 };

/* ---- the log ---- */

static void forget_first(struct gs_sim_log *log)
{
    struct gs_sim_log_entry *entry = &log->entries[log->first % log->cap];
    log->forgotten = entry->now->version;
    gs_sim_object_unref(entry->now);
    gs_sim_object_unref(entry->before);
    log->first++;
}

void gs_sim_log_clear(struct gs_sim_log *log, uint64_t version)
{
    while (log->first < log->end)
        forget_first(log);
    log->forgotten = version;
}

static int log_reserve(struct gs_sim_log *log, uint32_t max)
{
    uint64_t used = log->end - log->first;
    if (used < log->cap)
        return 0;
    if (log->cap >= max) {
        forget_first(log);
        return 0;
    }
    uint32_t cap = log->cap ? log->cap * 2 : LOG_CAP_MIN;
    cap = cap < max ? cap : max;
    struct gs_sim_log_entry *entries = calloc(cap, sizeof(*entries));
    if (!entries)
        return -1;
    for (uint64_t seq = log->first; seq < log->end; seq++)
        entries[seq % cap] = log->entries[seq % log->cap];
    free(log->entries);
    log->entries = entries;
    log->cap = cap;
    return 0;
}

static void log_append(struct gs_sim_log *log, const struct gs_sim_log_entry *entry)
{
    log->entries[log->end++ % log->cap] = *entry;
}

/* ---- the tables ---- */

struct key {
    const struct gs_sim_table *table;
    const char *ns;
    const char *name;
};

static bool same_key(const void *ctx, uint32_t slot)
{
    const struct key *key = ctx;
    const struct gs_sim_object *object = key->table->slots[slot];
    return strcmp(object->name, key->name) == 0 && strcmp(object->ns, key->ns) == 0;
}

static uint64_t hash_key(const char *ns, const char *name)
{
    /* The index wants what gs_hash_bytes() gives, so the two are hashed once more. */
    uint64_t both[2] = {gs_hash_text(ns), gs_hash_text(name)};
    return gs_hash_bytes(both, sizeof(both));
}

static uint32_t find_slot(const struct gs_sim_table *table, const char *ns, const char *name)
{
    struct key key = {table, ns, name};
    return gs_index_find(&table->index, hash_key(ns, name), same_key, &key);
}

struct gs_sim_object *gs_sim_store_get(struct gs_sim_cluster *cluster, enum gs_sim_kind kind,
                                       const char *ns, const char *name)
{
    struct gs_sim_table *table = &cluster->tables[kind];
    pthread_mutex_lock(&cluster->lock);
    uint32_t slot = find_slot(table, ns, name);
    struct gs_sim_object *object =
        slot == GS_INDEX_NONE ? NULL : gs_sim_object_ref(table->slots[slot]);
    pthread_mutex_unlock(&cluster->lock);
    return object;
}

/* Lock held. Everything that can fail has been done. */
static void log_change(struct gs_sim_cluster *cluster, struct gs_sim_table *table,
                       enum gs_sim_change change, struct gs_sim_object *now,
                       struct gs_sim_object *before)
{
    cluster->version = now->version;
    log_append(&table->log, &(struct gs_sim_log_entry){now, before, change});
    pthread_cond_broadcast(&cluster->changed);
}

/* slot: the object's; GS_INDEX_NONE: it is new. */
static int put_locked(struct gs_sim_cluster *cluster, struct gs_sim_table *table, uint32_t slot,
                      const struct gs_sim_draft *draft, struct gs_sim_object **ret,
                      struct gs_error *err)
{
    if (gs_index_reserve(&table->index) < 0 ||
        gs_pool_reserve(&table->slots, &table->pool, sizeof(void *)) < 0 ||
        log_reserve(&table->log, cluster->log_max) < 0)
        return gs_fail_nomem(err);
    struct gs_sim_object *now = gs_sim_object_of_draft(draft, cluster->version + 1), *before = NULL;
    if (!now)
        return gs_fail_nomem(err);
    if (slot != GS_INDEX_NONE) {
        before = table->slots[slot];
    } else {
        slot = gs_pool_take(&table->pool);
        gs_index_insert(&table->index, hash_key(now->ns, now->name), slot);
    }
    table->slots[slot] = now;
    if (ret)
        *ret = gs_sim_object_ref(now);
    log_change(cluster, table, before ? GS_SIM_MODIFIED : GS_SIM_ADDED, gs_sim_object_ref(now),
               before);
    return 0;
}

int gs_sim_store_put(struct gs_sim_cluster *cluster, const struct gs_sim_object *expected,
                     const struct gs_sim_draft *draft, struct gs_sim_object **ret,
                     struct gs_error *err)
{
    struct gs_sim_table *table = &cluster->tables[draft->kind];
    pthread_mutex_lock(&cluster->lock);
    uint32_t slot = find_slot(table, draft->ns, draft->name);
    bool met = (slot == GS_INDEX_NONE ? NULL : table->slots[slot]) == expected;
    int rc = met ? put_locked(cluster, table, slot, draft, ret, err) : 1;
    pthread_mutex_unlock(&cluster->lock);
    return rc;
}

int gs_sim_store_remove(struct gs_sim_cluster *cluster, struct gs_sim_object *expected,
                        struct gs_sim_object **ret, struct gs_error *err)
{
    struct gs_sim_table *table = &cluster->tables[expected->kind];
    int rc = 1;
    pthread_mutex_lock(&cluster->lock);
    uint32_t slot = find_slot(table, expected->ns, expected->name);
    if (slot != GS_INDEX_NONE && table->slots[slot] == expected) {
        struct gs_sim_object *now = gs_sim_object_renumber(expected, cluster->version + 1);
        if (!now || log_reserve(&table->log, cluster->log_max) < 0) {
            gs_sim_object_unref(now);
            rc = gs_fail_nomem(err);
        } else {
            gs_index_remove(&table->index, hash_key(now->ns, now->name), slot);
            table->slots[slot] = NULL;
            gs_pool_give(&table->pool, slot);
            if (ret)
                *ret = gs_sim_object_ref(now);
            log_change(cluster, table, GS_SIM_DELETED, now, expected);
            rc = 0;
        }
    }
    pthread_mutex_unlock(&cluster->lock);
    return rc;
}

/* ---- the cluster ---- */

void gs_sim_store_uid(struct gs_sim_cluster *cluster, char ret[37])
{
    pthread_mutex_lock(&cluster->lock);
    uint64_t a = gs_splitmix_next(&cluster->uid_state), b = gs_splitmix_next(&cluster->uid_state);
    pthread_mutex_unlock(&cluster->lock);
    snprintf(ret, 37, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
             (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff,
             ((unsigned)(b >> 48) & 0x3fff) | 0x8000, (unsigned long long)(b & 0xffffffffffffu));
}

int gs_sim_cluster_new(const struct gs_sim_options *options, struct gs_sim_cluster **ret_cluster,
                       struct gs_error *err)
{
    struct gs_sim_cluster *cluster = calloc(1, sizeof(*cluster));
    if (!cluster)
        return gs_fail_nomem(err);
    cluster->clock = options->clock ? options->clock : gs_clock_system();
    cluster->log_max = options->log_max ? options->log_max : LOG_MAX_DEFAULT;
    cluster->version = 1; /* 0 means "none" in every resourceVersion field */
    cluster->uid_state = 1;
    gs_clock_cond_init(&cluster->changed);
    pthread_mutex_init(&cluster->lock, NULL);
    *ret_cluster = cluster;
    return 0;
}

static void release_table(struct gs_sim_table *table)
{
    gs_sim_log_clear(&table->log, 0);
    free(table->log.entries);
    for (uint32_t slot = 0; slot < table->pool.count; slot++)
        gs_sim_object_unref(table->slots[slot]);
    free(table->slots);
    free(table->pool.free);
    gs_index_release(&table->index);
}

void gs_sim_cluster_free(struct gs_sim_cluster *cluster)
{
    if (!cluster)
        return;
    for (size_t i = 0; i < GS_SIM_SNAPSHOTS_MAX; i++)
        gs_sim_snapshot_unref(cluster->snapshots[i]);
    for (size_t kind = 0; kind < GS_SIM_KINDS; kind++)
        release_table(&cluster->tables[kind]);
    pthread_cond_destroy(&cluster->changed);
    pthread_mutex_destroy(&cluster->lock);
    free(cluster);
}

uint32_t gs_sim_count(struct gs_sim_cluster *cluster, enum gs_sim_kind kind)
{
    pthread_mutex_lock(&cluster->lock);
    uint32_t count = cluster->tables[kind].index.count;
    pthread_mutex_unlock(&cluster->lock);
    return count;
}

uint64_t gs_sim_cluster_version(struct gs_sim_cluster *cluster)
{
    pthread_mutex_lock(&cluster->lock);
    uint64_t version = cluster->version;
    pthread_mutex_unlock(&cluster->lock);
    return version;
}

void gs_sim_cluster_wake(struct gs_sim_cluster *cluster)
{
    pthread_mutex_lock(&cluster->lock);
    cluster->wakes++;
    pthread_cond_broadcast(&cluster->changed);
    pthread_mutex_unlock(&cluster->lock);
}
