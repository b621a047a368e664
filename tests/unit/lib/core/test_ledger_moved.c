/* SPDX-License-Identifier: Apache-2.0 */
/* The list of moved pods that a node carries (contract, section 4). */
#include "ledgers.h"

/* "a:1 b:0,1" for a list of moved pods, UIDs ascending, one letter each; "!" for one that cannot be
 * read, "" for none. A '+' first: the node's plugin says that it writes such lists. */
static void set_node(struct gs_ledger *ledger, const char *gpus, const char *list)
{
    static char uids[26][2];
    struct gs_moved moved[26];
    struct test_node t;
    struct gs_node *node = test_node_init(&t, "n1", gpus);
    node->tells_moved = list[0] == '+';
    node->moved_error = list[0] == '!' ? "JSON: unexpected end of input" : "";
    node->moved = moved;
    for (const char *at = list; *at; at++) {
        if (*at >= 'a' && *at <= 'z') {
            uids[*at - 'a'][0] = *at;
            moved[node->moved_count++] = (struct gs_moved){uids[*at - 'a'], 0};
        } else if (*at >= '0' && *at <= '9') {
            moved[node->moved_count - 1].gpus |= GS_GPU_BIT(*at - '0');
        }
    }
    assert_int_equal(gs_ledger_set_node(ledger, node, NULL), 0);
    memset(moved, 0x77, sizeof(moved)); /* copied */
}

static int setup(void **state)
{
    *state = gs_ledger_new();
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    gs_ledger_free(*state);
    return 0;
}

static void both_partners_of_an_exchange_move_on_one_event(void **state)
{
    struct gs_ledger *ledger = *state;
    set_node(ledger, "8 8", "+");
    test_claim(ledger, "a", "n1", 1, 8);
    test_claim(ledger, "b", "n1", 2, 8);
    uint64_t version = gs_ledger_view(ledger, GS_SLICE("n1"))->version;
    set_node(ledger, "8 8", "+a:1 b:0");
    assert_int_equal(test_charged(ledger, "a"), 2);
    assert_int_equal(test_charged(ledger, "b"), 1);
    assert_true(gs_ledger_view(ledger, GS_SLICE("n1"))->version != version);
    assert_int_equal(test_stats(ledger).unplaced_claims, 0);
    gs_ledger_remove(ledger, "a", NULL);
    assert_string_equal(test_accounts(ledger, "n1"), "0:8/8 1:0/8");
}

static void the_list_and_its_pods_come_in_any_order(void **state)
{
    struct gs_ledger *ledger = *state;
    test_claim(ledger, "a", "n1", 1, 8); /* before its node */
    set_node(ledger, "16 16 16", "+a:1 b:2 c:0");
    test_claim(ledger, "b", "n1", 1, 8); /* after it */
    test_claim(ledger, "c", "n2", 2, 8); /* of another node */
    assert_string_equal(test_accounts(ledger, "n1"), "0:0/16 1:8/16 2:8/16");
    test_claim(ledger, "b", "n1", 1, 8); /* an event that still shows its bind */
    assert_string_equal(test_accounts(ledger, "n1"), "0:0/16 1:8/16 2:8/16");
    gs_ledger_place(ledger, "b", 1);
    assert_string_equal(test_accounts(ledger, "n1"), "0:0/16 1:8/16 2:8/16");
}

static void the_list_is_believed_as_it_stands(void **state)
{
    static const struct {
        const char *row;
        const char *gpus, *list;
        uint32_t units, gpu_count, total; /* of a, recorded on GPU 0 */
        const char *accounts;
        uint32_t unplaced;
    } rows[] = {
        {"a GPU that became too small", "4 16", "+a:0", 8, 1, 0, "0:8/4 1:0/16", 0},
        {"more GPUs than its count: divided", "16 16", "+a:0,1", 16, 1, 0, "0:8/16 1:8/16", 0},
        {"fewer GPUs than its count", "16 16", "+a:1", 8, 2, 0, "0:0/16 1:16/16", 0},
        {"a total that its units do not show", "16 16", "+a:0,1", 12, 4, 12, "0:6/16 1:6/16", 0},
        {"a total that does not divide", "16 16", "+a:0,1", 5, 1, 0, "0:3/16 1:3/16", 0},
        {"a GPU that the node has not: everywhere", "16 16", "+a:3", 8, 1, 0, "0:8/16 1:8/16", 1},
        {"one of two is not there", "4 16", "+a:0,3", 8, 2, 0, "0:8/4 1:8/16", 1},
        {"the largest total", "16", "+a:0", UINT32_MAX, 64, 0, "0:4294967295/16", 0},
    };
    (void)state;
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
        const struct gs_claim claim = {.uid = "a",
                                       .node = "n1",
                                       .gpus = 1,
                                       .also = 2,
                                       .units = r->units,
                                       .gpu_count = r->gpu_count,
                                       .total_units = r->total};
        set_node(ledger, r->gpus, "");
        row_equal(r->row, gs_ledger_set_claim(ledger, &claim, NULL), 0);
        set_node(ledger, r->gpus, r->list);
        row_text(r->row, test_accounts(ledger, "n1"), r->accounts);
        row_equal(r->row, test_stats(ledger).unplaced_claims, r->unplaced);
    }
}

