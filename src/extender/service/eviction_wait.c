/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

enum { LOOK_NS = 2000000 }; /* between looks for memory that came free */

static void drop(struct gs_eviction_wait *item)
{
    free(item->uid);
    free(item->node);
    free(item->victims);
    *item = (struct gs_eviction_wait){0};
}

void gs_eviction_waits_release(struct gs_eviction_waits *waits)
{
    GS_EACH_OF (item, waits->items, GS_EVICTION_WAITS_MAX)
        drop(item);
}

static struct gs_eviction_wait *find(struct gs_eviction_waits *waits, const char *uid)
{
    GS_EACH_OF (item, waits->items, GS_EVICTION_WAITS_MAX) {
        if (item->uid && strcmp(item->uid, uid) == 0)
            return item;
    }
    return NULL;
}

/* By node alone it is gs_hash_order(). */
static int by_node_and_pod(const void *a, const void *b)
{
    const struct gs_eviction_victim *one = a, *other = b;
    const int nodes = gs_hash_order(&one->node, &other->node);
    return nodes ? nodes : gs_hash_order(&one->pod, &other->pod);
}

/* Ascending; NULL: no memory. */
static struct gs_eviction_victim *victims_of(const struct gs_victims *nodes, uint32_t count,
                                             uint32_t *ret_count)
{
    size_t all = 0;
    uint32_t to = 0;
    for (uint32_t i = 0; i < count; i++)
        all += 1 + nodes[i].pod_count;
    struct gs_eviction_victim *victims = calloc(all, sizeof(*victims));
    for (uint32_t i = 0; victims && i < count; i++) {
        const uint64_t node = gs_hash_text(nodes[i].node);
        victims[to++].node = node;
        for (uint32_t k = 0; k < nodes[i].pod_count; k++)
            victims[to++] = (struct gs_eviction_victim){node, gs_hash_text(nodes[i].pods[k].uid)};
    }
    if (victims)
        qsort(victims, to, sizeof(*victims), by_node_and_pod);
    *ret_count = to;
    return victims;
}

/* kube-scheduler may ask again while its first answer is being carried out: no victim went yet. */
static void merge(struct gs_eviction_wait *item, struct gs_eviction_wait *made)
{
    struct gs_eviction_victim *both =
        reallocarray(made->victims, made->count + item->count, sizeof(*both));
    if (!both)
        return;
    memcpy(both + made->count, item->victims, item->count * sizeof(*both));
    made->victims = both;
    made->count += item->count;
    qsort(both, made->count, sizeof(*both), by_node_and_pod);
}

/* For an approval of that namespace: free, or over, or the oldest of those that have most. */
static struct gs_eviction_wait *find_place(struct gs_eviction_waits *waits, uint64_t ns,
                                           int64_t now_ns)
{
    struct gs_eviction_wait *found = waits->items;
    uint32_t most = 0;
    GS_EACH_OF (item, waits->items, GS_EVICTION_WAITS_MAX) {
        uint32_t has = item->ns == ns;
        GS_EACH_OF (other, waits->items, GS_EVICTION_WAITS_MAX)
            has += other->ns == item->ns;
        if (!item->uid || now_ns - item->since_ns >= GS_EVICTION_BEGINS_NS)
            has = UINT32_MAX;
        if (has > most || (has == most && item->order < found->order)) {
            most = has;
            found = item;
        }
    }
    return found;
}

void gs_eviction_waits_add(struct gs_service *service, const struct gs_pod *pod,
                           const struct gs_victims *nodes, uint32_t count)
{
    struct gs_eviction_waits *waits = &service->eviction_waits;
    const int64_t now_ns = gs_service_now(service);
    struct gs_eviction_wait made = {.since_ns = now_ns,
                                    .left_ns = waits->budget_ns,
                                    .ns = gs_hash_text(pod->ns),
                                    .uid = strdup(pod->uid)};
    made.victims = victims_of(nodes, count, &made.count);
    if (!made.victims || !made.uid) {
        drop(&made);
        return;
    }
    gs_service_write(service);
    struct gs_eviction_wait *item = find(waits, pod->uid);
    const bool again = item && now_ns - item->since_ns < GS_EVICTION_BEGINS_NS;
    if (again && !item->node && item->count < GS_EVICTION_MERGED_MAX)
        merge(item, &made);
    made.order = again ? item->order : ++waits->approvals;
    item = item ? item : find_place(waits, made.ns, now_ns);
    drop(item);
    *item = made;
    gs_service_unlock(service);
}

struct going {
    struct gs_service *service;
    int64_t now_ns;
    uint64_t seen; /* items, by bit */
};

