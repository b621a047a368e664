/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

/* More than the API server lets one have: such a pod came with a request only. */
enum { POD_BYTES_MAX = 4 << 20, POD_BYTES_MIN = GS_PENDING_BYTES_MAX / GS_PENDING_MAX };

struct entry {
    struct gs_pod pod;
    struct gs_waiter waiter;
    enum gs_reason why; /* of its last refusal; GS_FITS: none is known */
    bool seen;
    size_t bytes;
    int64_t since_ns; /* when filter brought it, for pods the watch has not shown */
    UT_hash_handle hh;
    struct entry *prev_waiting, *next_waiting;     /* while it waits */
    struct entry *prev_unseen, *next_unseen;       /* until the watch shows it */
    struct entry *prev_nominated, *next_nominated; /* while gs_nominations_concern() */
    struct entry *prev_share, *next_share;         /* of the same share */
    bool nominated;
};

/* The requeuer comes ten times a second, and pods may be many: it looks at those alone that concern
 * it. */
struct gs_pending {
    pthread_mutex_t lock;
    struct entry *entries;
    struct entry *waiting;   /* the longest wait first */
    struct entry *unseen;    /* the oldest first */
    struct entry *nominated; /* few */
    size_t bytes;            /* of all entries */
    struct share {
        struct entry *entries; /* the one that changed longest ago first */
        size_t bytes;
    } shares[GS_SHARES];
    uint64_t dropped;
    struct entry *look; /* the pass over those that wait comes to this one next; NULL: done */
};

struct gs_pending *gs_pending_new(void)
{
    struct gs_pending *pending = calloc(1, sizeof(*pending));
    if (pending)
        pthread_mutex_init(&pending->lock, NULL);
    return pending;
}

static void wait_no_more(struct gs_pending *pending, struct entry *entry)
{
    if (pending->look == entry)
        pending->look = entry->next_waiting;
    if (entry->waiter.waits)
        DL_DELETE2(pending->waiting, entry, prev_waiting, next_waiting);
    entry->waiter.waits = false;
}

static void mark_shown(struct gs_pending *pending, struct entry *entry)
{
    if (!entry->waiter.shown)
        DL_DELETE2(pending->unseen, entry, prev_unseen, next_unseen);
    entry->waiter.shown = true;
}

/* Its nomination or its pod may have changed. */
static void note_nomination(struct gs_pending *pending, struct entry *entry)
{
    bool nominated = gs_nominations_concern(&entry->waiter.nominations, &entry->pod);
    if (nominated && !entry->nominated)
        DL_APPEND2(pending->nominated, entry, prev_nominated, next_nominated);
    else if (!nominated && entry->nominated)
        DL_DELETE2(pending->nominated, entry, prev_nominated, next_nominated);
    entry->nominated = nominated;
}

/* Counts it with so many bytes from now on. */
static void charge(struct gs_pending *pending, struct entry *entry, size_t bytes)
{
    struct share *share = &pending->shares[gs_share_of(entry->pod.ns)];
    if (entry->bytes)
        DL_DELETE2(share->entries, entry, prev_share, next_share);
    if (bytes)
        DL_APPEND2(share->entries, entry, prev_share, next_share);
    share->bytes += bytes - entry->bytes;
    pending->bytes += bytes - entry->bytes;
    entry->bytes = bytes;
}

static void forget(struct gs_pending *pending, struct entry *entry)
{
    wait_no_more(pending, entry);
    mark_shown(pending, entry);
    if (entry->nominated)
        DL_DELETE2(pending->nominated, entry, prev_nominated, next_nominated);
    gs_nominations_release(&entry->waiter.nominations);
    charge(pending, entry, 0);
    gs_pod_release(&entry->pod);
    free(entry);
}

static void drop(struct gs_pending *pending, struct entry *entry)
{
    HASH_DEL(pending->entries, entry);
    forget(pending, entry);
}

void gs_pending_free(struct gs_pending *pending)
{
    if (!pending)
        return;
    struct entry *entry, *next;
    HASH_ITER (hh, pending->entries, entry, next)
        drop(pending, entry);
    pthread_mutex_destroy(&pending->lock);
    free(pending);
}

static struct entry *find(struct gs_pending *pending, const char *uid)
{
    struct entry *entry;
    HASH_FIND_STR(pending->entries, uid, entry);
    return entry;
}

static size_t bytes_of(const struct gs_pod *pod)
{
    const size_t bytes = sizeof(struct entry) + gs_arena_bytes(&pod->arena);
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
        struct entry *goes = most->entries;
        while (goes && gs_nominations_hold(&goes->waiter.nominations))
            goes = goes->next_share;
        pending->dropped++;
        if (!goes || most->bytes <= own->bytes + bytes)
            return false;
        drop(pending, goes);
    }
    return true;
}