/* The plugin takes an entry off when the pod is gone. A list that is not there for another reason
 * (the original's plugin, a node made anew, a slip of the hand) moves nobody back. */
static void a_pod_stays_where_it_was_told_to_be(void **state)
{
    static const struct {
        const char *row;
        const char *list;
        bool dropped; /* the node goes in between */
        const char *accounts;
    } rows[] = {
        {"the list is empty", "+", false, "0:0/16 1:8/16"},
        {"another plugin", "", false, "0:0/16 1:8/16"},
        {"the list cannot be read", "!", false, "0:0/16 1:8/16"},
        {"it names others", "+b:0", false, "0:0/16 1:8/16"},
        {"it moved on", "+a:0", false, "0:8/16 1:0/16"},
        {"the node came back without it", "", true, "0:0/16 1:8/16"},
    };
    (void)state;
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
        struct gs_claim claim;
        set_node(ledger, "16 16", "+a:1");
        test_claim(ledger, "a", "n1", 1, 8);
        if (r->dropped)
            gs_ledger_drop_node(ledger, "n1");
        set_node(ledger, "16 16", r->list);
        row_text(r->row, test_accounts(ledger, "n1"), r->accounts);
        row_true(r->row, gs_ledger_find_claim(ledger, "a", &claim) && claim.from_moved);
        row_equal(r->row, gs_ledger_set_claim(ledger, &claim, NULL), 0); /* as it came out */
        row_text(r->row, test_accounts(ledger, "n1"), r->accounts);
    }
}

static void a_list_that_cannot_be_read_leaves_the_one_before(void **state)
{
    struct gs_ledger *ledger = *state;
    set_node(ledger, "16 16", "+a:1");
    set_node(ledger, "16 16", "!");
    test_claim(ledger, "a", "n1", 1, 8);
    assert_string_equal(test_accounts(ledger, "n1"), "0:0/16 1:8/16");
    gs_ledger_drop_node(ledger, "n1");
    set_node(ledger, "16 16", "!");
    test_claim(ledger, "b", "n1", 1, 8);
    assert_string_equal(test_accounts(ledger, "n1"), "0:8/16 1:8/16");
}

static void only_the_list_ends_a_doubt(void **state)
{
    struct gs_ledger *ledger = *state;
    const struct gs_claim claim = {
        .uid = "a", .node = "n1", .gpus = 2, .also = 1, .units = 8, .gpu_count = 1};
    set_node(ledger, "16 16", "");
    assert_int_equal(gs_ledger_set_claim(ledger, &claim, NULL), 0);
    assert_string_equal(test_accounts(ledger, "n1"), "0:8/16 1:8/16");
    uint32_t slot = gs_ledger_view(ledger, GS_SLICE("n1"))->slot;
    assert_false(gs_ledger_node_tells_moved(ledger, slot));
    set_node(ledger, "16 16", "+");
    assert_true(gs_ledger_node_tells_moved(ledger, slot));
    assert_string_equal(test_accounts(ledger, "n1"), "0:8/16 1:8/16");
    set_node(ledger, "16 16", "+a:1");
    assert_string_equal(test_accounts(ledger, "n1"), "0:0/16 1:8/16");
}

#define WITH_LEDGER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LEDGER(both_partners_of_an_exchange_move_on_one_event),
        WITH_LEDGER(the_list_and_its_pods_come_in_any_order),
        cmocka_unit_test(the_list_is_believed_as_it_stands),
        cmocka_unit_test(a_pod_stays_where_it_was_told_to_be),
        WITH_LEDGER(a_list_that_cannot_be_read_leaves_the_one_before),
        WITH_LEDGER(only_the_list_ends_a_doubt),
    };
    return GS_RUN(tests);
}
