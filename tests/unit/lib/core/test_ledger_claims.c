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

static void a_claim_counts_where_it_was_recorded_if_that_can_be(void **state)
{
    static const struct {
        const char *row;
        gs_gpu_mask gpus;
        uint32_t units, gpu_count;
        gs_gpu_mask charged;
        uint32_t unplaced;
    } rows[] = {
        {"recorded", 1 << 1, 8, 1, 1 << 1, 0},
        {"recorded, all of the GPU", 1 << 1, 16, 1, 1 << 1, 0},
        {"recorded over two", 3, 8, 2, 3, 0},
        {"not recorded", 0, 8, 1, 7, 1},
        {"not recorded and large", 0, 20, 1, 1 << 2, 1},
        {"not recorded and larger than all: everywhere", 0, 81, 1, 7, 1},
        {"not on the node", 1 << 5, 8, 1, 7, 1},
        {"partly on the node", 1 << 1 | 1 << 5, 8, 2, 7, 1},
        {"too small a GPU: there, and where it could be", 1 << 0, 20, 1, 1 << 0 | 1 << 2, 1},
        {"one of two is too small", 1 << 0 | 1 << 2, 20, 2, 1 << 0 | 1 << 2, 1},
        {"its count taken off: there, and where all of it could be", 3, 20, 1, 7, 1},
        {"larger than all, on one GPU", 1 << 0, 81, 1, 1 << 0, 1},
        {"more GPUs recorded than asked", 3, 8, 1, 7, 1},
        {"fewer GPUs recorded than asked", 1, 8, 2, 7, 1},
        {"spread over as many as recorded, or not", 3 << 1, 20, 1, 7, 1},
        {"last index", GS_GPU_BIT(63), 8, 1, 7, 1},
        {"every index, asked for", ~(gs_gpu_mask)0, 1, 64, 7, 1},
        {"largest units", 1, UINT32_MAX, 1, 1, 1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_claim claim = {.uid = "a",
                                 .node = "n1",
                                 .gpus = r->gpus,
                                 .units = r->units,
                                 .gpu_count = r->gpu_count,
                                 .gpus_max = gs_gpu_mask_count(r->gpus)};
        row_equal(r->row, gs_ledger_set_claim(ledger, &claim, NULL), 0);
        row_true(r->row, test_charged(ledger, "a") == r->charged);
        row_equal(r->row, test_stats(ledger).unplaced_claims, r->unplaced);
        row_equal(r->row, test_stats(ledger).used_units,
                  (uint64_t)r->units * gs_gpu_mask_count(r->charged));
        row_equal(r->row, test_audit(ledger), 0);
        struct gs_claim out;
        row_true(r->row, gs_ledger_find_claim(ledger, "a", &out) && out.gpus == r->gpus);
    }
    gs_ledger_remove(ledger, "a", NULL);
    assert_int_equal(test_stats(ledger).used_units, 0);
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
    uint64_t version = gs_ledger_view(ledger, GS_SLICE("n1"))->version;
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_error err = {0};
        row_equal(r->row, gs_ledger_set_claim(ledger, &r->claim, &err), -1);
        row_equal(r->row, err.code, GS_EINVAL);
        row_equal(r->row, test_stats(ledger).claims, 0);
        row_equal(r->row, gs_ledger_slots(ledger), 2);
        row_true(r->row, gs_ledger_view(ledger, GS_SLICE("n1"))->version == version);
    }
}

static void the_same_uid_replaces(void **state)
{
    test_claim(ledger, "a", "n1", 1, 8);
    test_claim(ledger, "a", "n1", 1, 8); /* the same event twice */
    assert_string_equal(test_accounts(ledger, "n1"), "0:8/16 1:0/16 2:0/80");
    test_claim(ledger, "a", "n1", 2, 5);
    assert_string_equal(test_accounts(ledger, "n1"), "0:0/16 1:5/16 2:0/80");
    uint64_t version = gs_ledger_view(ledger, GS_SLICE("n1"))->version;
    test_claim(ledger, "a", "n2", 1, 20);
    assert_string_equal(test_accounts(ledger, "n1"), "0:0/16 1:0/16 2:0/80");
    assert_string_equal(test_accounts(ledger, "n2"), "0:20/24");
    assert_true(gs_ledger_view(ledger, GS_SLICE("n1"))->version != version);
    assert_int_equal(test_stats(ledger).claims, 1);
    test_claim(ledger, "a", "n3", 1, 20); /* to a node that is not known */
    assert_string_equal(test_accounts(ledger, "n2"), "0:0/24");
    test_claim(ledger, "a", "n2", 1, 20); /* and back: nothing of n3 stays */
    assert_int_equal(test_stats(ledger).claims, 1);
    test_set_node(ledger, "n4", "8");
    assert_int_equal(gs_ledger_slots(ledger), 3);
}

