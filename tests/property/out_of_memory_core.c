/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each operation of the ledger, with its n-th allocation failing, for every n, on ledgers of sizes
 * around those where arrays and indices grow: it fails with GS_ENOMEM and the ledger is as before,
 * and the same operation works when there is memory again.
 */
#include "alloc_fail.h"
#include "ledgers.h"
#include "policy_rig.h"

#include "gpushare/base/buf.h"

/* --- what a ledger says, as text --- */

static bool print_claim(void *ctx, const struct gs_claim *claim)
{
    gs_buf_printf(ctx, "claim %s %s/%s on %s: %llx %llx %u x%u p%d c%u r%llu s%d\n", claim->uid,
                  claim->ns, claim->name, claim->node, (unsigned long long)claim->gpus,
                  (unsigned long long)claim->charged, claim->units, claim->gpu_count,
                  claim->priority, claim->cpu_milli, (unsigned long long)claim->revision,
                  claim->state);
    return true;
}

static bool print_hold(void *ctx, const struct gs_hold *hold)
{
    gs_buf_printf(ctx, "hold %s on %s: %u x%u p%d\n", hold->ask.uid, hold->node, hold->ask.units,
                  hold->ask.gpu_count, hold->ask.priority);
    return true;
}

static void print_node(struct gs_buf *text, const struct gs_ledger *ledger,
                       const struct gs_node_view *view)
{
    gs_buf_printf(text, "node %s cpu %lld/%lld nominated %u version %llu\n",
                  gs_ledger_node_name(ledger, view->slot), (long long)view->cpu_used_milli,
                  (long long)view->cpu_milli, view->nominated, (unsigned long long)view->version);
    for (uint32_t i = 0; i < view->gpu_count; i++)
        gs_buf_printf(text, " gpu %u %llu/%u %u %s %s\n", view->gpus[i].idx,
                      (unsigned long long)view->gpus[i].used_units, view->gpus[i].total_units,
                      view->gpus[i].usable, gs_ledger_model_name(ledger, view->gpus[i].model),
                      view->inventory[i].uuid);
    gs_ledger_each_hold(ledger, view->slot, print_hold, text);
}

/* Caller frees. Slot numbers of empty slots are no part of it. */
static char *print_ledger(const struct gs_ledger *ledger)
{
    struct gs_buf text = GS_BUF(1 << 20);
    struct gs_ledger_stats stats = test_stats(ledger);
    gs_buf_printf(&text, "%u %u %u %u %u\n", stats.nodes, stats.claims, stats.reserved,
                  stats.others, stats.held);
    for (uint32_t slot = 0; slot < gs_ledger_slots(ledger); slot++) {
        const struct gs_node_view *view = gs_ledger_view_at(ledger, slot);
        if (view)
            print_node(&text, ledger, view);
    }
    gs_ledger_each(ledger, print_claim, &text);
    assert_int_equal(test_audit(ledger), 0);
    char *out = gs_buf_steal(&text);
    assert_non_null(out);
    return out;
}

/* --- the operations --- */

static int set_new_node(struct gs_ledger *ledger, const char *uid, const char *node,
                        struct gs_error *err)
{
    static struct test_node t;
    test_node_init(&t, node, "16 24 80");
    snprintf(t.gpus[0].model, sizeof(t.gpus[0].model), "a model nobody had");
    snprintf(t.gpus[2].model, sizeof(t.gpus[2].model), "another one");
    return gs_ledger_set_node(ledger, &t.node, err);
}

static int change_node(struct gs_ledger *ledger, const char *uid, const char *node,
                       struct gs_error *err)
{
    static struct test_node t;
    test_node_init(&t, node, "8 8 8 8");
    snprintf(t.gpus[3].model, sizeof(t.gpus[3].model), "a model nobody had");
    static struct gs_moved moved[] = {{"claim-0", 0x2}, {"claim-1", 0x1}};
    t.node.moved = moved;
    t.node.moved_count = 2;
    return gs_ledger_set_node(ledger, &t.node, err);
}

static int claim_on(struct gs_ledger *ledger, const char *uid, const char *node,
                    struct gs_error *err)
{
    struct gs_claim claim = {.uid = uid, .node = node, .gpus = 1, .units = 3, .gpu_count = 1};
    return gs_ledger_set_claim(ledger, &claim, err);
}

static int hold_on(struct gs_ledger *ledger, const char *uid, const char *node,
                   struct gs_error *err)
{
    struct gs_hold hold = {{.uid = uid, .units = 5, .gpu_count = 1, .priority = 7}, node};
    return gs_ledger_hold(ledger, &hold, err);
}

static int other_on(struct gs_ledger *ledger, const char *uid, const char *node,
                    struct gs_error *err)
{
    return gs_ledger_set_other(ledger, uid, node, 100, err);
}

