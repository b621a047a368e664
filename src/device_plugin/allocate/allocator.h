/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/error.h"
#include "gpushare/model/gpu.h"
#include "gpushare/model/kv.h"
#include "gpushare/model/names.h"
#include "gpushare/model/node.h"
#include "gpushare/model/pod.h"

/*
 * What the device plugin decides on one node: which pod an Allocate call is for, which GPUs its
 * container gets, and whether the record in the API is true when a container starts. No sockets,
 * no threads, no waiting: the caller brings what the watch and the kubelet said, and carries out
 * the writes that are asked for. Used by one thread.
 *
 * The kubelet's Allocate names no pod. Three things tell whose it is:
 *   - the pods of this node (watch) whose containers, in order, ask for just that many units;
 *   - the kubelet's checkpoint: which pods have their GPUs, and which one has some of them;
 *   - the order in which pods were bound. Where it misled, the next checkpoint tells.
 * A pod that was begun is continued: its containers never end up on different GPUs.
 *
 *   gs_allocator_set_gpus(alloc, gpus, count, err);
 *   gs_allocator_pod(alloc, &pod, err);                           from the watch, and pod_gone
 *   switch (gs_allocator_allocate(alloc, &request, &answer, err)) ...
 *   while (gs_allocator_next_write(alloc, false, &write)) ...     patches and events to send
 */
struct gs_allocator;

struct gs_allocator_config {
    const struct gs_names *names; /* borrowed for the allocator's life */
    const char *node;             /* this node's name; borrowed */
    const struct gs_clock *clock; /* borrowed; NULL: time stands still, nothing is put off */
    bool mps; /* containers are told of an MPS daemon: who tells them otherwise is named */
};

/* *caller frees*; NULL when out of memory. */
struct gs_allocator *gs_allocator_new(const struct gs_allocator_config *config);
void gs_allocator_free(struct gs_allocator *alloc);
GS_DEFINE_CLEANUP(struct gs_allocator *, gs_allocator_free)

/* The GPUs of this node, *copied*. One that is not schedulable, a cordon's, gets no pod that has no
 * place yet. `gone`: of these GPUs, those that are not there any more: they keep what is charged to
 * them, and no container is given one. */
int gs_allocator_set_gpus(struct gs_allocator *alloc, const struct gs_gpu *gpus, uint32_t count,
                          gs_gpu_mask gone, struct gs_error *err);

/* A pod of this node as the API shows it now; others are ignored. In the order of the watch. Also
 * from a quick list, which may be older than the watch: a pod that ended does not come back, and an
 * older resourceVersion does not replace a newer one, except inside a full list. */
int gs_allocator_pod(struct gs_allocator *alloc, const struct gs_pod *pod, struct gs_error *err);
void gs_allocator_pod_gone(struct gs_allocator *alloc, const char *uid);
/* Around a full list of the watch: pods not named between the two are gone. Pods that are new in it
 * count in the order of their creation, as the kubelet takes them. */
void gs_allocator_list_begin(struct gs_allocator *alloc);
void gs_allocator_list_end(struct gs_allocator *alloc);

/* A quick list: begin before the API is asked, pods before its pods are given, then list_end. Pods
 * that were known before and are not named are gone, whatever a late watch said of them in between;
 * it may bring others. After a failed list: begin again. */
void gs_allocator_quick_begin(struct gs_allocator *alloc);
void gs_allocator_quick_pods(struct gs_allocator *alloc);

/* A call's device ids, in any order, as a number. */
uint64_t gs_allocate_key(const char *const *ids, size_t count);

/* A container's answered Allocate, as the kubelet wrote it down (its checkpoint). */
struct gs_given {
    const char *uid;  /* that the kubelet knows the pod by: gs_placed.cgroup_uid */
    uint64_t key;     /* gs_allocate_key() of its device ids */
    uint32_t units;   /* its ids, those not counted that another entry of the pod has, too */
    gs_gpu_mask gpus; /* where its environment points to; 0: to none that is known */
};

/* All that the kubelet's checkpoint has: whose every allocation is, by UID. Brings what is
 * allocated, and every record, in line with it: calls that were taken for another pod's change
 * hands, those of an earlier run are known again, and a start that it gave its GPU on trust is
 * blocked as before. GPUs must be known, others are passed over. Before the first full list what
 * pods hold that nobody has told of is charged by itself, until the list or the kubelet says that
 * they are gone. To be done before each gs_allocator_allocate() (`at_allocate`; once for a call,
 * not again when it is repeated: all that was answered before is written down by then), before each
 * gs_allocator_start(), and from time to time. */
