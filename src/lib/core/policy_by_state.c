/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_internal.h"

/* How rollout chooses: it compares the node's state before and after. */

struct judge {
    struct gs_policies *policies;
    const struct gs_policy_table *table;
    const struct gs_node_view *view;
    const struct gs_ask *ask;
    struct gs_state before;
    uint64_t stranded_before;
};

uint64_t gs_rollout_remembered(struct gs_policies *policies, const struct gs_policy_table *table,
                               const struct gs_state *state)
{
    uint64_t key = gs_state_key(state, table->generation);
    struct gs_memo_value value;
    if (gs_memo_get(&policies->states, key, key, &value))
        return value.first;
    value = (struct gs_memo_value){gs_rollout_stranded(table, state), 0};
    gs_memo_put(&policies->states, key, key, value);
    return value.first;
}

static int64_t loss_of(const struct judge *judge, const struct gs_state *after)
{
    uint64_t stranded = gs_rollout_remembered(judge->policies, judge->table, after);
    return gs_rollout_loss(
        judge->stranded_before, stranded, gs_table_price(judge->table, judge->before.model),
        judge->before.left_units - after->left_units, judge->view->max_total_units);
}

static struct gs_state take_cpu(const struct judge *judge)
{
    struct gs_state after = judge->before;
    if (after.cpu_milli != INT32_MAX)
        after.cpu_milli = gs_class_cpu(after.cpu_milli - judge->ask->cpu_milli);
    return after;
}

/* Compute is of one GPU: a pod that asks for it and for several is placed nowhere. */
static bool by_cores(const struct gs_ask *ask)
{
    return ask->cores_pct && ask->gpu_count == 1;
}

/* Where a pod asks for compute, a GPU is worth what pods can use of it: of its memory no more than
 * the part that goes with its compute. So who needs much compute goes where memory is nearly used
 * up, and the other way round. For all others a GPU is its memory. */
static uint32_t worth(const struct judge *judge, const struct gs_gpu_state *gpu,
                      uint32_t free_units, uint32_t free_cores_pct)
{
    uint64_t in_step = (uint64_t)gpu->total_units * free_cores_pct / GS_CORES_PCT;
    return by_cores(judge->ask) && in_step < free_units ? (uint32_t)in_step : free_units;
}

static uint32_t worth_before(const struct judge *judge, const struct gs_gpu_state *gpu)
{
    return worth(judge, gpu, gpu->free_units, gpu->free_cores_pct);
}

static uint32_t worth_after(const struct judge *judge, const struct gs_gpu_state *gpu)
{
    return worth(judge, gpu, gpu->free_units - judge->ask->units,
                 gpu->free_cores_pct - judge->ask->cores_pct);
}

/* Out of line: compilers that harden clear the copy each time, and hardly any pod needs one. */
__attribute__((noinline)) static void take_worth_before(struct judge *judge)
{
    struct gs_gpu_state gpus[GS_GPUS_MAX];
    struct gs_node_view view = gs_view_copy(judge->view, gpus);
    for (uint32_t i = 0; i < view.gpu_count; i++)
        gpus[i].free_units = worth_before(judge, &gpus[i]);
    gs_state_of_view(&judge->before, judge->table, &view);
}

static void take_state_before(struct judge *judge)
{
    if (by_cores(judge->ask))
        take_worth_before(judge);
    else
        gs_state_of_view(&judge->before, judge->table, judge->view);
}

/*
 * Is a GPU better than the best so far? The first of equals; but where no GPU does any harm (pods
 * that are all alike and leave nothing over), the tightest: else they would break up one GPU after
 * the other.
 */
static bool better(const struct judge *judge, const struct gs_choice *best, uint32_t best_free,
                   int64_t loss, uint32_t free_units, uint32_t taken_units)
{
    if (!best->gpus || loss != best->loss)
        return !best->gpus || loss < best->loss;
    int64_t harmless = gs_rollout_loss(0, 0, gs_table_price(judge->table, judge->before.model),
                                       taken_units, judge->view->max_total_units);
    return loss == harmless && free_units < best_free;
}

/* The best GPU of all that have room; GPUs with the same room are the same, where nobody asks for
 * compute. */
static void choose_one(const struct judge *judge, struct gs_choice *ret)
{
    gs_gpu_mask candidates = gs_fit_candidates(judge->view, judge->ask);
    uint32_t tried[GS_GPUS_MAX], tries = 0, best_free = 0;
    for (uint32_t i = 0; i < judge->view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &judge->view->gpus[i];
        uint32_t seen = by_cores(judge->ask) ? tries : 0;
        while (seen < tries && tried[seen] != gpu->free_units)
            seen++;
        if (!(candidates & GS_GPU_BIT(gpu->idx)) || seen < tries)
            continue;
        tried[tries++] = gpu->free_units;
        struct gs_state after = take_cpu(judge);
        uint32_t before = worth_before(judge, gpu), taken = before - worth_after(judge, gpu);
        if (taken)
            gs_state_take(&after, before, taken);
        int64_t loss = loss_of(judge, &after);
        if (!better(judge, ret, best_free, loss, before, taken))
            continue;
        *ret = (struct gs_choice){loss, GS_GPU_BIT(gpu->idx)};
        best_free = before;
    }
}

/* Several GPUs: the tightest ones. */
static void choose_several(const struct judge *judge, struct gs_choice *ret)
{
    gs_gpu_mask gpus = gs_pick_tightest(judge->view, judge->ask);
    if (!gpus)
        return;
    struct gs_state after = take_cpu(judge);
    for (uint32_t i = 0; i < judge->view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &judge->view->gpus[i];
        if (gpus & GS_GPU_BIT(gpu->idx))
            gs_state_take(&after, gpu->free_units, judge->ask->units);
    }
    *ret = (struct gs_choice){loss_of(judge, &after), gpus};
}

/* A fiftieth of a card for each card that the node has free, before the pod: where pods leave, who
 * goes to the fullest node keeps others whole. Chosen with `gpushare-packing --timed`. */
static int64_t price_of_room(const struct gs_node_view *view)
{
    enum { PER_FREE_CARD_MILLI = 20 };
    return PER_FREE_CARD_MILLI * GS_LOSS_MILLI * (int64_t)view->sum_free_units /
           view->max_total_units;
}

void gs_policy_rollout(const struct gs_chooser *chooser, const struct gs_node_view *view,
                       struct gs_choice *ret)
{
    struct gs_policies *policies = chooser->policies;
    const struct gs_ask *ask = chooser->ask;
    struct gs_policy_table *table = gs_policies_pin(policies);
    if (!table) {
        gs_policy_binpack(view, ask, ret);
        return;
    }
    struct judge judge = {.policies = policies, .table = table, .view = view, .ask = ask};
    take_state_before(&judge);
    judge.stranded_before = gs_rollout_remembered(policies, table, &judge.before);
    if (!ask->units) {
        struct gs_state after = take_cpu(&judge);
        ret->loss = loss_of(&judge, &after);
    } else if (ask->gpu_count == 1) {
        choose_one(&judge, ret);
    } else {
        choose_several(&judge, ret);
    }
    if (chooser->leaving)
        ret->loss += price_of_room(view);
    gs_policies_unpin(policies, table);
}
