/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>

#include "gpushare/base/array.h"
#include "gpushare/base/invariant.h"
#include "gpushare/base/log.h"
#include "gpushare/base/recent.h"
#include "gpushare/cluster/cluster.h"
#include "pending.h"
#include "service.h"

/* What the verbs, the sync and the tick share. */

/* What became of an attempt to bind. */
enum gs_bind_result {
    GS_BIND_DONE,       /* until something speaks against it */
    GS_BIND_REFUSED,    /* no room (any more), or another attempt is under way; nothing was sent */
    GS_BIND_CONFLICT,   /* the pod is bound elsewhere, or was deleted meanwhile */
    GS_BIND_FAILED,     /* the API server said no, or could not be asked for the pod */
    GS_BIND_UNRESOLVED, /* no answer: the outcome is not known yet */
    GS_BIND_RESULTS,
};

/* Memory that a request needs and the next one uses again. */
struct gs_scratch {
    struct gs_scratch *next;
    struct gs_filter_args args;
    struct gs_arena arena; /* of the four arrays, which have room for `cap` candidates */
    uint8_t *verdicts;     /* one byte per candidate: reasons or scores */
    int64_t *losses;
    bool *fits;
    struct gs_match match; /* of args.pod */
    uint32_t *slots;       /* of args.names, see gs_scratch_find_nodes() */
    uint64_t found_id, found_epoch;
    uint64_t epoch;    /* how often memory came free, when it was judged */
    bool hypothetical; /* a candidate is no node that is there */
    bool reserves;     /* the best candidate is reserved for the pod */
    uint32_t reserved; /* the candidate with a reservation for the pod; GS_INDEX_NONE: none */
    uint32_t cap;
};

/* Counts requests of one verb and their time, without locks. */
enum { GS_METER_BUCKETS = 18 };

struct gs_meter {
    atomic_ullong outcomes[2]; /* [1]: errors */
    atomic_ullong sum_ns;
    atomic_ullong buckets[GS_METER_BUCKETS + 1]; /* the last one: slower than all bounds */
};

void gs_meter_add(struct gs_meter *meter, int64_t took_ns, bool error);

/* A verb, for gs_service_answer(). */
typedef enum gs_answered gs_verb_fn(struct gs_service *service, struct gs_request *request,
                                    struct gs_buf *answer, struct gs_error *err);
gs_verb_fn gs_verb_filter, gs_verb_prioritize, gs_verb_bind, gs_verb_preempt;

/*
 * Which schedulers (spec.schedulerName) work with this service: those of --scheduler-name, or else
 * those that asked filter here, and those whose pods were bound with a record of ours. Nobody is
 * requeued for others. Until one asked, all count. Any thread.
 */
enum { GS_SCHEDULERS_MAX = 16 };
struct gs_scheduler_activity {
    /* hashes; each list ends with 0. The two fill apart: tenants can write records. */
    atomic_ullong asked[GS_SCHEDULERS_MAX], bound[GS_SCHEDULERS_MAX];
};

/* In one of the two lists. */
void gs_scheduler_activity_note(atomic_ullong *names, const char *name);

bool gs_scheduler_activity_knows(struct gs_service *service, const char *name);

/* A comma list has this name. */
bool gs_scheduler_activity_lists(const char *list, const char *name);

/*
 * The cluster's PodDisruptionBudgets, whole, as they were listed last (gs_service_budgets()): for
 * the victims that preempt adds. None are known until the first list, nor where they may not be
 * read. Guarded by the lock. Pods' labels are in their claims (gs_claim.labels).
 */
struct gs_budgets {
    struct gs_arena arena;
    struct gs_budget *all; /* ascending namespace */
    uint32_t count;
};

/* What may be asked of a namespace's budgets (gs_budget.work) for an answer; afterwards its pods
 * violate one. */
enum { GS_PLAN_WORK_MAX = 4 << 20 };

/* Those of one answer; locked in each plan. */
struct gs_plan_budgets {
    struct gs_eviction_budgets plan;
    const struct gs_budgets *budgets;
    const struct gs_budget *named[GS_EVICTION_BUDGETS];
    uint32_t count;
    uint32_t work[GS_SHARES]; /* by the namespace's first budget */
};