static const struct operation {
    const char *row;
    int (*run)(struct gs_ledger *ledger, const char *uid, const char *node, struct gs_error *err);
    const char *uid, *node;
    bool need_not_allocate;
} operations[] = {
    {"set a new node", set_new_node, NULL, "new"},
    {"change a node", change_node, NULL, "n0"},
    {"add a claim", claim_on, "new", "n0"},
    {"add a claim on an unknown node", claim_on, "new", "nowhere"},
    {"move a claim to an unknown node", claim_on, "claim-0", "nowhere"},
    {"claim for a nominated pod", claim_on, "hold-0", "n0"},
    {"claim for another pod", claim_on, "other-0", "n0"},
    {"add a hold", hold_on, "new", "n0"},
    {"add a hold on an unknown node", hold_on, "new", "nowhere"},
    {"move a hold", hold_on, "hold-0", "nowhere"},
    {"add another pod", other_on, "new", "n0", true},
    {"move another pod", other_on, "other-0", "n1", true},
};

static int run(const struct operation *operation, struct gs_ledger *ledger, struct gs_error *err)
{
    return operation->run(ledger, operation->uid, operation->node, err);
}

/* count records of each sort, on count nodes and at least two. */
static struct gs_ledger *fill(uint32_t count)
{
    struct gs_ledger *ledger = gs_ledger_new();
    struct gs_error err = {0};
    char name[32];
    for (uint32_t i = 0; i < count || i < 2; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        test_set_node(ledger, name, "16 16");
    }
    for (uint32_t i = 0; i < count || i < 1; i++) {
        snprintf(name, sizeof(name), "claim-%u", i);
        test_claim(ledger, name, "n0", 1, 1);
        snprintf(name, sizeof(name), "other-%u", i);
        assert_int_equal(gs_ledger_set_other(ledger, name, "n0", 10, &err), 0);
        snprintf(name, sizeof(name), "hold-%u", i);
        assert_int_equal(hold_on(ledger, name, "n0", &err), 0);
    }
    return ledger;
}

/* The n-th allocation fails; false when there was no n-th. */
static bool try_once(const struct operation *operation, uint32_t count, unsigned n, bool and_after,
                     const char *wanted)
{
    const char *row = operation->row;
    _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = fill(count);
    _cleanup_free_ char *before = print_ledger(ledger);
    struct gs_error err = {0};
    if (and_after)
        alloc_fail_begin_from(n);
    else
        alloc_fail_begin(n);
    int rc = run(operation, ledger, &err);
    bool failed = alloc_fail_end();
    _cleanup_free_ char *after = print_ledger(ledger);
    row_equal(row, rc, failed ? -1 : 0);
    row_equal(row, err.code, failed ? GS_ENOMEM : GS_OK);
    row_text(row, after, failed ? before : wanted);
    row_equal(row, run(operation, ledger, NULL), 0);
    _cleanup_free_ char *again = print_ledger(ledger);
    row_true(row, !failed || strcmp(again, wanted) == 0);
    return failed;
}

static void every_operation_survives_every_failure(void **state)
{
    static const uint32_t counts[] = {0, 1, 10, 11, 12, 13, 15, 16, 17, 23, 24, 25, 47, 48};
    GS_FOR_EACH_ROW (r, operations) {
        unsigned failures = 0;
        for (size_t i = 0; i < GS_COUNT_OF(counts); i++) {
            _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = fill(counts[i]);
            row_equal(r->row, run(r, ledger, NULL), 0);
            _cleanup_free_ char *wanted = print_ledger(ledger);
            unsigned n = 1;
            while (try_once(r, counts[i], n, false, wanted))
                try_once(r, counts[i], n++, true, wanted);
            row_true(r->row, n > 1 || r->need_not_allocate);
            failures += n - 1;
        }
        row_true(r->row, failures > 0);
        print_message("%3u failures survived: %s\n", failures, r->row);
    }
}

static void a_ledger_that_cannot_be_made_is_null(void **state)
{
    alloc_fail_begin(1);
    struct gs_ledger *ledger = gs_ledger_new();
    assert_true(alloc_fail_end());
    assert_null(ledger);
}

/* What frees must never need memory. */
static void nothing_that_frees_allocates(void **state)
{
    _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = fill(20);
    alloc_fail_begin_from(1);
    gs_ledger_begin_nodes(ledger);
    gs_ledger_begin_pods(ledger);
    assert_true(gs_ledger_confirm(ledger, "claim-1"));
    gs_ledger_place(ledger, "claim-2", 1);
    assert_true(gs_ledger_remove(ledger, "claim-4", NULL));
    assert_false(gs_ledger_undo(ledger, "claim-5"));
    assert_true(gs_ledger_release_hold(ledger, "hold-3"));
    gs_ledger_remove(ledger, "other-3", NULL);
    gs_ledger_drop_node(ledger, "n0");
    assert_int_equal(gs_ledger_sweep_pods(ledger), 18);
    gs_ledger_sweep_nodes(ledger);
    assert_false(alloc_fail_end());
    struct gs_ledger_stats stats = test_stats(ledger);
    assert_int_equal(stats.nodes + stats.others + stats.held, 0);
    assert_int_equal(stats.claims, 1);
}

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
        cmocka_unit_test(a_ledger_that_cannot_be_made_is_null),
        cmocka_unit_test(every_operation_survives_every_failure),
        cmocka_unit_test(nothing_that_frees_allocates),
        cmocka_unit_test(a_node_without_memory_keeps_no_gpus),
        cmocka_unit_test(a_pod_that_cannot_be_copied_is_empty),
        cmocka_unit_test(a_failed_refresh_keeps_the_old_table),
    };
    return GS_RUN(tests);
}
