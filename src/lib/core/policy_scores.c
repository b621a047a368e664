/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/core/policy.h"

enum { TOP_SCORE = 10 };

/* Each step back costs twice the loss. */
static uint8_t score_of(uint64_t behind)
{
    uint64_t times = behind / (5 * (uint64_t)GS_LOSS_MILLI);
    int steps = times ? 64 - __builtin_clzll(times) : 0;
    if (!behind)
        return TOP_SCORE;
    return steps < TOP_SCORE - 1 ? (uint8_t)(TOP_SCORE - 1 - steps) : 0;
}

void gs_policy_scores(const int64_t *loss, const bool *fits, size_t count, uint8_t *ret_scores)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < count; i++)
        least = fits[i] && loss[i] < least ? loss[i] : least;
    for (size_t i = 0; i < count; i++)
        ret_scores[i] = fits[i] ? score_of((uint64_t)loss[i] - (uint64_t)least) : 0;
}