static bool names(const struct going *going, const struct gs_eviction_wait *item,
                  const struct gs_eviction_victim *went)
{
    return item->count && going->now_ns - item->since_ns < GS_EVICTION_BEGINS_NS &&
           bsearch(went, item->victims, item->count, sizeof(*went), by_node_and_pod);
}

/* Finds whose that victim was, and moves others where they were taken for it; false: nobody's. */
static bool give(struct going *going, const struct gs_eviction_victim *went, const char *node)
{
    struct gs_eviction_wait *items = going->service->eviction_waits.items, *to = NULL;
    bool there = false;
    for (uint32_t i = 0; i < GS_EVICTION_WAITS_MAX; i++) {
        if (going->seen >> i & 1 || !names(going, &items[i], went))
            continue;
        if (items[i].node && items[i].went.pod == went->pod)
            return true; /* each goes more than once */
        there |= items[i].node && items[i].went.node == went->node;
        if (!items[i].node && (!to || items[i].order > to->order))
            to = &items[i];
    }
    if (to && !gs_reservations_freed(going->service, to->uid, node)) {
        going->seen |= (uint64_t)1 << (to - items);
        return give(going, went, node);
    }
    for (uint32_t i = 0; !to && i < GS_EVICTION_WAITS_MAX; i++) {
        struct gs_eviction_wait *item = &items[i];
        if (item->settled || going->seen >> i & 1 || !names(going, item, went))
            continue;
        going->seen |= (uint64_t)1 << i;
        if (give(going, &item->went, item->node) &&
            gs_reservations_freed(going->service, item->uid, node))
            to = item;
    }
    if (!to)
        return there;
    free(to->node);
    to->node = strdup(node);
    to->went = *went;
    return true;
}

void gs_eviction_waits_go(struct gs_service *service, const struct gs_pod *victim)
{
    const struct gs_eviction_victim went = {gs_hash_text(victim->node_name),
                                            gs_hash_text(victim->uid)};
    give(&(struct going){service, gs_service_now(service), 0}, &went, victim->node_name);
}

void gs_eviction_waits_settle(struct gs_service *service, const char *uid, const char *node)
{
    struct gs_eviction_wait *item = find(&service->eviction_waits, uid);
    if (item && !node) {
        drop(item);
    } else if (item) {
        const struct gs_eviction_victim went = item->went;
        _cleanup_free_ char *before = item->node;
        item->settled = true;
        item->node = strdup(node);
        item->went = (struct gs_eviction_victim){.node = gs_hash_text(node)};
        if (before && went.node != item->went.node)
            give(&(struct going){service, gs_service_now(service), 0}, &went, before);
    }
}

static bool names_one(const struct gs_eviction_wait *item, const struct gs_slice *names,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct gs_eviction_victim key = {.node = gs_hash_bytes(names[i].at, names[i].len)};
        if (bsearch(&key, item->victims, item->count, sizeof(key), gs_hash_order))
            return true;
    }
    return false;
}

int64_t gs_eviction_waits_left_ns(struct gs_service *service, const char *uid,
                                  const struct gs_slice *names, uint32_t count)
{
    gs_service_read(service);
    const struct gs_eviction_wait *item = find(&service->eviction_waits, uid);
    int64_t left_ns =
        item && item->left_ns > 0 && names_one(item, names, count) ? item->left_ns : 0;
    gs_service_unlock(service);
    return left_ns;
}

bool gs_eviction_waits_wait(struct gs_service *service, const char *uid, int64_t longest_ns,
                            uint64_t epoch, int64_t *left_ns)
{
    struct gs_eviction_waits *waits = &service->eviction_waits;
    if (longest_ns > *left_ns)
        longest_ns = *left_ns;
    if (longest_ns <= 0)
        return false;
    gs_service_write(service);
    const bool room = waits->waiters < GS_EVICTION_WAITERS_MAX; /* workers that wait bind nobody */
    waits->waiters += room;
    waits->waits += room;
    gs_service_unlock(service);
    if (!room)
        return false;
    /* the machine's own time: threads are what is waited for */
    const int64_t start_ns = gs_clock_now_ns(gs_clock_system());
    bool freed = false;
    while (!freed && gs_clock_now_ns(gs_clock_system()) - start_ns < longest_ns) {
        nanosleep(&(const struct timespec){.tv_nsec = LOOK_NS}, NULL);
        gs_service_read(service);
        freed = service->gains.frees > epoch;
        gs_service_unlock(service);
    }
    const int64_t spent_ns = gs_clock_now_ns(gs_clock_system()) - start_ns;
    *left_ns -= spent_ns;
    gs_service_write(service);
    struct gs_eviction_wait *item = find(waits, uid);
    if (item)
        item->left_ns -= spent_ns;
    waits->waiters--;
    gs_service_unlock(service);
    return freed;
}
