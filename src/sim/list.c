/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "selector.h"
#include "store.h"

/* Lists in pages, all of them from one moment. */

#define SNAPSHOT_LIFE_NS (300 * GS_NS_PER_S) /* etcd's compaction interval */

void gs_sim_snapshot_unref(struct gs_sim_snapshot *snapshot)
{
    if (!snapshot || atomic_fetch_sub_explicit(&snapshot->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < snapshot->count; i++)
        gs_sim_object_unref(snapshot->objects[i]);
    free(snapshot);
}

/* An object and the slot it was found in. */
struct place {
    struct gs_sim_object *object;
    uint32_t slot;
};

static int by_key(const void *a, const void *b)
{
    const struct gs_sim_object *left = ((const struct place *)a)->object;
    const struct gs_sim_object *right = ((const struct place *)b)->object;
    int order = strcmp(left->ns, right->ns);
    return order ? order : strcmp(left->name, right->name);
}

/* What is there, referenced, as of *ret_version. */
struct haul {
    struct place *places;
    size_t count;
    uint64_t version;
    uint64_t keys;
    bool sorted;
};

/* The table may grow between the look at its size and the second look: then -1 with no places. */
static int haul_locked(struct gs_sim_cluster *cluster, const struct gs_sim_table *table,
                       size_t room, struct haul *haul)
{
    if (table->index.count > room)
        return -1;
    haul->version = cluster->version;
    haul->keys = table->keys_changed;
    haul->sorted = table->order && table->order_keys == table->keys_changed;
    uint32_t end = haul->sorted ? table->order_count : table->slot_count;
    for (uint32_t i = 0; i < end; i++) {
        uint32_t slot = haul->sorted ? table->order[i] : i;
        if (table->slots[slot])
            haul->places[haul->count++] =
                (struct place){gs_sim_object_ref(table->slots[slot]), slot};
    }
    return 0;
}

static int take_haul(struct gs_sim_cluster *cluster, const struct gs_sim_table *table,
                     struct haul *haul)
{
    int rc = -1;
    while (rc < 0) {
        pthread_mutex_lock(&cluster->lock);
        size_t room = table->index.count;
        pthread_mutex_unlock(&cluster->lock);
        struct place *places = realloc(haul->places, (room + 64) * sizeof(*places));
        if (!places)
            return -1;
        haul->places = places;
        pthread_mutex_lock(&cluster->lock);
        rc = haul_locked(cluster, table, room + 64, haul);
        pthread_mutex_unlock(&cluster->lock);
    }
    return 0;
}

/* Remembers the order for the next list; a failure only costs that one a sort. */
static void keep_order(struct gs_sim_cluster *cluster, struct gs_sim_table *table,
                       const struct haul *haul)
{
    uint32_t *order = malloc((haul->count + 1) * sizeof(*order));
    if (!order)
        return;
    for (size_t i = 0; i < haul->count; i++)
        order[i] = haul->places[i].slot;
    pthread_mutex_lock(&cluster->lock);
    if (table->keys_changed == haul->keys) {
        uint32_t *old = table->order;
        table->order = order;
        table->order_count = (uint32_t)haul->count;
        table->order_keys = haul->keys;
        order = old;
    }
    pthread_mutex_unlock(&cluster->lock);
    free(order);
}

struct gs_sim_snapshot *gs_sim_snapshot_take(struct gs_sim_cluster *cluster, enum gs_sim_kind kind,
                                             const struct gs_sim_selector *selector)
{
    struct gs_sim_table *table = &cluster->tables[kind];
    struct haul haul = {0};
    if (take_haul(cluster, table, &haul) < 0) {
        free(haul.places);
        return NULL;
    }
    if (!haul.sorted) {
        qsort(haul.places, haul.count, sizeof(*haul.places), by_key);
        keep_order(cluster, table, &haul);
    }
    struct gs_sim_snapshot *snapshot =
        malloc(sizeof(*snapshot) + haul.count * sizeof(struct gs_sim_object *));
    if (snapshot)
        *snapshot = (struct gs_sim_snapshot){.refs = 1, .version = haul.version};
    for (size_t i = 0; i < haul.count; i++) {
        struct gs_sim_object *object = haul.places[i].object;
        if (snapshot && gs_sim_selector_matches(selector, object))
            snapshot->objects[snapshot->count++] = object;
        else
            gs_sim_object_unref(object);
    }
    free(haul.places);
    return snapshot;
}

/* Takes the place of the oldest, of which *ret gets the reference. Lock held. */
static void keep_snapshot(struct gs_sim_cluster *cluster, struct gs_sim_snapshot *snapshot,
                          struct gs_sim_snapshot **ret)
{
    size_t oldest = 0;
    for (size_t i = 0; i < GS_SIM_SNAPSHOTS_MAX && cluster->snapshots[oldest]; i++) {
        if (!cluster->snapshots[i] || cluster->snapshots[i]->id < cluster->snapshots[oldest]->id)
            oldest = i;
    }
    *ret = cluster->snapshots[oldest];
    snapshot->id = ++cluster->next_snapshot;
    snapshot->made_ns = gs_clock_now_ns(cluster->clock);
    atomic_fetch_add(&snapshot->refs, 1);
    cluster->snapshots[oldest] = snapshot;
}

/* A list under way, referenced; NULL when it is gone. */
static struct gs_sim_snapshot *find_snapshot(struct gs_sim_cluster *cluster, uint64_t id)
{
    struct gs_sim_snapshot *found = NULL;
    int64_t oldest_ns = gs_clock_now_ns(cluster->clock) - SNAPSHOT_LIFE_NS;
    pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < GS_SIM_SNAPSHOTS_MAX; i++) {
        struct gs_sim_snapshot *snapshot = cluster->snapshots[i];
        if (snapshot && snapshot->id == id && snapshot->made_ns >= oldest_ns) {
            found = snapshot;
            atomic_fetch_add(&found->refs, 1);
        }
    }
    pthread_mutex_unlock(&cluster->lock);
    return found;
}

