/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CODEC_BUDGETS_H
#define GPUSHARE_CODEC_BUDGETS_H

#include "gpushare/base/error.h"
#include "gpushare/codec/scan.h"
#include "gpushare/model/budget.h"

/* Takes a PodDisruptionBudget of policy/v1, an item of a list, off *from: one more of *all, in the
 * arena, zeroed at first. GS_EPROTO, GS_ENOMEM: *all and *count are untouched. Pure. */
int gs_codec_budget_take(struct gs_scan *from, struct gs_arena *arena, struct gs_budget **all,
                         uint32_t *count, struct gs_error *err);

/* An object of texts, such as metadata.labels: in the arena, by ascending key. Likewise. */
int gs_codec_labels(struct gs_slice json, struct gs_arena *arena, struct gs_kv **ret,
                    uint32_t *ret_count, struct gs_error *err);

#endif
