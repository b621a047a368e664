/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_internal.h"

enum { CHOICE_BITS = 19, STATE_BITS = 17, ROW_BITS = CHOICE_BITS - 6 };
_Static_assert((1 << (CHOICE_BITS - ROW_BITS)) == GS_KINDS_MAX, "a row for each");

struct gs_policies *gs_policies_new(void)
{
    struct gs_policies *policies = calloc(1, sizeof(*policies));
    if (!policies)
        return NULL;
    pthread_mutex_init(&policies->table_lock, NULL);
    pthread_mutex_init(&policies->learn_lock, NULL);
    pthread_mutex_init(&policies->kinds.lock, NULL);
    policies->supply = (struct gs_supply){0, policies->model_units, policies->model_names};
    policies->due_at = GS_LEARN_MIN;
    if (gs_memo_init(&policies->choices, CHOICE_BITS) < 0 ||
        gs_memo_init(&policies->states, STATE_BITS) < 0) {
        gs_policies_free(policies);
        return NULL;
    }
    return policies;
}

void gs_policies_free(struct gs_policies *policies)
{
    if (!policies)
        return;
    gs_policy_table_free(policies->table);
    gs_classes_release(&policies->classes);
    gs_memo_release(&policies->choices);
    gs_memo_release(&policies->states);
    pthread_mutex_destroy(&policies->table_lock);
    pthread_mutex_destroy(&policies->learn_lock);
    pthread_mutex_destroy(&policies->kinds.lock);
    free(policies);
}

/* --- choosing --- */

/*
 * What is remembered is advice: it orders nodes, and says which GPU bind tries first
 * (gs_fit_chosen() has the last word). Results of one kind of pod lie in a row by node slot,
 * because a request names the nodes in about that order: scattered over megabytes, each would cost
 * a cache miss. Nodes beyond a row's length use the next row's: nothing is wrong then, only
 * forgotten, since every entry has its whole key, of numbers that nobody outside chooses.
 */
static uint64_t choice_key(const struct gs_chooser *chooser, const struct gs_node_view *view,
                           uint64_t generation)
{
    return gs_mix_end(
        gs_mix(gs_mix(gs_mix(GS_MIX_START, chooser->kind), generation), view->version));
}

static bool remembers(const struct gs_chooser *chooser, const struct gs_node_view *view,
                      uint64_t generation, struct gs_choice *ret)
{
    uint64_t key = choice_key(chooser, view, generation);
    struct gs_memo_value value;
    if (!gs_memo_get(&chooser->policies->choices, chooser->row + view->slot, key, &value))
        return false;
    *ret = (struct gs_choice){(int64_t)value.first, value.second};
    return true;
}

/* rollout: nodes that did not change since the same kind of pod was last asked about cost
 * one look-up. */
static void choose_remembered(struct gs_chooser *chooser, const struct gs_node_view *view,
                              struct gs_choice *ret)
{
    struct gs_policies *policies = chooser->policies;
    uint64_t generation = atomic_load_explicit(&policies->generation, memory_order_acquire);
    const bool kept = generation && view->version;
    if (kept && remembers(chooser, view, generation, ret))
        return;
    if (chooser->hurried) {
        const struct gs_node_view *alone = chooser->alone ? chooser->alone : view;
        if (!generation || !alone->version ||
            (!remembers(chooser, alone, generation, ret) &&
             !remembers(chooser, alone, generation - 1, ret)))
            ret->loss = GS_LOSS_UNKNOWN;
        return;
    }
    gs_policy_rollout(chooser, view, ret);
    chooser->worked++;
    if (kept)
        gs_memo_put(&policies->choices, chooser->row + view->slot,
                    choice_key(chooser, view, generation),
                    (struct gs_memo_value){(uint64_t)ret->loss, ret->gpus});
}

void gs_chooser_init(struct gs_chooser *ret, struct gs_policies *policies,
                     enum gs_placement placement, const struct gs_ask *ask)
{
    if (ask->placement != GS_PLACEMENT_DEFAULT)
        placement = ask->placement;
    *ret = (struct gs_chooser){.policies = policies, .ask = ask, .placement = placement};
    if (placement == GS_PLACEMENT_ROLLOUT) {
        ret->leaving = atomic_load_explicit(&policies->leaving, memory_order_relaxed);
        uint32_t row = 0;
        ret->kind = gs_kinds_find(&policies->kinds, ret->leaving, ask, &row);
        ret->row = (uint64_t)row << ROW_BITS;
    }
}

bool gs_chooser_choose(struct gs_chooser *chooser, const struct gs_node_view *view,
                       struct gs_choice *ret)
{
    const struct gs_ask *ask = chooser->ask;
    struct gs_choice choice = {0};
    if (ask->units && gs_fit(view, ask) != GS_FITS)
        return false;
    if (!view->sum_total_units)
        choice.loss = GS_LOSS_NOTHING_TO_LOSE;
    else if (chooser->placement == GS_PLACEMENT_ROLLOUT)
        choose_remembered(chooser, view, &choice);
    else if (chooser->placement == GS_PLACEMENT_SPREAD)
        gs_policy_spread(view, ask, &choice);
    else
        gs_policy_binpack(view, ask, &choice);
    if (ask->units && !choice.gpus && choice.loss != GS_LOSS_UNKNOWN)
        return false;
    *ret = choice;
    return true;
}
