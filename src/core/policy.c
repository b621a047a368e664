/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/core/policy.h"

#include <stdlib.h>

#include "policy_internal.h"

struct gs_policies *gs_policies_new(void)
{
    return calloc(1, sizeof(struct gs_policies));
}

void gs_policies_free(struct gs_policies *policies)
{
    free(policies);
}

bool gs_policy_choose(struct gs_policies *policies, enum gs_placement placement,
                      const struct gs_node_view *view, const struct gs_ask *ask,
                      struct gs_choice *ret)
{
    struct gs_choice choice = {0};
    switch (placement) {
    case GS_PLACEMENT_SPREAD:
        gs_policy_spread(view, ask, &choice);
        break;
    default:
        gs_policy_binpack(view, ask, &choice);
        break;
    }
    if (!choice.gpus)
        return false;
    *ret = choice;
    return true;
}

enum { TOP_SCORE = 10 };

void gs_policy_scores(const int64_t *loss, const bool *fits, size_t count, uint8_t *ret_scores)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        if (!fits[i])
            continue;
        least = loss[i] < least ? loss[i] : least;
        most = loss[i] > most ? loss[i] : most;
    }
    for (size_t i = 0; i < count; i++) {
        if (!fits[i]) {
            ret_scores[i] = 0;
        } else if (loss[i] == least) {
            ret_scores[i] = TOP_SCORE;
        } else { /* below the top whatever the rounding, so that the best node stays the best */
            double share = (double)(most - loss[i]) / (double)(most - least);
            ret_scores[i] = (uint8_t)(share * (TOP_SCORE - 1));
        }
    }
}
