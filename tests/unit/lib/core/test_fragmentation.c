/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_rig.h"

#include "gpushare/core/fragmentation.h"
#include "ledgers.h"

/* Half of the pods want 8 units, half 16, all of them 2000 CPU. */
static const struct test_pods pods[] = {{50, 8, 1, 2000, NULL}, {50, 16, 1, 2000, NULL}, {0}};

static void free_memory_that_nobody_can_use_is_stranded(void **state)
{
    static const struct {
        const char *row;
        const char *gpus;
        int64_t cpu_milli;
        uint64_t free, stranded;
        uint32_t largest;
    } rows[] = {
        {"all of use", "16 16:8", 8000, 24, 0, 16},
        {"leftovers", "16:9 16:15 16:10", 8000, 7 + 1 + 6, 14, 7},
        {"a leftover beside a whole GPU", "16 16:9", 8000, 23, 7, 16},
        {"no CPU left", "16 16", 1000, 32, 32, 16},
        {"a full node", "16:16", 8000, 0, 0, 0},
        {"a GPU that is not usable", "16x 16:8", 8000, 8, 0, 8},
        {"no GPU", "", 8000, 0, 0, 0},
        {"a mean of 3.5", "24 24", 8000, 48, 4, 24},
        {"a mean of 8.25", "24:4", 2000, 20, 8, 20},
        {"an overfull GPU", "16:20 16:8", 8000, 8, 0, 8},
    };
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    test_learn(policies, pods);
    test_refresh(policies);
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_fragmentation part;
        gs_fragmentation_of_node(policies, test_cpu_view(&t, r->gpus, r->cpu_milli, 0), &part);
        row_equal(r->row, part.free_units, r->free);
        row_equal(r->row, part.largest_units, r->largest);
        row_equal(r->row, part.stranded_units, r->stranded);
        row_true(r->row, part.known);
    }
}

/* Two nodes that differ in nothing but the model, and pods that want one of them. */
static void what_is_stranded_depends_on_the_model(void **state)
{
    static const struct test_pods choosy[] = {{50, 10, 1, 0, NULL}, {50, 6, 1, 0, "T4"}, {0}};
    static const char *const models[] = {"Tesla T4", "NVIDIA A10"};
    static const uint64_t stranded[] = {0, 6};
    static struct test_node t;
    struct gs_error err = {0};
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
    for (int i = 0; i < 2; i++) {
        test_node_init(&t, models[i], "6");
        snprintf(t.gpus[0].model, sizeof(t.gpus[0].model), "%s", models[i]);
        assert_int_equal(gs_ledger_set_node(ledger, &t.node, &err), 0);
    }
    test_learn(policies, choosy);
    gs_policies_supply(policies, ledger);
    test_refresh(policies);
    for (int i = 0; i < 2; i++) {
        struct gs_fragmentation part;
        const struct gs_node_view *view = gs_ledger_view(ledger, models[i]);
        gs_fragmentation_of_node(policies, view, &part);
        assert_int_equal(part.stranded_units, stranded[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_memory_that_nobody_can_use_is_stranded),
        cmocka_unit_test(what_is_stranded_depends_on_the_model),
    };
    return GS_RUN(tests);
}
