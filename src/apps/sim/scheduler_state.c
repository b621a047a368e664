/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpushare/base/backoff.h"
#include "gpushare/base/clock.h"
#include "gpushare/model/charge.h"
#include "sim/scheduler.h"

/* The scheduling queue: pods and nodes from two watches, who is tried next, and when again. */

#define BACKOFF_MAX_NS (10 * GS_NS_PER_S) /* podMaxBackoffSeconds */
#define LOAD_NS        (30 * GS_NS_PER_S)

static int64_t now_ns(void)
{
    return gs_clock_now_ns(gs_clock_system());
}

/* ---- pods by UID (lock held) ---- */

struct key {
    const struct sched *sched;
    const char *uid;
};

static bool same_uid(const void *ctx, uint32_t slot)
{
    const struct key *key = ctx;
    return strcmp(key->sched->pods[slot].uid, key->uid) == 0;
}

static struct sched_pod *find(struct sched *sched, const char *uid)
{
    struct key key = {sched, uid};
    uint32_t slot = gs_index_find(&sched->index, gs_hash_text(uid), same_uid, &key);
    return slot == GS_INDEX_NONE ? NULL : &sched->pods[slot];
}

void sched_pod_release(struct sched_pod *pod)
{
    free(pod->uid);
    free(pod->ns);
    free(pod->name);
    free(pod->node);
    *pod = (struct sched_pod){0};
}

static struct sched_pod *add(struct sched *sched, const struct gs_pod *from)
{
    uint32_t slot = 0;
    while (slot < sched->pod_count && sched->pods[slot].uid)
        slot++;
    if (slot == sched->pod_cap) {
        uint32_t cap = slot ? slot * 2 : 64;
        struct sched_pod *pods = realloc(sched->pods, cap * sizeof(*pods));
        if (!pods)
            return NULL;
        sched->pods = pods;
        sched->pod_cap = cap;
    }
    struct sched_pod fresh = {.uid = strdup(from->uid),
                              .ns = strdup(from->ns),
                              .name = strdup(from->name),
                              .order = sched->arrivals++};
    if (!fresh.uid || !fresh.ns || !fresh.name || gs_index_reserve(&sched->index) < 0) {
        sched_pod_release(&fresh);
        return NULL;
    }
    sched->pods[slot] = fresh;
    sched->pod_count = slot < sched->pod_count ? sched->pod_count : slot + 1;
    gs_index_insert(&sched->index, gs_hash_text(fresh.uid), slot);
    return &sched->pods[slot];
}

static void drop(struct sched *sched, struct sched_pod *pod)
{
    uint32_t slot = (uint32_t)(pod - sched->pods);
    gs_index_remove(&sched->index, gs_hash_text(pod->uid), slot);
    sched_pod_release(pod);
}

/* ---- what the watches tell ---- */

static void happened(struct sched *sched, bool may_make_room)
{
    sched->moves += may_make_room;
    sched->last_event_ns = now_ns();
    pthread_cond_broadcast(&sched->changed);
}

static int take_pod(struct sched *sched, const struct gs_pod *from)
{
    struct sched_pod *pod = find(sched, from->uid);
    struct gs_charge charge;
    if (!pod && !(pod = add(sched, from)))
        return -1;
    gs_pod_charge(from, &charge);
    pod->gpu_units = (uint64_t)charge.units * charge.gpu_count;
    pod->cores_pct = (uint64_t)charge.cores_pct * charge.gpu_count;
    pod->cpu_milli = gs_pod_cpu_milli(from);
    pod->memory_bytes = gs_pod_memory_bytes(from);
    pod->priority = from->priority;
    pod->created_s = from->created_s;
    if (from->node_name[0] && !pod->node && !(pod->node = strdup(from->node_name)))
        return -1;
    pod->waiting = !pod->node && !from->deleting;
    pod->touched |= pod->parked;
    happened(sched, false);
    return 0;
}

static int on_pod(void *ctx, const struct gs_pod *from)
{
    struct sched *sched = ctx;
    int rc = 0;
    pthread_mutex_lock(&sched->lock);
    struct sched_pod *known = find(sched, from->uid);
    if (!gs_pod_terminal(from)) {
        rc = take_pod(sched, from);
    } else if (known) {
        drop(sched, known);
        happened(sched, true);
    }
    pthread_mutex_unlock(&sched->lock);
    return rc;
}

static int on_pod_gone(void *ctx, const struct gs_pod *last)
{
    struct sched *sched = ctx;
    pthread_mutex_lock(&sched->lock);
    struct sched_pod *known = find(sched, last->uid);
    if (known)
        drop(sched, known);
    happened(sched, true);
    pthread_mutex_unlock(&sched->lock);
    return 0;
}

static void nodes_changed(struct sched *sched)
{
    pthread_mutex_lock(&sched->lock);
    sched->nodes_changed = true;
    happened(sched, true);
    pthread_mutex_unlock(&sched->lock);
}

