/* SPDX-License-Identifier: Apache-2.0 */
/* What a sequence of pods strands is compared with a plain simulation in test_rollout_lanes.c. */
#include "policy_rig.h"

#include "core/policy_internal.h"

/* Pods much smaller than the node: one sequence would not fill it, several do. */
static void a_large_node_is_offered_enough_to_fill_it(void **state)
{
    static const struct gs_class small[] = {{10, 1, 1, 0, "", ""}, {10, 3, 1, 0, "", ""}};
    struct gs_supply supply = {0};
    _cleanup_(gs_policy_table_freep) struct gs_policy_table *table =
        gs_policy_table_build(small, GS_COUNT_OF(small), &supply);
    static const uint32_t sizes[] = {1, 3, 80, 500, 1500};
    GS_FOR_EACH_ROW (r, sizes) {
        struct gs_state node = {
            .cpu_milli = INT32_MAX, .gpus = 1, .left_units = *r, .free_units = {*r}};
        assert_int_equal(gs_rollout_stranded(table, &node), 0);
    }
}

/* --- through the public interface --- */

static void rollout_prefers_the_node_that_strands_least(void **state)
{
    static const struct test_pods halves[] = {{60, 8, 1, 2000, NULL}, {40, 16, 1, 2000, NULL}, {0}};
    static const struct {
        const char *row;
        uint32_t units, gpu_count;
        int64_t cpu_milli;
        const char *better, *worse;
        int64_t better_cpu, worse_cpu;
        gs_gpu_mask gpus; /* on the better one */
    } rows[] = {
        {"a leftover that nobody else wants", 4, 1, 0, "16:12", "16", 0, 0, 1},
        {"the GPU with such a leftover", 4, 1, 0, "16 16:12 16:8", "16 16", 0, 0, 2},
        {"an exact fit", 6, 1, 0, "16:10", "16:8", 0, 0, 1},
        {"two leftovers at once", 4, 2, 0, "16:12 16:12 16", "16:8 16:8", 0, 0, 3},
        {"where CPU has run out", 4, 1, 1000, "16:8", "16:8", 1000, 9000, 1},
        {"the first of equal GPUs", 4, 1, 0, "16:12 16:12", "16", 0, 0, 1},
        {"a pod without GPU goes where CPU is ample", 0, 1, 3000, "16", "16", 9000, 4000, 0},
    };
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    test_learn(policies, halves);
    test_refresh(policies);
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_ask ask = test_ask(r->units, r->gpu_count, r->cpu_milli, NULL);
        struct gs_node_view *view = test_cpu_view(&t, r->better, r->better_cpu, 0);
        struct gs_choice better = test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask);
        view = test_cpu_view(&t, r->worse, r->worse_cpu, 0);
        struct gs_choice worse = test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask);
        row_true(r->row, better.loss < worse.loss);
        row_equal(r->row, better.gpus, r->gpus);
    }
}

/* Pods that are all alike: any GPU will do. Where harm is done the first is taken. */
static void of_equally_good_gpus_the_tightest_is_taken(void **state)
{
    static const struct {
        const char *row, *gpus;
        uint32_t pods_units, units;
        gs_gpu_mask rollout;
    } rows[] = {
        {"used before free", "16 16:8", 4, 4, 2},
        {"used before free, first", "16:8 16", 4, 4, 1},
        {"the tightest", "16:4 16:8 16", 4, 4, 2},
        {"sizes that leave something", "16 16:5", 5, 5, 2},
        {"the first of two", "16 16:8 16:8", 4, 4, 2},
        {"equal harm: the first", "16 16:8", 8, 4, 1},
    };
    static struct test_node t;
    GS_FOR_EACH_ROW (r, rows) {
        struct test_pods alike[] = {{60, r->pods_units, 1, 0, NULL}, {0}};
        _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
        test_learn(policies, alike);
        test_refresh(policies);
        struct gs_ask ask = test_ask(r->units, 1, 0, NULL);
        struct gs_node_view *view = test_cpu_view(&t, r->gpus, 0, 0);
        row_equal(r->row, test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask).gpus, r->rollout);
    }
}

/* Who asks for compute goes where it leaves memory and compute in step; who does not, as if there
 * were none. */
static void compute_counts_for_those_who_ask_for_it(void **state)
{
    static const struct {
        const char *row, *gpus;
        uint32_t units, cores_pct;
        gs_gpu_mask rollout;
    } rows[] = {
        {"much compute: where memory is used up", "16 16:12", 4, 80, 2},
        {"much memory: where compute is used up", "16 16c80", 12, 20, 2},
        {"in step: where the other took as much", "16 16:8c50", 8, 50, 2},
        {"no compute left", "16:12c90 16", 4, 50, 2},
        {"nothing that could be used is taken", "16:8c99 16", 4, 1, 1},
        {"no compute: the used GPU of a node", "16 16:12c100", 4, 0, 2},
    };
    static const struct test_pods pods[] = {
        {40, 8, 1, 0, NULL}, {40, 4, 1, 0, NULL}, {20, 16, 1, 0, NULL}, {0}};
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    test_learn(policies, pods);
    test_refresh(policies);
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_ask ask = test_ask(r->units, 1, 0, NULL);
        struct gs_node_view *view = test_cpu_view(&t, r->gpus, 0, 0);
        ask.cores_pct = r->cores_pct;
        row_equal(r->row, test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask).gpus, r->rollout);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compute_counts_for_those_who_ask_for_it),
        cmocka_unit_test(a_large_node_is_offered_enough_to_fill_it),
        cmocka_unit_test(rollout_prefers_the_node_that_strands_least),
        cmocka_unit_test(of_equally_good_gpus_the_tightest_is_taken),
    };
    return GS_RUN(tests);
}