/* For plan.falls. */
uint64_t gs_budgets_fall(struct gs_eviction_budgets *budgets, const struct gs_claim *claim);

/*
 * The PATCHes of pods. The thread that requeues queues them, GS_PATCH_THREADS write them, each with
 * 2 s. A namespace has one of each kind under way, and is queued no more of while some are left.
 */
enum gs_patch { GS_PATCH_REQUEUE, GS_PATCH_TAKE_BACK, GS_PATCHES };

struct gs_patches {
    pthread_mutex_t lock; /* the last one */
    struct gs_patch_job *queue;
    uint32_t slow; /* under way, of lanes that are slow */
    struct gs_patch_lane {
        atomic_uint jobs;     /* queued or under way */
        bool under_way, slow; /* slow: its last one took long */
    } lanes[GS_PATCHES][GS_SHARES];
};

void gs_patches_release(struct gs_patches *patches);

/* Of the pod of this UID, in its namespace's share (gs_share_of()); write decides again in its
 * turn. No memory: the next pass tries again. */
typedef void gs_patch_fn(struct gs_service *service, const char *uid);
void gs_patches_add(struct gs_patches *patches, enum gs_patch kind, uint32_t share, const char *uid,
                    gs_patch_fn *write);
/* Writes what is queued, for about a tick; from GS_PATCH_THREADS threads. */
void gs_patches_tick(struct gs_service *service);

/* The pod of this UID, at this resourceVersion where it is not NULL. Nothing is sent when the lease
 * is over, nor answered for long after. nominated NULL: it stays as it is. */
int gs_patch_pod(struct gs_service *service, const struct gs_pod *pod, const char *version,
                 const struct gs_kv *annotations, size_t count, const char *nominated,
                 struct gs_error *err);

/*
 * Warning Events about what the API shows and cannot be: bound pods whose GPU index is missing, out
 * of range or contradicts the node, one each, so that their owner learns why a whole node looks
 * full; nodes whose GPUs are charged with more than they have, one when that begins. One of each is
 * written in two seconds, pods' namespaces in turn. Of the thread that compares.
 */
struct gs_warnings {
    struct gs_recent unplaced; /* UIDs of pods that have theirs */
    gs_gpu_mask *overfull;     /* by the node's slot: overfull, and written about */
    uint32_t overfull_cap;
    uint64_t turn; /* the least hash of a namespace that is next */
    int64_t next_ns;
    atomic_ullong unplaced_written;
};

void gs_warnings_release(struct gs_warnings *warnings);
void gs_warnings_tick(struct gs_service *service, int64_t now_ns);

/*
 * Terms of a leader, and what its ledger must have seen before it binds. Who leads knows every
 * claim, because it made them. Who leads next knows what its watch of pods has shown, and a watch
 * that is cut, whose peer is dead, or whose API server's cache stands still, shows too little; the
 * last two look like a cluster in which nothing happens.
 *
 * So a term begins with a mark: an annotation of this replica's own pod is patched with a value
 * that was never written before, and binds begin when the watch has shown it. Versions are not
 * compared: those of an etcd that was restored from a backup begin lower. Where the mark fails (no
 * pod of our own is known, it cannot be patched, nothing is shown in time), the pods are listed
 * again: a list that names no resourceVersion is answered from etcd, or by a cache that is as
 * new (kubernetes.io/docs/reference/using-api/api-concepts, "Semantics for get and list").
 *
 * While it leads, its own binds are such marks: one that the watch does not show in time makes it
 * list again. So does a version that is lower than one before, of a pod or of the Lease: no
 * bind is sent until that list is taken in, at most once in GS_TERM_FALL_NS.
 */

#define GS_TERM_MARK_NS (2 * GS_NS_PER_S) /* for the patch, and until the watch shows it */
#define GS_TERM_BIND_NS (5 * GS_NS_PER_S) /* until the watch shows a bind of ours */
#define GS_TERM_FALL_NS (10 * GS_NS_PER_S)
/* After an attempt to put the leader's label right failed. */
#define GS_TERM_LABEL_NS (2 * GS_NS_PER_S)

/* A bind that the watch is to show. */
struct gs_term_bind {
    uint64_t uid; /* hash; 0: none */
    int64_t done_ns;
};

