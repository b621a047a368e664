/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_TERM_H
#define GPUSHARE_SERVICE_TERM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/clock.h"
#include "gpushare/model/pod.h"

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
 * anew: a list that names no resourceVersion is answered from etcd, or by a cache that has caught
 * up with it (kubernetes.io/docs/reference/using-api/api-concepts, "Semantics for get and list").
 *
 * While it leads, its own binds are such marks: one that the watch does not show in time makes it
 * list anew. So does a version that is lower than one before, of a pod or of the Lease: nobody
 * binds until that list is taken in, at most once in GS_TERM_FALL_NS.
 */
struct gs_service;

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

#endif
