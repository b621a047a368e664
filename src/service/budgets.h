/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_BUDGETS_H
#define GPUSHARE_SERVICE_BUDGETS_H

#include "gpushare/core/eviction.h"
#include "gpushare/model/budget.h"

/*
 * The cluster's PodDisruptionBudgets, whole, as they were listed last (gs_service_budgets()): for
 * the victims that preempt adds. None are known until the first list, nor where they may not be
 * read. Guarded by the store's lock. Pods' labels are in their claims (gs_claim.labels).
 */
struct gs_budgets {
    struct gs_arena arena;
    struct gs_budget *all; /* ascending namespace */
    uint32_t count;
};

/* What may be asked of a namespace's budgets (gs_budget.work) for an answer; afterwards its pods
 * violate one. */
enum { GS_PLAN_WORK_MAX = 4 << 20, GS_PLAN_SHARES = 1024 };

/* Those of one answer; the store is locked in each plan. */
struct gs_plan_budgets {
    struct gs_eviction_budgets plan;
    const struct gs_budgets *budgets;
    const struct gs_budget *named[GS_EVICTION_BUDGETS];
    uint32_t count;
    uint32_t work[GS_PLAN_SHARES]; /* by the namespace's first budget */
};

/* For plan.falls. */
uint64_t gs_budgets_fall(struct gs_eviction_budgets *budgets, const struct gs_claim *claim);

#endif