static void reserve_confirm_and_undo(void **state)
{
    assert_false(gs_ledger_confirm(ledger, "a"));
    assert_false(gs_ledger_undo(ledger, "a"));
    test_reserve(ledger, "a", "n1", 1, 8);
    test_reserve(ledger, "b", "n1", 1, 4);
    assert_int_equal(test_stats(ledger).reserved, 2);
    assert_true(gs_ledger_undo(ledger, "a"));
    assert_false(gs_ledger_undo(ledger, "a"));
    assert_string_equal(test_accounts(ledger, "n1"), "0:4/16 1:0/16 2:0/80");
    assert_true(gs_ledger_confirm(ledger, "b"));
    assert_true(gs_ledger_confirm(ledger, "b"));
    assert_int_equal(test_stats(ledger).reserved, 0);
    assert_false(gs_ledger_undo(ledger, "b")); /* the API has it */
    assert_string_equal(test_accounts(ledger, "n1"), "0:4/16 1:0/16 2:0/80");
    test_reserve(ledger, "c", "n1", 1, 4);
    test_claim(ledger, "c", "n1", 1, 4); /* the watch was faster than confirm */
    assert_int_equal(test_stats(ledger).reserved, 0);
    assert_false(gs_ledger_undo(ledger, "c"));
}

static void removal_says_whose_memory_went(void **state)
{
    uint32_t slot = 4711;
    assert_false(gs_ledger_remove(ledger, "a", &slot));
    assert_int_equal(slot, 4711);
    test_claim(ledger, "a", "n2", 1, 8);
    test_reserve(ledger, "b", "n2", 1, 8);
    assert_true(gs_ledger_remove(ledger, "a", &slot));
    assert_int_equal(slot, gs_ledger_view(ledger, GS_SLICE("n2"))->slot);
    assert_true(gs_ledger_remove(ledger, "b", NULL)); /* the state does not matter */
    assert_string_equal(test_accounts(ledger, "n2"), "0:0/24");
    assert_int_equal(test_stats(ledger).reserved, 0);
    assert_false(gs_ledger_remove(ledger, "a", &slot));
}

static void an_overfull_gpu_has_nothing_free(void **state)
{
    test_claim(ledger, "a", "n2", 1, 20);
    test_claim(ledger, "b", "n2", 1, 20);
    const struct gs_node_view *view = gs_ledger_view(ledger, GS_SLICE("n2"));
    assert_int_equal(view->gpus[0].used_units, 40);
    assert_int_equal(view->gpus[0].free_units, 0);
    assert_int_equal(view->max_free_units, 0);
    assert_int_equal(view->sum_free_units, 0);
    assert_int_equal(test_stats(ledger).overfull_gpus, 1);
    for (int i = 0; i < 3; i++) { /* beyond 32 bits */
        char uid[] = {(char)('c' + i), '\0'};
        test_claim(ledger, uid, "n2", 1, UINT32_MAX);
    }
    assert_true(gs_ledger_view(ledger, GS_SLICE("n2"))->gpus[0].used_units ==
                40 + 3ull * UINT32_MAX);
    assert_true(gs_ledger_remove(ledger, "c", NULL) && gs_ledger_remove(ledger, "d", NULL) &&
                gs_ledger_remove(ledger, "e", NULL) && gs_ledger_remove(ledger, "a", NULL));
    assert_string_equal(test_accounts(ledger, "n2"), "0:20/24");
    assert_int_equal(gs_ledger_view(ledger, GS_SLICE("n2"))->gpus[0].free_units, 4);
    assert_int_equal(test_stats(ledger).overfull_gpus, 0);
}

