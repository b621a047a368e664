/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_rig.h"

#include <pthread.h>
#include <stdatomic.h>

#include "ledgers.h"

#include "core/policy_internal.h"

static void learn_equals(struct gs_policies *policies, uint32_t count, uint32_t units)
{
    struct gs_ask ask = test_ask(units, 1, 0, NULL);
    for (uint32_t i = 0; i < count; i++)
        gs_policies_learn(policies, &ask);
}

static void until_enough_pods_are_known_all_is_binpack(void **state)
{
    static const char *const nodes[] = {"16:8 16", "16:3 16:12", "16 16", "16:9 16:8"};
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    learn_equals(policies, GS_LEARN_MIN - 1, 8);
    test_refresh(policies);
    for (size_t i = 0; i < GS_COUNT_OF(nodes); i++) {
        struct gs_ask ask = test_ask(4, 1, 0, NULL);
        struct gs_node_view *view = test_cpu_view(&t, nodes[i], 0, i + 1);
        struct gs_choice plain = test_choose(policies, GS_PLACEMENT_BINPACK, view, &ask);
        struct gs_choice choice = test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask);
        assert_int_equal(choice.loss, plain.loss);
        assert_int_equal(choice.gpus, plain.gpus);
    }
}

static void a_refresh_is_due_whenever_the_number_has_doubled(void **state)
{
    static const struct {
        uint32_t more;
        bool due;
    } rows[] = {{15, false}, {1, true}, {15, false}, {1, true},
                {31, false}, {1, true}, {63, false}, {1, true}};
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    GS_FOR_EACH_ROW (r, rows) {
        learn_equals(policies, r->more, 8);
        assert_int_equal(gs_policies_refresh_due(policies), r->due);
        if (r->due)
            test_refresh(policies);
        assert_false(r->due && gs_policies_refresh_due(policies));
    }
}

static void pods_that_say_nothing_are_not_counted(void **state)
{
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    struct gs_ask broken = test_ask(8, 1, 0, NULL);
    broken.broken = GS_REASON_BAD_COUNT;
    struct gs_ask by_uuid = test_ask(8, 1, 0, NULL);
    by_uuid.selects = true;
    by_uuid.uuid = GS_SLICE("GPU-1");
    struct gs_ask no_gpu = test_ask(0, 1, 1000, NULL);
    for (int i = 0; i < 100; i++) {
        gs_policies_learn(policies, &broken);
        gs_policies_learn(policies, &by_uuid);
        gs_policies_learn(policies, &no_gpu);
    }
    assert_false(gs_policies_refresh_due(policies));
    assert_int_equal(policies->classes.pods, 100);
    assert_int_equal(policies->classes.gpu_pods, 0);
}

static void kinds_differ_in_all_that_placement_sees(void **state)
{
    static const struct test_pods kinds[] = {
        {1, 8, 1, 1000, NULL}, {1, 9, 1, 1000, NULL},  {1, 8, 2, 1000, NULL}, {1, 8, 1, 1001, NULL},
        {1, 8, 1, 1000, "T4"}, {1, 8, 1, 1000, "T40"}, {1, 0, 1, 1000, NULL}, {0},
    };
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    test_learn(policies, kinds);
    test_learn(policies, kinds);
    assert_int_equal(policies->classes.count, 7);
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(policies->classes.all[i].count, 2);
    struct gs_ask denying = test_ask(8, 1, 1000, NULL);
    denying.selects = true;
    denying.model_deny = GS_SLICE("T4");
    gs_policies_learn(policies, &denying);
    assert_int_equal(policies->classes.count, 8);
    assert_string_equal(policies->classes.all[7].model, "");
    assert_string_equal(policies->classes.all[7].model_deny, "T4");
}

static void old_pods_fade_and_rare_kinds_are_forgotten(void **state)
{
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    struct gs_classes *classes = &policies->classes;
    learn_equals(policies, 1, 1);
    learn_equals(policies, GS_CLASSES_HALVE - 1, 2);
    assert_int_equal(classes->pods, GS_CLASSES_HALVE);
    learn_equals(policies, 1, 3);
    assert_int_equal(classes->count, 2);
    assert_int_equal(classes->all[0].units, 2);
    assert_int_equal(classes->all[0].count, GS_CLASSES_HALVE / 2 - 1);
    assert_int_equal(classes->pods, GS_CLASSES_HALVE / 2);
    learn_equals(policies, 1, 2); /* still found after it moved */
    assert_int_equal(classes->all[0].count, GS_CLASSES_HALVE / 2);
}

static void the_number_of_kinds_is_bounded(void **state)
{
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    learn_equals(policies, 100, 1);
    for (uint32_t units = 2; units < 3 * GS_CLASSES_MAX; units++) {
        learn_equals(policies, 1, units);
        assert_true(policies->classes.count <= GS_CLASSES_MAX);
    }
    assert_int_equal(policies->classes.all[0].units, 1); /* 100, halved three times */
    assert_int_equal(policies->classes.all[0].count, 12);
    test_refresh(policies);
}