void gs_allocator_observe(struct gs_allocator *alloc, const struct gs_given *given, size_t count,
                          bool at_allocate);

/*
 * What the node's annotation gpu-reassigned has to say (docs/contract.md, section 4): an entry for
 * every pod that is not where its bind put it, and for every one whose record somebody wrote over;
 * each stays as long as its pod. Records of such pods are written after their entries.
 *   earlier: what the annotation said when this run began, *copied*; before that nothing may be
 *            printed. May be repeated. written_before: by the plugin that was here before. If not,
 *            every pod of this run's first list gets an entry: what changed under the
 *            original's plugin is charged on two GPUs until then.
 *   due:     it has to be written anew
 *   print:   its text as of now; returns the number of that state, for written()
 */
int gs_allocator_moved_earlier(struct gs_allocator *alloc, const struct gs_moved *moved,
                               uint32_t count, bool written_before, struct gs_error *err);
bool gs_allocator_moved_due(const struct gs_allocator *alloc);
uint64_t gs_allocator_moved_print(const struct gs_allocator *alloc, struct gs_buf *out);
void gs_allocator_moved_written(struct gs_allocator *alloc, uint64_t state);

/* Records that have drifted from what is allocated are written anew, each at most every few
 * seconds. Done for a pod when the watch shows it; call it from time to time for what was too
 * early. */
void gs_allocator_put_right(struct gs_allocator *alloc);

/* What came of asking the API for this node's pods, for the call in hand. */
enum gs_api_outcome {
    GS_API_NOT_ASKED,
    GS_API_TIMEOUT,  /* it did not answer in time: do not ask again */
    GS_API_ANSWERED, /* its pods are up to date */
};

/* One container's Allocate. */
struct gs_allocate_request {
    const char *const *ids; /* device ids, one per unit */
    size_t id_count;
    bool told;          /* the kubelet's checkpoint was read for this call */
    bool skips_running; /* the kubelet never asks for pods that run (1.28 and later) */
    enum gs_api_outcome api;
    bool patient; /* the API may be asked again before the pod fails */
};

struct gs_allocate_answer {
    gs_gpu_mask gpus;
    char idx[192];      /* "0" or "0,3" */
    uint32_t dev_units; /* size of (one of) the GPUs */
    uint32_t pod_units; /* charge of the pod, all GPUs together */
    uint32_t units;     /* of this container, all GPUs together */
    uint32_t
        cores_pct; /* compute that this container asks for; 0: none, or not known whose it is */
    bool own_shm;  /* the pod mounts a volume of its own at /dev/shm */
    const char *ns,
        *name; /* for the log, borrowed until the next call; "unknown": nobody claims it */
};

enum gs_allocate_result {
    GS_ALLOCATE_DONE,
    GS_ALLOCATE_LIST_FIRST, /* no pod asks for that, or its GPU seems full: list this node's pods,
                               then ask again. Likewise when the API was silent and there is no
                               room, for a patient caller */
    GS_ALLOCATE_NO_ROOM, /* "no GPU on this node has enough free memory", after "the GPU that this
                            pod was bound to was removed, and" if so: to a pod that the extender
                            placed only when API and kubelet both were heard; else it gets its
                            GPU on trust, and gs_allocator_start() holds it back until they are */
    GS_ALLOCATE_FAILED,  /* out of memory, or no GPUs: see err */
};

enum gs_allocate_result gs_allocator_allocate(struct gs_allocator *alloc,
                                              const struct gs_allocate_request *request,
                                              struct gs_allocate_answer *ret, struct gs_error *err);

/* A container about to start. */
struct gs_start_request {
    const char *const *ids;
    size_t id_count;
    bool listed; /* the API was asked for this node's pods just now: do not ask for that again */
    bool write_tried; /* gpu-reassigned was tried to be written: do not ask for that again */
};

enum gs_start_result {
    GS_START_OK,          /* the record is true, or a write is queued that makes it so */
    GS_START_LIST_FIRST,  /* as above */
    GS_START_WRITE_FIRST, /* write gpu-reassigned, then ask again: the node lacks this entry */
    GS_START_HELD,        /* the record cannot be made true without overfilling a GPU: see err */
};

enum gs_start_result gs_allocator_start(struct gs_allocator *alloc,
                                        const struct gs_start_request *request,
                                        struct gs_error *err);

/* What an Event is about. */
struct gs_event_object {
    const char *api, *kind, *name, *uid; /* "apps/v1", "ReplicaSet" */
};

