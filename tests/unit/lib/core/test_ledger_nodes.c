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

static void an_empty_ledger_knows_nothing(void **state)
{
    struct gs_ledger *ledger = *state;
    assert_null(gs_ledger_view(ledger, GS_SLICE("n1")));
    assert_null(gs_ledger_view(ledger, GS_SLICE("")));
    assert_null(gs_ledger_view(ledger, (struct gs_slice){0}));
    assert_int_equal(gs_ledger_slots(ledger), 0);
    struct gs_ledger_stats stats = test_stats(ledger);
    assert_int_equal(stats.nodes + stats.gpus + stats.claims + stats.others + stats.held, 0);
    assert_int_equal(stats.total_units + stats.used_units, 0);
    gs_ledger_drop_node(ledger, "n1");
    gs_ledger_begin_nodes(ledger);
    gs_ledger_sweep_nodes(ledger);
    gs_ledger_begin_pods(ledger);
    assert_int_equal(gs_ledger_sweep_pods(ledger), 0);
    assert_string_equal(gs_ledger_model_name(ledger, 0), "");
    gs_ledger_free(NULL);
}

static void a_node_is_found_by_its_exact_name(void **state)
{
    struct gs_ledger *ledger = *state;
    test_set_node(ledger, "n1", "16 24");
    test_set_node(ledger, "n10", "8");
    assert_string_equal(test_accounts(ledger, "n1"), "0:0/16 1:0/24");
    assert_string_equal(test_accounts(ledger, "n10"), "0:0/8");
    assert_string_equal(test_accounts(ledger, "n"), "none");
    assert_null(gs_ledger_view(ledger, (struct gs_slice){"n1\0x", 4}));
    assert_non_null(gs_ledger_view(ledger, (struct gs_slice){"n1x", 2}));
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
        assert_ptr_equal(view, gs_ledger_view(ledger, names[i]));
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
    assert_ptr_equal(gs_ledger_view_in(ledger, slots, 2, 0), gs_ledger_view(ledger, names[0]));

    test_set_node(ledger, "n2", "16");
    assert_int_not_equal(gs_ledger_names_epoch(ledger), epoch);
    epoch = gs_ledger_names_epoch(ledger);
    gs_ledger_drop_node(ledger, "n1");
    assert_int_not_equal(gs_ledger_names_epoch(ledger), epoch);
    epoch = gs_ledger_names_epoch(ledger);
    test_set_node(ledger, "n3", "8"); /* in n1's slot */
    assert_int_not_equal(gs_ledger_names_epoch(ledger), epoch);
    assert_ptr_equal(gs_ledger_view_at(ledger, slots[0]), gs_ledger_view(ledger, GS_SLICE("n3")));
}

static void a_slot_names_its_node(void **state)
{
    struct gs_ledger *ledger = *state;
    test_set_node(ledger, "n1", "16");
    test_set_node(ledger, "n2", "24");
    for (uint32_t slot = 0; slot < gs_ledger_slots(ledger); slot++) {
        const struct gs_node_view *view = gs_ledger_view_at(ledger, slot);
        assert_non_null(view);
        assert_int_equal(view->slot, slot);
        assert_ptr_equal(view,
                         gs_ledger_view(ledger, gs_slice_of(gs_ledger_node_name(ledger, slot))));
        assert_int_equal(gs_ledger_node_unit(ledger, slot), GS_UNIT_GIB);
    }
}

static void the_inventory_and_models_are_copied(void **state)
{
    struct gs_ledger *ledger = *state;
    struct gs_gpu gpus[] = {
        {.idx = 1, .mem_units = 80, .model = "A100", .uuid = "GPU-a", .healthy = true},
        {.idx = 2, .mem_units = 16, .model = "T4", .uuid = "GPU-b", .healthy = true},
        {.idx = 3, .mem_units = 16, .model = "", .uuid = "", .healthy = true},
        {.idx = 4, .mem_units = 80, .model = "A100", .uuid = "GPU-c", .healthy = true},
    };
    char name[] = "n1";
    struct gs_node node = {.name = name, .gpus = gpus, .gpu_count = 4, .cpu_milli = 8000};
    assert_int_equal(gs_ledger_set_node(ledger, &node, NULL), 0);
    memset(gpus, 0x55, sizeof(gpus));
    name[0] = 'x';
    const struct gs_node_view *view = gs_ledger_view(ledger, GS_SLICE("n1"));
    static const char *const models[] = {"A100", "T4", "", "A100"};
    static const char *const uuids[] = {"GPU-a", "GPU-b", "", "GPU-c"};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(gs_ledger_model_name(ledger, view->gpus[i].model), models[i]);
        assert_string_equal(view->inventory[i].uuid, uuids[i]);
    }
    assert_int_equal(view->gpus[0].model, view->gpus[3].model);
    assert_int_equal(view->gpus[2].model, 0);
    assert_int_equal(view->cpu_milli, 8000);
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
    const struct gs_node_view *view = gs_ledger_view(ledger, gs_slice_of(name));
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

