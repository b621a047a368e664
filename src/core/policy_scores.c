/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/core/policy.h"

/* How losses become the scores 0 to 10. */

enum { TOP_SCORE = 10 };

static const char *const names[] = {
    [GS_QUANTISE_COARSE] = "coarse",
    [GS_QUANTISE_RANGE] = "range",
    [GS_QUANTISE_ONE_HOT] = "one-hot",
};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

bool gs_quantise_parse(const char *text, size_t len, enum gs_quantise *ret)
{
    for (unsigned i = 0; i < NAMES; i++) {
        if (gs_slice_eq((struct gs_slice){text, len}, gs_slice_of(names[i]))) {
            *ret = (enum gs_quantise)i;
            return true;
        }
    }
    return false;
}

struct range {
    int64_t least, most;
    size_t first; /* the first entry of the least loss */
};

static struct range range_of(const int64_t *loss, const bool *fits, size_t count)
{
    struct range range = {INT64_MAX, INT64_MIN, count};
    for (size_t i = 0; i < count; i++) {
        if (!fits[i])
            continue;
        if (range.first == count || loss[i] < range.least) {
            range.least = loss[i];
            range.first = i;
        }
        range.most = loss[i] > range.most ? loss[i] : range.most;
    }
    return range;
}

/* Each step back costs twice the loss. */
static uint8_t coarse(uint64_t behind)
{
    uint64_t times = behind / (5 * (uint64_t)GS_LOSS_MILLI);
    int steps = times ? 64 - __builtin_clzll(times) : 0;
    if (!behind)
        return TOP_SCORE;
    return steps < TOP_SCORE - 1 ? (uint8_t)(TOP_SCORE - 1 - steps) : 0;
}

/* floor(top × part / whole), without overflow. */
static uint8_t share(uint64_t part, uint64_t whole, unsigned top)
{
    return (uint8_t)((unsigned __int128)part * top / whole);
}

static uint8_t score_of(enum gs_quantise quantise, const struct range *range, int64_t loss,
                        bool first)
{
    uint64_t behind = (uint64_t)loss - (uint64_t)range->least;
    uint64_t before = (uint64_t)range->most - (uint64_t)loss;
    uint64_t whole = (uint64_t)range->most - (uint64_t)range->least;
    switch (quantise) {
    case GS_QUANTISE_COARSE:
        return coarse(behind);
    case GS_QUANTISE_ONE_HOT:
        return first ? TOP_SCORE : 0;
    case GS_QUANTISE_RANGE:
        break;
    }
    return behind ? share(before, whole, TOP_SCORE - 1) : TOP_SCORE;
}

void gs_policy_scores(enum gs_quantise quantise, const int64_t *loss, const bool *fits,
                      size_t count, uint8_t *ret_scores)
{
    struct range range = range_of(loss, fits, count);
    for (size_t i = 0; i < count; i++)
        ret_scores[i] = fits[i] ? score_of(quantise, &range, loss[i], i == range.first) : 0;
}
