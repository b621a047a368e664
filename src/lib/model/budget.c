/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/budget.h"

#include <stdlib.h>

#include "gpushare/base/index.h"

struct gs_labels *gs_labels_of(struct gs_arena *arena, const struct gs_kv *all, uint32_t count)
{
    struct gs_labels *labels =
        gs_arena_alloc(arena, sizeof(*labels) + count * sizeof(labels->all[0]));
    if (!labels)
        return NULL;
    labels->count = count;
    for (uint32_t i = 0; i < count; i++)
        labels->all[i] = (struct gs_label){gs_hash_text(all[i].key), gs_hash_text(all[i].value)};
    qsort(labels->all, count, sizeof(labels->all[0]), gs_hash_order);
    return labels;
}

static bool is_met(const struct gs_requirement *wanted, const struct gs_labels *labels)
{
    const uint64_t key = gs_hash_text(wanted->key);
    const struct gs_label *label =
        bsearch(&key, labels->all, labels->count, sizeof(*label), gs_hash_order);
    bool found = label && !wanted->value_count;
    for (uint32_t i = 0; label && i < wanted->value_count; i++)
        found |= gs_hash_text(wanted->values[i]) == label->value;
    if (wanted->op == GS_OPERATOR_NOT_IN || wanted->op == GS_OPERATOR_DOES_NOT_EXIST)
        return !found;
    return found || (wanted->op != GS_OPERATOR_IN && wanted->op != GS_OPERATOR_EXISTS);
}

bool gs_budget_covers(const struct gs_budget *budget, const char *name,
                      const struct gs_labels *labels)
{
    if (budget->excess)
        return true;
    if (!budget->selector.count || !labels || !labels->count)
        return false;
    for (uint32_t i = 0; i < budget->selector.count; i++) {
        if (!is_met(&budget->selector.all[i], labels))
            return false;
    }
    for (uint32_t i = 0; i < budget->disrupted_count; i++) {
        if (strcmp(budget->disrupted[i], name) == 0)
            return false;
    }
    return true;
}