static int on_node(void *ctx, const struct gs_node *node)
{
    nodes_changed(ctx);
    return 0;
}

/* What a list does not name is gone; the list after a lost watch names everything that is left. */
static int on_list_begin(void *ctx, enum gs_kind kind)
{
    struct sched *sched = ctx;
    if (kind == GS_KIND_NODE)
        return 0;
    pthread_mutex_lock(&sched->lock);
    for (uint32_t i = 0; i < sched->pod_count; i++) {
        if (sched->pods[i].uid)
            drop(sched, &sched->pods[i]);
    }
    pthread_mutex_unlock(&sched->lock);
    return 0;
}

static int on_list_end(void *ctx, enum gs_kind kind)
{
    struct sched *sched = ctx;
    pthread_mutex_lock(&sched->lock);
    *(kind == GS_KIND_NODE ? &sched->nodes_loaded : &sched->pods_loaded) = true;
    sched->nodes_changed = true;
    happened(sched, true);
    pthread_mutex_unlock(&sched->lock);
    return 0;
}

static void on_live(void *ctx, enum gs_kind kind, bool live, const char *why)
{
}

static void run_watch(struct sched *sched, enum gs_kind kind)
{
    const struct gs_watch_sink sink = {
        .ctx = sched,
        .list_begin = on_list_begin,
        .list_end = on_list_end,
        .node = on_node,
        .node_gone = on_node,
        .pod = on_pod,
        .pod_gone = on_pod_gone,
        .live = on_live,
    };
    const struct gs_watch_spec spec = {.kind = kind};
    struct gs_kube kube = gs_kube_client_port(sched->api);
    if (kube.ops->watch(kube.ctx, &spec, &sink, &sched->stop, NULL) == 0)
        return;
    pthread_mutex_lock(&sched->lock);
    sched->failed = true;
    pthread_cond_broadcast(&sched->changed);
    pthread_mutex_unlock(&sched->lock);
}

static void *watch_pods(void *ctx)
{
    run_watch(ctx, GS_KIND_POD);
    return NULL;
}

static void *watch_nodes(void *ctx)
{
    run_watch(ctx, GS_KIND_NODE);
    return NULL;
}

int sched_state_start(struct sched *sched, struct gs_error *err)
{
    void *(*const starts[])(void *) = {watch_pods, watch_nodes};
    for (size_t i = 0; i < 2; i++) {
        int rc = pthread_create(&sched->watchers[i], NULL, starts[i], sched);
        if (rc != 0)
            return gs_fail_errno(err, GS_ENOMEM, rc, "no thread for a watch");
        sched->watcher_count++;
    }
    return 0;
}

void sched_state_stop(struct sched *sched)
{
    atomic_store(&sched->stop, true);
    if (sched->api) {
        struct gs_kube kube = gs_kube_client_port(sched->api);
        kube.ops->wake(kube.ctx);
    }
    for (uint32_t i = 0; i < sched->watcher_count; i++)
        pthread_join(sched->watchers[i], NULL);
    for (uint32_t i = 0; i < sched->pod_count; i++)
        sched_pod_release(&sched->pods[i]);
    free(sched->pods);
    gs_index_release(&sched->index);
}

static void wait_until(struct sched *sched, int64_t at_ns)
{
    struct timespec at = gs_clock_wait_until(at_ns);
    pthread_cond_timedwait(&sched->changed, &sched->lock, &at);
}

int sched_wait_loaded(struct sched *sched, struct gs_error *err)
{
    int64_t deadline = now_ns() + LOAD_NS;
    pthread_mutex_lock(&sched->lock);
    while (!(sched->pods_loaded && sched->nodes_loaded) && !sched->failed && now_ns() < deadline)
        wait_until(sched, deadline);
    bool loaded = sched->pods_loaded && sched->nodes_loaded;
    pthread_mutex_unlock(&sched->lock);
    return loaded ? 0 : gs_fail(err, GS_ETIMEOUT, "the API server lists no pods or nodes");
}

/* ---- the queue ---- */

/* Parked, and nothing happened but that its own object was written, perhaps by ourselves. */
static bool only_touched(const struct sched *sched, const struct sched_pod *pod)
{
    return pod->parked && pod->touched && pod->parked_at == sched->moves;
}

static bool ready(const struct sched *sched, const struct sched_pod *pod)
{
    if (!pod->uid || !pod->waiting)
        return false;
    return !pod->parked || pod->touched || pod->parked_at != sched->moves;
}

static bool before(const struct sched_pod *a, const struct sched_pod *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->created_s != b->created_s)
        return a->created_s < b->created_s;
    return a->order < b->order;
}

