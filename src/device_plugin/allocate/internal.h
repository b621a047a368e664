/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "allocator.h"
#include "gpushare/base/recent.h"
#include "gpushare/core/ledger.h"
#include "gpushare/core/placement.h"

/*
 * What the files of this folder share.
 *
 * A claimant is a pod of this node that asks for GPU memory. It is allocated where its environment
 * points (or will point): set by the first Allocate, changed only when the kubelet says that a call
 * was another pod's. The record is what its annotations say; when the two differ, a write is
 * queued.
 */
struct claimant {
    struct claimant *next; /* in the order of their binds */
    struct gs_pod pod;
    struct gs_charge charge; /* on its place (gs_claimant_place()); without one, what it asks for */
    uint32_t *requests;      /* units of each container that asks, in the kubelet's order */
    uint32_t request_count;
    uint32_t done;         /* of these, allocated */
    gs_gpu_mask allocated; /* 0: not decided, or given by an earlier run and not recorded */
    gs_gpu_mask bound;     /* gs_pod_recorded() at first sight: later ones are its owner's doing */
    gs_gpu_mask moved;     /* its entry in gpu-reassigned; 0: none. Once there is one, it stays */
    uint64_t moved_at;     /* the state of the entries since which it says so */
    int64_t record_ns;     /* when its record was last written */
    uint64_t revision;     /* resourceVersion as a number, 0 when it is none */
    bool fresh;            /* came in this list round */
    bool early;            /* in this run's first list: an earlier run may have allocated it */
    bool stale[2];         /* known before the quick, or full, list under way, and not named yet */
    bool held;             /* its environment points to a GPU without room for it */
    bool held_said;        /* there is an event about that */
    uint32_t named;        /* containers that the kubelet's checkpoint names of it */
    bool yields;           /* a call in its name was another's, which is held there */
    bool lost;             /* a call in its name came to nothing: it waits, or has ended */
    bool restored;         /* an earlier run answered some: to be judged in this reading */
};

enum { UNSEEN_MAX = 1 << 13 };

/* An answered call. */
struct call {
    struct call *next;      /* newest first */
    struct call **link;     /* what points to it */
    struct call *unseen;    /* the next one of its place in gs_allocator.unseen */
    struct claimant *owner; /* NULL: nobody's that we know */
    uint64_t key; /* not its alone: up to 1.37 an id is given out twice (kubernetes#137534) */
    gs_gpu_mask gpus;
    uint32_t units;             /* of the container */
    char pod[GS_POD_UID_BYTES]; /* that the kubelet's checkpoint has for it; "": none yet */
    bool seen;                  /* in the checkpoint that is being read */
    bool earlier;    /* an earlier run's, of a pod that any full list has while it lives */
    uint32_t missed; /* readings at an Allocate that should have named it, and did not */
    char uid[40];    /* of its claim in the ledger; "": its owner is charged for it, if any */
};

/* Without a pod and a claim it is an ended pod's that the kubelet's checkpoint still has. */
static inline bool gs_call_counts(const struct call *call)
{
    return call->owner || call->uid[0];
}

/* A pod's record, or an Event. */
struct queued_write {
    struct queued_write *next;
    struct gs_allocator_write out; /* of a record the annotations are made when it is taken */
    bool under_way;
    uint32_t failures;     /* in a row */
    int64_t not_before_ns; /* put off until then */
    struct gs_arena texts, annotations;
};

struct gs_allocator {
    struct gs_allocator_config config;
    struct gs_ledger *ledger; /* this node alone, what is allocated instead of records */
    gs_gpu_mask gone, sick;   /* GPUs that are not there any more; that are not healthy */
    struct claimant *first;
    struct claimant *current; /* begun and not finished: the kubelet is inside this pod */
    bool in_list, had_list;
    bool in_quick; /* the pods given are a quick list's */
    bool lost;     /* the kubelet's checkpoint was empty while pods ran, and still lacks some */
    struct gs_recent ended;
    struct call *calls;
    struct call *unseen[UNSEEN_MAX]; /* not in the checkpoint that is being read, by their keys */
    struct gs_recent stranger_ids;   /* of calls that no pod claimed, since one was dropped */
    uint64_t claim_number;
    struct gs_moved *earlier; /* of gpu-reassigned, of pods not seen yet */
    uint32_t earlier_count;
    struct gs_arena earlier_texts;       /* and the array */
    bool names_early;                    /* gpu-reassigned was not written before this run */
    uint64_t moved_state, moved_written; /* numbers of states of the entries */
    struct queued_write *writes;
    uint64_t write_number;
    struct gs_allocator_stats stats; /* the counters only */
};

/* By the kubelet's word: it is where its environment points to, whether there is room or not. */
static inline bool gs_claimant_runs(const struct claimant *claimant)
{
    return claimant->pod.phase == GS_PHASE_RUNNING;
}

/* moved.c */
/* Whenever what is allocated may have changed, or the record says something else (`drifted`). */
void gs_claimant_note_move(struct gs_allocator *alloc, struct claimant *claimant, bool drifted);
/* The earlier run's entry, of a claimant that is new. */
void gs_claimant_take_entry(struct gs_allocator *alloc, struct claimant *claimant);
/* Its entry, if it needs one, is on the node. */
bool gs_claimant_move_is_written(const struct gs_allocator *alloc, const struct claimant *claimant);
/* Writes the record if it is not true, but not all the time. */
void gs_claimant_put_right(struct gs_allocator *alloc, struct claimant *claimant);
/* What the annotations say is where it is. */
bool gs_claimant_is_recorded(const struct claimant *claimant);

