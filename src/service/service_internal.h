/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_SERVICE_INTERNAL_H
#define GPUSHARE_SERVICE_SERVICE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "budgets.h"
#include "eviction_wait.h"
#include "gang_reservations.h"
#include "gpushare/base/index.h"
#include "gpushare/codec/extender.h"
#include "gpushare/core/ledger.h"
#include "gpushare/core/place.h"
#include "gpushare/core/placement.h"
#include "gpushare/core/policy.h"
#include "gpushare/service/service.h"
#include "meter.h"
#include "new_nodes.h"
#include "nominations.h"
#include "patches.h"
#include "pending.h"
#include "requeue.h"
#include "scheduler_activity.h"
#include "store.h"
#include "term.h"
#include "unresolved_binds.h"
#include "warnings.h"

/* What the verbs, the sync and the tick share. */

enum gs_verb { GS_VERB_FILTER, GS_VERB_PRIORITIZE, GS_VERB_BIND, GS_VERB_PREEMPT, GS_VERBS };

/* What became of an attempt to bind. */
enum gs_bind_result {
    GS_BIND_DONE,
    GS_BIND_REFUSED,    /* no room (any more), or another attempt is under way; nothing was sent */
    GS_BIND_CONFLICT,   /* the pod is bound elsewhere, or was deleted meanwhile */
    GS_BIND_FAILED,     /* the API server said no, or could not be asked for the pod */
    GS_BIND_UNRESOLVED, /* no answer: the outcome is not known yet */
    GS_BIND_RESULTS,
};

enum { GS_UNSHOWN = 64 };

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
    uint32_t reserved; /* the candidate with a reservation for the pod; GS_INDEX_NONE: none */
    uint32_t cap;
};

struct gs_service {
    struct gs_service_config config;
    struct gs_store store;
    struct gs_pending *pending;
    struct gs_unresolved_binds unresolved_binds, bind_queue;
    atomic_uint sent_binds; /* from before they are sent until their outcome is known, or open */
    struct gs_gang_reservations gangs; /* guarded by the store's lock */
    struct gs_nominated_nodes nominated_nodes;
    struct gs_budgets budgets; /* guarded by the store's lock */
    struct gs_eviction_waits eviction_waits;
    struct gs_term term;

    pthread_mutex_t scratch_lock;
    struct gs_scratch *scratch; /* guarded by scratch_lock */

    atomic_bool listed[2]; /* by enum gs_kind: a full list was loaded */
    atomic_bool live[2];   /* its watch stands */
    bool pods_begun;       /* the first list of pods has begun; guarded by the store's lock */
    uint64_t compared;     /* pods up to this version are; 0: none. Guarded by the store's lock */

    /* Of the thread that requeues, alone. */
    struct gs_requeue requeue;
    bool answered; /* at the last tick: ready and leading */

    struct gs_patches patches;

    /* Each of one part of the tick. */
    int64_t next_audit_ns;
    uint64_t dropped; /* pending pods, until the last audit */
    int64_t next_refresh_ns;
    int64_t next_compare_ns;       /* 0: not started */
    atomic_bool compares;          /* the next list of pods is compared with the ledger */
    struct gs_new_nodes new_nodes; /* guarded by the store's lock */
    struct gs_warnings warnings;

    atomic_llong unshown[GS_UNSHOWN]; /* by namespace's hash: filter awaits no pod before */
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

/* The end of an answer: GS_ENOMEM where it did not fit. */
static inline int gs_service_answered(const struct gs_buf *answer, struct gs_error *err)
{
    return gs_buf_failed(answer) ? gs_fail(err, GS_ENOMEM, "the response is too large") : 0;
}

/* Of anything with a name and a namespace: what a log line says of it. */
#define GS_POD_FIELDS(pod) GS_STR("pod", (pod)->name), GS_STR("namespace", (pod)->ns)

/* sync.c: what the service has more than the cluster; its context is the service. */
extern const struct gs_cluster_owner gs_sync_owner;

/* A pod as it was read: takes it in as its event would, but it says nothing about how far the watch
 * is. Takes the store's lock. */
int gs_sync_pod(struct gs_service *service, const struct gs_pod *pod);

/* gs_pending_refused(), now; a pod that was seen to end waits for nothing (kube-scheduler's caches
 * may be behind). Takes the store's lock. */
bool gs_sync_refused(struct gs_service *service, const struct gs_pod *pod, enum gs_reason why,
                     uint64_t epoch);

/* NULL, or why scheduling verbs cannot be answered now (static text). */
const char *gs_service_refuses(const struct gs_service *service);

/* A scratch with room for `count` candidates, or NULL when out of memory; give it back. The args
 * are decoded into a scratch first, and its arrays are grown after. */
struct gs_scratch *gs_scratch_take(struct gs_service *service);
int gs_scratch_room(struct gs_scratch *scratch, uint32_t count);
/* Has slots[] name the candidates' nodes; what the last request found is found again when the names
 * and the cluster's are the same. With the store locked for reading. */
void gs_scratch_find_nodes(struct gs_scratch *scratch, const struct gs_ledger *ledger);
void gs_scratch_give(struct gs_service *service, struct gs_scratch *scratch);

/* What the store has, to place pods on. Store locked. */
struct gs_place gs_service_place(const struct gs_service *service);

/* Memory per GPU and in the cluster. Takes the store's lock, many times for a moment. */
void gs_service_metrics_memory(struct gs_service *service, struct gs_buf *out);

#endif
