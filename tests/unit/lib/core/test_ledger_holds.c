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
    struct gs_hold as = {{.uid = uid, .units = units, .gpu_count = 1, .priority = priority}, node};
    assert_int_equal(gs_ledger_hold(ledger, &as, NULL), 0);
}

static bool note(void *ctx, const struct gs_hold *held)
{
    char *text = ctx;
    size_t len = strlen(text);
    snprintf(text + len, 100 - len, "%s%s:%u", len ? " " : "", held->ask.uid, held->ask.units);
    return len < 50;
}

/* "b:4 a:8": the holds of a node in their order. */
static const char *holds_of(const char *node)
{
    static char text[100];
    text[0] = '\0';
    const struct gs_node_view *view = gs_ledger_view(ledger, node);
    gs_ledger_each_hold(ledger, view->slot, note, text);
    return text;
}

static void what_is_no_hold_holds_nothing(void **state)
{
    static const struct {
        const char *row;
        struct gs_hold hold;
    } rows[] = {
        {"no node", {{.uid = "a", .units = 1, .gpu_count = 1}, NULL}},
        {"empty node", {{.uid = "a", .units = 1, .gpu_count = 1}, ""}},
        {"no units", {{.uid = "a", .units = 0, .gpu_count = 1}, "n1"}},
        {"broken", {{.uid = "a", .units = 1, .gpu_count = 1, .broken = GS_REASON_BAD_UUID}, "n9"}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        hold("a", "n1", 8, 5);
        row_equal(r->row, gs_ledger_hold(ledger, &r->hold, NULL), 0);
        row_equal(r->row, test_stats(ledger).held, 0);
        row_equal(r->row, gs_ledger_slots(ledger), 2);
    }
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
    gs_ledger_each_hold(ledger, gs_ledger_view(ledger, "n1")->slot, stop, &calls);
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
    gs_ledger_each_hold(ledger, gs_ledger_view(ledger, "n1")->slot, borrow, &got);
    got.hold.ask.units = 9;
    assert_int_equal(gs_ledger_hold(ledger, &got.hold, NULL), 0);
    assert_string_equal(holds_of("n1"), "a:9");
    gs_ledger_each_hold(ledger, gs_ledger_view(ledger, "n1")->slot, borrow, &got);
    test_claim(ledger, got.hold.ask.uid, "n1", 1, 9);
    assert_int_equal(test_stats(ledger).held, 0);
    assert_int_equal(test_charged(ledger, "a"), 1);
}

#define WITH_LEDGER(test) cmocka_unit_test_setup_teardown(test, new_ledger, free_ledger)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LEDGER(what_is_no_hold_holds_nothing),
        WITH_LEDGER(a_walk_stops_when_told),
        WITH_LEDGER(a_borrowed_hold_may_go_back_in),
    };
    return GS_RUN(tests);
}