/* allocator.c */
struct claimant *gs_claimant_find(struct gs_allocator *alloc, const char *uid);
/* The UID that the kubelet knows it by (gs_placed.cgroup_uid). */
const char *gs_claimant_cgroup(const struct claimant *claimant);
struct claimant *gs_claimant_of_cgroup(const struct gs_allocator *alloc, const char *uid);
/* Brings the ledger's claim in line with what is allocated, or with the record before that. Of one
 * that is torn each call is charged: it may have run before it was known. */
int gs_claimant_charge(struct gs_allocator *alloc, struct claimant *claimant, struct gs_error *err);
const struct gs_node_view *gs_allocator_view(const struct gs_allocator *alloc);
/* The claimant's charge fits these GPUs beside what was given away before, and what older pods
 * have recorded. */
bool gs_claimant_fits(const struct gs_allocator *alloc, const struct claimant *claimant,
                      gs_gpu_mask gpus);
/* It is there, or (0) nowhere yet. */
void gs_claimant_give(struct claimant *claimant, gs_gpu_mask gpus);
/* Where a pod is, or will be: what it was given, else what it has recorded. */
gs_gpu_mask gs_claimant_place(const struct gs_allocator *alloc, const struct claimant *claimant);
/* Size of (the first of) these GPUs, in units. */
uint32_t gs_allocator_gpu_size(const struct gs_allocator *alloc, gs_gpu_mask gpus);
/* What the plugin said before, else the bind's record; when it can be on this node, else 0. */
gs_gpu_mask gs_claimant_record(const struct gs_allocator *alloc, const struct claimant *claimant);

/* calls.c */
/* Remembers an answered call; owner NULL: charges it by itself. NULL when out of memory. */
struct call *gs_call_add(struct gs_allocator *alloc, uint64_t key, struct claimant *owner,
                         gs_gpu_mask gpus, uint32_t units, struct gs_error *err);
/* Its units on each of its GPUs. */
uint32_t gs_call_share(const struct call *call);
void gs_call_drop(struct gs_allocator *alloc, struct call *call);
void gs_calls_free(struct gs_allocator *alloc);
void gs_call_set_owner(struct gs_allocator *alloc, struct call *call, struct claimant *owner);
/* Alone: no place that its owner has stands for it. */
void gs_call_charge(struct gs_allocator *alloc, struct call *call, bool alone);
/* The pod ended: what the kubelet did not say is its may be another pod's and is kept. */
void gs_calls_leave(struct gs_allocator *alloc, const struct claimant *gone);

/* settle.c */
/* A new claimant takes the calls that the kubelet said are its. */
void gs_claimant_inherit(struct gs_allocator *alloc, struct claimant *claimant);
/* How many of its containers were answered that the checkpoint has; or (!named) has not yet. */
uint32_t gs_claimant_calls(const struct gs_allocator *alloc, const struct claimant *claimant,
                           bool named);
/* A container of it was answered, by this run or by an earlier one. */
bool gs_claimant_owns_calls(const struct gs_allocator *alloc, const struct claimant *claimant);
/* Where the environments of all its containers point to; 0: to different GPUs, or, of a pod that
 * does not run, to another number of them than it was bound to, or asks for. */
gs_gpu_mask gs_claimant_environment(const struct gs_allocator *alloc,
                                    const struct claimant *claimant);
/* Its containers were answered, and there is no such place. */
bool gs_claimant_is_torn(const struct gs_allocator *alloc, const struct claimant *claimant);
/* The owner is where its environment points to, if its charge has room there; else it is held. */
void gs_claimant_follow_environment(struct gs_allocator *alloc, struct claimant *owner);
/* So many of its containers were allocated. */
void gs_claimant_set_done(struct gs_allocator *alloc, struct claimant *claimant, uint32_t done);

/* writes.c */
/* Its record, and ASSIGNED once all of its containers have their GPUs, if they are not true yet. */
void gs_write_record(struct gs_allocator *alloc, struct claimant *claimant);
void gs_write_event(struct gs_allocator *alloc, const struct claimant *claimant, bool warning,
                    const char *reason, const char *message);
/* A Warning about the pod's controller, if it has one: a static pod's, its node, is none. */
void gs_write_owner_event(struct gs_allocator *alloc, const struct claimant *claimant,
                          const char *reason, const char *message);
/* An Event for that reason waits to be sent, or is on its way, about the pod or its controller. */
bool gs_event_is_queued(const struct gs_allocator *alloc, const char *uid, const char *reason);
/* Its record waits to be sent, or is on its way. */
bool gs_record_is_queued(const struct gs_allocator *alloc, const char *uid);
int64_t gs_allocator_now_ns(const struct gs_allocator *alloc);
void gs_writes_free(struct gs_allocator *alloc);
void gs_writes_count(const struct gs_allocator *alloc, struct gs_allocator_stats *stats);