struct gs_term {
    /* Of gs_service_tick_part(, GS_TICK_TERM), one caller at a time. */
    pthread_mutex_t turn;
    uint64_t number;  /* of the term that was begun last, as the election counts them */
    uint64_t falls;   /* of the Lease's version, answered so far */
    int64_t begun_ns; /* when that was noticed: a list that began later has seen the one before */
    bool marked;      /* our pod was patched with the mark */
    int labelled;     /* what our pod's label says: 1, 0, or -1 while that is not known */
    int64_t next_label_ns;
    int failure; /* enum gs_code of the last patch */

    atomic_ullong caught_up;  /* the term in which binds are allowed */
    atomic_bool mark_shown;   /* by the watch */
    atomic_ullong version;    /* the highest that the watch has shown */
    atomic_llong looked_ns;   /* when a lower one was answered by a list last */
    atomic_bool owes_list;    /* another came too soon after that */
    atomic_llong fell_ns;     /* when it showed a lower one; 0: a list was taken in since */
    atomic_llong listed_ns;   /* when the last complete list of pods began */
    atomic_llong listing_ns;  /* when the one under way began; 0: none is */
    atomic_bool list_wanted;  /* the watch's order: gs_watch_spec */
    atomic_llong asked_ns;    /* when that was given last */
    pthread_mutex_t lock;     /* taken last; guards the rest */
    char mark[48];            /* of this term */
    struct gs_term_bind next; /* the oldest that was not shown: binds before it were */
    struct gs_term_bind last; /* the newest */
    atomic_bool awaits;       /* there is one */
};

void gs_term_tick(struct gs_service *service);

/* The watch shall take in a list of pods that began after since_ns; it tries until it has. why: for
 * the log; NULL: as planned. */
void gs_term_want_list(struct gs_service *service, int64_t since_ns, const char *why);

void gs_term_init(struct gs_term *term);
void gs_term_release(struct gs_term *term);

/* The ledger has seen what others did before this term, and history does not go back. Any thread.
 */
bool gs_term_caught_up(const struct gs_service *service);

/* The API carried a bind out, and the watch has not shown it yet. */
void gs_term_bound(struct gs_service *service, const char *uid);

/* What the watch of pods tells, in its thread: not what others read. */
void gs_term_shown(struct gs_service *service, const struct gs_pod *pod, bool gone);
/* Returns the highest version that it had shown. */
uint64_t gs_term_list_begins(struct gs_service *service);
void gs_term_list_ends(struct gs_service *service);

/* Sets fits[] and losses[] of the candidates of scratch->args (core/policy.h) whose verdict is
 * GS_FITS. With the lock held for reading. */
void gs_rate(struct gs_service *service, const struct gs_ask *ask, struct gs_scratch *scratch);

struct gs_service {
    struct gs_service_config config;
    pthread_rwlock_t lock; /* never held over I/O; guards the next three */
    struct gs_cluster cluster;
    struct gs_ledger *ledger; /* the cluster's */
    struct gs_place place;    /* the cluster, for pods to be placed on it */
    struct gs_gains gains;
    struct gs_pending *pending;
    struct gs_bind_reservations bind_reservations;
    atomic_uint sent_binds; /* from before they are sent until their outcome is known, or open */
    struct gs_gang_reservations gangs; /* guarded by the lock */
    struct gs_nominated_nodes nominated_nodes;
    struct gs_budgets budgets; /* guarded by the lock */
    struct gs_eviction_waits eviction_waits;
    struct gs_term term;

    pthread_mutex_t scratch_lock;
    struct gs_scratch *scratch; /* guarded by scratch_lock */

    atomic_bool listed[2]; /* by enum gs_kind: a full list was loaded */
    atomic_bool live[2];   /* its watch stands */
    uint64_t compared;     /* pods up to this version are; 0: none. Guarded by the lock */

    /* Of the thread that requeues, alone. */
    struct gs_requeue requeue;
    bool answered; /* at the last tick: ready and leading */

    struct gs_patches patches;

