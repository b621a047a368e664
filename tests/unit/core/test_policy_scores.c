/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/core/policy.h"
#include "rows.h"

enum { NODES = 6 };

static void losses_become_scores(void **state)
{
    static const struct {
        const char *row;
        enum gs_quantise quantise;
        double milli[NODES]; /* losses in thousandths of a card; negative: does not fit */
        uint8_t scores[NODES];
    } rows[] = {
        {"coarse: the best", GS_QUANTISE_COARSE, {7, 7, -1, -1, -1, -1}, {10, 10}},
        {"coarse: up to 5, 10, 20",
         GS_QUANTISE_COARSE,
         {0, 0.1, 4.9, 5, 10, 20},
         {10, 9, 9, 8, 7, 6}},
        {"coarse: just below the limits",
         GS_QUANTISE_COARSE,
         {0, 9.9, 19.9, 39.9, 79.9, 159.9},
         {10, 8, 7, 6, 5, 4}},
        {"coarse: up to 1280",
         GS_QUANTISE_COARSE,
         {0, 160, 320, 640, 1279, 1280},
         {10, 3, 2, 1, 1, 0}},
        {"coarse: relative to the best",
         GS_QUANTISE_COARSE,
         {1000, 1004, 2280, -1, 1160, 1000},
         {10, 9, 0, 0, 3, 10}},
        {"coarse: far away", GS_QUANTISE_COARSE, {0, 1e12, -1, -1, -1, -1}, {10, 0}},
        {"range: only the best gets 10",
         GS_QUANTISE_RANGE,
         {0, 0.001, 50, 100, 0, -1},
         {10, 8, 4, 0, 10, 0}},
        {"one-hot: the first of the best",
         GS_QUANTISE_ONE_HOT,
         {5, 3, 3, -1, 4, 3},
         {0, 10, 0, 0, 0, 0}},
        {"one-hot: nothing fits", GS_QUANTISE_ONE_HOT, {-1, -1, -1, -1, -1, -1}, {0}},
        {"one-hot: one fits", GS_QUANTISE_ONE_HOT, {-1, -1, 9, -1, -1, -1}, {0, 0, 10}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        int64_t loss[NODES];
        bool fits[NODES];
        uint8_t scores[NODES];
        for (int i = 0; i < NODES; i++) {
            fits[i] = r->milli[i] >= 0;
            loss[i] = fits[i] ? (int64_t)(r->milli[i] * (double)GS_LOSS_MILLI) : INT64_MIN;
        }
        gs_policy_scores(r->quantise, loss, fits, NODES, scores);
        for (int i = 0; i < NODES; i++)
            row_equal(r->row, scores[i], r->scores[i]);
    }
}

/* A node without GPUs beside others, for a pod without: the others are all far behind. */
static void nothing_to_lose_is_before_all_others(void **state)
{
    static const enum gs_quantise all[] = {GS_QUANTISE_COARSE, GS_QUANTISE_RANGE,
                                           GS_QUANTISE_ONE_HOT};
    for (size_t q = 0; q < GS_COUNT_OF(all); q++) {
        int64_t loss[] = {-64000 * GS_LOSS_MILLI, GS_LOSS_NOTHING_TO_LOSE, 64000 * GS_LOSS_MILLI};
        bool fits[] = {true, true, true};
        uint8_t scores[3];
        gs_policy_scores(all[q], loss, fits, 3, scores);
        assert_int_equal(scores[1], 10);
        assert_int_equal(scores[0], 0);
        assert_int_equal(scores[2], 0);
    }
}

static void names_are_parsed(void **state)
{
    static const char *const good[] = {
        [GS_QUANTISE_COARSE] = "coarse",
        [GS_QUANTISE_RANGE] = "range",
        [GS_QUANTISE_ONE_HOT] = "one-hot",
    };
    static const char *const bad[] = {"",   "coarse ",  "Coarse", "onehot",
                                      "q1", "coarse\n", "linear"};
    enum gs_quantise parsed;
    for (size_t q = 0; q < GS_COUNT_OF(good); q++) {
        assert_true(gs_quantise_parse(good[q], strlen(good[q]), &parsed));
        assert_int_equal(parsed, q);
    }
    parsed = GS_QUANTISE_ONE_HOT;
    for (size_t i = 0; i < GS_COUNT_OF(bad); i++)
        assert_false(gs_quantise_parse(bad[i], strlen(bad[i]), &parsed));
    assert_int_equal(parsed, GS_QUANTISE_ONE_HOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_become_scores),
        cmocka_unit_test(nothing_to_lose_is_before_all_others),
        cmocka_unit_test(names_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
