/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/core/eviction.h"
#include "gpushare/base/array.h"

/* A claim on the node, as the plan sees it. */
struct tenant {
    const char *uid; /* borrowed from the ledger */
    gs_gpu_mask gpus;
    struct gs_amount each;
    int32_t priority;
    bool leaving;  /* being deleted already: evicting it harms nobody */
    bool gone;     /* in the plan under test */
    bool doomed;   /* proposed by kube-scheduler: always gone */
    bool violates; /* of all that are gone, it is one for which no budget is left */
    uint64_t budgets;
};

struct plan {
    const struct gs_ledger *ledger;
    const struct gs_node_view *view;
    const struct gs_ask *ask;
    struct gs_eviction_budgets *budgets;
    struct tenant *tenants; /* first those who go first */
    uint32_t count, cap;
    bool no_memory;
};

static bool collect(void *ctx, const struct gs_claim *claim)
{
    struct plan *plan = ctx;
    const bool counts = plan->budgets && !claim->leaving && claim->priority < plan->ask->priority;
    if (!gs_array_reach(&plan->tenants, &plan->cap, plan->count, sizeof(*plan->tenants))) {
        plan->no_memory = true;
        return false;
    }
    plan->tenants[plan->count++] = (struct tenant){
        .uid = claim->uid,
        .gpus = claim->charged,
        .each = claim->each,
        .priority = claim->priority,
        .leaving = claim->leaving,
        .budgets = counts ? plan->budgets->falls(plan->budgets, claim) : 0,
    };
    return true;
}

static int by_harm(const void *a, const void *b)
{
    const struct tenant *left = a, *right = b;
    if (left->leaving != right->leaving)
        return left->leaving ? -1 : 1;
    if (left->priority != right->priority)
        return left->priority < right->priority ? -1 : 1;
    if (left->each.units !=
        right->each.units) /* among equals the large ones first: fewer must go */
        return left->each.units > right->each.units ? -1 : 1;
    return strcmp(left->uid, right->uid);
}

static void mark_doomed(struct plan *plan, const char *const *victims, size_t victim_count)
{
    for (size_t v = 0; v < victim_count; v++) {
        for (size_t t = 0; t < plan->count; t++) {
            if (strcmp(plan->tenants[t].uid, victims[v]) == 0)
                plan->tenants[t].doomed = plan->tenants[t].gone = true;
        }
    }
}

/* Fits the ask once all tenants marked gone have left? */
static bool fits(const struct plan *plan)
{
    struct gs_gpu_state after[GS_GPUS_MAX];
    struct gs_leaving leaving[GS_GPUS_MAX] = {0};
    struct gs_node_view view = gs_view_copy(plan->view, after);
    for (size_t t = 0; t < plan->count; t++) {
        const struct tenant *tenant = &plan->tenants[t];
        if (tenant->gone)
            gs_view_charge(&view, tenant->gpus, tenant->each, -1);
        else if (tenant->leaving)
            gs_leaving_add(leaving, tenant->gpus, tenant->each);
    }
    gs_view_summarise(&view);
    return gs_fit_beside_holds_when(plan->ledger, &view, plan->ask, leaving, NULL) == GS_FITS;
}

static bool may_go(const struct plan *plan, const struct tenant *tenant)
{
    return tenant->doomed || tenant->priority < plan->ask->priority;
}

static bool take_budgets(uint64_t budgets, int32_t *left)
{
    bool violates = false;
    for (; budgets; budgets &= budgets - 1) {
        int32_t *of = &left[__builtin_ctzll(budgets)];
        violates |= *of <= 0;
        *of -= *of > 0;
    }
    return violates;
}

/* Who violates a budget, of those who are gone; the proposed ones have theirs before. */
static void mark_violations(struct plan *plan)
{
    int32_t left[GS_EVICTION_BUDGETS];
    if (!plan->budgets)
        return;
    memcpy(left, plan->budgets->allowed, sizeof(left));
    for (int doomed = 1; doomed >= 0; doomed--) {
        for (size_t t = plan->count; t-- > 0;) {
            struct tenant *tenant = &plan->tenants[t];
            if (tenant->gone && tenant->doomed == (bool)doomed)
                tenant->violates = take_budgets(tenant->budgets, left);
        }
    }
}

/* Who need not go, of those who violate a budget or of the others, highest priority first, stays.
 */
static void spare(struct plan *plan, bool violating)
{
    for (size_t t = plan->count; t-- > 0;) {
        struct tenant *tenant = &plan->tenants[t];
        if (!tenant->gone || tenant->doomed || tenant->violates != violating)
            continue;
        tenant->gone = false;
        if (!fits(plan))
            tenant->gone = true;
    }
}

