/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CORE_POLICY_INTERNAL_H
#define GPUSHARE_CORE_POLICY_INTERNAL_H

#include "gpushare/core/policy.h"

struct gs_policies {
    int unused_until_stateful; /* binpack and spread keep nothing */
};

/* Each fills *ret, or leaves gpus 0 when the ask does not fit. */
void gs_policy_binpack(const struct gs_node_view *view, const struct gs_ask *ask,
                       struct gs_choice *ret);
void gs_policy_spread(const struct gs_node_view *view, const struct gs_ask *ask,
                      struct gs_choice *ret);

#endif
