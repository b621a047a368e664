/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "selector.h"
#include "store.h"

/* Lists in pages, all of them from one moment. */

void gs_sim_snapshot_unref(struct gs_sim_snapshot *snapshot)
{
    if (!snapshot || atomic_fetch_sub_explicit(&snapshot->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < snapshot->count; i++)
        gs_sim_object_unref(snapshot->objects[i]);
    free(snapshot);
}

static int by_key(const void *a, const void *b)
{
    const struct gs_sim_object *left = *(struct gs_sim_object *const *)a;
    const struct gs_sim_object *right = *(struct gs_sim_object *const *)b;
    int order = strcmp(left->ns, right->ns);
    return order ? order : strcmp(left->name, right->name);
}

struct gs_sim_snapshot *gs_sim_snapshot_take(struct gs_sim_cluster *cluster, enum gs_sim_kind kind,
                                             const struct gs_sim_selector *selector)
{
    const struct gs_sim_table *table = &cluster->tables[kind];
    size_t count = 0;
    pthread_mutex_lock(&cluster->lock);
    struct gs_sim_snapshot *snapshot =
        malloc(sizeof(*snapshot) + table->index.count * sizeof(struct gs_sim_object *));
    if (snapshot)
        *snapshot = (struct gs_sim_snapshot){.refs = 1, .version = cluster->version};
    for (uint32_t i = 0; snapshot && i < table->pool.count; i++) {
        if (table->slots[i])
            snapshot->objects[count++] = gs_sim_object_ref(table->slots[i]);
    }
    pthread_mutex_unlock(&cluster->lock);
    if (!snapshot)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        struct gs_sim_object *object = snapshot->objects[i];
        if (gs_sim_selector_matches(selector, object))
            snapshot->objects[snapshot->count++] = object;
        else
            gs_sim_object_unref(object);
    }
    qsort(snapshot->objects, snapshot->count, sizeof(struct gs_sim_object *), by_key);
    return snapshot;
}

static struct gs_sim_snapshot **place_of(struct gs_sim_cluster *cluster, uint64_t id)
{
    return &cluster->snapshots[id % GS_SIM_SNAPSHOTS_MAX];
}

/* In place of the oldest. */
static void keep_snapshot(struct gs_sim_cluster *cluster, struct gs_sim_snapshot *snapshot)
{
    pthread_mutex_lock(&cluster->lock);
    snapshot->id = ++cluster->next_snapshot;
    struct gs_sim_snapshot **place = place_of(cluster, snapshot->id), *oldest = *place;
    atomic_fetch_add(&snapshot->refs, 1);
    *place = snapshot;
    pthread_mutex_unlock(&cluster->lock);
    gs_sim_snapshot_unref(oldest);
}

/* A list under way, referenced; NULL when it is gone. */
static struct gs_sim_snapshot *find_snapshot(struct gs_sim_cluster *cluster, uint64_t id)
{
    pthread_mutex_lock(&cluster->lock);
    struct gs_sim_snapshot *found = *place_of(cluster, id);
    if (found && found->id != id)
        found = NULL;
    if (found)
        atomic_fetch_add(&found->refs, 1);
    pthread_mutex_unlock(&cluster->lock);
    return found;
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
    if (ret->remaining == 0)
        return;
    if (at == 0)
        keep_snapshot(cluster, snapshot);
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