static void claims_count_anew_when_the_inventory_changes(void **state)
{
    static const struct {
        const char *row;
        const char *before, *after;
        gs_gpu_mask gpus;
        uint32_t units;
        const char *accounts;
        gs_gpu_mask charged;
        uint32_t unplaced;
    } rows[] = {
        {"the same again", "16 16", "16 16", 2, 8, "0:0/16 1:8/16", 2, 0},
        {"it grows", "16 16", "24 24", 2, 8, "0:0/24 1:8/24", 2, 0},
        {"it shrinks below the claim: there, and where it could be", "16 16", "24 4", 2, 8,
         "0:8/24 1:8/4", 3, 1},
        {"its GPU is gone: everywhere it could be", "16 16 16", "16 16@2", 2, 8, "0:8/16 2:8/16", 5,
         1},
        {"no GPU is large enough: where it was", "16 16", "4 4", 2, 8, "0:0/4 1:8/4", 2, 1},
        {"no GPU large enough and its own gone: everywhere", "16 16", "4", 2, 8, "0:8/4", 1, 1},
        {"no GPUs at all: nothing to contradict", "16 16", "", 2, 8, "", 0, 0},
        {"from nothing", "", "16 16", 2, 8, "0:0/16 1:8/16", 2, 0},
        {"unhealthy: what runs stays charged", "16 16", "16 16x", 2, 8, "0:0/16 1:8/16", 2, 0},
        {"its GPU appears", "16", "16 16", 2, 8, "0:0/16 1:8/16", 2, 0},
        {"several GPUs, one is gone", "16 16 16", "16 16", 6, 8, "0:8/16 1:8/16", 3, 1},
    };
    (void)state;
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
        test_set_node(ledger, "n1", r->before);
        test_claim(ledger, "a", "n1", r->gpus, r->units);
        uint64_t version = gs_ledger_view(ledger, GS_SLICE("n1"))->version;
        test_set_node(ledger, "n1", r->after);
        row_text(r->row, test_accounts(ledger, "n1"), r->accounts);
        row_true(r->row, test_charged(ledger, "a") == r->charged);
        row_equal(r->row, test_stats(ledger).unplaced_claims, r->unplaced);
        row_equal(r->row, test_stats(ledger).claims, 1);
        row_true(r->row, gs_ledger_view(ledger, GS_SLICE("n1"))->version != version);
        test_set_node(ledger, "n1", r->before);
        gs_ledger_remove(ledger, "a", NULL);
        row_equal(r->row, test_stats(ledger).used_units, 0);
        row_equal(r->row, test_stats(ledger).unplaced_claims, 0);
    }
}

static void claims_outlive_their_node(void **state)
{
    struct gs_ledger *ledger = *state;
    test_set_node(ledger, "n1", "16 16");
    test_claim(ledger, "a", "n1", 2, 8);
    test_reserve(ledger, "b", "n1", 1, 4);
    gs_ledger_drop_node(ledger, "n1");
    assert_null(gs_ledger_view(ledger, GS_SLICE("n1")));
    struct gs_ledger_stats stats = test_stats(ledger);
    assert_int_equal(stats.nodes, 0);
    assert_int_equal(stats.gpus, 0);
    assert_int_equal(stats.used_units, 0);
    assert_int_equal(stats.claims, 2);
    assert_int_equal(stats.reserved, 1);
    gs_ledger_drop_node(ledger, "n1"); /* twice is fine */
    test_set_node(ledger, "n1", "16 16");
    assert_string_equal(test_accounts(ledger, "n1"), "0:4/16 1:8/16");
}

static void a_claim_may_come_before_its_node(void **state)
{
    struct gs_ledger *ledger = *state;
    uint32_t slot = 4711;
    test_claim(ledger, "a", "n1", 2, 8);
    assert_null(gs_ledger_view(ledger, GS_SLICE("n1")));
    assert_int_equal(test_charged(ledger, "a"), 0);
    assert_int_equal(test_stats(ledger).nodes, 0);
    test_set_node(ledger, "n1", "16 16");
    assert_string_equal(test_accounts(ledger, "n1"), "0:0/16 1:8/16");
    gs_ledger_drop_node(ledger, "n1");
    assert_true(gs_ledger_remove(ledger, "a", &slot));
    assert_int_equal(slot, GS_INDEX_NONE);
    test_set_node(ledger, "n1", "16 16");
    assert_string_equal(test_accounts(ledger, "n1"), "0:0/16 1:0/16");
}

static void slots_of_forgotten_nodes_are_used_again(void **state)
{
    struct gs_ledger *ledger = *state;
    char name[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        test_set_node(ledger, name, "16");
        test_claim(ledger, "a", name, 1, 8);
        gs_ledger_remove(ledger, "a", NULL);
        gs_ledger_drop_node(ledger, name);
    }
    assert_int_equal(gs_ledger_slots(ledger), 1);
    assert_null(gs_ledger_view_at(ledger, 0));
    assert_null(gs_ledger_node_name(ledger, 0));
}

