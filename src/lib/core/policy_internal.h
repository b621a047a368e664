/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "gpushare/core/policy.h"

#include "classes.h"
#include "memo.h"
#include "policy_kinds.h"
#include "state.h"
#include "table.h"

struct gs_policies {
    pthread_mutex_t table_lock; /* guards the pointer and refs: held for a few instructions */
    struct gs_policy_table *table;
    _Atomic uint64_t generation; /* of the table; 0: none yet */

    /* guards the following; a refresh copies under it, builds without */
    pthread_mutex_t learn_lock;
    struct gs_classes classes;
    struct gs_supply supply; /* its lists are the next two */
    uint64_t model_units[GS_MODELS_MAX + 1];
    char model_names[GS_MODELS_MAX + 1][GS_MODEL_BYTES];
    uint64_t learnt; /* pods with GPU memory, ever */
    uint64_t due_at; /* ... at which a refresh is worth while */
    bool supply_moved;
    uint32_t left_share;  /* of those that came or went lately, the share that went; of 2^16 */
    _Atomic bool leaving; /* it is large */

    struct gs_kinds kinds;
    struct gs_memo choices; /* by kind, table and node version */
    struct gs_memo states;  /* by node state */
};

/* policy_learn.c: the table in service, or NULL; give it back with gs_policies_unpin(). */
struct gs_policy_table *gs_policies_pin(struct gs_policies *policies);
void gs_policies_unpin(struct gs_policies *policies, struct gs_policy_table *table);

/* Each fills *ret, or leaves gpus 0 when the ask does not fit; a pod without GPU memory only gets
 * a loss. */
void gs_policy_binpack(const struct gs_node_view *view, const struct gs_ask *ask,
                       struct gs_choice *ret);
void gs_policy_spread(const struct gs_node_view *view, const struct gs_ask *ask,
                      struct gs_choice *ret);
void gs_policy_rollout(const struct gs_chooser *chooser, const struct gs_node_view *view,
                       struct gs_choice *ret);

/* Units that stay free, summed over GS_ROLLOUTS sequences; the same, remembered; and the
 * loss of a change that takes taken_units. */
uint64_t gs_rollout_stranded(const struct gs_policy_table *table, const struct gs_state *state);
uint64_t gs_rollout_remembered(struct gs_policies *policies, const struct gs_policy_table *table,
                               const struct gs_state *state);
int64_t gs_rollout_loss(uint64_t before_stranded, uint64_t after_stranded, int64_t price,
                        uint64_t taken_units, uint32_t card_units);
