/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/codec/scan.h"
#include "gpushare/model/budget.h"

/* What may be asked of a namespace's budgets (8 each, and one for each key, value and disrupted
 * pod), and what all take of memory. */
enum { GS_BUDGETS_WORK_MAX = 2048, GS_BUDGETS_BYTES_MAX = 32 << 20 };

/* Takes a PodDisruptionBudget of policy/v1, an item of a list by namespaces, off *from: one more of
 * *all, in the arena, zeroed at first. 1: with it there are too many, and it stands alone for its
 * namespace. GS_EPROTO, GS_ENOMEM: *all and *count are untouched. Pure. */
int gs_codec_budget_take(struct gs_scan *from, struct gs_arena *arena, struct gs_budget **all,
                         uint32_t *count, struct gs_error *err);
