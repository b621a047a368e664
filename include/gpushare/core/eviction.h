/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/core/placement.h"

/*
 * Preemption on one node: kube-scheduler proposes victims by the node's sums; this says whether a
 * GPU (or the GPUs) would really have the room afterwards, and which pods must go besides. Pure.
 */
enum gs_eviction {
    GS_EVICTION_NO_MEMORY = -1,
    GS_EVICTION_USELESS, /* it would not fit even with every pod of lower priority gone */
    GS_EVICTION_FITS,    /* with the proposed victims and the added ones gone */
};

/*
 * PodDisruptionBudgets. A claim falls under at most GS_EVICTION_BUDGETS of them on one node: falls
 * says which, as bits, and sets `allowed` of those that it names for the first time.
 */
enum { GS_EVICTION_BUDGETS = 64 };
struct gs_eviction_budgets {
    uint64_t (*falls)(struct gs_eviction_budgets *budgets, const struct gs_claim *claim);
    int32_t allowed[GS_EVICTION_BUDGETS];
    uint32_t violations; /* out: added victims for which no budget is left */
};

/*
 * budgets: NULL: there are none. Violations are counted as kube-scheduler counts them: of all that
 * would go, the most important first, each takes one of its budgets, and those for which there is
 * none are spared first.
 *
 * victims: UIDs that go anyway; those without a claim on this node count for nothing. Added are
 * only claims of lower priority than the ask's, and none that is not needed: the plan that harms
 * the least important pods wins (lowest highest priority, then fewest pods, then lowest GPU; who
 * is being deleted already is not harmed). Above all that, fewest violations. *ret_added:
 * *ret_count UIDs in the arena, the most important first. Nominated pods of the same or higher
 * priority keep their place. *ret_* are untouched unless it fits.
 */
enum gs_eviction gs_plan_eviction(const struct gs_ledger *ledger, const struct gs_node_view *view,
                                  const struct gs_ask *ask, const char *const *victims,
                                  size_t victim_count, struct gs_eviction_budgets *budgets,
                                  struct gs_arena *arena, const char *const **ret_added,
                                  size_t *ret_count);
