/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "selector.h"
#include "store.h"

struct gs_sim_watch {
    struct gs_sim_cluster *cluster;
    enum gs_sim_kind kind;
    struct gs_sim_selector selector;
    struct gs_sim_snapshot *initial; /* what there was, while it is handed out */
    size_t initial_at;
    uint64_t version; /* everything up to here has been handed out */
    uint64_t seq;     /* the log entry to look at next */
    uint64_t wakes;
    uint64_t cuts;
    bool expired;
};

/* The first log entry after a version. Lock held. */
static uint64_t seek(const struct gs_sim_log *log, uint64_t version)
{
    uint64_t seq = log->end;
    while (seq > log->first && log->entries[(seq - 1) % log->cap].now->version > version)
        seq--;
    return seq;
}

static void start(struct gs_sim_watch *watch)
{
    struct gs_sim_cluster *cluster = watch->cluster;
    const struct gs_sim_log *log = &cluster->tables[watch->kind].log;
    pthread_mutex_lock(&cluster->lock);
    watch->expired = watch->version < log->forgotten || watch->version > cluster->version;
    watch->seq = seek(log, watch->version);
    watch->wakes = cluster->wakes;
    watch->cuts = cluster->cuts;
    pthread_mutex_unlock(&cluster->lock);
}

int gs_sim_watch_open(struct gs_sim_cluster *cluster, const struct gs_sim_query *query,
                      uint64_t from, struct gs_sim_watch **ret_watch, struct gs_error *err)
{
    struct gs_sim_watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return gs_fail_nomem(err);
    watch->cluster = cluster;
    watch->kind = query->kind;
    watch->version = from;
    if (gs_sim_selector_parse(query, &watch->selector, err) < 0) {
        gs_sim_watch_free(watch);
        return -1;
    }
    if (from == 0) {
        watch->initial = gs_sim_snapshot_take(cluster, query->kind, &watch->selector);
        if (!watch->initial) {
            gs_sim_watch_free(watch);
            return gs_fail_nomem(err);
        }
        watch->version = watch->initial->version;
    }
    start(watch);
    *ret_watch = watch;
    return 0;
}

void gs_sim_watch_free(struct gs_sim_watch *watch)
{
    if (!watch)
        return;
    gs_sim_selector_release(&watch->selector);
    gs_sim_snapshot_unref(watch->initial);
    free(watch);
}

static bool next_initial(struct gs_sim_watch *watch, struct gs_sim_event *ret)
{
    struct gs_sim_snapshot *initial = watch->initial;
    if (!initial || watch->initial_at == initial->count) {
        gs_sim_snapshot_unref(gs_steal(&watch->initial));
        return false;
    }
    ret->change = GS_SIM_ADDED;
    ret->object = gs_sim_object_ref(initial->objects[watch->initial_at++]);
    return true;
}

/* Lock held. 1: *ret is the next entry, referenced; 0: none came; -1: over. */
static int next_entry(struct gs_sim_watch *watch, const struct timespec *until,
                      struct gs_sim_log_entry *ret, struct gs_error *err)
{
    struct gs_sim_cluster *cluster = watch->cluster;
    const struct gs_sim_log *log = &cluster->tables[watch->kind].log;
    for (;;) {
        if (watch->cuts != cluster->cuts)
            return gs_fail(err, GS_EIO, "the watch was interrupted");
        if (watch->expired || watch->seq < log->first)
            return gs_fail(err, GS_EGONE, "too old resource version: %llu (%llu)",
                           (unsigned long long)watch->version, (unsigned long long)log->forgotten);
        if (watch->seq < log->end) {
            *ret = log->entries[watch->seq++ % log->cap];
            gs_sim_object_ref(ret->now);
            if (ret->before)
                gs_sim_object_ref(ret->before);
            watch->version = ret->now->version;
            return 1;
        }
        watch->version = cluster->version;
        if (watch->wakes != cluster->wakes) {
            watch->wakes = cluster->wakes;
            return 0;
        }
        if (pthread_cond_timedwait(&cluster->changed, &cluster->lock, until) == ETIMEDOUT)
            return 0;
    }
}

/* What a log entry is to this watch; false: nothing. Gives *ret->object its own reference. */
static int translate(const struct gs_sim_watch *watch, const struct gs_sim_log_entry *entry,
                     struct gs_sim_event *ret, struct gs_error *err)
{
    bool before = entry->before && gs_sim_selector_matches(&watch->selector, entry->before);
    bool now =
        entry->change != GS_SIM_DELETED && gs_sim_selector_matches(&watch->selector, entry->now);
    if (!before && !now)
        return 0;
    struct gs_sim_object *object;
    if (now) {
        ret->change = before ? GS_SIM_MODIFIED : GS_SIM_ADDED;
        object = gs_sim_object_ref(entry->now);
    } else {
        ret->change = GS_SIM_DELETED;
        object = entry->change == GS_SIM_DELETED
                     ? gs_sim_object_ref(entry->now)
                     : gs_sim_object_renumber(entry->before, entry->now->version);
    }
    if (!object)
        return gs_fail_nomem(err);
    ret->object = object;
    return 1;
}

int gs_sim_watch_next(struct gs_sim_watch *watch, int64_t wait_ns, struct gs_sim_event *ret,
                      struct gs_error *err)
{
    if (watch->initial && next_initial(watch, ret))
        return 1;
    struct timespec until = gs_clock_wait_until(gs_clock_now_ns(gs_clock_system()) + wait_ns);
    for (;;) {
        struct gs_sim_log_entry entry = {0};
        pthread_mutex_lock(&watch->cluster->lock);
        int rc = next_entry(watch, &until, &entry, err);
        pthread_mutex_unlock(&watch->cluster->lock);
        if (rc <= 0)
            return rc;
        struct gs_sim_event event = {0};
        rc = translate(watch, &entry, &event, err);
        gs_sim_object_unref(entry.now);
        gs_sim_object_unref(entry.before);
        if (rc != 0) {
            if (rc > 0)
                *ret = event;
            return rc;
        }
    }
}

uint64_t gs_sim_watch_version(const struct gs_sim_watch *watch)
{
    return watch->version;
}
