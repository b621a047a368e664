/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_PENDING_H
#define GPUSHARE_SERVICE_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/error.h"
#include "gpushare/base/index.h"
#include "gpushare/model/pod.h"
#include "gpushare/model/reason.h"
#include "nominations.h"

/*
 * The pods that ask for GPU memory and are not bound yet: bind takes their requests from here, and
 * the requeuer finds here which of them were refused and since when. Has its own lock, taken last.
 *
 * A pod that filter saw before the watch did is kept for GS_PENDING_UNSEEN_NS only. The table holds
 * at most GS_PENDING_MAX pods in GS_PENDING_BYTES_MAX. Where that is too little, pods that the
 * watch did not show go, the oldest first, then pods of the namespace that would have most with the
 * newcomer, which may be the newcomer itself (bind asks the API; waking is left to kube-scheduler's
 * own flush).
 */
struct gs_pending;

/* Which of GS_SHARES a namespace has of what is divided between namespaces: by its hash. */
enum { GS_SHARES = 1024 };
static inline uint32_t gs_share_of(const char *ns)
{
    return gs_hash_text(ns) % GS_SHARES;
}

enum { GS_PENDING_MAX = 65536, GS_PENDING_BYTES_MAX = 128 << 20 };
#define GS_PENDING_UNSEEN_NS (300 * GS_NS_PER_S)

struct gs_pending *gs_pending_new(void);
void gs_pending_free(struct gs_pending *pending);

/* From the watch. 1: the pod is new here, 0: it was known, -1: GS_ENOMEM. */
int gs_pending_put(struct gs_pending *pending, const struct gs_pod *pod, struct gs_error *err);
/* True when the watch had shown it. */
bool gs_pending_remove(struct gs_pending *pending, const char *uid);
void gs_pending_begin(struct gs_pending *pending);
void gs_pending_sweep(struct gs_pending *pending);

/*
 * The pod waits from now on: filter refused it everywhere, mostly for `why`, when `epoch` was the
 * count of frees so far. epoch 0 and GS_FITS: it may fit anywhere as things are (another pod's bind
 * was faster, or the API failed), so it waits for kube-scheduler to look again, not for memory.
 * False when it waits already, and for the same.
 */
bool gs_pending_refused(struct gs_pending *pending, const struct gs_pod *pod, enum gs_reason why,
                        uint64_t epoch, int64_t now_ns);
/* Filter named a node for the pod: its scheduler is at work. */
void gs_pending_named(struct gs_pending *pending, const char *uid, int64_t now_ns);
/* The pod waits with epoch 0 if it is there: what it was refused for is over. uid NULL: all do;
 * kube-scheduler had no answer about them for a while. */
void gs_pending_anywhere(struct gs_pending *pending, const char *uid, int64_t now_ns);
/* The pod was found a place: it does not wait for memory. */
void gs_pending_accepted(struct gs_pending *pending, const char *uid);

/* *ret (zeroed or used) becomes a copy; 0. GS_ENOENT or GS_ENOMEM otherwise. A pod that only filter
 * saw is none: what a request says of a pod is not what the API server knows of it. */
int gs_pending_get(struct gs_pending *pending, const char *uid, struct gs_pod *ret,
                   struct gs_error *err);

struct gs_pending_stats {
    uint32_t count;
    size_t bytes;                 /* of memory */
    uint32_t refused[GS_REASONS]; /* pods that wait, by why they were refused last */
    int64_t oldest_ns; /* since the first refusal of the one that waits longest; 0: none waits */
    uint32_t
        unevaluated; /* pods without scheduling gates about which no scheduler asked this service */
    uint64_t dropped;            /* so far, because the table was full */
    int64_t unevaluated_since_s; /* the oldest one's creation, Unix seconds; 0: none */
};
void gs_pending_stats(struct gs_pending *pending, int64_t now_ns, struct gs_pending_stats *ret);

/* A pod as the requeuer sees it; lent while the table is locked. */
struct gs_waiter {
    bool waits; /* since a refusal, for memory or for kube-scheduler to look again */
    const struct gs_pod *pod;
    uint64_t epoch;          /* of its last refusal; 0: it was none for want of memory */
    int64_t refused_ns;      /* time of its last refusal */
    uint32_t slot;           /* node where it may fit now, or GS_INDEX_NONE */
    uint64_t compared;       /* with the nodes whose last gain is up to here; 0: never */
    uint32_t turn;           /* of its namespace, in which it was compared last */
    bool shown;              /* by the watch; else filter alone told of it */
    bool anywhere;           /* every node is to be looked at: room need not have come free */
    int64_t named_ns;        /* filter named a node for it last; 0: never */
    int64_t last_requeue_ns; /* 0: never requeued */
    uint32_t requeues;       /* so far; sets the pause to the next */
    uint32_t searches;       /* of all nodes, in vain, in a row; likewise */
    uint32_t search_from;    /* a search that is under way goes on at this slot */
    int64_t search_ns;       /* not before */
    struct gs_nominations nominations;
};

/* The pod as the requeuer sees it, with the table locked until gs_pending_unlock(); NULL: it is not
 * known, and nothing is locked. */
struct gs_waiter *gs_pending_lock(struct gs_pending *pending, const char *uid);
void gs_pending_unlock(struct gs_pending *pending, const struct gs_waiter *waiter);

/* Calls each for every pod that is nominated here or bears the mark, with the table locked;
 * whether there is any. each may end or begin nominations. */
void gs_pending_each_nominated(struct gs_pending *pending,
                               bool (*each)(void *ctx, struct gs_waiter *waiter), void *ctx);
bool gs_pending_nominated(struct gs_pending *pending);

/*
 * A pass over the waiting pods, those that began to wait first in front. It is made in parts,
 * because filter and bind wait for the lock meanwhile: tens of thousands of pods may wait. One
 * thread's at a time.
 *
 * first begins it, and expires pods that the watch never showed. next calls each for more of them;
 * each may write to all but the pod, and ends this part by returning false. Returns whether some
 * are left.
 */
void gs_pending_first_waiter(struct gs_pending *pending, int64_t now_ns);
bool gs_pending_next_waiters(struct gs_pending *pending,
                             bool (*each)(void *ctx, struct gs_waiter *waiter), void *ctx);

#endif