static void forget_snapshot(struct gs_sim_cluster *cluster, const struct gs_sim_snapshot *snapshot)
{
    struct gs_sim_snapshot *dropped = NULL;
    pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < GS_SIM_SNAPSHOTS_MAX; i++) {
        if (cluster->snapshots[i] == snapshot)
            dropped = gs_steal(&cluster->snapshots[i]);
    }
    pthread_mutex_unlock(&cluster->lock);
    gs_sim_snapshot_unref(dropped);
}

/* The page from `at` on. Takes the snapshot's reference into *ret. */
static void make_page(struct gs_sim_cluster *cluster, struct gs_sim_snapshot *snapshot, size_t at,
                      uint64_t limit, struct gs_sim_list *ret)
{
    size_t left = snapshot->count - at;
    size_t count = limit && limit < left ? (size_t)limit : left;
    *ret = (struct gs_sim_list){.items = snapshot->objects + at,
                                .count = count,
                                .version = snapshot->version,
                                .remaining = left - count,
                                .snapshot = snapshot};
    if (ret->remaining == 0) {
        if (at > 0)
            forget_snapshot(cluster, snapshot);
        return;
    }
    if (at == 0) {
        struct gs_sim_snapshot *oldest;
        pthread_mutex_lock(&cluster->lock);
        keep_snapshot(cluster, snapshot, &oldest);
        pthread_mutex_unlock(&cluster->lock);
        gs_sim_snapshot_unref(oldest);
    }
    snprintf(ret->next, sizeof(ret->next), "%llu.%zu", (unsigned long long)snapshot->id,
             at + count);
}

static int next_page(struct gs_sim_cluster *cluster, uint64_t limit, const char *next,
                     struct gs_sim_list *ret, struct gs_error *err)
{
    const char *dot = strchr(next, '.');
    uint64_t id, at;
    if (!dot || !gs_parse_u64(next, (size_t)(dot - next), &id) ||
        !gs_parse_u64(dot + 1, strlen(dot + 1), &at))
        return gs_fail(err, GS_EPROTO, "continue key is not valid");
    struct gs_sim_snapshot *snapshot = find_snapshot(cluster, id);
    if (!snapshot || at == 0 || at >= snapshot->count) {
        gs_sim_snapshot_unref(snapshot);
        return gs_fail(err, GS_EGONE,
                       "The provided continue parameter is too old to display a consistent list "
                       "result. You must start a new list without the continue parameter.");
    }
    make_page(cluster, snapshot, (size_t)at, limit, ret);
    return 0;
}

int gs_sim_list(struct gs_sim_cluster *cluster, const struct gs_sim_query *query, uint64_t limit,
                const char *next, struct gs_sim_list *ret, struct gs_error *err)
{
    if (next && next[0])
        return next_page(cluster, limit, next, ret, err);
    struct gs_sim_selector selector;
    if (gs_sim_selector_parse(query, &selector, err) < 0)
        return -1;
    struct gs_sim_snapshot *snapshot = gs_sim_snapshot_take(cluster, query->kind, &selector);
    gs_sim_selector_release(&selector);
    if (!snapshot)
        return gs_fail_nomem(err);
    make_page(cluster, snapshot, 0, limit, ret);
    return 0;
}

void gs_sim_list_release(struct gs_sim_list *list)
{
    gs_sim_snapshot_unref(list->snapshot);
    *list = (struct gs_sim_list){0};
}
