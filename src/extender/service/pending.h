/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/index.h"
#include "gpushare/model/reason.h"
#include "reservations.h"

/*
 * The pods that ask for GPU memory and are not bound yet: bind takes their requests from here, and
 * the requeuer finds here which of them were refused and since when. Has its own lock, taken last.
 *
 * A pod that filter saw before the watch did is kept for GS_PENDING_UNSEEN_NS only. The table holds
 * at most GS_PENDING_MAX pods in GS_PENDING_BYTES_MAX. Where that is too little, pods that the
 * watch did not show go, the oldest first, then pods of the namespace that would have most with the
 * newcomer, which may be the newcomer itself (bind asks the API; requeueing is left to
 * kube-scheduler's own flush).
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
/* The pod waits with epoch 0 if it is there: what it was refused for is over. uid NULL: all do;
 * kube-scheduler had no answer about them for a while. */
void gs_pending_anywhere(struct gs_pending *pending, const char *uid, int64_t now_ns);
/* The pod was bound: it does not wait for memory. */
void gs_pending_accepted(struct gs_pending *pending, const char *uid);

/* *ret (zeroed or used) becomes a copy; false: there is none, or no memory. A pod that only filter
 * saw is none: what a request says of a pod is not what the API server knows of it. */
bool gs_pending_get(struct gs_pending *pending, const char *uid, struct gs_pod *ret);

struct gs_pending_stats {
    uint32_t count;
    size_t bytes;                 /* of memory */
    uint32_t refused[GS_REASONS]; /* pods that wait, by why they were refused last */
    int64_t oldest_ns; /* since the first refusal of the one that waits longest; 0: none waits */
    uint32_t
        unevaluated; /* pods without scheduling gates about which no scheduler asked this service */
    uint64_t dropped;            /* so far, because the table was full */
    int64_t unevaluated_since_s; /* the oldest one's creation, Unix seconds; INT64_MAX: none */
};
void gs_pending_stats(struct gs_pending *pending, int64_t now_ns, struct gs_pending_stats *ret);

/*
 * Nominations. Where kube-scheduler stops looking once it has found enough nodes
 * (percentageOfNodesToScore), its sample may have no node with enough free memory: it knows the sum
 * of a node's GPU memory, not its GPUs. A pod so rejected gets status.nominatedNodeName of a node
 * of the ledger where it fits and that it may use (model/eligible.h), and is requeued:
 * kube-scheduler 1.22 and newer tries that node first, with all its other filters
 * (pkg/scheduler/schedule_one.go: evaluateNominatedNode).
 *
 * | state | what is so | transition |
 * | --- | --- | --- |
 * | none | no nomination, the pod has no mark | the requeuer finds a node: nominated |
 * | nominated | the ledger has its reservation, also before the PATCH | bound; the tick: over |
 * | over | no nomination, the pod has the mark | the tick takes it off: none |
 *
 * - A nomination is over after GS_NOMINATION_NS; when kube-scheduler tried the node in vain, the
 *   pod does not fit there any more, or somebody else nominated it; when pods are nominated no
 *   more. While a bind to its node has no answer the mark stays.
 * - The mark is an annotation, written in the same PATCH of pods/status. So "over" is read from the
 *   pod alone, and the next leader takes back what was left. A nomination that is not the mark's is
 *   another's, and never touched.
 * - Once a PATCH was denied (403) no pod is nominated until gs_service_nominate() allows it again:
 *   this program lacks the right, or an API server that starts says so.
 * - Each PATCH names the resourceVersion that it was decided on: after 409 the pod's next event
 *   decides again.
 * - `preempt` names no victims until a node that fits was nominated and tried: at most
 *   GS_NOMINATION_QUESTIONS times in a pod's life, none later than GS_NOMINATION_NS after the
 *   first. When that is over, or no node is left, the pod is requeued at once.
 * - A node that was tried in vain is taken again when its labels, taints, allocatable or free GPU
 *   memory have changed. After GS_NOMINATIONS_VAIN in vain, of any pods, a node is left alone for a
 *   while, longer each time (GS_NOMINATION_NS to GS_NOMINATIONS_PAUSE_NS): other filters may reject
 *   a crowd there, whose reservations would keep it from a pod that needs all of it. A bind there
 *   ends that, as does GS_NOMINATIONS_PAUSE_NS without one in vain.
 * - What victims leave is reserved for the pod that `preempt` named them for, as if it were
 *   nominated there: from the first of them that is deleted, for GS_NOMINATION_FREED_NS, or until
 *   the watch shows another nomination of the pod, its bind or its end.
 */