/* A hurried chooser works nothing out: it answers from memory, that of the last table included. */
static void who_is_hurried_only_remembers(void **state)
{
    static struct test_node seen, other;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    struct gs_ask ask = test_ask(4, 1, 0, NULL);
    struct gs_choice before, choice;
    struct gs_chooser chooser;
    const struct gs_node_view *view = test_cpu_view(&seen, "16:12 16:8", 0, 1);
    const struct gs_node_view *unseen = test_cpu_view(&other, "16:4 16", 0, 2);
    learn_equals(policies, 40, 8);
    test_refresh(policies);
    gs_chooser_init(&chooser, policies, GS_PLACEMENT_ROLLOUT, &ask);
    assert_true(gs_chooser_choose(&chooser, view, &before));
    assert_true(gs_chooser_choose(&chooser, view, &choice));
    assert_int_equal(chooser.worked, 1);

    chooser.hurried = true;
    assert_true(gs_chooser_choose(&chooser, unseen, &choice));
    assert_true(choice.loss == GS_LOSS_UNKNOWN);
    assert_int_equal(choice.gpus, 0);
    for (int refreshes = 0; refreshes < 2; refreshes++) {
        assert_true(gs_chooser_choose(&chooser, view, &choice));
        assert_true(choice.loss == before.loss && choice.gpus == before.gpus);
        learn_equals(policies, 40u << refreshes, 12);
        test_refresh(policies);
    }
    assert_true(gs_chooser_choose(&chooser, view, &choice));
    assert_true(choice.loss == GS_LOSS_UNKNOWN); /* two tables ago */
    assert_int_equal(chooser.worked, 1);
}

/* Two nodes on which the pod does no harm: while pods leave, the one that has a card less free is
 * better by a fiftieth of a card. What was remembered before that says nothing about it. */
static void while_pods_leave_the_fuller_node_is_better(void **state)
{
    static const struct {
        const char *row;
        uint32_t come, leave; /* in turns */
        int64_t better_by;    /* thousandths of a card */
    } rows[] = {
        {"nobody has left", 500, 0, 0},    {"some", 200, 40, 0},
        {"as many as come", 300, 300, 20}, {"many come, a little later", 250, 0, 20},
        {"and later", 200, 0, 0},          {"all leave", 0, 100, 20},
    };
    static struct test_node fuller, emptier;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    struct gs_ask ask = test_ask(8, 1, 0, NULL);
    const struct gs_node_view *full = test_cpu_view(&fuller, "16:8 16", 0, 1);
    const struct gs_node_view *empty = test_cpu_view(&emptier, "16:8 16 16", 0, 2);
    learn_equals(policies, 40, 8);
    test_refresh(policies);
    GS_FOR_EACH_ROW (r, rows) {
        for (uint32_t i = 0; i < r->come || i < r->leave; i++) {
            learn_equals(policies, i < r->come, 8);
            if (i < r->leave)
                gs_policies_left(policies);
        }
        struct gs_choice better = test_choose(policies, GS_PLACEMENT_ROLLOUT, full, &ask);
        struct gs_choice worse = test_choose(policies, GS_PLACEMENT_ROLLOUT, empty, &ask);
        row_equal(r->row, worse.loss - better.loss, r->better_by * GS_LOSS_MILLI);
        row_equal(r->row, better.gpus, worse.gpus);
    }
}

/* Kinds that push each other out of their rows, and nodes beyond a row's end that write into the
 * next kind's: forgotten at worst, never taken for another's. */
static void more_kinds_than_rows_get_their_own_results(void **state)
{
    enum { MANY = 3 * GS_KINDS_MAX, PLACES = 5 };
    static const char *const gpus[] = {"255:255 255:200 255 255:100", "255:17 255:55"};
    static const uint32_t slots[PLACES] = {0, 1, 2, 8191, 8192}; /* a row has 8,192 places */
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    static const struct test_pods pods[] = {{50, 60, 1, 1000, NULL}, {50, 140, 1, 1000, NULL}, {0}};
    uint64_t different = 0, loss_before = 0;
    test_learn(policies, pods);
    test_refresh(policies);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t kind = 0; kind < MANY; kind++) {
            struct gs_ask ask = test_ask(1 + kind % 190, 1, 100 * (1 + kind / 190), NULL);
            for (size_t place = 0; place < PLACES; place++) {
                struct gs_node_view *view = test_cpu_view(&t, gpus[place % 2], 0, 100 + place);
                view->slot = slots[place];
                struct gs_choice kept = test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask);
                view->version = 0;
                struct gs_choice made = test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask);
                assert_int_equal(kept.loss, made.loss);
                assert_int_equal(kept.gpus, made.gpus);
                different += (uint64_t)made.loss != loss_before;
                loss_before = (uint64_t)made.loss;
            }
        }
    }
    assert_true(different > MANY); /* else any answer would be the right one */
}

