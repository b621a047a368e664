/* SPDX-License-Identifier: Apache-2.0 */
#include "ledgers.h"

static struct gs_ledger *ledger;

static int new_ledger(void **state)
{
    ledger = gs_ledger_new();
    test_set_node(ledger, "n1", "16 16");
    test_set_node(ledger, "n2", "24");
    return ledger ? 0 : -1;
}

static int free_ledger(void **state)
{
    gs_ledger_free(ledger);
    return 0;
}

static void hold(const char *uid, const char *node, uint32_t units, int32_t priority)
{
    struct gs_hold as = {uid, node, units, 1, priority};
    assert_int_equal(gs_ledger_hold(ledger, &as, NULL), 0);
}

static bool note(void *ctx, const struct gs_hold *held)
{
    char *text = ctx;
    size_t len = strlen(text);
    snprintf(text + len, 100 - len, "%s%s:%u", len ? " " : "", held->uid, held->units);
    return len < 50;
}

/* "b:4 a:8": the holds of a node in their order. */
static const char *holds_of(const char *node)
{
    static char text[100];
    text[0] = '\0';
    const struct gs_node_view *view = gs_ledger_view(ledger, gs_slice_of(node));
    gs_ledger_each_hold(ledger, view->slot, note, text);
    return text;
}

static uint32_t nominated(const char *node)
{
    return gs_ledger_view(ledger, gs_slice_of(node))->nominated;
}

static void holds_stand_in_order_of_priority_then_age(void **state)
{
    hold("a", "n1", 1, 5);
    hold("b", "n1", 2, 9);
    hold("c", "n1", 3, 5);
    hold("d", "n1", 4, -1);
    hold("e", "n1", 5, 9);
    hold("f", "n2", 6, 7);
    assert_string_equal(holds_of("n1"), "b:2 e:5 a:1 c:3 d:4");
    assert_string_equal(holds_of("n2"), "f:6");
    assert_int_equal(nominated("n1"), 5);
    assert_int_equal(test_stats(ledger).held, 6);
    assert_string_equal(test_accounts(ledger, "n1"), "0:0/16 1:0/16"); /* nothing is charged */
}

static void the_same_uid_replaces(void **state)
{
    hold("a", "n1", 1, 5);
    hold("b", "n1", 2, 5);
    uint64_t version = gs_ledger_view(ledger, GS_SLICE("n1"))->version;
    hold("a", "n1", 1, 5); /* the same event again: keeps its age */
    assert_string_equal(holds_of("n1"), "a:1 b:2");
    assert_true(gs_ledger_view(ledger, GS_SLICE("n1"))->version == version);
    hold("a", "n1", 3, 5);
    assert_string_equal(holds_of("n1"), "b:2 a:3");
    assert_true(gs_ledger_view(ledger, GS_SLICE("n1"))->version != version);
    hold("b", "n2", 2, 5);
    assert_string_equal(holds_of("n1"), "a:3");
    assert_string_equal(holds_of("n2"), "b:2");
    assert_int_equal(nominated("n1"), 1);
    assert_int_equal(test_stats(ledger).held, 2);
}

static bool note_lists(void *ctx, const struct gs_hold *held)
{
    snprintf(ctx, 100, "%s|%s|%s|%s|%s", held->uid, held->model, held->model_deny, held->uuid,
             held->uuid_deny);
    return true;
}

static void the_pods_lists_are_kept(void **state)
{
    char text[100] = "";
    const struct gs_node_view *view = gs_ledger_view(ledger, GS_SLICE("n1"));
    struct gs_hold as = {"a", "n1", 1, 1, 5, "A100,H100", "T4", "GPU-1", "GPU-2"};
    assert_int_equal(gs_ledger_hold(ledger, &as, NULL), 0);
    gs_ledger_each_hold(ledger, view->slot, note_lists, text);
    assert_string_equal(text, "a|A100,H100|T4|GPU-1|GPU-2");
    uint64_t version = view->version;
    assert_int_equal(gs_ledger_hold(ledger, &as, NULL), 0);
    assert_true(view->version == version);
    as.model_deny = NULL;
    assert_int_equal(gs_ledger_hold(ledger, &as, NULL), 0);
    assert_true(view->version != version);
    version = view->version;
    as.cores_pct = 40;
    assert_int_equal(gs_ledger_hold(ledger, &as, NULL), 0);
    assert_true(view->version != version);
    gs_ledger_each_hold(ledger, view->slot, note_lists, text);
    assert_string_equal(text, "a|A100,H100||GPU-1|GPU-2");
    assert_int_equal(nominated("n1"), 1);
}