/* Takes the pod; NULL when out of memory or full. */
static struct entry *add(struct gs_pending *pending, struct gs_pod *pod)
{
    size_t bytes = bytes_of(pod);
    struct entry *entry = make_room(pending, pod, bytes) ? calloc(1, sizeof(*entry)) : NULL;
    if (!entry) {
        gs_pod_release(pod);
        return NULL;
    }
    entry->pod = *pod;
    entry->waiter.pod = &entry->pod;
    entry->waiter.slot = GS_INDEX_NONE;
    HASH_ADD_KEYPTR(hh, pending->entries, entry->pod.uid, strlen(entry->pod.uid), entry);
    if (!entry->hh.tbl) {
        gs_pod_release(&entry->pod);
        free(entry);
        return NULL;
    }
    charge(pending, entry, bytes);
    DL_APPEND2(pending->unseen, entry, prev_unseen, next_unseen);
    return entry;
}

/* Without kube-scheduler's message, which no verb needs. */
static int copy_pod(struct gs_pod *to, const struct gs_pod *from)
{
    struct gs_pod plain = *from;
    plain.said = "";
    return gs_pod_copy(to, &plain);
}

/* The entry of a pod, made when there is none; NULL when out of memory or full. */
static struct entry *need(struct gs_pending *pending, const struct gs_pod *pod)
{
    struct gs_pod copy = {0};
    struct entry *entry = find(pending, pod->uid);
    if (entry || copy_pod(&copy, pod) < 0)
        return entry;
    return add(pending, &copy);
}

/* Takes the pod in place of what was known of it; false: there is no room for it. */
static bool renew(struct gs_pending *pending, struct entry *entry, struct gs_pod *pod)
{
    const size_t bytes = bytes_of(pod);
    charge(pending, entry, 0); /* in the namespace that filter may have told: it makes no room */
    if (!gs_nominations_hold(&entry->waiter.nominations) && !make_room(pending, pod, bytes))
        return false;
    /* the table's key points into the pod: out and in again around the change */
    HASH_DEL(pending->entries, entry);
    gs_pod_release(&entry->pod);
    entry->pod = *pod;
    *pod = (struct gs_pod){0};
    charge(pending, entry, bytes);
    HASH_ADD_KEYPTR(hh, pending->entries, entry->pod.uid, strlen(entry->pod.uid), entry);
    if (!entry->hh.tbl)
        forget(pending, entry);
    else
        note_nomination(pending, entry);
    return true;
}

int gs_pending_put(struct gs_pending *pending, const struct gs_pod *pod, struct gs_error *err)
{
    struct gs_pod copy = {0};
    if (copy_pod(&copy, pod) < 0)
        return gs_fail_nomem(err);
    pthread_mutex_lock(&pending->lock);
    struct entry *entry = find(pending, pod->uid);
    const int is_new = entry == NULL;
    if (is_new) {
        entry = add(pending, &copy);
        copy = (struct gs_pod){0};
    }
    if (entry) {
        entry->seen = true;
        mark_shown(pending, entry);
        if (is_new)
            note_nomination(pending, entry);
        else if (!renew(pending, entry, &copy))
            drop(pending, entry);
    }
    pthread_mutex_unlock(&pending->lock);
    gs_pod_release(&copy);
    return is_new;
}

bool gs_pending_remove(struct gs_pending *pending, const char *uid)
{
    pthread_mutex_lock(&pending->lock);
    struct entry *entry = find(pending, uid);
    const bool shown = entry && entry->waiter.shown;
    if (entry)
        drop(pending, entry);
    pthread_mutex_unlock(&pending->lock);
    return shown;
}

void gs_pending_begin(struct gs_pending *pending)
{
    pthread_mutex_lock(&pending->lock);
    struct entry *entry, *next;
    HASH_ITER (hh, pending->entries, entry, next)
        entry->seen = false;
    pthread_mutex_unlock(&pending->lock);
}

void gs_pending_sweep(struct gs_pending *pending)
{
    pthread_mutex_lock(&pending->lock);
    struct entry *entry, *next;
    HASH_ITER (hh, pending->entries, entry, next) {
        if (entry->waiter.shown && !entry->seen)
            drop(pending, entry);
    }
    pthread_mutex_unlock(&pending->lock);
}

static void let_wait(struct gs_pending *pending, struct entry *entry, enum gs_reason why,
                     uint64_t epoch, int64_t now_ns)
{
    struct gs_waiter *waiter = &entry->waiter;
    if (!waiter->waits)
        DL_APPEND2(pending->waiting, entry, prev_waiting, next_waiting);
    waiter->waits = true;
    entry->why = why;
    entry->since_ns = entry->since_ns ? entry->since_ns : now_ns;
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
    pthread_mutex_lock(&pending->lock);
    struct entry *entry = need(pending, pod);
    bool news = !entry || !entry->waiter.waits || entry->why != why;
    if (entry) {
        struct gs_nominations *nominations = &entry->waiter.nominations;
        let_wait(pending, entry, why, epoch, now_ns);
        entry->waiter.anywhere = true; /* others may have asked about nodes that have room */
        nominations->refused = true;
        nominations->evicts = false;
        nominations->failed |=
            nominations->node && strcmp(pod->nominated_node, nominations->node) == 0;
    }
    pthread_mutex_unlock(&pending->lock);
    return news;
}

