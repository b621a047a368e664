/* SPDX-License-Identifier: Apache-2.0 */
/* What is not the ledger (ledger_property) and runs out of memory. */
#include "alloc_fail.h"
#include "ledgers.h"
#include "policy_rig.h"

static void a_node_without_memory_keeps_no_gpus(void **state)
{
    _cleanup_(gs_node_release) struct gs_node node = {0};
    gs_node_reset(&node);
    node.capacity_units = 64;
    node.capacity_count = 4;
    alloc_fail_begin(1);
    assert_int_equal(gs_node_divide_capacity(&node), -1);
    assert_true(alloc_fail_end());
    assert_int_equal(node.gpu_count, 0);
    assert_null(node.gpus);
    assert_int_equal(gs_node_divide_capacity(&node), 0);
    assert_int_equal(node.gpu_count, 4);
}

static void a_pod_that_cannot_be_copied_is_empty(void **state)
{
    char long_name[900];
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    struct gs_container containers[] = {{.gpu_units = 1}, {.gpu_units = 2}};
    _cleanup_(gs_pod_release) struct gs_pod from = {0};
    gs_pod_reset(&from);
    from.uid = from.ns = from.name = long_name;
    from.containers = containers;
    from.container_count = 2;
    for (unsigned n = 1;; n++) {
        _cleanup_(gs_pod_release) struct gs_pod to = {0};
        alloc_fail_begin(n);
        int rc = gs_pod_copy(&to, &from);
        bool failed = alloc_fail_end();
        assert_int_equal(rc, failed ? -1 : 0);
        assert_string_equal(to.uid, failed ? "" : long_name);
        assert_int_equal(to.container_count, failed ? 0 : 2);
        if (!failed) {
            assert_true(n > 2);
            return;
        }
    }
}

static void a_failed_refresh_keeps_the_old_table(void **state)
{
    static const struct test_pods pods[] = {{20, 8, 1, 0, NULL}, {20, 16, 1, 0, "T4"}, {0}};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_without_memory_keeps_no_gpus),
        cmocka_unit_test(a_pod_that_cannot_be_copied_is_empty),
        cmocka_unit_test(a_failed_refresh_keeps_the_old_table),
    };
    return GS_RUN(tests);
}
