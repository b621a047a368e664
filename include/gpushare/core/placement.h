/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/core/ledger.h"
#include "gpushare/core/view.h"
#include "gpushare/model/charge.h"
#include "gpushare/model/reason.h"

/*
 * Does a pod fit a node, and on which GPUs? Pure; reads a view, changes nothing.
 */

/*
 * A request's lists, matched before the store is locked: against each model that the ledger has
 * seen, once, and the UUIDs made numbers. Everything that looks at many nodes takes one; without it
 * gs_ask_allowed() compares texts for every GPU, which says the same. Plain data of gs_ask_match().
 */
struct gs_match {
    uint16_t models;                      /* numbers up to this one were matched */
    uint64_t allowed[GS_MODELS_MAX / 64]; /* model number - 1 */
    uint32_t uuids, uuids_denied;
    uint32_t uuid[GS_LIST_ENTRIES_MAX], uuid_denied[GS_LIST_ENTRIES_MAX]; /* hashes */
};

/* What a pod asks of a node. Selector texts are borrowed from the pod. */
struct gs_ask {
    uint32_t gpu_count;
    GS_AMOUNT_EACH; /* without units it fits everywhere */
    int32_t priority;
    enum gs_placement placement;
    int64_t cpu_milli;
    enum gs_reason broken; /* GS_FITS, or why the pod can be placed nowhere */
    bool selects;          /* one of the four lists is not empty */
    struct gs_slice model, model_deny, uuid, uuid_deny;
    const struct gs_match *match;     /* of these lists, borrowed; NULL: not matched */
    const char *uid;                  /* borrowed; its own hold does not stand in its way */
    uint64_t group;                   /* gs_pod_name_hash() of the pod's group; 0: it names none */
    const char *ns;                   /* borrowed; NULL: nobody's. Whose memory it may take */
    const struct gs_pod_rules *rules; /* the pod's, borrowed; NULL: it says nothing about nodes */
};

/* Reads a pod's ask; every broken annotation ends in ask->broken. */
void gs_ask_of_pod(struct gs_ask *ret, const struct gs_pod *pod);

/* Of all that says which GPUs and nodes are good for it, but for rules about nodes (base/index.h).
 */
uint64_t gs_ask_hash(const struct gs_ask *ask);

/* Matches the lists of an ask that has any and is not broken: *room is the ask's from then on. It
 * is of the models that the ledger has now: after its lock was let go, match again. */
void gs_ask_match(struct gs_ask *ask, const struct gs_ledger *ledger, struct gs_match *room);

/* The GPUs of a node that the ask's selectors allow; all of them without selectors. */
gs_gpu_mask gs_ask_allowed(const struct gs_ask *ask, const struct gs_node_view *view);

/* GS_FITS, or why not. Holds of nominated pods are not looked at: see gs_fit_beside_holds(). */
enum gs_reason gs_fit(const struct gs_node_view *view, const struct gs_ask *ask);

/* Usable, allowed GPUs with room for one share of the ask, compute included; none when it is
 * broken. */
gs_gpu_mask gs_fit_candidates(const struct gs_node_view *view, const struct gs_ask *ask);

/*
 * gs_fit() on a node of a ledger as it will be when every nominated pod of the same or higher
 * priority has taken its place there (binpacked, highest priority first), as kube-scheduler itself
 * counts nominated pods. One that fits nowhere yet keeps the GPU where it will fit when the pods
 * that are being deleted have gone: its victims, mostly. When *ret_view is not NULL it is given
 * that state: its gpus are `scratch` (room for GS_GPUS_MAX), borrowed; without holds in the way it
 * is the ledger's own view.
 */
enum gs_reason gs_fit_beside_holds(const struct gs_ledger *ledger, const struct gs_node_view *view,
                                   const struct gs_ask *ask, struct gs_gpu_state *scratch,
                                   struct gs_node_view *ret_view);

/* The first slot from `from` on whose node has room in that sense; GS_INDEX_NONE: none has. */
uint32_t gs_fit_first(const struct gs_ledger *ledger, const struct gs_ask *ask, uint32_t from);

/*
 * gs_fit_beside_holds() for a view that differs from the ledger's: leaving[idx] (GS_GPUS_MAX
 * entries) is what of that which the view shows on a GPU is about to go.
 */
struct gs_leaving {
    uint64_t units;
    uint32_t pods;
    uint32_t cores_pct;
};
/* One more pod is about to go. */
void gs_leaving_add(struct gs_leaving *leaving, gs_gpu_mask gpus, struct gs_amount each);
enum gs_reason gs_fit_beside_holds_when(const struct gs_ledger *ledger,
                                        const struct gs_node_view *view, const struct gs_ask *ask,
                                        const struct gs_leaving *leaving,
                                        struct gs_gpu_state *scratch,
                                        struct gs_node_view *ret_view);

/*
 * The last word on a choice, whoever made it, and whenever: GS_FITS if these GPUs are as many as
 * the ask wants and each of them takes the pod now, beside the holds. `own` is the pod's own claim
 * there, which is not in its way, or NULL. Nothing is reserved without it.
 */
enum gs_reason gs_fit_chosen(const struct gs_ledger *ledger, const struct gs_node_view *view,
                             const struct gs_ask *ask, gs_gpu_mask gpus,
                             const struct gs_claim *own);

/*
 * Best fit: the gpu_count candidates with the least free memory, lowest index on ties (for an ask
 * with compute: the least free compute before that); several
 * GPUs from one NUMA node when one has enough of them (the NUMA node whose chosen GPUs have least
 * free memory, that of the lowest index on ties). 0 when it does not fit.
 */
gs_gpu_mask gs_pick_tightest(const struct gs_node_view *view, const struct gs_ask *ask);

/* The opposite: most free memory first, lowest index on ties, NUMA likewise. */
gs_gpu_mask gs_pick_emptiest(const struct gs_node_view *view, const struct gs_ask *ask);
