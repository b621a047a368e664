/* SPDX-License-Identifier: Apache-2.0 */
#include "ledgers.h"

static int new_ledger(void **state)
{
    *state = gs_ledger_new();
    return *state ? 0 : -1;
}

static int free_ledger(void **state)
{
    gs_ledger_free(*state);
    return 0;
}

/* Full rows, a last one that is not, names that are not there, and gaps in the index. */
static void many_names_at_once_are_found_as_one_by_one(void **state)
{
    enum { NAMES = 101 };
    struct gs_ledger *ledger = *state;
    char texts[NAMES][16];
    struct gs_slice names[NAMES];
    for (int i = 0; i < NAMES; i++) {
        snprintf(texts[i], sizeof(texts[i]), "n%d", i * 7919 % NAMES);
        names[i] = gs_slice_of(texts[i]);
        if (i % 3)
            test_set_node(ledger, texts[i], i % 2 ? "16" : "24");
    }
    for (int i = 0; i < NAMES; i += 4)
        gs_ledger_drop_node(ledger, texts[i]);
    names[7] = (struct gs_slice){0};
    names[8] = (struct gs_slice){"n8\0x", 4};
    uint32_t slots[NAMES], found = 0;
    gs_ledger_find_nodes(ledger, names, NAMES, slots);
    for (uint32_t i = 0; i < NAMES; i++) {
        const struct gs_node_view *view = gs_ledger_view_in(ledger, slots, NAMES, i);
        assert_ptr_equal(view, i == 7 || i == 8 ? NULL : gs_ledger_view(ledger, texts[i]));
        found += view != NULL;
    }
    assert_in_range(found, NAMES / 3, NAMES - 1);
    gs_ledger_find_nodes(ledger, names, 0, slots);
}

/* What was found holds while the epoch is the same, and no longer: a node that goes, one that comes
 * and one that takes its slot over are all told. */
static void the_epoch_of_names_tells_when_to_look_again(void **state)
{
    struct gs_ledger *ledger = *state;
    const struct gs_slice names[] = {GS_SLICE("n1"), GS_SLICE("n2")};
    uint32_t slots[2];
    test_set_node(ledger, "n1", "16");
    gs_ledger_find_nodes(ledger, names, 2, slots);
    uint64_t epoch = gs_ledger_names_epoch(ledger);
    assert_int_not_equal(epoch, 0);
    assert_int_equal(slots[1], GS_LEDGER_NO_NODE);
    test_set_node(ledger, "n1", "24");
    assert_int_equal(gs_ledger_names_epoch(ledger), epoch);
    assert_ptr_equal(gs_ledger_view_in(ledger, slots, 2, 0), gs_ledger_view(ledger, "n1"));

    test_set_node(ledger, "n2", "16");
    assert_int_not_equal(gs_ledger_names_epoch(ledger), epoch);
    epoch = gs_ledger_names_epoch(ledger);
    gs_ledger_drop_node(ledger, "n1");
    assert_int_not_equal(gs_ledger_names_epoch(ledger), epoch);
    epoch = gs_ledger_names_epoch(ledger);
    test_set_node(ledger, "n3", "8"); /* in n1's slot */
    assert_int_not_equal(gs_ledger_names_epoch(ledger), epoch);
    assert_ptr_equal(gs_ledger_view_at(ledger, slots[0]), gs_ledger_view(ledger, "n3"));
}

/* A node whose GPUs are of the models "model `from`" and on. */
static const struct gs_node_view *set_models(struct gs_ledger *ledger, const char *name, int from,
                                             uint32_t count)
{
    struct gs_gpu gpus[GS_GPUS_MAX] = {0};
    for (uint32_t i = 0; i < count; i++) {
        gpus[i] = (struct gs_gpu){.idx = i, .mem_units = 8};
        snprintf(gpus[i].model, sizeof(gpus[i].model), "model %u", (unsigned)from + i);
    }
    struct gs_node node = {.name = name, .gpus = gpus, .gpu_count = count};
    assert_int_equal(gs_ledger_set_node(ledger, &node, NULL), 0);
    const struct gs_node_view *view = gs_ledger_view(ledger, name);
    for (uint32_t i = 0; i < count; i++) {
        uint16_t model = view->gpus[i].model;
        assert_string_equal(gs_ledger_model_name(ledger, model), model ? gpus[i].model : "");
    }
    return view;
}

