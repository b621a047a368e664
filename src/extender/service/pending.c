/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

/* More than the API server lets one have: such a pod came with a request only. */
enum { POD_BYTES_MAX = 4 << 20, POD_BYTES_MIN = GS_PENDING_BYTES_MAX / GS_PENDING_MAX };

/* The requeuer comes ten times a second, and pods may be many: it looks at those alone that concern
 * it. */
struct gs_pending {
    pthread_mutex_t lock;
    struct gs_waiter *all;
    struct gs_waiter *waiting;   /* the longest wait first */
    struct gs_waiter *unseen;    /* the oldest first */
    struct gs_waiter *nominated; /* few */
    size_t bytes;                /* of all */
    struct share {
        struct gs_waiter *waiters; /* the one that changed longest ago first */
        size_t bytes;
    } shares[GS_SHARES];
    uint64_t dropped;
    uint64_t lists;         /* begun */
    struct gs_waiter *look; /* the pass over those that wait comes to this one next; NULL: done */
};

struct gs_pending *gs_pending_new(void)
{
    struct gs_pending *pending = calloc(1, sizeof(*pending));
    if (pending)
        pthread_mutex_init(&pending->lock, NULL);
    return pending;
}

static void wait_no_more(struct gs_pending *pending, struct gs_waiter *waiter)
{
    if (pending->look == waiter)
        pending->look = waiter->next_waiting;
    if (waiter->waits)
        DL_DELETE2(pending->waiting, waiter, prev_waiting, next_waiting);
    waiter->waits = false;
}

static void mark_shown(struct gs_pending *pending, struct gs_waiter *waiter)
{
    if (!waiter->shown)
        DL_DELETE2(pending->unseen, waiter, prev_unseen, next_unseen);
    waiter->shown = true;
}

/* Its nomination or its pod may have changed. */
static void note_nomination(struct gs_pending *pending, struct gs_waiter *waiter)
{
    const bool nominated =
        gs_waiter_reserves(waiter) || waiter->awaited || (waiter->shown && waiter->pod.offer[0]);
    if (nominated && !waiter->listed)
        DL_APPEND2(pending->nominated, waiter, prev_nominated, next_nominated);
    else if (!nominated && waiter->listed)
        DL_DELETE2(pending->nominated, waiter, prev_nominated, next_nominated);
    waiter->listed = nominated;
}

/* Counts it with so many bytes from now on. */
static void charge(struct gs_pending *pending, struct gs_waiter *waiter, size_t bytes)
{
    struct share *share = &pending->shares[gs_share_of(waiter->pod.ns)];
    if (waiter->bytes)
        DL_DELETE2(share->waiters, waiter, prev_share, next_share);
    if (bytes)
        DL_APPEND2(share->waiters, waiter, prev_share, next_share);
    share->bytes += bytes - waiter->bytes;
    pending->bytes += bytes - waiter->bytes;
    waiter->bytes = bytes;
}

static void drop(struct gs_pending *pending, struct gs_waiter *waiter)
{
    HASH_DEL(pending->all, waiter);
    wait_no_more(pending, waiter);
    mark_shown(pending, waiter);
    if (waiter->listed)
        DL_DELETE2(pending->nominated, waiter, prev_nominated, next_nominated);
    charge(pending, waiter, 0);
    free(waiter->freed);
    free(waiter->node);
    free(waiter->tried);
    gs_pod_release(&waiter->pod);
    free(waiter);
}

void gs_pending_free(struct gs_pending *pending)
{
    if (!pending)
        return;
    while (pending->all)
        drop(pending, pending->all);
    pthread_mutex_destroy(&pending->lock);
    free(pending);
}

static struct gs_waiter *find(struct gs_pending *pending, const char *uid)
{
    struct gs_waiter *waiter;
    HASH_FIND_STR(pending->all, uid, waiter);
    return waiter;
}

static size_t bytes_of(const struct gs_pod *pod)
{
    const size_t bytes = sizeof(struct gs_waiter) + gs_arena_bytes(&pod->arena);
    return bytes > POD_BYTES_MIN ? bytes : POD_BYTES_MIN;
}

/* Whether there is room for so much more of the pod's namespace, after others made it: pods that
 * only filter saw, then those of the namespace that would have most. Their reservations are known
 * here alone: pods with one stay. */
static bool make_room(struct gs_pending *pending, const struct gs_pod *pod, size_t bytes)
{
    const struct share *own = &pending->shares[gs_share_of(pod->ns)], *most = own;
    if (bytes > POD_BYTES_MAX)
        return false;
    while (pending->bytes + bytes > GS_PENDING_BYTES_MAX) {
        if (pending->unseen) {
            drop(pending, pending->unseen);
            continue;
        }
        GS_EACH_OF (at, pending->shares, GS_SHARES)
            most = at->bytes > most->bytes ? at : most;
        struct gs_waiter *goes = most->waiters;
        while (goes && gs_waiter_reserves(goes))
            goes = goes->next_share;
        pending->dropped++;
        if (!goes || most->bytes <= own->bytes + bytes)
            return false;
        drop(pending, goes);
    }
    return true;
}

