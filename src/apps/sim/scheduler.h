/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_SIM_SCHEDULER_H
#define GPUSHARE_APPS_SIM_SCHEDULER_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/error.h"
#include "gpushare/base/index.h"
#include "gpushare/kube/client.h"
#include "gpushare/model/names.h"

/*
 * kube-scheduler's loop in miniature, for demonstrations and tests of the extender: one pod at a
 * time, highest priority first, then oldest; resources, taints, node selector and cordon by itself,
 * the rest by the extender, over HTTP, in kube-scheduler's own words.
 *
 * scheduler_state.c  what the watches tell: pods, what they use, which of them wait
 * scheduler_nodes.c  nodes, and which of them could take a pod
 * scheduler_cycle.c  one pod: filter, prioritize, bind
 * scheduler_report.c what the pod's owner hears: condition and Event
 */

/* A pod by UID. Waiting pods are in the queue; the others use up their node. */
struct sched_pod {
    char *uid; /* NULL: free entry */
    char *ns;
    char *name;
    char *node; /* NULL while unbound */
    int32_t priority;
    int64_t created_s;
    uint64_t order; /* of arrival: breaks ties of the same second */
    int64_t cpu_milli;
    int64_t memory_bytes;
    uint64_t gpu_units;
    uint64_t cores_pct;
    bool waiting;         /* unbound, alive */
    bool parked;          /* tried and refused: waits for a cluster event */
    bool touched;         /* parked, and its object was written since; in a copy: only that */
    uint64_t fingerprint; /* of what was tried: its own status aside */
    uint64_t parked_at;   /* `moves` when it was tried */
    uint32_t attempts;
    int64_t not_before_ns; /* backing off until then */
};

struct sched_settings {
    const char *api;
    const char *kubeconfig;
    const char *extender; /* NULL: none */
    const char *pods;     /* comma list of files, may be NULL */
    const char *domain;
    const char *scheduler_name;
    uint64_t seed;
    int64_t settle_ns;
    int64_t backoff_ns;
    bool follow;
};

struct sched_node;

struct sched {
    struct sched_settings set;
    struct gs_names names;
    struct gs_kube_client *api;
    struct gs_kube_client *extender;
    uint64_t random;

    pthread_mutex_t lock; /* guards what follows, up to the next blank line */
    pthread_cond_t changed;
    struct gs_index index; /* by uid */
    struct sched_pod *pods;
    uint32_t pod_count, pod_cap;
    uint64_t arrivals;
    uint64_t moves; /* events that may make room */
    int64_t last_event_ns;
    bool pods_loaded, nodes_loaded, nodes_changed, stopping, failed;

    /* The loop's own. */
    struct sched_node *nodes;
    uint32_t node_count;
    uint64_t bound, refused, errors;

    atomic_bool stop;
    pthread_t watchers[2];
    uint32_t watcher_count;
};

/* ---- scheduler_state.c ---- */

int sched_state_start(struct sched *sched, struct gs_error *err);

/* Until both lists are there; GS_ETIMEOUT after half a minute. */
int sched_wait_loaded(struct sched *sched, struct gs_error *err);
void sched_state_stop(struct sched *sched);

/* The next pod to try, copied (release it): false when there is none and the loop is over. Blocks
 * while pods back off or, when following, while nothing happens. */
bool sched_next(struct sched *sched, struct sched_pod *ret);
void sched_pod_release(struct sched_pod *pod);

/* What became of it: refused (waits for a cluster event), changed since it was refused (may be
 * tried again), failed (may be tried again later), gone, bound. */
void sched_park(struct sched *sched, const struct sched_pod *pod, uint64_t fingerprint);
void sched_unpark(struct sched *sched, const struct sched_pod *pod);
void sched_back_off(struct sched *sched, const struct sched_pod *pod);
void sched_forget(struct sched *sched, const struct sched_pod *pod);
void sched_assume(struct sched *sched, const struct sched_pod *pod, const char *node);

/* Fills `used` of every node from the pods that are bound to it. */
void sched_count_uses(struct sched *sched);

/* ---- scheduler_nodes.c ---- */

struct sched_use {
    int64_t cpu_milli;
    int64_t memory_bytes;
    uint64_t gpu_units;
    uint64_t cores_pct;
    uint64_t pods;
};

struct sched_node {
    char *name;
    json_t *object;
    struct sched_use allocatable;
    struct sched_use used; /* of the cycle that runs */
};

/* Reads the nodes again when something happened to one; sorted by name. */
int sched_nodes_refresh(struct sched *sched, struct gs_error *err);
void sched_nodes_release(struct sched *sched);

/* Reasons and how many nodes gave each, as kube-scheduler's FitError counts them. */
struct sched_reasons {
    json_t *counts; /* reason → count */
};
void sched_reasons_add(struct sched_reasons *reasons, const char *reason);

/* "0/3 nodes are available: 1 Insufficient cpu, 2 …."; *caller frees*. */
char *sched_reasons_text(const struct sched_reasons *reasons, uint32_t nodes);

/* Names of the nodes that could take it, as a JSON array; the others' reasons are added. */
json_t *sched_feasible(struct sched *sched, const json_t *pod, const struct sched_pod *asks,
                       struct sched_reasons *reasons);

/* ---- scheduler_cycle.c ---- */

void sched_cycle(struct sched *sched, struct sched_pod *pod);

/* ---- scheduler_report.c ---- */

void sched_report_bound(struct sched *sched, const struct sched_pod *pod, const char *node);

/* reason "Unschedulable" or "SchedulerError"; object is the pod as it was read. */
void sched_report_failed(struct sched *sched, const struct sched_pod *pod, const json_t *object,
                         const char *reason, const char *message);

#endif