static void what_is_no_hold_is_refused(void **state)
{
    static const struct {
        const char *row;
        struct gs_hold hold;
    } rows[] = {
        {"no UID", {NULL, "n1", 1, 1, 0}},        {"empty UID", {"", "n1", 1, 1, 0}},
        {"no node", {"a", NULL, 1, 1, 0}},        {"empty node", {"a", "", 1, 1, 0}},
        {"no units", {"a", "n1", 0, 1, 0}},       {"no GPUs", {"a", "n1", 1, 0, 0}},
        {"too many GPUs", {"a", "n9", 1, 65, 0}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_error err = {0};
        row_equal(r->row, gs_ledger_hold(ledger, &r->hold, &err), -1);
        row_equal(r->row, err.code, GS_EINVAL);
        row_equal(r->row, test_stats(ledger).held, 0);
        row_equal(r->row, gs_ledger_slots(ledger), 2);
    }
}

static void release_is_told_whether_there_was_one(void **state)
{
    assert_false(gs_ledger_release_hold(ledger, "a"));
    hold("a", "n1", 1, 5);
    hold("b", "n1", 2, 6);
    hold("c", "n1", 3, 7);
    assert_true(gs_ledger_release_hold(ledger, "b"));
    assert_false(gs_ledger_release_hold(ledger, "b"));
    assert_string_equal(holds_of("n1"), "c:3 a:1");
    uint32_t slot = 4711;
    assert_false(gs_ledger_remove(ledger, "c", &slot)); /* no claim went */
    assert_int_equal(slot, 4711);
    assert_string_equal(holds_of("n1"), "a:1");
}

static void a_claim_ends_the_hold_and_prevents_another(void **state)
{
    hold("a", "n1", 8, 5);
    test_reserve(ledger, "a", "n2", 1, 8);
    assert_int_equal(test_stats(ledger).held, 0);
    assert_int_equal(nominated("n1"), 0);
    hold("a", "n1", 8, 5); /* a late event */
    assert_int_equal(test_stats(ledger).held, 0);
    assert_true(gs_ledger_undo(ledger, "a"));
    hold("a", "n1", 8, 5);
    assert_string_equal(holds_of("n1"), "a:8");
}

static void holds_outlive_their_node(void **state)
{
    hold("a", "n1", 8, 5);
    hold("b", "later", 4, 5);
    gs_ledger_drop_node(ledger, "n1");
    assert_int_equal(test_stats(ledger).held, 2);
    test_set_node(ledger, "n1", "16");
    test_set_node(ledger, "later", "16");
    assert_string_equal(holds_of("n1"), "a:8");
    assert_int_equal(nominated("n1"), 1);
    assert_string_equal(holds_of("later"), "b:4");
    assert_int_equal(nominated("later"), 1);
}

static void a_list_round_releases_what_it_did_not_mention(void **state)
{
    hold("a", "n1", 8, 5);
    hold("b", "n1", 4, 5);
    hold("c", "n2", 4, 5);
    gs_ledger_begin_pods(ledger);
    hold("b", "n1", 4, 5);
    gs_ledger_sweep_pods(ledger);
    assert_string_equal(holds_of("n1"), "b:4");
    assert_string_equal(holds_of("n2"), "");
    assert_int_equal(test_stats(ledger).held, 1);
}

static bool stop(void *ctx, const struct gs_hold *held)
{
    ++*(int *)ctx;
    return false;
}

static void a_walk_stops_when_told(void **state)
{
    hold("a", "n1", 8, 5);
    hold("b", "n1", 4, 5);
    int calls = 0;
    gs_ledger_each_hold(ledger, gs_ledger_view(ledger, GS_SLICE("n1"))->slot, stop, &calls);
    assert_int_equal(calls, 1);
}

struct borrowed {
    struct gs_hold hold;
};

static bool borrow(void *ctx, const struct gs_hold *held)
{
    ((struct borrowed *)ctx)->hold = *held;
    return false;
}

static void a_borrowed_hold_may_go_back_in(void **state)
{
    hold("a", "n1", 8, 5);
    struct borrowed got;
    gs_ledger_each_hold(ledger, gs_ledger_view(ledger, GS_SLICE("n1"))->slot, borrow, &got);
    got.hold.units = 9;
    assert_int_equal(gs_ledger_hold(ledger, &got.hold, NULL), 0);
    assert_string_equal(holds_of("n1"), "a:9");
    gs_ledger_each_hold(ledger, gs_ledger_view(ledger, GS_SLICE("n1"))->slot, borrow, &got);
    test_claim(ledger, got.hold.uid, "n1", 1, 9);
    assert_int_equal(test_stats(ledger).held, 0);
    assert_int_equal(test_charged(ledger, "a"), 1);
}

#define WITH_LEDGER(test) cmocka_unit_test_setup_teardown(test, new_ledger, free_ledger)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LEDGER(holds_stand_in_order_of_priority_then_age),
        WITH_LEDGER(the_same_uid_replaces),
        WITH_LEDGER(the_pods_lists_are_kept),
        WITH_LEDGER(what_is_no_hold_is_refused),
        WITH_LEDGER(release_is_told_whether_there_was_one),
        WITH_LEDGER(a_claim_ends_the_hold_and_prevents_another),
        WITH_LEDGER(holds_outlive_their_node),
        WITH_LEDGER(a_list_round_releases_what_it_did_not_mention),
        WITH_LEDGER(a_walk_stops_when_told),
        WITH_LEDGER(a_borrowed_hold_may_go_back_in),
    };
    return GS_RUN(tests);
}