/* Without kube-scheduler's message, which no verb needs. */
static int copy_pod(struct gs_pod *to, const struct gs_pod *from)
{
    struct gs_pod plain = *from;
    plain.said = "";
    return gs_pod_copy(to, &plain);
}

/* Takes the pod, in place of how it was when it is known. NULL: no memory, or no room for it. */
static struct gs_waiter *keep(struct gs_pending *pending, struct gs_waiter *waiter,
                              struct gs_pod *pod)
{
    const size_t bytes = bytes_of(pod), uid_bytes = strlen(pod->uid) + 1;
    if (waiter) { /* in the namespace that filter may have named: it makes no room */
        mark_shown(pending, waiter);
        charge(pending, waiter, 0);
    }
    const bool room = (waiter && gs_waiter_reserves(waiter)) || make_room(pending, pod, bytes);
    if (room && !waiter && (waiter = calloc(1, sizeof(*waiter) + uid_bytes))) {
        memcpy(waiter->uid, pod->uid, uid_bytes);
        waiter->slot = GS_INDEX_NONE;
        HASH_ADD_STR(pending->all, uid, waiter);
        if (waiter->hh.tbl)
            DL_APPEND2(pending->unseen, waiter, prev_unseen, next_unseen);
        else
            free(gs_steal(&waiter));
    } else if (!room && waiter) {
        drop(pending, gs_steal(&waiter));
    }
    if (!waiter) {
        gs_pod_release(pod);
        return NULL;
    }
    gs_pod_release(&waiter->pod);
    waiter->pod = *pod;
    charge(pending, waiter, bytes);
    return waiter;
}

int gs_pending_put(struct gs_pending *pending, const struct gs_pod *pod, struct gs_error *err)
{
    struct gs_pod copy = {0};
    if (copy_pod(&copy, pod) < 0)
        return gs_fail_nomem(err);
    pthread_mutex_lock(&pending->lock);
    struct gs_waiter *waiter = find(pending, pod->uid);
    const int is_new = !waiter;
    waiter = keep(pending, waiter, &copy);
    if (waiter) {
        waiter->seen = pending->lists;
        mark_shown(pending, waiter);
        note_nomination(pending, waiter);
    }
    pthread_mutex_unlock(&pending->lock);
    return is_new;
}

bool gs_pending_remove(struct gs_pending *pending, const char *uid)
{
    pthread_mutex_lock(&pending->lock);
    struct gs_waiter *waiter = find(pending, uid);
    const bool shown = waiter && waiter->shown;
    if (waiter)
        drop(pending, waiter);
    pthread_mutex_unlock(&pending->lock);
    return shown;
}

void gs_pending_begin(struct gs_pending *pending)
{
    pthread_mutex_lock(&pending->lock);
    pending->lists++;
    pthread_mutex_unlock(&pending->lock);
}

void gs_pending_sweep(struct gs_pending *pending)
{
    pthread_mutex_lock(&pending->lock);
    struct gs_waiter *waiter, *next;
    HASH_ITER (hh, pending->all, waiter, next) {
        if (waiter->shown && waiter->seen != pending->lists)
            drop(pending, waiter);
    }
    pthread_mutex_unlock(&pending->lock);
}

static void let_wait(struct gs_pending *pending, struct gs_waiter *waiter, enum gs_reason why,
                     uint64_t epoch, int64_t now_ns)
{
    if (!waiter->waits)
        DL_APPEND2(pending->waiting, waiter, prev_waiting, next_waiting);
    waiter->waits = true;
    waiter->why = why;
    waiter->since_ns = waiter->since_ns ? waiter->since_ns : now_ns;
    waiter->epoch = epoch;
    waiter->anywhere = !epoch;
    waiter->refused_ns = now_ns;
    waiter->slot = GS_INDEX_NONE;
    waiter->compared = epoch;
    waiter->turn = 0;
    waiter->search_ns = epoch ? waiter->search_ns : 0;
}

