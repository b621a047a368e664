/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/budget.h"

#include <string.h>

bool gs_budget_covers(const struct gs_budget *budget, const char *ns, const char *name,
                      const struct gs_kv *labels, uint32_t label_count)
{
    if (!budget->selector.count || !label_count || strcmp(budget->ns ? budget->ns : "", ns) != 0 ||
        !gs_labels_match(&budget->selector, labels, label_count))
        return false;
    for (uint32_t i = 0; i < budget->disrupted_count; i++) {
        if (strcmp(budget->disrupted[i], name) == 0)
            return false;
    }
    return true;
}
