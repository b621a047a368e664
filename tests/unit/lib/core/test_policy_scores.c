/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/core/policy.h"
#include "rows.h"

enum { NODES = 6 };

static void losses_become_scores(void **state)
{
    static const struct {
        const char *row;
        double milli[NODES]; /* losses in thousandths of a card; negative: does not fit */
        uint8_t scores[NODES];
    } rows[] = {
        {"the best", {7, 7, -1, -1, -1, -1}, {10, 10}},
        {"up to 5, 10, 20", {0, 0.1, 4.9, 5, 10, 20}, {10, 9, 9, 8, 7, 6}},
        {"just below the limits", {0, 9.9, 19.9, 39.9, 79.9, 159.9}, {10, 8, 7, 6, 5, 4}},
        {"up to 1280", {0, 160, 320, 640, 1279, 1280}, {10, 3, 2, 1, 1, 0}},
        {"relative to the best", {1000, 1004, 2280, -1, 1160, 1000}, {10, 9, 0, 0, 3, 10}},
        {"far away", {0, 1e12, -1, -1, -1, -1}, {10, 0}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        int64_t loss[NODES];
        bool fits[NODES];
        uint8_t scores[NODES];
        for (int i = 0; i < NODES; i++) {
            fits[i] = r->milli[i] >= 0;
            loss[i] = fits[i] ? (int64_t)(r->milli[i] * (double)GS_LOSS_MILLI) : INT64_MIN;
        }
        gs_policy_scores(loss, fits, NODES, scores);
        for (int i = 0; i < NODES; i++)
            row_equal(r->row, scores[i], r->scores[i]);
    }
}

/* A node without GPUs beside others, for a pod without: the others are all far behind. */
static void nothing_to_lose_is_before_all_others(void **state)
{
    int64_t loss[] = {-64000 * GS_LOSS_MILLI, GS_LOSS_NOTHING_TO_LOSE, 64000 * GS_LOSS_MILLI};
    bool fits[] = {true, true, true};
    uint8_t scores[3];
    gs_policy_scores(loss, fits, 3, scores);
    assert_int_equal(scores[1], 10);
    assert_int_equal(scores[0], 0);
    assert_int_equal(scores[2], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_become_scores),
        cmocka_unit_test(nothing_to_lose_is_before_all_others),
    };
    return GS_RUN(tests);
}