/*
 * What to write to the API, in order. The caller sends it, repeats it while the API is away, and
 * reports the end. A write stays first in its pod's queue until then; writes for pods that are
 * gone vanish by themselves.
 */
struct gs_allocator_write {
    uint64_t number;
    const char *ns, *name, *uid; /* the pod's, or the node's in no namespace; borrowed until
                                    gs_allocator_write_done() */
    bool event;
    /* event */
    struct gs_event_object about; /* in the same namespace */
    bool warning;
    const char *reason, *message;
    /* patch: NULL values remove */
    const struct gs_kv *annotations;
    size_t annotation_count;
};

/* The first write that is not under way; false when there is none. Marks it as under way.
 * events_only: it is not known yet where all pods are. */
bool gs_allocator_next_write(struct gs_allocator *alloc, bool events_only,
                             struct gs_allocator_write *ret);
/* sent: it is done, or can never be (404, UID differs). Otherwise it is offered again after a pause
 * of its own, that doubles with every failure: what one pod is refused delays no other's. */
void gs_allocator_write_done(struct gs_allocator *alloc, uint64_t number, bool sent);
/* When the next of the writes that are put off may be sent; INT64_MAX: there is none. */
int64_t gs_allocator_write_due_ns(const struct gs_allocator *alloc);

struct gs_allocator_stats {
    uint32_t pods;    /* with GPU memory on this node */
    uint32_t waiting; /* of these, not (fully) allocated */
    uint32_t writes_queued;
    uint32_t writes_untried; /* of these, not refused yet */
    uint32_t node_events;    /* of the queued */
    uint64_t allocated;      /* containers answered */
    uint64_t unclaimed;      /* of these, of no pod that an extender is known to have bound */
    uint64_t no_room;
    uint64_t swaps;
    uint64_t held;
    uint64_t used_units[GS_GPUS_MAX]; /* by GPU index, from this node's pods */
    /* pods that were given GPUs, or have some recorded, and calls of pods that are not known */
    uint32_t placed;
};
void gs_allocator_stats(const struct gs_allocator *alloc, struct gs_allocator_stats *ret);

/* ---- what is limited (limit/keeper.h) ---- */

/* A pod that has its GPUs, or will get those of its bind. Texts are *borrowed* until the next call.
 */
struct gs_placed {
    const char *ns, *name, *uid;
    const char *owner;      /* "Deployment/web"; "" without a controller */
    const char *cgroup_uid; /* what the kubelet names its cgroup by: of a static pod not its UID */
    enum gs_qos qos;
    gs_gpu_mask gpus;
    uint32_t units;        /* its charge on each of them */
    uint32_t containers;   /* the most that use them at a time */
    bool enforce_required; /* it requires its limit */
    bool sets_mps;         /* a container of it sets CUDA_MPS_ variables itself */
    bool given;            /* the kubelet has asked for GPUs of it */
    bool runs; /* or may: some container of it may have begun before this program knew the pod */
};

void gs_allocator_each_placed(const struct gs_allocator *alloc,
                              void (*each)(void *ctx, const struct gs_placed *pod), void *ctx);
/* Those of which a container may be about to start, by number: more than one can have its ids.
 * False: there are no more. Of one that is not known here uid is NULL, and its cgroup's and its
 * GPUs are those of the kubelet's checkpoint, "" if that has none. After gs_allocator_start() was
 * GS_START_OK, with the same request. */
bool gs_allocator_starting(const struct gs_allocator *alloc, const struct gs_start_request *request,
                           size_t number, struct gs_placed *ret);
/* Queues an Event about this node; reason: constant. */
void gs_allocator_tell_node(struct gs_allocator *alloc, bool warning, const char *reason,
                            const char *message);
/* Queues a Warning about the pod with that cgroup; reason: constant. Nothing when it is gone, or
 * while such an Event of the pod waits to be sent: while the API is away they do not heap up.
 * owner_too: once more about the pod's controller, if it has one, where people see it who never
 * look at the pod: that message begins with the pod's name. */
void gs_allocator_warn(struct gs_allocator *alloc, const char *cgroup_uid, bool owner_too,
                       const char *reason, const char *message);

/* False: no pod that the kubelet knows by that UID is bound to this node, or it has ended. Before
 * the first full list nothing is known of any. */
bool gs_allocator_may_live(const struct gs_allocator *alloc, const char *cgroup_uid);

/* Appends the names of some placed pods, of those on one of these GPUs unless it is 0: "ns/a, ns/b,
 * ns/c and 4 more". */
void gs_allocator_name_placed(const struct gs_allocator *alloc, gs_gpu_mask gpus,
                              struct gs_buf *out);