static void a_claim_that_may_be_elsewhere_counts_there_too(void **state)
{
    static const struct {
        const char *row;
        gs_gpu_mask gpus, also, charged;
        uint32_t unplaced;
    } rows[] = {
        {"nowhere else", 1, 0, 1, 0},
        {"on one more", 1, 2, 3, 1},
        {"where it is anyway", 1, 1, 1, 0},
        {"on a GPU that is too small", 4, 3, 7, 1},
        {"on a GPU that the node has not", 4, 1 << 5, 4, 0},
        {"anywhere", 4, ~(gs_gpu_mask)0, 7, 1},
        {"not recorded", 0, 1, 5, 1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        const struct gs_claim claim = {.uid = "a",
                                       .node = "n1",
                                       .gpus = r->gpus,
                                       .also = r->also,
                                       .units = r->gpus & 3 ? 8 : 20,
                                       .gpu_count = 1};
        row_equal(r->row, gs_ledger_set_claim(ledger, &claim, NULL), 0);
        row_true(r->row, test_charged(ledger, "a") == r->charged);
        row_equal(r->row, test_stats(ledger).unplaced_claims, r->unplaced);
        gs_ledger_place(ledger, "a", 1 << 2);
        row_true(r->row, test_charged(ledger, "a") == 1 << 2);
        row_equal(r->row, test_stats(ledger).unplaced_claims, 0);
        row_equal(r->row, test_audit(ledger), 0);
    }
    gs_ledger_place(ledger, "nobody", 1);
    assert_string_equal(test_accounts(ledger, "n1"), "0:0/16 1:0/16 2:20/80");
}

struct walk {
    char seen[64];
    int stop_after;
};

static bool note(void *ctx, const struct gs_claim *claim)
{
    struct walk *walk = ctx;
    strncat(walk->seen, claim->uid, 1);
    return --walk->stop_after != 0;
}

static void walks_see_the_newest_first_and_stop_when_told(void **state)
{
    uint32_t n1 = gs_ledger_view(ledger, GS_SLICE("n1"))->slot;
    test_claim(ledger, "a", "n1", 1, 1);
    test_claim(ledger, "b", "n2", 1, 1);
    test_claim(ledger, "c", "n1", 1, 1);
    test_claim(ledger, "d", "n1", 1, 1);
    test_claim(ledger, "e", "nowhere", 1, 1);
    struct walk walk = {0};
    gs_ledger_each_claim(ledger, n1, note, &walk);
    assert_string_equal(walk.seen, "dca");
    walk = (struct walk){.stop_after = 2};
    gs_ledger_each_claim(ledger, n1, note, &walk);
    assert_string_equal(walk.seen, "dc");
    gs_ledger_remove(ledger, "c", NULL); /* from the middle */
    walk = (struct walk){0};
    gs_ledger_each_claim(ledger, n1, note, &walk);
    assert_string_equal(walk.seen, "da");
    walk = (struct walk){0};
    gs_ledger_each(ledger, note, &walk);
    assert_int_equal(strlen(walk.seen), 4);
    assert_non_null(strchr(walk.seen, 'e'));
    walk = (struct walk){.stop_after = 1};
    gs_ledger_each(ledger, note, &walk);
    assert_int_equal(strlen(walk.seen), 1);
}

static void a_list_round_frees_what_it_did_not_mention(void **state)
{
    test_claim(ledger, "gone", "n1", 1, 1);
    test_claim(ledger, "stays", "n1", 1, 2);
    test_reserve(ledger, "reserved", "n1", 1, 4);
    test_reserve(ledger, "confirmed meanwhile", "n1", 1, 8);
    gs_ledger_begin_pods(ledger);
    test_claim(ledger, "stays", "n1", 1, 2);
    test_claim(ledger, "new", "n1", 2, 3);
    gs_ledger_confirm(ledger, "confirmed meanwhile"); /* its bind ended while the list was read */
    assert_int_equal(gs_ledger_sweep_pods(ledger), 1);
    assert_string_equal(test_accounts(ledger, "n1"), "0:14/16 1:3/16 2:0/80");
    gs_ledger_begin_pods(ledger);
    assert_int_equal(gs_ledger_sweep_pods(ledger), 3);
    assert_string_equal(test_accounts(ledger, "n1"), "0:4/16 1:0/16 2:0/80");
}

static void cpu_of_claims_is_counted(void **state)
{
    struct gs_claim claim = {
        .uid = "a", .node = "n1", .gpus = 1, .units = 1, .gpu_count = 1, .cpu_milli = UINT32_MAX};
    assert_int_equal(gs_ledger_set_claim(ledger, &claim, NULL), 0);
    claim.uid = "b";
    assert_int_equal(gs_ledger_set_claim(ledger, &claim, NULL), 0);
    assert_int_equal(gs_ledger_view(ledger, GS_SLICE("n1"))->cpu_used_milli, 2ll * UINT32_MAX);
    claim.cpu_milli = 5;
    assert_int_equal(gs_ledger_set_claim(ledger, &claim, NULL), 0);
    gs_ledger_drop_node(ledger, "n1");
    test_set_node(ledger, "n1", "16");
    assert_int_equal(gs_ledger_view(ledger, GS_SLICE("n1"))->cpu_used_milli, 5ll + UINT32_MAX);
    gs_ledger_remove(ledger, "a", NULL);
    gs_ledger_remove(ledger, "b", NULL);
    assert_int_equal(gs_ledger_view(ledger, GS_SLICE("n1"))->cpu_used_milli, 0);
}

static void compute_is_counted_beside_memory(void **state)
{
    struct gs_claim claim = {
        .uid = "a", .node = "n1", .gpus = 1, .units = 1, .gpu_count = 1, .cores_pct = 60};
    const struct gs_gpu_state *gpu = gs_ledger_view(ledger, GS_SLICE("n1"))->gpus;
    assert_int_equal(gs_ledger_set_claim(ledger, &claim, NULL), 0);
    assert_int_equal(gpu->free_cores_pct, 40);
    claim.uid = "b";
    claim.cores_pct = 500; /* bound past us: no pod can use more than the whole of its GPU */
    assert_int_equal(gs_ledger_set_claim(ledger, &claim, NULL), 0);
    assert_int_equal(gpu->used_cores_pct, 160);
    assert_int_equal(gpu->free_cores_pct, 0);
    assert_int_equal(gpu->free_units, 14); /* memory is not touched by it */
    assert_int_equal(test_stats(ledger).overfull_gpus, 0);
    claim.cores_pct = 40; /* replaced */
    assert_int_equal(gs_ledger_set_claim(ledger, &claim, NULL), 0);
    assert_int_equal(gpu->used_cores_pct, 100);
    gs_ledger_remove(ledger, "a", NULL);
    assert_int_equal(gpu->free_cores_pct, 60);
    assert_int_equal(test_audit(ledger), 0);
}

static void an_audit_sees_each_sum_that_is_not_its_claims(void **state)
{
    struct gs_gpu_state *gpus = gs_ledger_view(ledger, GS_SLICE("n1"))->gpus;
    gpus[0].used_units++;
    gpus[1].used_cores_pct++;
    gpus[2].pods++;
    assert_int_equal(test_audit(ledger), 3);
}

#define WITH_LEDGER(test) cmocka_unit_test_setup_teardown(test, new_ledger, free_ledger)

static void a_claim_that_was_found_may_go_back_in(void **state)
{
    struct gs_labels *labels = calloc(1, sizeof(*labels) + sizeof(labels->all[0]));
    struct gs_claim claim = {
        .uid = "a", .node = "n1", .gpus = 1, .units = 1, .gpu_count = 1, .labels = labels};
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
        WITH_LEDGER(a_claim_counts_where_it_was_recorded_if_that_can_be),
        WITH_LEDGER(a_claim_comes_out_as_it_went_in),
        WITH_LEDGER(what_is_no_claim_is_refused),
        WITH_LEDGER(the_same_uid_replaces),
        WITH_LEDGER(reserve_confirm_and_undo),
        WITH_LEDGER(removal_says_whose_memory_went),
        WITH_LEDGER(an_overfull_gpu_has_nothing_free),
        WITH_LEDGER(a_claim_that_may_be_elsewhere_counts_there_too),
        WITH_LEDGER(walks_see_the_newest_first_and_stop_when_told),
        WITH_LEDGER(a_list_round_frees_what_it_did_not_mention),
        WITH_LEDGER(cpu_of_claims_is_counted),
        WITH_LEDGER(compute_is_counted_beside_memory),
        WITH_LEDGER(a_claim_that_was_found_may_go_back_in),
        WITH_LEDGER(an_audit_sees_each_sum_that_is_not_its_claims),
    };
    return GS_RUN(tests);
}