/* All of lower priority on these GPUs go; then whoever need not stays. */
static bool trim(struct plan *plan, gs_gpu_mask gpus)
{
    for (size_t t = 0; t < plan->count; t++) {
        struct tenant *tenant = &plan->tenants[t];
        tenant->gone = tenant->doomed || ((tenant->gpus & gpus) && may_go(plan, tenant));
    }
    if (!fits(plan))
        return false;
    mark_violations(plan);
    spare(plan, true);
    spare(plan, false);
    return true;
}

struct harm {
    uint32_t violations;
    int64_t highest; /* priority of the most important added victim */
    size_t count;
};

static struct harm harm_of(const struct plan *plan)
{
    struct harm harm = {.highest = INT64_MIN};
    for (size_t t = 0; t < plan->count; t++) {
        const struct tenant *tenant = &plan->tenants[t];
        if (!tenant->gone || tenant->doomed || tenant->leaving)
            continue;
        harm.count++;
        harm.violations += tenant->violates;
        harm.highest = tenant->priority > harm.highest ? tenant->priority : harm.highest;
    }
    return harm;
}

static bool milder(struct harm a, struct harm b)
{
    if (a.violations != b.violations)
        return a.violations < b.violations;
    return a.highest != b.highest ? a.highest < b.highest : a.count < b.count;
}

/*
 * The GPUs to clear. One GPU asked: try each. Several asked, or nominated pods that must sit
 * somewhere too: eviction_wait any lower-priority pod of the node is the widest plan, and trimming
 * it, most important pods first, leaves what is needed.
 */
static gs_gpu_mask choose_gpus(struct plan *plan, bool *ret_found)
{
    gs_gpu_mask best = 0, all = ~(gs_gpu_mask)0;
    struct harm least = {0};
    *ret_found = false;
    for (uint32_t i = 0; plan->ask->gpu_count == 1 && i < plan->view->gpu_count; i++) {
        gs_gpu_mask gpu = GS_GPU_BIT(plan->view->gpus[i].idx);
        if (!trim(plan, gpu))
            continue;
        struct harm harm = harm_of(plan);
        if (!*ret_found || milder(harm, least)) {
            *ret_found = true;
            least = harm;
            best = gpu;
        }
    }
    if (!*ret_found && (plan->ask->gpu_count > 1 || plan->view->nominated)) {
        *ret_found = trim(plan, all);
        return all;
    }
    return best;
}

static enum gs_eviction hand_out(const struct plan *plan, struct gs_arena *arena,
                                 const char *const **ret_added, size_t *ret_count)
{
    const char **added = gs_arena_calloc(arena, plan->count, sizeof(*added));
    size_t count = 0;
    for (size_t t = plan->count; added && t-- > 0;) {
        const struct tenant *tenant = &plan->tenants[t];
        if (!tenant->gone || tenant->doomed)
            continue;
        added[count] = gs_arena_strdup(arena, tenant->uid);
        if (!added[count++])
            added = NULL;
    }
    if (!added)
        return GS_EVICTION_NO_MEMORY;
    *ret_added = added;
    *ret_count = count;
    return GS_EVICTION_FITS;
}

enum gs_eviction gs_plan_eviction(const struct gs_ledger *ledger, const struct gs_node_view *view,
                                  const struct gs_ask *ask, const char *const *victims,
                                  size_t victim_count, struct gs_eviction_budgets *budgets,
                                  struct gs_arena *arena, const char *const **ret_added,
                                  size_t *ret_count)
{
    struct plan plan = {.ledger = ledger, .view = view, .ask = ask, .budgets = budgets};
    gs_ledger_each_claim(ledger, view->slot, collect, &plan);
    enum gs_eviction result = plan.no_memory ? GS_EVICTION_NO_MEMORY : GS_EVICTION_USELESS;
    if (!plan.no_memory) {
        if (plan.count)
            qsort(plan.tenants, plan.count, sizeof(*plan.tenants), by_harm);
        mark_doomed(&plan, victims, victim_count);
        bool found = fits(&plan);
        if (!found) {
            gs_gpu_mask gpus = choose_gpus(&plan, &found);
            if (found)
                trim(&plan, gpus);
        }
        if (budgets)
            budgets->violations = found ? harm_of(&plan).violations : 0;
        if (found)
            result = hand_out(&plan, arena, ret_added, ret_count);
    }
    free(plan.tenants);
    return result;
}
