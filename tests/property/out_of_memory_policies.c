/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the policies fails once: what was there before is there afterwards. */
#include "alloc_fail.h"
#include "ledgers.h"
#include "policy_rig.h"

#include "gpushare/core/fragmentation.h"

static const struct test_pods pods[] = {{20, 8, 1, 0, NULL}, {20, 16, 1, 0, "T4"}, {0}};

static void without_memory_there_are_no_policies(void **state)
{
    for (unsigned n = 1;; n++) {
        alloc_fail_begin(n);
        struct gs_policies *policies = gs_policies_new();
        bool failed = alloc_fail_end();
        assert_int_equal(failed, policies == NULL);
        gs_policies_free(policies);
        if (!failed)
            return;
    }
}

/* A pod that cannot be counted is not counted; the next one is. */
static void learning_goes_on_after_a_failure(void **state)
{
    for (unsigned n = 1;; n++) {
        _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
        alloc_fail_begin(n);
        test_learn(policies, pods);
        bool failed = alloc_fail_end();
        test_learn(policies, pods);
        assert_true(gs_policies_refresh_due(policies));
        test_refresh(policies);
        if (!failed)
            return;
    }
}

static void a_failed_refresh_keeps_the_old_table(void **state)
{
    static struct test_node t;
    struct gs_ask ask = test_ask(8, 1, 0, NULL);
    for (unsigned n = 1;; n++) {
        _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
        _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
        struct gs_error err = {0};
        test_set_node(ledger, "n1", "16 16:8");
        gs_policies_supply(policies, ledger);
        test_learn(policies, pods);
        test_refresh(policies);
        struct gs_node_view *view = test_cpu_view(&t, "16 16:8 16:5", 0, 1);
        struct gs_choice before = test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask);
        for (uint32_t i = 0; i < 100; i++) {
            struct gs_ask odd = test_ask(3 + i % 2, 1, 0, NULL);
            gs_policies_learn(policies, &odd);
        }
        alloc_fail_begin(n);
        int result = gs_policies_refresh(policies, &err);
        bool failed = alloc_fail_end();
        assert_int_equal(result, failed ? -1 : 0);
        assert_int_equal(err.code, failed ? GS_ENOMEM : GS_OK);
        if (!failed)
            return;
        struct gs_choice after = test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask);
        assert_int_equal(before.loss, after.loss);
        assert_true(gs_policies_refresh_due(policies));
        test_refresh(policies);
    }
}

static void supply_is_counted_again_after_a_failure(void **state)
{
    static struct test_node t;
    for (unsigned n = 1;; n++) {
        _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
        _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
        struct gs_error err = {0};
        test_set_node(ledger, "n1", "16 16 16 16 16 16 16 16");
        test_node_init(&t, "n2", "16");
        snprintf(t.gpus[0].model, sizeof(t.gpus[0].model), "Tesla T4");
        assert_int_equal(gs_ledger_set_node(ledger, &t.node, &err), 0);
        alloc_fail_begin(n);
        gs_policies_supply(policies, ledger);
        bool failed = alloc_fail_end();
        gs_policies_supply(policies, ledger);
        test_learn(policies, pods);
        test_refresh(policies);
        struct gs_ask ask = test_ask(8, 1, 0, NULL);
        const struct gs_node_view *scarce = gs_ledger_view(ledger, "n2");
        const struct gs_node_view *common = gs_ledger_view(ledger, "n1");
        assert_true(test_choose(policies, GS_PLACEMENT_ROLLOUT, common, &ask).loss <
                    test_choose(policies, GS_PLACEMENT_ROLLOUT, scarce, &ask).loss);
        if (!failed)
            return;
    }
}

/* The path of a request allocates nothing. */
static void choosing_needs_no_memory(void **state)
{
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    test_learn(policies, pods);
    test_refresh(policies);
    for (int p = GS_PLACEMENT_BINPACK; p <= GS_PLACEMENT_ROLLOUT; p++) {
        struct gs_ask ask = test_ask(8, 1, 0, NULL);
        struct gs_fragmentation part;
        struct gs_node_view *view = test_cpu_view(&t, "16 16:8 16:5", 0, 1);
        alloc_fail_begin(1);
        test_choose(policies, (enum gs_placement)p, view, &ask);
        gs_fragmentation_of_node(policies, view, &part);
        assert_false(alloc_fail_end());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_there_are_no_policies),
        cmocka_unit_test(learning_goes_on_after_a_failure),
        cmocka_unit_test(a_failed_refresh_keeps_the_old_table),
        cmocka_unit_test(supply_is_counted_again_after_a_failure),
        cmocka_unit_test(choosing_needs_no_memory),
    };
    return GS_RUN(tests);
}
