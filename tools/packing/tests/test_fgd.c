/* SPDX-License-Identifier: Apache-2.0 */
#include "fgd.h"
#include "policy_rig.h"

#include "core/policy_internal.h"

enum { KINDS = 5 };

static struct gs_choice fgd_choice(struct gs_policies *policies, const struct gs_node_view *view,
                                   const struct gs_ask *ask)
{
    struct gs_choice choice = {0};
    assert_true(gs_fgd_choose(policies, view, ask, &choice));
    return choice;
}

/* The 101 levels and their edges, against 100 / (1 + exp(-x)) by hand. */
static void a_gain_becomes_a_level(void **state)
{
    static const struct {
        const char *row;
        double gain;
        int level;
    } rows[] = {
        {"nothing gained", 0, 50},
        {"less than exp() can tell from nothing", -1e-17, 50},
        {"the least that it can tell", -1e-15, 49},
        {"a card gained", 1, 73},
        {"a card lost", -1, 26},
        {"just below a level: ln(51/49)", 0.0400053, 50},
        {"just above it", 0.0400054, 51},
        {"two cards", 2, 88},
        {"as much as there is", 64, 100},
        {"as little", -64, 0},
    };
    GS_FOR_EACH_ROW (r, rows)
        row_equal(r->row, gs_fgd_level(r->gain), r->level);
}

/* What of a node a typical pod cannot use; 100 pods make the table. */
static void what_typical_pods_cannot_use_counts(void **state)
{
    static const struct {
        const char *row;
        struct gs_class classes[KINDS];
        uint32_t count;
        const char *gpus;
        int64_t cpu_milli;
        double unusable;
    } rows[] = {
        {"GPUs too small for it", {{100, 10, 1, 0, "", ""}}, 1, "16 16:8 16:9", 0, 8 + 7},
        {"all of it when none is large enough", {{100, 10, 1, 0, "", ""}}, 1, "16:8 16:8", 0, 16},
        {"all of it when there are too few", {{100, 10, 2, 0, "", ""}}, 1, "16 16:8", 0, 24},
        {"nothing lost on two that fit", {{100, 10, 2, 0, "", ""}}, 1, "16 16"},
        {"all of it when CPU lacks", {{100, 8, 1, 2000, "", ""}}, 1, "16 16", 1999, 32},
        {"enough CPU", {{100, 8, 1, 2000, "", ""}}, 1, "16 16", 2000, 0},
        {"unknown CPU suffices", {{100, 8, 1, 2000, "", ""}}, 1, "16 16"},
        {"pods without GPU use none of it",
         {{50, 0, 1, 100, "", ""}, {50, 8, 1, 100, "", ""}},
         2,
         "16 16",
         4000,
         16},
        {"shares of the kinds",
         {{75, 4, 1, 0, "", ""}, {25, 10, 1, 0, "", ""}},
         2,
         "16:10 16",
         0,
         0.25 * 6},
        {"a kind beyond 95 percent does not count",
         {{95, 4, 1, 0, "", ""}, {5, 10, 1, 0, "", ""}},
         2,
         "16:10 16",
         0,
         0},
        {"a kind below 95 percent does",
         {{94, 4, 1, 0, "", ""}, {6, 10, 1, 0, "", ""}},
         2,
         "16:10 16",
         0,
         0.06 * 6},
        {"models it may not run on", {{100, 4, 1, 0, "A100", ""}}, 1, "16 16", 0, 32},
        {"unusable GPUs are not there", {{100, 10, 1, 0, "", ""}}, 1, "16 16:8x 16x"},
        {"a full node", {{100, 10, 1, 0, "", ""}}, 1, "16:16 16:16"},
    };
    static struct test_node t;
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_supply supply = {0};
        _cleanup_(gs_policy_table_freep) struct gs_policy_table *table =
            gs_policy_table_build(r->classes, r->count, &supply);
        assert_non_null(table);
        struct gs_state node;
        gs_state_of_view(&node, table, test_cpu_view(&t, r->gpus, r->cpu_milli, 0));
        double unusable = gs_fgd_unusable(table, &node);
        row_true(r->row, unusable > r->unusable - 1e-9 && unusable < r->unusable + 1e-9);
    }
}

/* 60 % of the pods want half a card, 40 % a whole one. */
static const struct test_pods halves_and_wholes[] = {
    {60, 8, 1, 0, NULL}, {40, 16, 1, 0, NULL}, {0}};

static void fgd_prefers_the_node_that_loses_least(void **state)
{
    static const struct {
        const char *row;
        uint32_t units, gpu_count;
        const char *better, *worse;
        gs_gpu_mask gpus; /* on the better one */
    } rows[] = {
        {"a half on a half", 8, 1, "16:8", "16", 1},
        {"the used GPU of a node", 8, 1, "16 16:8", "16 16", 2},
        {"rather a leftover than a GPU", 4, 1, "16:12", "16:8", 1},
        {"two halves", 8, 2, "16:8 16:8", "16 16", 3},
        {"the first of equal GPUs", 8, 1, "16:8 16:8", "16 16", 1},
    };
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    test_learn(policies, halves_and_wholes);
    test_refresh(policies);
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_ask ask = test_ask(r->units, r->gpu_count, 0, NULL);
        struct gs_choice better = fgd_choice(policies, test_cpu_view(&t, r->better, 0, 0), &ask);
        struct gs_choice worse = fgd_choice(policies, test_cpu_view(&t, r->worse, 0, 0), &ask);
        row_true(r->row, better.loss < worse.loss);
        row_equal(r->row, better.gpus, r->gpus);
        row_true(r->row, better.loss >= 0 && worse.loss <= 100 * 40 * GS_LOSS_MILLI);
    }
}

static void a_pod_without_gpu_costs_the_cpu_that_gpus_need(void **state)
{
    static const struct test_pods pods[] = {{100, 8, 1, 4000, NULL}, {0}};
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    test_learn(policies, pods);
    test_refresh(policies);
    struct gs_ask ask = test_ask(0, 1, 2000, NULL);
    struct gs_choice full = fgd_choice(policies, test_cpu_view(&t, "16:16", 5000, 0), &ask);
    struct gs_choice ample = fgd_choice(policies, test_cpu_view(&t, "16", 8000, 0), &ask);
    struct gs_choice scarce = fgd_choice(policies, test_cpu_view(&t, "16", 5000, 0), &ask);
    struct gs_choice none = fgd_choice(policies, test_cpu_view(&t, "", 5000, 0), &ask);
    assert_true(full.loss == ample.loss && ample.loss < scarce.loss);
    assert_int_equal(none.loss, GS_LOSS_NOTHING_TO_LOSE);
    assert_int_equal(scarce.gpus, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gain_becomes_a_level),
        cmocka_unit_test(what_typical_pods_cannot_use_counts),
        cmocka_unit_test(fgd_prefers_the_node_that_loses_least),
        cmocka_unit_test(a_pod_without_gpu_costs_the_cpu_that_gpus_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