static void more_models_than_there_are_numbers_are_unknown(void **state)
{
    char name[16];
    for (int i = 0; i < 1100; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        assert_int_equal(set_models(*state, name, i, 1)->gpus[0].model != 0, i < 1024);
    }
    gs_ledger_drop_node(*state, "n500");
    assert_int_equal(set_models(*state, "n1099", 1099, 1)->gpus[0].model, 501);
}

static void a_model_is_forgotten_with_its_last_gpu(void **state)
{
    set_models(*state, "n1", 0, 1);
    set_models(*state, "n2", 0, 2);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(set_models(*state, "n3", i + 2, 1)->gpus[0].model, i % 2 ? 4 : 3);
    gs_ledger_drop_node(*state, "n3");
    assert_int_equal(gs_ledger_model_count(*state), 2);
    gs_ledger_drop_node(*state, "n2");
    assert_int_equal(gs_ledger_model_count(*state), 1);
    assert_string_equal(gs_ledger_model_name(*state, 1), "model 0");
    set_models(*state, "n1", 7, 1);
    assert_int_equal(gs_ledger_model_count(*state), 2); /* the old went when the new had come */
    set_models(*state, "n1", 0, 0);
    assert_int_equal(gs_ledger_model_count(*state), 0);
}

static void a_node_brings_sixteen_models_at_most(void **state)
{
    for (int turn = 0; turn < 16; turn++) {
        const struct gs_node_view *view = set_models(*state, "n1", turn * 64, 64);
        for (uint32_t i = 0; i < 64; i++)
            assert_int_equal(view->gpus[i].model != 0, i < 16);
        assert_true(gs_ledger_model_count(*state) <= 32);
    }
}

static void an_audit_sees_each_sum_that_is_not_its_claims(void **state)
{
    test_set_node(*state, "n1", "16 16 80");
    struct gs_gpu_state *gpus = gs_ledger_view(*state, "n1")->gpus;
    gpus[0].used_units++;
    gpus[1].used_cores_pct++;
    gpus[2].pods++;
    assert_int_equal(test_audit(*state), 3);
}

static bool borrow(void *ctx, const struct gs_hold *held)
{
    *(struct gs_hold *)ctx = *held;
    return false;
}

static void a_borrowed_hold_may_go_back_in(void **state)
{
    struct gs_ledger *ledger = *state;
    struct gs_hold hold = {{.uid = "a", .units = 8, .gpu_count = 1, .priority = 5}, "n1"};
    test_set_node(ledger, "n1", "16 16");
    assert_int_equal(gs_ledger_hold(ledger, &hold, NULL), 0);
    for (uint32_t units = 8; units < 10; units++) {
        gs_ledger_each_hold(ledger, 0, borrow, &hold);
        assert_int_equal(hold.ask.units, units);
        hold.ask.units++;
        assert_int_equal(gs_ledger_hold(ledger, &hold, NULL), 0);
    }
    gs_ledger_each_hold(ledger, 0, borrow, &hold);
    test_set_claim(ledger,
                   (struct gs_claim){.uid = hold.ask.uid, .node = "n1", .gpus = 1, .units = 9});
    assert_int_equal(test_stats(ledger).held, 0);
    assert_string_equal(test_accounts(ledger, "n1"), "0:9/16 1:0/16");
}

#define WITH_LEDGER(test) cmocka_unit_test_setup_teardown(test, new_ledger, free_ledger)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LEDGER(many_names_at_once_are_found_as_one_by_one),
        WITH_LEDGER(the_epoch_of_names_tells_when_to_look_again),
        WITH_LEDGER(more_models_than_there_are_numbers_are_unknown),
        WITH_LEDGER(a_model_is_forgotten_with_its_last_gpu),
        WITH_LEDGER(a_node_brings_sixteen_models_at_most),
        WITH_LEDGER(a_borrowed_hold_may_go_back_in),
        WITH_LEDGER(an_audit_sees_each_sum_that_is_not_its_claims),
    };
    return GS_RUN(tests);
}
