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
        {"nothing fits", {-1, -1, -1, -1, -1, -1}, {0}},
        {"far away", {0, 1e12, -1, -1, -1, -1}, {10, 0}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        int64_t loss[NODES];
        bool fits[NODES];
        uint8_t scores[NODES + 1];
        memset(scores, 77, sizeof(scores));
        for (int i = 0; i < NODES; i++) {
            fits[i] = r->milli[i] >= 0;
            loss[i] = fits[i] ? (int64_t)(r->milli[i] * (double)GS_LOSS_MILLI) : INT64_MIN;
        }
        gs_policy_scores(loss, fits, NODES, scores);
        for (int i = 0; i < NODES; i++)
            row_equal(r->row, scores[i], r->scores[i]);
        row_equal(r->row, scores[NODES], 77);
    }
}

/* The furthest apart; and a node without GPUs beside others, for a pod without: the others are all
 * far behind. */
static void the_largest_losses_do_not_overflow(void **state)
{
    const int64_t loss[][3] = {
        {-64000 * GS_LOSS_MILLI, GS_LOSS_NOTHING_TO_LOSE, 64000 * GS_LOSS_MILLI},
        {INT64_MAX, 0, INT64_MAX}};
    const bool fits[] = {true, true, true};
    GS_FOR_EACH_ROW (r, loss) {
        uint8_t scores[3];
        gs_policy_scores(*r, fits, 3, scores);
        assert_int_equal(scores[1], 10);
        assert_int_equal(scores[0] + scores[2], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_order_nodes),
        cmocka_unit_test(huge_nodes_do_not_overflow_the_loss),
        cmocka_unit_test(losses_become_scores),
        cmocka_unit_test(the_largest_losses_do_not_overflow),
    };
    return GS_RUN(tests);
}