static void new_models_make_a_refresh_due(void **state)
{
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
    static struct test_node t;
    static const struct test_pods pods[] = {{50, 8, 1, 0, NULL}, {50, 8, 1, 0, "T4"}, {0}};
    struct gs_error err = {0};
    test_set_node(ledger, "n1", "16 16");
    gs_policies_supply(policies, ledger);
    test_learn(policies, pods);
    test_refresh(policies);
    gs_policies_supply(policies, ledger);
    assert_false(gs_policies_refresh_due(policies));

    test_node_init(&t, "n2", "16 16 16 16 16 16 16 16");
    snprintf(t.gpus[0].model, sizeof(t.gpus[0].model), "Tesla T4");
    assert_int_equal(gs_ledger_set_node(ledger, &t.node, &err), 0);
    gs_policies_supply(policies, ledger);
    assert_true(gs_policies_refresh_due(policies));
    test_refresh(policies);
    assert_false(gs_policies_refresh_due(policies));

    struct gs_ask ask = test_ask(8, 1, 0, NULL);
    const struct gs_node_view *scarce = gs_ledger_view(ledger, "n2");
    const struct gs_node_view *common = gs_ledger_view(ledger, "n1");
    assert_true(test_choose(policies, GS_PLACEMENT_ROLLOUT, common, &ask).loss <
                test_choose(policies, GS_PLACEMENT_ROLLOUT, scarce, &ask).loss);

    /* its number becomes another model's, of as much memory */
    uint16_t number = scarce->gpus[0].model;
    snprintf(t.gpus[0].model, sizeof(t.gpus[0].model), "Tesla T5");
    gs_ledger_drop_node(ledger, "n2");
    assert_int_equal(gs_ledger_set_node(ledger, &t.node, &err), 0);
    assert_int_equal(gs_ledger_view(ledger, "n2")->gpus[0].model, number);
    gs_policies_supply(policies, ledger);
    assert_true(gs_policies_refresh_due(policies));

    test_refresh(policies);
    gs_ledger_drop_node(ledger, "n1");
    gs_policies_supply(policies, ledger);
    assert_true(gs_policies_refresh_due(policies));
}

/* --- threads --- */

struct crowd {
    struct gs_policies *policies;
    struct test_node nodes[4];
    atomic_bool stop;
    atomic_uint wrong;
};

static void *keep_choosing(void *arg)
{
    struct crowd *crowd = arg;
    for (uint32_t i = 0; !atomic_load(&crowd->stop); i++) {
        const struct gs_node_view *view = &crowd->nodes[i % 4].view;
        struct gs_ask ask = test_ask(1 + i % 16, 1 + i % 3 / 2, i % 5 * 1000, NULL);
        struct gs_choice choice = {0};
        bool fits = test_policy_choose(crowd->policies, GS_PLACEMENT_ROLLOUT, view, &ask, &choice);
        bool right = fits == (gs_fit(view, &ask) == GS_FITS) &&
                     (!fits || gs_gpu_mask_count(choice.gpus) == ask.gpu_count);
        if (!right || (choice.gpus & ~gs_fit_candidates(view, &ask)))
            atomic_fetch_add(&crowd->wrong, 1);
    }
    return NULL;
}

static void choosing_goes_on_while_tables_change(void **state)
{
    enum { THREADS = 3, REFRESHES = 60 };
    static const char *const gpus[] = {"16 16:8 16:3", "16:15 16", "16 16 16 16", "16:9x 16:2"};
    static struct crowd crowd;
    pthread_t threads[THREADS];
    crowd = (struct crowd){.policies = gs_policies_new()};
    for (int i = 0; i < 4; i++)
        test_cpu_view(&crowd.nodes[i], gpus[i], 8000 * (i + 1), (uint64_t)i + 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_choosing, &crowd), 0);
    for (uint32_t i = 0; i < REFRESHES; i++) {
        learn_equals(crowd.policies, 16, 1 + i % 16);
        test_refresh(crowd.policies);
    }
    atomic_store(&crowd.stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    gs_policies_free(crowd.policies);
    assert_int_equal(atomic_load(&crowd.wrong), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(until_enough_pods_are_known_all_is_binpack),
        cmocka_unit_test(a_refresh_is_due_whenever_the_number_has_doubled),
        cmocka_unit_test(pods_that_say_nothing_are_not_counted),
        cmocka_unit_test(kinds_differ_in_all_that_placement_sees),
        cmocka_unit_test(old_pods_fade_and_rare_kinds_are_forgotten),
        cmocka_unit_test(the_number_of_kinds_is_bounded),
        cmocka_unit_test(who_is_hurried_only_remembers),
        cmocka_unit_test(while_pods_leave_the_fuller_node_is_better),
        cmocka_unit_test(more_kinds_than_rows_get_their_own_results),
        cmocka_unit_test(new_models_make_a_refresh_due),
        cmocka_unit_test(choosing_goes_on_while_tables_change),
    };
    return GS_RUN(tests);
}
