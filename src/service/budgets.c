/* SPDX-License-Identifier: Apache-2.0 */
#include "budgets.h"

#include <stdlib.h>

#include "gpushare/codec/budgets.h"
#include "service_internal.h"

static const char *ns_of(const struct gs_budget *budget)
{
    return budget->ns ? budget->ns : "";
}

static int by_ns(const void *a, const void *b)
{
    return strcmp(ns_of(a), ns_of(b));
}

void gs_service_budgets(struct gs_service *service, struct gs_arena *arena, struct gs_budget *all,
                        uint32_t count)
{
    if (count)
        qsort(all, count, sizeof(*all), by_ns);
    gs_store_write(&service->store);
    struct gs_arena old = service->budgets.arena;
    service->budgets = (struct gs_budgets){*arena, all, count};
    gs_store_unlock(&service->store);
    gs_arena_release(&old);
    *arena = (struct gs_arena){0};
}

/* The first of that namespace, or of one behind it. */
static uint32_t first_of(const struct gs_budgets *budgets, const char *ns)
{
    uint32_t from = 0, to = budgets->count;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (strcmp(ns_of(&budgets->all[middle]), ns) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Its bit; 0: there are too many on this node. */
static uint64_t bit_of(struct gs_plan_budgets *of, const struct gs_budget *budget)
{
    uint32_t at = 0;
    while (at < of->count && of->named[at] != budget)
        at++;
    if (at == GS_EVICTION_BUDGETS)
        return 0;
    if (at == of->count) {
        of->named[of->count++] = budget;
        of->plan.allowed[at] = budget->allowed;
    }
    return (uint64_t)1 << at;
}

static void begin(struct gs_eviction_budgets *budgets)
{
    ((struct gs_plan_budgets *)budgets)->count = 0;
}

static uint64_t falls(struct gs_eviction_budgets *budgets, const struct gs_claim *claim)
{
    struct gs_plan_budgets *of = (struct gs_plan_budgets *)budgets;
    struct gs_kv *labels;
    uint32_t count;
    uint64_t bits = 0;
    uint32_t at = first_of(of->budgets, claim->ns);
    gs_arena_reset(&of->arena);
    if (!claim->labels || at == of->budgets->count ||
        gs_codec_labels(gs_slice_of(claim->labels), &of->arena, &labels, &count, NULL) < 0)
        return 0;
    for (; at < of->budgets->count; at++) {
        const struct gs_budget *budget = &of->budgets->all[at];
        if (strcmp(ns_of(budget), claim->ns) != 0)
            break;
        if (gs_budget_covers(budget, claim->ns, claim->name, labels, count))
            bits |= bit_of(of, budget);
    }
    return bits;
}

void gs_plan_budgets_init(struct gs_plan_budgets *ret, const struct gs_budgets *budgets)
{
    *ret = (struct gs_plan_budgets){.plan = {.begin = begin, .falls = falls}, .budgets = budgets};
}

void gs_plan_budgets_release(struct gs_plan_budgets *of)
{
    gs_arena_release(&of->arena);
}
