/* SPDX-License-Identifier: Apache-2.0 */
#include "ledgers.h"

#define UUID_A "0a1b2c3d-0000-4000-8000-00000000000a"
#define UUID_B "0a1b2c3d-0000-4000-8000-00000000000b"

static struct gs_ledger *ledger;

static int new_ledger(void **state)
{
    ledger = gs_ledger_new();
    test_set_node(ledger, "n1", "16");
    test_set_node(ledger, "n2", "16");
    test_set_node(ledger, "plain", "");
    return ledger ? 0 : -1;
}

static int free_ledger(void **state)
{
    gs_ledger_free(ledger);
    return 0;
}

static int64_t cpu_used(const char *node)
{
    return gs_ledger_view(ledger, gs_slice_of(node))->cpu_used_milli;
}

static void set_other(const char *uid, const char *node, int64_t cpu_milli)
{
    assert_int_equal(gs_ledger_set_other(ledger, uid, node, cpu_milli, NULL), 0);
}

static void others_take_cpu_on_gpu_nodes_only(void **state)
{
    set_other(UUID_A, "n1", 100);
    set_other(UUID_B, "n1", 30);
    set_other("not a UUID", "n1", 7);
    set_other("p", "plain", 100);
    set_other("q", "nowhere", 100);
    assert_int_equal(cpu_used("n1"), 137);
    assert_int_equal(cpu_used("plain"), 0);
    assert_int_equal(test_stats(ledger).others, 3);
    assert_int_equal(gs_ledger_slots(ledger), 3);
    assert_string_equal(test_accounts(ledger, "n1"), "0:0/16"); /* no GPU memory */
}

static void the_same_uid_replaces(void **state)
{
    set_other(UUID_A, "n1", 100);
    uint64_t version = gs_ledger_view(ledger, GS_SLICE("n1"))->version;
    set_other(UUID_A, "n1", 100);
    assert_true(gs_ledger_view(ledger, GS_SLICE("n1"))->version == version); /* nothing new */
    set_other(UUID_A, "n1", 250);
    assert_int_equal(cpu_used("n1"), 250);
    assert_true(gs_ledger_view(ledger, GS_SLICE("n1"))->version != version);
    set_other(UUID_A, "n2", 60);
    assert_int_equal(cpu_used("n1"), 0);
    assert_int_equal(cpu_used("n2"), 60);
    set_other(UUID_A, "plain", 60);
    assert_int_equal(cpu_used("n2"), 0);
    assert_int_equal(test_stats(ledger).others, 0);
}

