/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/core/node_facts.h"
#include "gpushare/core/policy.h"

/*
 * Where a pod would go: what kube-scheduler and the extender make of it together, on a ledger in
 * memory. May the pod use the node (model/eligible.h), has a GPU the room beside the pods that are
 * nominated there (core/placement.h), which node and GPUs does the policy like best
 * (core/policy.h); and then the pod is charged there. The words of `why`, what-if, the page's
 * "would fit" and defrag come from here, and bind chooses its GPUs here. Not asked: memory, pods
 * and other resources of kube-scheduler's, affinity between pods, volumes, sampling of nodes.
 *
 *   struct gs_place place = {ledger, policies, &facts, GS_PLACEMENT_ROLLOUT};
 *   while (gs_place_choose(&place, &ask, refused, &slot, &gpus))       refused: zeroed before
 *       gs_place_claim(&place, &ask, slot, gpus, &err);
 *
 * All is borrowed. One thread, or the lock that guards the ledger.
 */
struct gs_place {
    struct gs_ledger *ledger;
    struct gs_policies *policies;
    const struct gs_node_facts *facts; /* NULL: nothing is known of any node, all may be used */
    enum gs_placement policy;          /* for asks that name none; a real one */
    uint32_t made;                     /* pods claimed so far; their UIDs begin with a slash */
};

/* What is in the way of a pod on a node. */
enum gs_obstacle {
    GS_OBSTACLE_GPU, /* there is a reason (model/reason.h) */
    GS_OBSTACLE_NOT_READY,
    GS_OBSTACLE_CORDONED,
    GS_OBSTACLE_NO_PLUGIN, /* GPUs, but nothing of them allocatable */
    GS_OBSTACLE_CPU,
    GS_OBSTACLE_TAINT,    /* these two, and … */
    GS_OBSTACLE_AFFINITY, /* … whatever the GPUs have */
    GS_OBSTACLE_NONE,     /* it fits */
    GS_OBSTACLES,
};

/* What keeps the pod off the node, whatever is free there; GS_OBSTACLE_NONE: nothing. */
enum gs_obstacle gs_place_open(const struct gs_place *place, const struct gs_ask *ask,
                               uint32_t slot);

/* The whole verdict on a node, and, when it is GS_OBSTACLE_GPU, *ret_reason. What passes by itself
 * (CPU, a cordon, a node that is not ready) is told only where the GPUs would do. ret: as
 * gs_fit_beside_holds() has it, where that was asked. */
enum gs_obstacle gs_place_judge(const struct gs_place *place, const struct gs_ask *ask,
                                const struct gs_node_view *view, enum gs_reason *ret_reason,
                                struct gs_beside *ret);

/*
 * The node that the policy likes best, the first of equals, and the GPUs there; false: none has
 * room. refused (a flag for each slot): slots that are not asked. Who says no is noted there: as
 * long as memory only gets less it will say no to the same ask again.
 */
bool gs_place_choose(const struct gs_place *place, const struct gs_ask *ask, bool *refused,
                     uint32_t *ret_slot, gs_gpu_mask *ret_gpus);

/* The GPUs of one node, without any question about the node. What the pod is promised there, else
 * what the policy likes best, which advises, and may remember; gs_fit_chosen() has the last word.
 * 0: *ret_reason says why. */
gs_gpu_mask gs_place_gpus(const struct gs_place *place, const struct gs_node_view *view,
                          const struct gs_ask *ask, enum gs_reason *ret_reason);

/* So many pods of that kind find room on the slot, one after the other. */
uint64_t gs_place_count(const struct gs_place *place, const struct gs_ask *ask, uint32_t slot);

/* One pod more, charged there. GS_ENOMEM. */
int gs_place_claim(struct gs_place *place, const struct gs_ask *ask, uint32_t slot,
                   gs_gpu_mask gpus, struct gs_error *err);

/* The pods that were claimed since place->made was `from` are gone. */
void gs_place_take_back(struct gs_place *place, uint32_t from);
