/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/core/policy.h"

/*
 * The policy fgd, to compare rollout with: fragmentation gradient descent (Weng et al., USENIX
 * ATC'23) prefers the node where the memory that a typical pod cannot use grows least. It reads the
 * tables that rollout learnt and remembers in the same memos, by the internal headers of
 * src/lib/core: a gs_policies object serves either fgd or rollout. It is binpack until there are
 * tables.
 */

/* As gs_policy_choose(); what the ask says of compute is not looked at. */
bool gs_fgd_choose(struct gs_policies *policies, const struct gs_node_view *view,
                   const struct gs_ask *ask, struct gs_choice *ret);

struct gs_policy_table;
struct gs_state;

/* Units that typical pods cannot use, on average; the level 0..100 of a change for the better; and
 * the loss of a change. */
double gs_fgd_unusable(const struct gs_policy_table *table, const struct gs_state *state);
int gs_fgd_level(double gain_cards);
int64_t gs_fgd_loss(double before_units, double after_units, uint32_t card_units);
