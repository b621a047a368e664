/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "election.h"
#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "gpushare/core/policy.h"
#include "gpushare/model/budget.h"
#include "gpushare/model/names.h"
#include "gpushare/port/kube.h"

/*
 * The scheduling service, without sockets and without threads of its own: a ledger fed by a watch,
 * and kube-scheduler's verbs answered from it. All functions may be called from any thread.
 *
 *   struct gs_service *service = gs_service_new(&config, err);
 *   struct gs_watch_sink sink = gs_service_sink(service);      hand it to kube.ops->watch
 *   gs_service_answer(service, verb, &request, &answer, err);  per request
 *   gs_service_tick_part(service, part);                       each about ten times a second
 *   gs_service_free(service);                                  after all of these have ended
 *
 * A standby (its election says that another replica leads) keeps its ledger warm, answers
 * scheduling verbs with Error and binds nothing. So does a replica that begins to lead, until its
 * ledger has seen what the one before it bound.
 *
 * One lock guards the ledger; it is never held over a call to the cluster. Filter and prioritize
 * read; bind locks, chooses and reserves, unlocks, calls the API, locks, confirms or undoes.
 */
struct gs_service;

struct gs_service_config {
    const struct gs_names *names;       /* borrowed for the service's life */
    const struct gs_clock *clock;       /* borrowed */
    struct gs_kube kube;                /* borrowed */
    enum gs_placement policy;           /* for pods that name none: a real policy */
    bool nominates;                     /* kube-scheduler asks about a sample of the nodes: a pod
                                           that none of these has room for is nominated to one that
                                           has (service/pending.h) */
    bool names_one;                     /* filter reserves for every pod without preferences of its
                                           own, as for members of groups, and names that node */
    const struct gs_election *election; /* borrowed; NULL: no election, this replica leads */
    const char *pod_ns;                 /* this replica's own pod; borrowed; … */
    const char *pod_name;               /* … NULL: not known */
    bool labels_leader;         /* that pod is labelled gpushare/leader=true while it leads */
    int64_t first_bind_ns;      /* monotonic: binds wait until then; 0: for nothing */
    int64_t reconcile_ns;       /* between lists of all pods; 0: 5 minutes */
    const char *scheduler_name; /* comma list of spec.schedulerName: it refuses others' pods; NULL:
                                   none. Borrowed */
    bool no_gpu_metrics;        /* gs_service_metrics() leaves out the series per GPU */
};

/* *caller frees*; NULL with GS_ENOMEM. */
struct gs_service *gs_service_new(const struct gs_service_config *config, struct gs_error *err);
void gs_service_free(struct gs_service *service);

/* Where the watches of nodes and pods deliver. Borrowed from the service. */
struct gs_watch_sink gs_service_sink(struct gs_service *service);

/* The list of nodes was loaded once: pods may be listed. */
bool gs_service_nodes_loaded(const struct gs_service *service);

/* Both lists were loaded once: verbs answer. */
bool gs_service_loaded(const struct gs_service *service);

/* Loaded, and both watches stand; *ret_why (static text) says what is missing. */
bool gs_service_ready(const struct gs_service *service, const char **ret_why);

/* For gs_watch_spec.list_wanted of the watch of pods. Borrowed from the service. */
atomic_bool *gs_service_list_wanted(struct gs_service *service);

/* All PodDisruptionBudgets that there are, instead of those given before. Takes what the arena has,
 * and leaves it empty; all lies in it. */
void gs_service_budgets(struct gs_service *service, struct gs_arena *arena, struct gs_budget *all,
                        uint32_t count);

/* config.nominates, when it is known later only. */
void gs_service_nominate(struct gs_service *service, bool nominates);
bool gs_service_nominates(const struct gs_service *service);
/* The process ends: nobody is nominated any more, and the next ticks take back what was.
 * gs_service_nominations(): so many may stand still. */
void gs_service_withdraw(struct gs_service *service);
uint32_t gs_service_nominations(const struct gs_service *service);

/* Binds that were sent, or may have been, and whose outcome is not known yet. */
uint32_t gs_service_unresolved_binds(const struct gs_service *service);

/* No election, or this replica holds its lease now. */
bool gs_service_leads(const struct gs_service *service);

/*
 * The verbs: an extender/v1 request body in, the answer's body out (k8s.io/kube-scheduler
 * extender/v1). GS_ANSWERED also when the request fails: the reason is in the answer's Error. -1
 * when there is no answer to give: GS_EPROTO or GS_EINVAL (malformed: HTTP 400), GS_ETOOBIG (413),
 * GS_ENOMEM (500); *answer is then undefined, as where it would sleep and may not: filter for up to
 * a quarter of a second (service/reservations.h), bind always. Such a bind has its GPUs reserved,
 * if there are any, until the same request may sleep.
 */
enum gs_verb { GS_VERB_FILTER, GS_VERB_PRIORITIZE, GS_VERB_BIND, GS_VERB_PREEMPT, GS_VERBS };
const char *gs_verb_name(enum gs_verb verb); /* "filter" */
enum gs_answered { GS_ANSWER_FAILED = -1, GS_ANSWERED, GS_WOULD_SLEEP };
struct gs_request {
    struct gs_slice body;
    const char *client; /* for the log; NULL: it did not show */
    bool may_sleep;
    uint64_t ns;  /* out: of a bind that would sleep, the hash of its pod's namespace */
    bool refused; /* out: the answer is an error */
};
enum gs_answered gs_service_answer(struct gs_service *service, enum gs_verb verb,
                                   struct gs_request *request, struct gs_buf *answer,
                                   struct gs_error *err);

/* The original's inspect JSON of all nodes with GPUs, or of one (node not NULL); GS_ENOENT for an
 * unknown one, GS_ENOTREADY before the lists are loaded. */
int gs_service_inspect(struct gs_service *service, const char *node, struct gs_buf *answer,
                       struct gs_error *err);

/* {"reservations":[…],"policy":"rollout"}: what filter reserves for members of pod groups, on
 * all nodes, as inspect has them, none while it does not lead; and the policy for pods that name
 * none. */
int gs_service_reservations(struct gs_service *service, struct gs_buf *answer,
                            struct gs_error *err);

/* Appends this service's metrics in Prometheus text format 0.0.4. */
void gs_service_metrics(struct gs_service *service, struct gs_buf *out);

/*
 * What must happen without being asked, in parts: each of a thread of its own, because what one
 * waits for the others do not. So long a part waits for the cluster in one call, at most.
 */
enum gs_tick {
    GS_TICK_CLOCK,   /* never: ends reservations, builds the policies' tables, audits the ledger */
    GS_TICK_SETTLE,  /* 15 s: what became of a bind without an answer */
    GS_TICK_REQUEUE, /* never: queues PATCHes of pods that fit by now, and of nominations */
    GS_TICK_PATCH,   /* 2 s: writes these; of GS_PATCH_THREADS threads */
    GS_TICK_COMPARE, /* 15 s for each Event: lists pods again, writes Events */
    GS_TICK_TERM,    /* 2 s: begins a term of this replica when the election says so, puts its pod's
                        label right, lists the pods again where the watch may be behind */
    GS_TICKS
};

/* Of any thread; a part of one thread at a time, but for the term's. */
enum { GS_PATCH_THREADS = 16 };
void gs_service_tick_part(struct gs_service *service, enum gs_tick part);
