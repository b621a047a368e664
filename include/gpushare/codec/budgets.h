/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CODEC_BUDGETS_H
#define GPUSHARE_CODEC_BUDGETS_H

#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "gpushare/model/budget.h"

/* A PodDisruptionBudgetList of policy/v1: *ret lies in the arena. GS_EPROTO, GS_ENOMEM. Pure. */
int gs_codec_budgets(struct gs_slice json, struct gs_arena *arena, struct gs_budget **ret,
                     uint32_t *ret_count, struct gs_error *err);

/* An object of texts, such as metadata.labels: in the arena, by ascending key. Likewise. */
int gs_codec_labels(struct gs_slice json, struct gs_arena *arena, struct gs_kv **ret,
                    uint32_t *ret_count, struct gs_error *err);

#endif