bool gs_pending_refused(struct gs_pending *pending, const struct gs_pod *pod, enum gs_reason why,
                        uint64_t epoch, int64_t now_ns)
{
    struct gs_pod copy = {0};
    pthread_mutex_lock(&pending->lock);
    struct gs_waiter *waiter = find(pending, pod->uid);
    if (!waiter && copy_pod(&copy, pod) == 0)
        waiter = keep(pending, NULL, &copy);
    const bool news = !waiter || !waiter->waits || waiter->why != why;
    if (waiter) {
        let_wait(pending, waiter, why, epoch, now_ns);
        waiter->anywhere = true; /* others may have asked about nodes that have room */
        waiter->refused = true;
        waiter->evicts = false;
        waiter->failed |= waiter->node && strcmp(pod->nominated_node, waiter->node) == 0;
    }
    pthread_mutex_unlock(&pending->lock);
    return news;
}

void gs_pending_anywhere(struct gs_pending *pending, const char *uid, int64_t now_ns)
{
    pthread_mutex_lock(&pending->lock);
    struct gs_waiter *waiter = uid ? find(pending, uid) : pending->all;
    for (; waiter; waiter = uid ? NULL : waiter->hh.next)
        let_wait(pending, waiter, waiter->why, 0, now_ns);
    pthread_mutex_unlock(&pending->lock);
}

void gs_pending_accepted(struct gs_pending *pending, const char *uid)
{
    struct gs_waiter *waiter = gs_pending_lock(pending, uid);
    if (waiter)
        wait_no_more(pending, waiter);
    pthread_mutex_unlock(&pending->lock);
}

bool gs_pending_get(struct gs_pending *pending, const char *uid, struct gs_pod *ret)
{
    const struct gs_waiter *waiter = gs_pending_lock(pending, uid);
    const bool copied = waiter && waiter->shown && gs_pod_copy(ret, &waiter->pod) == 0;
    pthread_mutex_unlock(&pending->lock);
    return copied;
}

/* No scheduler is at work on it, and it waits for nothing else. */
static bool is_unevaluated(const struct gs_waiter *waiter)
{
    return waiter->shown && !waiter->named_ns && !waiter->refused && !waiter->pod.gated &&
           !waiter->pod.deleting;
}

void gs_pending_stats(struct gs_pending *pending, int64_t now_ns, struct gs_pending_stats *ret)
{
    struct gs_pending_stats stats = {.unevaluated_since_s = INT64_MAX};
    pthread_mutex_lock(&pending->lock);
    for (const struct gs_waiter *waiter = pending->all; waiter; waiter = waiter->hh.next) {
        if (waiter->waits && waiter->why != GS_FITS) {
            stats.refused[waiter->why]++;
            if (now_ns - waiter->since_ns > stats.oldest_ns)
                stats.oldest_ns = now_ns - waiter->since_ns;
        }
        if (!is_unevaluated(waiter))
            continue;
        stats.unevaluated++;
        if (waiter->pod.created_s && waiter->pod.created_s < stats.unevaluated_since_s)
            stats.unevaluated_since_s = waiter->pod.created_s;
    }
    stats.count = HASH_COUNT(pending->all);
    stats.bytes = pending->bytes;
    stats.dropped = pending->dropped;
    pthread_mutex_unlock(&pending->lock);
    *ret = stats;
}

struct gs_waiter *gs_pending_lock(struct gs_pending *pending, const char *uid)
{
    pthread_mutex_lock(&pending->lock);
    return find(pending, uid);
}

void gs_pending_unlock(struct gs_pending *pending, struct gs_waiter *waiter)
{
    if (waiter)
        note_nomination(pending, waiter);
    pthread_mutex_unlock(&pending->lock);
}

void gs_pending_each_nominated(struct gs_pending *pending,
                               void (*each)(void *ctx, struct gs_waiter *waiter), void *ctx)
{
    pthread_mutex_lock(&pending->lock);
    struct gs_waiter *waiter, *next;
    DL_FOREACH_SAFE2(pending->nominated, waiter, next, next_nominated)
    {
        each(ctx, waiter);
        note_nomination(pending, waiter);
    }
    pthread_mutex_unlock(&pending->lock);
}

void gs_pending_first_waiter(struct gs_pending *pending, int64_t now_ns)
{
    pthread_mutex_lock(&pending->lock);
    while (pending->unseen && now_ns - pending->unseen->since_ns > GS_PENDING_UNSEEN_NS)
        drop(pending, pending->unseen);
    pending->look = pending->waiting;
    pthread_mutex_unlock(&pending->lock);
}

bool gs_pending_next_waiters(struct gs_pending *pending,
                             bool (*each)(void *ctx, struct gs_waiter *waiter), void *ctx)
{
    bool more = true;
    pthread_mutex_lock(&pending->lock);
    while (more && pending->look) {
        struct gs_waiter *waiter = pending->look;
        pending->look = waiter->next_waiting;
        more = each(ctx, waiter);
    }
    more = pending->look != NULL;
    pthread_mutex_unlock(&pending->lock);
    return more;
}