static void absurd_cpu_is_cut(void **state)
{
    static const struct {
        const char *row;
        int64_t cpu, counted;
    } rows[] = {
        {"zero", 0, 0},
        {"negative", -5, 0},
        {"largest kept", INT32_MAX, INT32_MAX},
        {"one more", 1ll + INT32_MAX, INT32_MAX},
        {"largest", INT64_MAX, INT32_MAX},
        {"smallest", INT64_MIN, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        set_other(UUID_A, "n1", r->cpu);
        row_equal(r->row, cpu_used("n1"), r->counted);
        row_equal(r->row, test_stats(ledger).others, 1);
    }
    gs_ledger_remove(ledger, UUID_A, NULL);
    assert_int_equal(cpu_used("n1"), 0);
}

static void uids_that_look_alike_are_different_pods(void **state)
{
    static const char *const uids[] = {
        "0a1b2c3d-0000-4000-8000-00000000000a",
        "0A1B2C3D-0000-4000-8000-00000000000A",
        "0a1b2c3d-0000-4000-8000-0000000000",
        "0a1b2c3d-0000-4000-8000-00000000000a0",
        "",
        "a",
        "-",
        "g",
        "00000000000000000000000000000000",
        "pod-1",
        "pod-2",
    };
    for (size_t i = 0; i < GS_COUNT_OF(uids); i++)
        set_other(uids[i], "n1", 1);
    assert_int_equal(test_stats(ledger).others, GS_COUNT_OF(uids));
    for (size_t i = 0; i < GS_COUNT_OF(uids); i++) {
        assert_int_equal(cpu_used("n1"), GS_COUNT_OF(uids) - i);
        gs_ledger_remove(ledger, uids[i], NULL);
    }
    assert_int_equal(test_stats(ledger).others, 0);
}

static void removal_of_an_other_frees_no_claim(void **state)
{
    uint32_t slot = 4711;
    set_other(UUID_A, "n1", 100);
    assert_false(gs_ledger_remove(ledger, UUID_A, &slot));
    assert_int_equal(slot, 4711);
    assert_int_equal(cpu_used("n1"), 0);
    assert_int_equal(test_stats(ledger).others, 0);
}

static void a_claim_takes_the_place_of_an_other(void **state)
{
    set_other(UUID_A, "n1", 100);
    test_claim(ledger, UUID_A, "n1", 1, 8);
    assert_int_equal(test_stats(ledger).others, 0);
    assert_int_equal(cpu_used("n1"), 0); /* test_claim() asks for no CPU */
}

static void others_go_with_their_node_or_its_gpus(void **state)
{
    set_other(UUID_A, "n1", 100);
    set_other(UUID_B, "n2", 50);
    set_other("c", "n1", 20);
    test_claim(ledger, "claim", "n1", 1, 8);
    gs_ledger_drop_node(ledger, "n1");
    assert_int_equal(test_stats(ledger).others, 1);
    test_set_node(ledger, "n1", "16");
    assert_int_equal(cpu_used("n1"), 0);
    assert_int_equal(cpu_used("n2"), 50);
    test_set_node(ledger, "n2", "");
    assert_int_equal(test_stats(ledger).others, 0);
    assert_int_equal(cpu_used("n2"), 0);
}

static void a_list_round_forgets_what_it_did_not_mention(void **state)
{
    set_other(UUID_A, "n1", 100);
    set_other(UUID_B, "n1", 50);
    set_other("c", "n1", 0);
    gs_ledger_begin_pods(ledger);
    set_other(UUID_B, "n1", 50);
    assert_int_equal(gs_ledger_sweep_pods(ledger), 0); /* counts claims only */
    assert_int_equal(cpu_used("n1"), 50);
    assert_int_equal(test_stats(ledger).others, 1);
}

static void slots_are_used_again(void **state)
{
    for (int round = 0; round < 50; round++) {
        char uid[40];
        for (int i = 0; i < 100; i++) {
            snprintf(uid, sizeof(uid), "0a1b2c3d-0000-4000-8000-%012d", i * 7 + round);
            set_other(uid, i % 2 ? "n1" : "n2", i);
        }
        assert_int_equal(cpu_used("n1") + cpu_used("n2"), 4950);
        for (int i = 99; i >= 0; i--) {
            snprintf(uid, sizeof(uid), "0a1b2c3d-0000-4000-8000-%012d", i * 7 + round);
            gs_ledger_remove(ledger, uid, NULL);
        }
        assert_int_equal(cpu_used("n1") + cpu_used("n2"), 0);
    }
}

#define WITH_LEDGER(test) cmocka_unit_test_setup_teardown(test, new_ledger, free_ledger)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LEDGER(others_take_cpu_on_gpu_nodes_only),
        WITH_LEDGER(the_same_uid_replaces),
        WITH_LEDGER(absurd_cpu_is_cut),
        WITH_LEDGER(uids_that_look_alike_are_different_pods),
        WITH_LEDGER(removal_of_an_other_frees_no_claim),
        WITH_LEDGER(a_claim_takes_the_place_of_an_other),
        WITH_LEDGER(others_go_with_their_node_or_its_gpus),
        WITH_LEDGER(a_list_round_forgets_what_it_did_not_mention),
        WITH_LEDGER(slots_are_used_again),
    };
    return GS_RUN(tests);
}
