/* SPDX-License-Identifier: Apache-2.0 */
#include "ledgers.h"

#include "gpushare/model/budget.h"

static struct gs_ledger *ledger;

static int new_ledger(void **state)
{
    ledger = gs_ledger_new();
    test_set_node(ledger, "n1", "16 16 80");
    test_set_node(ledger, "n2", "24");
    return ledger ? 0 : -1;
}

static int free_ledger(void **state)
{
    gs_ledger_free(ledger);
    return 0;
}

static void a_claim_comes_out_as_it_went_in(void **state)
{
    char uid[] = "a", ns[] = "team", name[] = "pod-1", node[] = "n1";
    struct gs_claim in = {.uid = uid,
                          .ns = ns,
                          .name = name,
                          .node = node,
                          .gpus = 4,
                          .units = 7,
                          .gpu_count = 1,
                          .cores_pct = 30,
                          .priority = -3,
                          .cpu_milli = 1500,
                          .revision = 1ull << 40,
                          .state = GS_CLAIM_RESERVED};
    assert_int_equal(gs_ledger_set_claim(ledger, &in, NULL), 0);
    uid[0] = ns[0] = name[0] = node[0] = 'x'; /* copied */
    struct gs_claim out;
    assert_true(gs_ledger_find_claim(ledger, "a", &out));
    assert_string_equal(out.uid, "a");
    assert_string_equal(out.ns, "team");
    assert_string_equal(out.name, "pod-1");
    assert_string_equal(out.node, "n1");
    assert_int_equal(out.gpus, 4);
    assert_int_equal(out.charged, 4);
    assert_int_equal(out.units, 7);
    assert_int_equal(out.gpu_count, 1);
    assert_int_equal(out.cores_pct, 30);
    assert_int_equal(out.priority, -3);
    assert_int_equal(out.cpu_milli, 1500);
    assert_true(out.revision == 1ull << 40);
    assert_int_equal(out.state, GS_CLAIM_RESERVED);

    struct gs_claim nameless = {.uid = "b", .node = "n1", .gpus = 1, .units = 1, .gpu_count = 1};
    assert_int_equal(gs_ledger_set_claim(ledger, &nameless, NULL), 0);
    assert_true(gs_ledger_find_claim(ledger, "b", &out));
    assert_string_equal(out.ns, "");
    assert_string_equal(out.name, "");

    memset(&out, 0x77, sizeof(out));
    assert_false(gs_ledger_find_claim(ledger, "c", &out));
    assert_int_equal(out.units, 0x77777777);
}

static void what_is_no_claim_is_refused(void **state)
{
    static const struct {
        const char *row;
        struct gs_claim claim;
    } rows[] = {
        {"no UID", {.node = "n1", .gpus = 1, .units = 1, .gpu_count = 1}},
        {"empty UID", {.uid = "", .node = "n1", .gpus = 1, .units = 1, .gpu_count = 1}},
        {"no node", {.uid = "a", .gpus = 1, .units = 1, .gpu_count = 1}},
        {"empty node", {.uid = "a", .node = "", .gpus = 1, .units = 1, .gpu_count = 1}},
        {"no units", {.uid = "a", .node = "n1", .gpus = 1, .units = 0, .gpu_count = 1}},
        {"no GPUs", {.uid = "a", .node = "n1", .gpus = 1, .units = 1, .gpu_count = 0}},
        {"too many GPUs", {.uid = "a", .node = "n1", .gpus = 1, .units = 1, .gpu_count = 65}},
        {"more than a byte of GPUs",
         {.uid = "a", .node = "n9", .gpus = 1, .units = 1, .gpu_count = 257}},
    };
    uint64_t version = gs_ledger_view(ledger, "n1")->version;
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_error err = {0};
        row_equal(r->row, gs_ledger_set_claim(ledger, &r->claim, &err), -1);
        row_equal(r->row, err.code, GS_EINVAL);
        row_equal(r->row, test_stats(ledger).claims, 0);
        row_equal(r->row, gs_ledger_slots(ledger), 2);
        row_true(r->row, gs_ledger_view(ledger, "n1")->version == version);
    }
}

static void an_audit_sees_each_sum_that_is_not_its_claims(void **state)
{
    struct gs_gpu_state *gpus = gs_ledger_view(ledger, "n1")->gpus;
    gpus[0].used_units++;
    gpus[1].used_cores_pct++;
    gpus[2].pods++;
    assert_int_equal(test_audit(ledger), 3);
}

#define WITH_LEDGER(test) cmocka_unit_test_setup_teardown(test, new_ledger, free_ledger)

static void a_claim_that_was_found_may_go_back_in(void **state)
{
    struct gs_labels *labels = calloc(1, sizeof(*labels) + sizeof(labels->all[0]));
    struct gs_claim claim = {.uid = "a",
                             .node = "n1",
                             .gpus = 1,
                             .units = 1,
                             .gpu_count = 1,
                             .gpus_max = GS_GPUS_MAX,
                             .labels = labels};
    assert_non_null(labels);
    labels->count = 1;
    labels->all[0].key = 7;
    assert_int_equal(gs_ledger_set_claim(ledger, &claim, NULL), 0);
    free(labels);
    assert_true(gs_ledger_find_claim(ledger, "a", &claim));
    assert_int_equal(gs_ledger_set_claim(ledger, &claim, NULL), 0);
    assert_true(gs_ledger_find_claim(ledger, "a", &claim));
    assert_int_equal(claim.labels->all[0].key, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LEDGER(a_claim_comes_out_as_it_went_in),
        WITH_LEDGER(what_is_no_claim_is_refused),
        WITH_LEDGER(a_claim_that_was_found_may_go_back_in),
        WITH_LEDGER(an_audit_sees_each_sum_that_is_not_its_claims),
    };
    return GS_RUN(tests);
}