void gs_pending_named(struct gs_pending *pending, const char *uid, int64_t now_ns)
{
    pthread_mutex_lock(&pending->lock);
    struct entry *entry = find(pending, uid);
    if (entry)
        entry->waiter.named_ns = now_ns;
    pthread_mutex_unlock(&pending->lock);
}

void gs_pending_anywhere(struct gs_pending *pending, const char *uid, int64_t now_ns)
{
    pthread_mutex_lock(&pending->lock);
    struct entry *entry = uid ? find(pending, uid) : pending->entries;
    for (; entry; entry = uid ? NULL : entry->hh.next)
        let_wait(pending, entry, entry->why, 0, now_ns);
    pthread_mutex_unlock(&pending->lock);
}

void gs_pending_accepted(struct gs_pending *pending, const char *uid)
{
    pthread_mutex_lock(&pending->lock);
    struct entry *entry = find(pending, uid);
    if (entry)
        wait_no_more(pending, entry);
    pthread_mutex_unlock(&pending->lock);
}

int gs_pending_get(struct gs_pending *pending, const char *uid, struct gs_pod *ret,
                   struct gs_error *err)
{
    pthread_mutex_lock(&pending->lock);
    struct entry *entry = find(pending, uid);
    bool shown = entry && entry->waiter.shown;
    int result = shown ? gs_pod_copy(ret, &entry->pod) : -1;
    pthread_mutex_unlock(&pending->lock);
    if (result < 0 && !shown)
        return gs_fail(err, GS_ENOENT, "no pending pod has this UID");
    return result < 0 ? gs_fail_nomem(err) : 0;
}

/* A scheduler is at work on it, or it waits for something else than a scheduler. */
static bool is_evaluated(const struct entry *entry)
{
    const struct gs_waiter *waiter = &entry->waiter;
    return waiter->named_ns || waiter->nominations.refused || !waiter->shown || entry->pod.gated ||
           entry->pod.deleting;
}

static void count_unevaluated(const struct entry *entry, struct gs_pending_stats *stats)
{
    int64_t created_s = entry->pod.created_s;
    if (is_evaluated(entry))
        return;
    stats->unevaluated++;
    if (created_s && (!stats->unevaluated_since_s || created_s < stats->unevaluated_since_s))
        stats->unevaluated_since_s = created_s;
}

void gs_pending_stats(struct gs_pending *pending, int64_t now_ns, struct gs_pending_stats *ret)
{
    struct gs_pending_stats stats = {0};
    pthread_mutex_lock(&pending->lock);
    struct entry *entry;
    DL_FOREACH2(pending->waiting, entry, next_waiting)
    {
        if (entry->why == GS_FITS)
            continue;
        stats.refused[entry->why]++;
        if (now_ns - entry->since_ns > stats.oldest_ns)
            stats.oldest_ns = now_ns - entry->since_ns;
    }
    for (entry = pending->entries; entry; entry = entry->hh.next)
        count_unevaluated(entry, &stats);
    stats.count = HASH_COUNT(pending->entries);
    stats.bytes = pending->bytes;
    stats.dropped = pending->dropped;
    pthread_mutex_unlock(&pending->lock);
    *ret = stats;
}

struct gs_waiter *gs_pending_lock(struct gs_pending *pending, const char *uid)
{
    pthread_mutex_lock(&pending->lock);
    struct entry *entry = find(pending, uid);
    if (entry)
        return &entry->waiter;
    pthread_mutex_unlock(&pending->lock);
    return NULL;
}

void gs_pending_unlock(struct gs_pending *pending, const struct gs_waiter *waiter)
{
    note_nomination(pending, (struct entry *)waiter->pod); /* its first member */
    pthread_mutex_unlock(&pending->lock);
}

void gs_pending_each_nominated(struct gs_pending *pending,
                               bool (*each)(void *ctx, struct gs_waiter *waiter), void *ctx)
{
    pthread_mutex_lock(&pending->lock);
    struct entry *entry, *next;
    DL_FOREACH_SAFE2(pending->nominated, entry, next, next_nominated)
    {
        bool more = each(ctx, &entry->waiter);
        note_nomination(pending, entry);
        if (!more)
            break;
    }
    pthread_mutex_unlock(&pending->lock);
}

bool gs_pending_nominated(struct gs_pending *pending)
{
    pthread_mutex_lock(&pending->lock);
    bool any = pending->nominated != NULL;
    pthread_mutex_unlock(&pending->lock);
    return any;
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
        struct entry *entry = pending->look;
        pending->look = entry->next_waiting;
        more = each(ctx, &entry->waiter);
    }
    more = pending->look != NULL;
    pthread_mutex_unlock(&pending->lock);
    return more;
}