#define GS_NOMINATION_NS        (3 * GS_NS_PER_S)
#define GS_NOMINATIONS_PAUSE_NS (60 * GS_NS_PER_S)
#define GS_NOMINATION_FREED_NS  (10 * GS_NS_PER_S)
enum { GS_NOMINATION_QUESTIONS = 2, GS_NOMINATIONS_TRIED_MAX = 256, GS_NOMINATIONS_VAIN = 8 };
enum { GS_NOMINATIONS_WORK = 16384 }; /* of one search under a lock that others wait for: 2 ms */

/* By the ledger's slot; guarded by the service's lock. */
struct gs_nominated_nodes {
    struct gs_nominated_node {
        uint32_t vain;   /* nominations, in a row */
        int64_t vain_ns; /* the last of them ended */
    } * nodes;
    uint32_t cap;
};

enum { GS_NODE_NAME_BYTES = 254 };

/* A pod that is not bound; lent while the table is locked. */
struct gs_waiter {
    struct gs_pod pod;
    bool shown; /* by the watch; else filter alone told of it */

    /* Waiting and requeueing. */
    bool waits;              /* since a refusal, for memory or for kube-scheduler to look again */
    enum gs_reason why;      /* of its last refusal; GS_FITS: none is known */
    int64_t since_ns;        /* its first refusal; 0: none */
    uint64_t epoch;          /* of its last refusal; 0: it was none for want of memory */
    int64_t refused_ns;      /* time of its last refusal */
    uint32_t slot;           /* node where it may fit now, or GS_INDEX_NONE */
    uint64_t compared;       /* with the nodes whose last gain is up to here; 0: never */
    uint32_t turn;           /* of its namespace, in which it was compared last */
    bool anywhere;           /* every node is to be looked at: room need not have come free */
    int64_t named_ns;        /* filter named a node for it last; 0: never */
    int64_t last_requeue_ns; /* 0: never requeued */
    uint32_t requeues;       /* so far; sets the pause to the next */
    uint32_t searches;       /* of all nodes, in vain, in a row; likewise */
    uint32_t search_from;    /* a search that is under way goes on at this slot */
    int64_t search_ns;       /* not before */

    /* What is reserved for it. */
    char *freed;          /* where victims of its preemption went; NULL */
    int64_t freed_ns;     /* the first of them */
    char *node;           /* where it is nominated; NULL: nowhere */
    int64_t nominated_ns; /* that was decided */
    bool refused;         /* by filter, of this process: kube-scheduler asks here */
    bool failed;          /* kube-scheduler tried that node, and did not take it */
    bool awaited;         /* it was written, and the watch has not shown it */
    bool left;            /* kube-scheduler may have nominated it to the marked node itself */
    bool evicts;          /* preempt named nodes, and it was not refused since: kube-scheduler is
                             about to nominate it to one of them */
    bool owed;            /* preempt named nobody for its sake: requeued when it is over */
    bool cleaned;         /* a mark without its nomination was taken off */
    uint32_t questions;   /* of preempt, so answered, … */
    int64_t question_ns;  /* … the first of them */
    uint64_t stale;       /* the revision on which a patch was decided in vain; 0: none */
    int64_t retry_ns;     /* no taking back before */
    uint64_t *tried;      /* prints of nodes that it was nominated to, the last ones */
    uint32_t tried_count, tried_cap;

    /* The table's own. */
    uint64_t seen; /* in this of the lists */
    size_t bytes;
    bool listed; /* among the nominated */
    struct gs_waiter *prev_waiting, *next_waiting;
    struct gs_waiter *prev_unseen, *next_unseen;
    struct gs_waiter *prev_nominated, *next_nominated;
    struct gs_waiter *prev_share, *next_share;
    UT_hash_handle hh;
    char uid[];
};

/* The ledger has a reservation of ours for it. */
static inline bool gs_waiter_reserves(const struct gs_waiter *waiter)
{
    return waiter->freed || waiter->node;
}

/* NULL: it is not known. The table is locked until gs_pending_unlock(), which NULL is fine for. */
struct gs_waiter *gs_pending_lock(struct gs_pending *pending, const char *uid);
void gs_pending_unlock(struct gs_pending *pending, struct gs_waiter *waiter);

/* Calls each for every pod that is nominated here or bears the mark, with the table locked.
 * each may end or begin nominations. */
