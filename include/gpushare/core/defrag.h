/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/core/place.h"

/*
 * Which pods would have to move so that another fits. Works on a ledger of the caller's
 * own, a copy of the cluster: a plan that is found is carried out on it, so that
 * the next one begins where it ends. Everything that is placed is placed by core/place.h. One
 * thread, no I/O.
 *
 * A move is: the pod is evicted, and its controller's new pod goes where the policy says, while
 * what the old one held is still charged (a container stops slowly; a ReplicaSet does not wait for
 * it). Moves happen one after the other, large pods first. Pods that move come from one node, the
 * one where the waiting pod will go. If all went well with that node cordoned meanwhile, the plan
 * says so: nobody can take the room first. Else they may go to other GPUs of the same node.
 *
 * Of several plans the cheapest is given: fewest pods, then those that have run least, all
 * together. Chains (a pod of a second node moves, so that one of the first has room there) are not
 * tried.
 *
 *   struct gs_defrag *defrag = gs_defrag_new(&place, pods, count);
 *   struct gs_defrag_plan plan = {0};
 *   if (gs_defrag_make_room(defrag, &waiting, 8, &plan) == GS_DEFRAG_FOUND) ...
 *   gs_defrag_plan_release(&plan);
 *   gs_defrag_free(defrag);
 */
enum {
    GS_DEFRAG_MOVES_MAX = 16,     /* of a plan that makes room for one pod */
    GS_DEFRAG_PROVEN_MAX = 2000,  /* sets of pods that are carried out on the copy, for one pod */
    GS_DEFRAG_SETS_MAX = 1 << 17, /* that are looked at, of one size */
};

/* A bound pod. Strings are borrowed for the planner's life. */
struct gs_defrag_pod {
    const char *uid, *ns, *name;
    struct gs_ask ask; /* as if it were to be placed anew */
    int64_t age_s;
    bool movable; /* has a controller that makes a new one somewhere else */
};

struct gs_defrag_move {
    uint32_t pod;     /* index of pods */
    gs_gpu_mask from; /* the old one's GPUs, on the plan's slot */
    uint32_t slot;    /* where the policy puts the new one */
    gs_gpu_mask gpus;
};

struct gs_defrag_plan {
    struct gs_defrag_move *moves; /* in the order in which they are made */
    uint32_t count, cap;
    uint32_t slot;    /* where the waiting pod fits then */
    gs_gpu_mask gpus; /* of that node, as the policy chooses */
    bool cordon;      /* the node may take nobody meanwhile */
};
void gs_defrag_plan_release(struct gs_defrag_plan *plan);

enum gs_defrag_result {
    GS_DEFRAG_NO_MEMORY = -1,
    GS_DEFRAG_FOUND,
    GS_DEFRAG_FITS,   /* without any move */
    GS_DEFRAG_NO_SUM, /* all that is free on nodes and GPUs that it may use is less than it asks */
    GS_DEFRAG_NONE,   /* no set of so many pods helps */
    GS_DEFRAG_TOO_MANY, /* none of those that were tried, but not all were */
};

struct gs_defrag;

/* Claims of pods that are not among `pods` stay where they are. place and pods are borrowed, and
 * the place's ledger is changed. NULL when out of memory. */
struct gs_defrag *gs_defrag_new(struct gs_place *place, const struct gs_defrag_pod *pods,
                                uint32_t count);
void gs_defrag_free(struct gs_defrag *defrag);

/* Room for a waiting pod (borrowed for the planner's life) by at most max_moves (up to
 * GS_DEFRAG_MOVES_MAX) moves of pods of no higher priority. *ret zeroed before; when FOUND or FITS
 * the pod is charged on the ledger. */
enum gs_defrag_result gs_defrag_make_room(struct gs_defrag *defrag,
                                          const struct gs_defrag_pod *waiting, uint32_t max_moves,
                                          struct gs_defrag_plan *ret);
