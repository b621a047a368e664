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

/* Those of one plan; the store stays locked meanwhile. */
struct gs_plan_budgets {
    struct gs_eviction_budgets plan;
    const struct gs_budgets *budgets;
    struct gs_arena arena; /* of one claim's labels */
    const struct gs_budget *named[GS_EVICTION_BUDGETS];
    uint32_t count;
};

void gs_plan_budgets_init(struct gs_plan_budgets *ret, const struct gs_budgets *budgets);
void gs_plan_budgets_release(struct gs_plan_budgets *of);

#endif