    /* Each of one part of the tick. */
    int64_t next_audit_ns;
    uint64_t dropped; /* pending pods, until the last audit */
    int64_t next_refresh_ns;
    int64_t next_compare_ns; /* 0: not started */
    atomic_bool compares;    /* the next list of pods is compared with the ledger */
    struct gs_warnings warnings;

    atomic_llong unshown[GS_SHARES]; /* of namespaces: filter awaits no pod before */
    struct gs_scheduler_activity schedulers;
    atomic_bool nominates;
    atomic_bool withdrawn;       /* no nominations any more: the process ends */
    atomic_uint nominations_out; /* nominations of ours that may stand, at the last tick */
    atomic_llong rest_until_ns;  /* prioritize: no more choices that take long before */
    struct gs_meter meters[GS_VERBS];
    atomic_ullong refusals[GS_REASONS]; /* nodes refused, by reason */
    atomic_ullong requeues;
    atomic_ullong nominations;
    atomic_ullong requeue_failures;
    atomic_ullong binds[GS_BIND_RESULTS];
    atomic_ullong swept_claims;
    atomic_ullong drift;        /* accounts that differed at the last audit */
    atomic_ullong drifted_pods; /* that comparisons found */
};

static inline int64_t gs_service_now(const struct gs_service *service)
{
    return gs_clock_now_ns(service->config.clock);
}

void gs_service_read(const struct gs_service *service);
void gs_service_write(struct gs_service *service);
void gs_service_unlock(const struct gs_service *service);

/* As placement sees the node; NULL: there is none. Locked. */
static inline const struct gs_node_view *gs_service_view(const struct gs_service *service,
                                                         const char *node)
{
    return gs_ledger_view(service->ledger, node);
}

/* Memory came free there, as gs_gains_note() has it. Locked for writing. */
static inline void gs_service_freed(struct gs_service *service, uint32_t slot, uint64_t owner)
{
    gs_gains_note(&service->gains, slot, owner);
}

/* Calls fn for every node, under the lock for reading, which is given up now and then: a page of
 * thousands of nodes takes longer to write than a bind should wait. So it shows no single moment,
 * but each node as it was at one. */
typedef void gs_service_node_fn(void *ctx, const struct gs_service *service,
                                const struct gs_node_view *view);
void gs_service_each_node(const struct gs_service *service, gs_service_node_fn *fn, void *ctx);

/* The end of an answer: GS_ENOMEM where it did not fit. */
static inline int gs_service_answered(const struct gs_buf *answer, struct gs_error *err)
{
    return gs_buf_failed(answer) ? gs_fail(err, GS_ENOMEM, "the response is too large") : 0;
}

/* Of anything with a name and a namespace: what a log line says of it. */
#define GS_POD_FIELDS(pod) GS_STR("pod", (pod)->name), GS_STR("namespace", (pod)->ns)

/* sync.c: what the service has more than the cluster; its context is the service. */
extern const struct gs_cluster_owner gs_sync_owner;

/* Takes a pod in. read: not by the watch, and it says nothing about how far that is. Takes the
 * lock. */
int gs_sync_pod(struct gs_service *service, const struct gs_pod *pod, bool read);

/* gs_pending_refused(), now; a pod that was seen to end waits for nothing (kube-scheduler's caches
 * may be behind). Takes the lock. */
bool gs_sync_refused(struct gs_service *service, const struct gs_pod *pod, enum gs_reason why,
                     uint64_t epoch);

/* NULL, or why scheduling verbs cannot be answered now (static text). */
const char *gs_service_refuses(const struct gs_service *service);

/* A scratch with the request's arguments and room for its candidates; give it back. NULL:
 * GS_ENOMEM, or what gs_codec_filter_args() says. */
struct gs_scratch *gs_scratch_take(struct gs_service *service, const struct gs_request *request,
                                   struct gs_error *err);
/* Has slots[] name the candidates' nodes; what the last request found is found again when the names
 * and the cluster's are the same. Locked for reading. */
void gs_scratch_find_nodes(struct gs_scratch *scratch, const struct gs_ledger *ledger);
void gs_scratch_give(struct gs_service *service, struct gs_scratch *scratch);

/* Memory per GPU and in the cluster. Takes the lock, many times for a moment. */
void gs_service_metrics_memory(struct gs_service *service, struct gs_buf *out);