void gs_pending_each_nominated(struct gs_pending *pending,
                               void (*each)(void *ctx, struct gs_waiter *waiter), void *ctx);

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

/* --- nominations --- */

/* A pod was bound to the node. Service locked for writing. */
void gs_nominations_bound(struct gs_service *service, uint32_t slot);

/* For preempt. True: nobody is to be named now. Takes the service's lock. */
bool gs_nominations_delay_preemption(struct gs_service *service, const struct gs_pod *pod);
/* These are named. */
void gs_nominations_leave(struct gs_service *service, const char *uid,
                          const struct gs_victims *nodes, uint32_t count);

/* For the requeuer, under the service's and the table's lock: may be nominated, now; to this node;
 * nominates it (lock for writing), false: there is no node, or no memory. */
bool gs_nominations_wait(const struct gs_waiter *waiter); /* its next event decides */
bool gs_nominations_may(const struct gs_service *service, const struct gs_waiter *waiter);
bool gs_nominations_take(const struct gs_service *service, const struct gs_waiter *waiter,
                         uint32_t slot);
bool gs_nominations_decide(struct gs_service *service, struct gs_waiter *waiter, int64_t now_ns);

/* The first node from *from on that has room and that it may be nominated to, or else that it may
 * use; GS_INDEX_NONE: there is none, and
 * *from is 0, or *work is done, and it goes on there. A node costs 1 and the pod's rules. */
uint32_t gs_nominations_find(const struct gs_service *service, const struct gs_waiter *waiter,
                             const struct gs_ask *ask, bool nominates, uint32_t *from,
                             int64_t *work);
int64_t gs_nominations_rules_work(const struct gs_pod *pod);

/* Writes a nomination that was decided, in one patch with the annotations: that which requeues it,
 * and the mark. False: it may not be written, and the nomination is over. */
bool gs_nominations_send(struct gs_service *service, const struct gs_pod *pod, const char *node,
                         const struct gs_kv annotations[2]);

/* Ends nominations that are over, and queues marks to be taken off. */
void gs_nominations_tick(struct gs_service *service, int64_t now_ns);

/* --- requeueing --- */

/*
 * Requeueing. kube-scheduler parks a rejected pod until an event concerns it, for minutes. Its
 * caches may see memory come free before our ledger does, and then it evaluates the pod too early;
 * another pod's bind may be faster; the API may fail a bind; this program may have been away. So an
 * annotation of a pending pod that would fit now, on a node that it may use, is touched, which
 * makes kube-scheduler evaluate it again: after growing pauses, shorter again when memory came free
 * since, all pods together at a bounded rate.
 *
 * - Not requeued: pods with scheduling gates, pods of schedulers that do not use this extender,
 *   pods for which filter named a node within the last second, nominated pods.
 * - First, of those that are due: pods whose preemption was delayed; then the highest priority; in
 *   that, namespaces in turn; in these, the least requeued; then the pod that fits where memory
 *   came free last. One of five is the least requeued whatever its priority, so that none waits for
 *   ever for pods that are requeued in vain.
 * - A tick does the work of about GS_NODES_PER_TICK comparisons of pods and nodes, each of a pod's
 *   rules about nodes counted as one more, and a pod as 32, and goes on there in the next one. In a
 *   pass, the pods of a namespace are compared with half of so many, a pod with
 *   GS_NOMINATIONS_WORK. The rest goes on in the next passes, before any pod has
 *   another turn. A search that found none is not made again before the pod would be requeued
 *   again. When all were compared, GS_REQUEUES_PER_TICK are requeued for each tick that it took.
 */
enum {
    GS_NODES_PER_TICK = 1 << 18,
    GS_REQUEUES_PER_TICK = 5,
};

/* Of the thread that requeues, alone. */
struct gs_due;
struct gs_requeue {
    /* A pass over the waiting pods, which may take several ticks. */
    bool under_way;
    uint32_t ticks;
    struct gs_turn {
        int64_t left;      /* what its pods may be compared with still */
        uint32_t turn;     /* over when all of its pods had it */
        bool more;         /* some had not, in this pass */
        uint64_t requeued; /* the number of its last */
    } turns[GS_SHARES];    /* of namespaces, by hash */
    struct gs_due *due;
    uint32_t due_count, due_cap;

    uint64_t requeues;     /* so far */
    struct gs_arena arena; /* of one pass: UIDs */
};

void gs_requeue_tick(struct gs_service *service, int64_t now_ns);
