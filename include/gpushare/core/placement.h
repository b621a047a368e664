/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/core/ledger.h"
#include "gpushare/core/view.h"
#include "gpushare/model/charge.h"
#include "gpushare/model/reason.h"

/*
 * Does a pod fit a node, and on which GPUs? Pure; reads a view, changes nothing.
 */

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
 * that are being deleted have gone: its victims, mostly. ret, when not NULL, is given that state;
 * without holds in the way its view is the ledger's own.
 */
struct gs_beside {
    struct gs_node_view view;
    struct gs_gpu_state gpus[GS_GPUS_MAX];
};
enum gs_reason gs_fit_beside_holds(const struct gs_ledger *ledger, const struct gs_node_view *view,
                                   const struct gs_ask *ask, struct gs_beside *ret);

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
                                        const struct gs_leaving *leaving, struct gs_beside *ret);

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