static bool none_expected(void *ctx, const struct gs_claim *claim)
{
    fail_msg("claim %s of an empty slot", claim->uid);
    return false;
}

static bool no_hold_expected(void *ctx, const struct gs_hold *hold)
{
    fail_msg("hold %s of an empty slot", hold->uid);
    return false;
}

static void an_empty_slot_has_no_claims(void **state)
{
    struct gs_ledger *ledger = *state;
    test_set_node(ledger, "n1", "16");
    test_set_node(ledger, "n2", "16");
    test_claim(ledger, "a", "n2", 1, 8);
    assert_int_equal(gs_ledger_hold(ledger, &(struct gs_hold){"h", "n2", 1, 1, 0}, NULL), 0);
    uint32_t slot = gs_ledger_view(ledger, GS_SLICE("n1"))->slot;
    gs_ledger_drop_node(ledger, "n1");
    gs_ledger_each_claim(ledger, slot, none_expected, NULL);
    gs_ledger_each_hold(ledger, slot, no_hold_expected, NULL);
}

static void a_list_round_drops_what_it_did_not_mention(void **state)
{
    struct gs_ledger *ledger = *state;
    test_set_node(ledger, "n1", "16");
    test_set_node(ledger, "n2", "16");
    test_set_node(ledger, "n3", "16");
    test_claim(ledger, "a", "n3", 1, 8);
    gs_ledger_begin_nodes(ledger);
    test_set_node(ledger, "n2", "16");
    test_set_node(ledger, "n4", "16");
    gs_ledger_sweep_nodes(ledger);
    assert_string_equal(test_accounts(ledger, "n1"), "none");
    assert_string_equal(test_accounts(ledger, "n2"), "0:0/16");
    assert_string_equal(test_accounts(ledger, "n3"), "none");
    assert_string_equal(test_accounts(ledger, "n4"), "0:0/16");
    assert_int_equal(test_stats(ledger).claims, 1);
    gs_ledger_sweep_nodes(ledger); /* without a new round: nothing more goes */
    assert_int_equal(test_stats(ledger).nodes, 2);
}

static void statistics_count_what_is_there(void **state)
{
    struct gs_ledger *ledger = *state;
    test_set_node(ledger, "n1", "16 24");
    test_set_node(ledger, "n2", "8");
    test_set_node(ledger, "plain", "");
    test_claim(ledger, "a", "n1", 1, 10);
    test_claim(ledger, "b", "n1", 1, 10);
    test_reserve(ledger, "c", "n2", 1, 8);
    test_claim(ledger, "d", "n1", 0, 20);
    test_claim(ledger, "e", "elsewhere", 1, 5);
    assert_int_equal(gs_ledger_set_other(ledger, "o", "n1", 100, NULL), 0);
    assert_int_equal(gs_ledger_hold(ledger, &(struct gs_hold){"h", "n2", 1, 1, 0}, NULL), 0);
    struct gs_ledger_stats stats = test_stats(ledger);
    assert_int_equal(stats.nodes, 3);
    assert_int_equal(stats.gpu_nodes, 2);
    assert_int_equal(stats.gpus, 3);
    assert_int_equal(stats.claims, 5);
    assert_int_equal(stats.reserved, 1);
    assert_int_equal(stats.unplaced_claims, 1);
    assert_int_equal(stats.overfull_gpus, 1);
    assert_int_equal(stats.others, 1);
    assert_int_equal(stats.held, 1);
    assert_int_equal(stats.total_units, 48);
    assert_int_equal(stats.used_units, 10 + 10 + 8 + 20);
}

#define WITH_LEDGER(test) cmocka_unit_test_setup_teardown(test, new_ledger, free_ledger)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LEDGER(an_empty_ledger_knows_nothing),
        WITH_LEDGER(a_node_is_found_by_its_exact_name),
        WITH_LEDGER(many_names_at_once_are_found_as_one_by_one),
        WITH_LEDGER(the_epoch_of_names_tells_when_to_look_again),
        WITH_LEDGER(a_slot_names_its_node),
        WITH_LEDGER(the_inventory_and_models_are_copied),
        WITH_LEDGER(more_models_than_there_are_numbers_are_unknown),
        WITH_LEDGER(a_model_is_forgotten_with_its_last_gpu),
        WITH_LEDGER(a_node_brings_sixteen_models_at_most),
        cmocka_unit_test(claims_count_anew_when_the_inventory_changes),
        WITH_LEDGER(claims_outlive_their_node),
        WITH_LEDGER(a_claim_may_come_before_its_node),
        WITH_LEDGER(slots_of_forgotten_nodes_are_used_again),
        WITH_LEDGER(an_empty_slot_has_no_claims),
        WITH_LEDGER(a_list_round_drops_what_it_did_not_mention),
        WITH_LEDGER(statistics_count_what_is_there),
    };
    return GS_RUN(tests);
}
