/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_rig.h"

/* Nodes in the order in which a policy prefers them for one ask, best first. */
static const struct {
    const char *row;
    enum gs_placement placement;
    uint32_t units, gpu_count;
    const char *nodes[4];
    gs_gpu_mask gpus[4];
} orders[] = {
    {"binpack: tightest GPU first", GS_PLACEMENT_BINPACK, 8, 1, {"16:8", "16:6", "16"}, {1, 1, 1}},
    {"binpack: the GPU counts before the node",
     GS_PLACEMENT_BINPACK,
     8,
     1,
     {"16:8 80 80", "16:7 16:16"},
     {1, 1}},
    {"binpack: the fuller node among equals",
     GS_PLACEMENT_BINPACK,
     8,
     1,
     {"16:8 16:16", "16:8 16"},
     {1, 1}},
    {"binpack: over two GPUs",
     GS_PLACEMENT_BINPACK,
     8,
     2,
     {"16:8 16:8 16", "16:8 16:7", "16 16"},
     {3, 3, 3}},
    {"spread: least used node first",
     GS_PLACEMENT_SPREAD,
     8,
     1,
     {"16 16", "16 16:8", "16:8 16:8"},
     {1, 1, 1}},
    {"spread: share, not units", GS_PLACEMENT_SPREAD, 8, 1, {"80:16", "16:8 16"}, {1, 2}},
    {"spread: the emptiest GPU", GS_PLACEMENT_SPREAD, 4, 1, {"16:8 16:2 16:4"}, {2}},
};

static void policies_order_nodes(void **state)
{
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    assert_non_null(policies);
    GS_FOR_EACH_ROW (r, orders) {
        struct gs_ask ask = {.units = r->units, .gpu_count = r->gpu_count};
        int64_t before = INT64_MIN;
        for (int i = 0; i < 4 && r->nodes[i]; i++) {
            struct gs_choice choice = {0};
            struct gs_node_view *view = test_view_init(&t, r->nodes[i]);
            row_true(r->row, test_policy_choose(policies, r->placement, view, &ask, &choice));
            row_equal(r->row, choice.gpus, r->gpus[i]);
            row_true(r->row, choice.loss > before);
            before = choice.loss;
        }
    }
}

static void what_does_not_fit_is_not_chosen(void **state)
{
    static const enum gs_placement all[] = {GS_PLACEMENT_BINPACK, GS_PLACEMENT_SPREAD,
                                            GS_PLACEMENT_ROLLOUT};
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    struct gs_ask ask = {.units = 8, .gpu_count = 1};
    GS_FOR_EACH_ROW (r, all) {
        struct gs_choice choice = {.loss = 4711, .gpus = 4711};
        struct gs_node_view *view = test_view_init(&t, "16:9 16x");
        assert_false(test_policy_choose(policies, *r, view, &ask, &choice));
        assert_int_equal(choice.loss, 4711);
        assert_int_equal(choice.gpus, 4711);
        view = test_view_init(&t, "");
        assert_false(test_policy_choose(policies, *r, view, &ask, &choice));
        view = test_view_init(&t, "16:9 16");
        assert_true(test_policy_choose(policies, *r, view, &ask, &choice));
        assert_int_equal(choice.gpus, 2);
    }
}

static void huge_nodes_do_not_overflow_the_loss(void **state)
{
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    struct gs_ask ask = {.units = 1, .gpu_count = 2};
    struct gs_choice large, small;
    struct gs_node_view *view = test_view_init(&t, "4294967295 4294967295");
    assert_true(test_policy_choose(policies, GS_PLACEMENT_BINPACK, view, &ask, &large));
    view = test_view_init(&t, "16 16");
    assert_true(test_policy_choose(policies, GS_PLACEMENT_BINPACK, view, &ask, &small));
    assert_true(small.loss >= 0 && large.loss > small.loss);
}

enum { NODES = 5 };

static void losses_become_scores_over_the_range(void **state)
{
    static const struct {
        const char *row;
        int64_t loss[NODES];
        bool fits[NODES];
        uint8_t scores[NODES];
        size_t count;
    } rows[] = {
        {"one node", {7}, {true}, {10}, 1},
        {"all equal", {7, 7, 7}, {true, true, true}, {10, 10, 10}, 3},
        {"least and most", {0, 100}, {true, true}, {10, 9}, 2},
        {"in between", {0, 50, 100}, {true, true, true}, {10, 9, 9}, 3},
        {"nearly the best is not the best", {0, 1, 1000000}, {true, true, true}, {10, 9, 7}, 3},
        {"those that do not fit get nothing", {5, -100, 9}, {true, false, true}, {10, 0, 9}, 3},
        {"nothing fits", {5, 6}, {false, false}, {0, 0}, 2},
        {"negative losses", {-10, 0, -20}, {true, true, true}, {9, 9, 10}, 3},
        {"largest", {0, INT64_MAX}, {true, true}, {10, 0}, 2},
        {"no nodes", {0}, {false}, {0}, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        uint8_t scores[NODES + 1];
        memset(scores, 77, sizeof(scores));
        gs_policy_scores(r->loss, r->fits, r->count, scores);
        for (size_t i = 0; i < r->count; i++)
            row_equal(r->row, scores[i], r->scores[i]);
        row_equal(r->row, scores[r->count], 77);
    }
}

/* The first of the best gets 10, nothing above it, worse losses never
 * more than better ones, and what does not fit nothing. */
static void scores_keep_the_order(void **state)
{
    enum { COUNT = 7 };
    uint64_t seed = 7;
    for (int round = 0; round < 4000; round++) {
        int64_t loss[COUNT];
        bool fits[COUNT];
        uint8_t scores[COUNT];
        int first_best = -1;
        for (int i = 0; i < COUNT; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            loss[i] = (int64_t)(seed >> 33) % (round % 3 ? 4 : INT32_MAX) * GS_LOSS_MILLI;
            fits[i] = (seed >> 20) % 4 != 0;
            if (fits[i] && (first_best < 0 || loss[i] < loss[first_best]))
                first_best = i;
        }
        gs_policy_scores(loss, fits, COUNT, scores);
        for (int i = 0; i < COUNT; i++) {
            assert_in_range(scores[i], 0, 10);
            assert_true(fits[i] || scores[i] == 0);
            assert_true(i != first_best || scores[i] == 10);
            for (int k = 0; k < COUNT; k++) {
                if (fits[i] && fits[k] && loss[i] < loss[k] && scores[i] < scores[k])
                    fail_msg("scores turn losses around");
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_order_nodes),
        cmocka_unit_test(what_does_not_fit_is_not_chosen),
        cmocka_unit_test(huge_nodes_do_not_overflow_the_loss),
        cmocka_unit_test(losses_become_scores_over_the_range),
        cmocka_unit_test(scores_keep_the_order),
    };
    return GS_RUN(tests);
}
