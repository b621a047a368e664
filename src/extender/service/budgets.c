/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

void gs_service_budgets(struct gs_service *service, struct gs_arena *arena, struct gs_budget *all,
                        uint32_t count)
{
    if (count)
        qsort(all, count, sizeof(*all), gs_text_order);
    gs_service_write(service);
    struct gs_arena old = service->budgets.arena;
    service->budgets = (struct gs_budgets){*arena, all, count};
    gs_service_unlock(service);
    gs_arena_release(&old);
    *arena = (struct gs_arena){0};
}

/* Its bit. Where there are too many on a node the last bit is the rest's, which allow none. */
static uint64_t bit_of(struct gs_plan_budgets *of, const struct gs_budget *budget)
{
    uint32_t at = 0;
    while (at < of->count && of->named[at] != budget)
        at++;
    if (at == of->count && at < GS_EVICTION_BUDGETS - 1) {
        of->named[of->count++] = budget;
        of->plan.allowed[at] = budget->allowed;
    }
    return (uint64_t)1 << at;
}

uint64_t gs_budgets_fall(struct gs_eviction_budgets *budgets, const struct gs_claim *claim)
{
    struct gs_plan_budgets *of = (struct gs_plan_budgets *)budgets;
    const struct gs_budgets *all = of->budgets;
    const struct gs_budget wanted = {.ns = claim->ns};
    const struct gs_budget *at = bsearch(&wanted, all->all, all->count, sizeof(*at), gs_text_order);
    uint64_t bits = 0;
    uint32_t work = 0;
    if (!at)
        return 0;
    while (at > all->all && gs_text_order(at - 1, at) == 0)
        at--;
    uint32_t *spent = &of->work[(at - all->all) % GS_SHARES];
    if (*spent > GS_PLAN_WORK_MAX)
        return (uint64_t)1 << (GS_EVICTION_BUDGETS - 1);
    for (; at < all->all + all->count && gs_text_order(at, &wanted) == 0; at++) {
        work = at->work;
        if (gs_budget_covers(at, claim->name, claim->labels))
            bits |= bit_of(of, at);
    }
    *spent += work;
    return bits;
}