/* The first that may be tried now; *ret_wake_ns: when the first of the others may. */
static struct sched_pod *first_ready(struct sched *sched, int64_t now, int64_t *ret_wake_ns)
{
    struct sched_pod *first = NULL;
    for (uint32_t i = 0; i < sched->pod_count; i++) {
        struct sched_pod *pod = &sched->pods[i];
        if (!ready(sched, pod))
            continue;
        if (pod->not_before_ns > now && !only_touched(sched, pod)) {
            *ret_wake_ns = pod->not_before_ns < *ret_wake_ns ? pod->not_before_ns : *ret_wake_ns;
            continue;
        }
        if (!first || before(pod, first))
            first = pod;
    }
    return first;
}

static bool copy_pod(const struct sched_pod *from, struct sched_pod *ret)
{
    struct sched_pod copy = *from;
    copy.node = NULL;
    copy.uid = strdup(from->uid);
    copy.ns = strdup(from->ns);
    copy.name = strdup(from->name);
    if (!copy.uid || !copy.ns || !copy.name) {
        sched_pod_release(&copy);
        return false;
    }
    *ret = copy;
    return true;
}

bool sched_next(struct sched *sched, struct sched_pod *ret)
{
    bool found = false;
    pthread_mutex_lock(&sched->lock);
    while (!sched->stopping && !sched->failed) {
        int64_t now = now_ns(), wake = INT64_MAX;
        struct sched_pod *first = first_ready(sched, now, &wake);
        if (first) {
            found = copy_pod(first, ret);
            if (found)
                ret->touched = only_touched(sched, first);
            first->touched = false;
            first->parked_at = ret->parked_at = sched->moves;
            break;
        }
        int64_t settled = sched->last_event_ns + sched->set.settle_ns;
        if (!sched->set.follow && wake == INT64_MAX && now >= settled)
            break;
        int64_t until = now + GS_NS_PER_S;
        until = wake < until ? wake : until;
        wait_until(sched, settled > now && settled < until ? settled : until);
    }
    pthread_mutex_unlock(&sched->lock);
    return found;
}

static void set_backoff(const struct sched *sched, struct sched_pod *pod)
{
    pod->not_before_ns =
        now_ns() + gs_pause_ns(pod->attempts++, sched->set.backoff_ns, BACKOFF_MAX_NS);
}

void sched_park(struct sched *sched, const struct sched_pod *pod, uint64_t fingerprint)
{
    pthread_mutex_lock(&sched->lock);
    struct sched_pod *known = find(sched, pod->uid);
    if (known) {
        known->parked = true;
        known->fingerprint = fingerprint;
        known->parked_at = pod->parked_at;
        set_backoff(sched, known);
    }
    pthread_mutex_unlock(&sched->lock);
}

void sched_unpark(struct sched *sched, const struct sched_pod *pod)
{
    pthread_mutex_lock(&sched->lock);
    struct sched_pod *known = find(sched, pod->uid);
    if (known)
        known->parked = false;
    pthread_mutex_unlock(&sched->lock);
}

void sched_back_off(struct sched *sched, const struct sched_pod *pod)
{
    pthread_mutex_lock(&sched->lock);
    struct sched_pod *known = find(sched, pod->uid);
    if (known)
        set_backoff(sched, known);
    pthread_mutex_unlock(&sched->lock);
}

void sched_forget(struct sched *sched, const struct sched_pod *pod)
{
    pthread_mutex_lock(&sched->lock);
    struct sched_pod *known = find(sched, pod->uid);
    if (known && !known->node)
        drop(sched, known);
    pthread_mutex_unlock(&sched->lock);
}

void sched_assume(struct sched *sched, const struct sched_pod *pod, const char *node)
{
    pthread_mutex_lock(&sched->lock);
    struct sched_pod *known = find(sched, pod->uid);
    if (known && !known->node)
        known->node = strdup(node);
    if (known)
        known->waiting = false;
    pthread_mutex_unlock(&sched->lock);
}

static int by_name(const void *name, const void *node)
{
    return strcmp(name, ((const struct sched_node *)node)->name);
}

void sched_count_uses(struct sched *sched)
{
    for (uint32_t i = 0; i < sched->node_count; i++)
        sched->nodes[i].used = (struct sched_use){0};
    pthread_mutex_lock(&sched->lock);
    for (uint32_t i = 0; i < sched->pod_count; i++) {
        const struct sched_pod *pod = &sched->pods[i];
        struct sched_node *node = NULL;
        if (pod->uid && pod->node && sched->node_count > 0)
            node = bsearch(pod->node, sched->nodes, sched->node_count, sizeof(*node), by_name);
        if (!node)
            continue;
        node->used.cpu_milli += pod->cpu_milli;
        node->used.memory_bytes += pod->memory_bytes;
        node->used.gpu_units += pod->gpu_units;
        node->used.cores_pct += pod->cores_pct;
        node->used.pods++;
    }
    pthread_mutex_unlock(&sched->lock);
}
