/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_rig.h"

#include "core/policy_internal.h"

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* --- the same, slow and obvious --- */

/* The GPU with the least room that suffices and is not taken, or -1. */
static int tightest(const uint32_t *room, uint32_t gpus, uint32_t units, const bool *taken)
{
    int best = -1;
    for (uint32_t i = 0; i < gpus; i++) {
        if (!taken[i] && room[i] >= units && (best < 0 || room[i] < room[best]))
            best = (int)i;
    }
    return best;
}

static void offer_slowly(const struct gs_class *shape, uint8_t group, uint32_t *room, uint32_t gpus,
                         int64_t *cpu)
{
    bool taken[GS_GPUS_MAX] = {0};
    if (shape->cpu_milli > *cpu || !(shape->groups >> group & 1))
        return;
    for (uint32_t n = 0; n < shape->gpu_count; n++) {
        int at = tightest(room, gpus, shape->units, taken);
        if (at < 0)
            return;
        taken[at] = true;
    }
    for (uint32_t i = 0; i < gpus; i++)
        room[i] -= taken[i] ? shape->units : 0;
    *cpu -= shape->cpu_milli;
}

static uint64_t stranded_slowly(const struct gs_policy_table *table, const struct gs_state *state,
                                int passes)
{
    uint64_t sum = 0;
    for (int r = 0; r < GS_ROLLOUTS; r++) {
        uint32_t room[GS_GPUS_MAX];
        int64_t cpu = state->cpu_milli;
        memcpy(room, state->free_units, sizeof(room));
        for (int i = 0; i < GS_ROLLOUT_DRAWS * passes; i++)
            offer_slowly(&table->shapes[table->draws[r][i % GS_ROLLOUT_DRAWS]], state->group, room,
                         state->gpus, &cpu);
        for (uint32_t i = 0; i < state->gpus; i++)
            sum += room[i];
    }
    return sum;
}

static int by_size(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static struct gs_state random_state(uint64_t *seed)
{
    /* Whole cores: often exactly what a pod needs. */
    struct gs_state state = {.cpu_milli = (int32_t)(next_random(seed) % 40) * 1000,
                             .gpus = (uint32_t)(next_random(seed) % 9)};
    for (uint32_t i = 0; i < state.gpus; i++) {
        state.free_units[i] =
            next_random(seed) % 3 ? 1 + (uint32_t)(next_random(seed) % 1000) : 1000;
        state.left_units += state.free_units[i];
    }
    qsort(state.free_units, state.gpus, sizeof(state.free_units[0]), by_size);
    return state;
}

static const struct gs_class mixed[] = {
    {400, 1000, 1, 11000, "", ""}, {300, 810, 1, 3000, "", ""},  {90, 470, 1, 8000, "", ""},
    {60, 50, 1, 1000, "", ""},     {20, 1000, 2, 20000, "", ""}, {9, 500, 2, 4000, "", ""},
    {5, 1000, 8, 64000, "", ""},   {80, 0, 1, 12000, "", ""},    {7, 300, 1, 2000, "A100", ""},
};

static void sums_agree_with_a_slow_simulation(void **state)
{
    struct gs_supply supply = {0};
    _cleanup_(gs_policy_table_freep) struct gs_policy_table *table =
        gs_policy_table_build(mixed, GS_COUNT_OF(mixed), &supply);
    assert_non_null(table);
    uint64_t seed = 11;
    for (int round = 0; round < 300; round++) {
        struct gs_state node = random_state(&seed);
        assert_int_equal(gs_rollout_stranded(table, &node), stranded_slowly(table, &node, 1));
    }
}

static void taking_keeps_the_order(void **state)
{
    uint64_t seed = 5;
    for (int round = 0; round < 2000; round++) {
        struct gs_state node = random_state(&seed);
        if (!node.gpus)
            continue;
        uint32_t from = node.free_units[next_random(&seed) % node.gpus];
        uint32_t units = 1 + (uint32_t)(next_random(&seed) % from);
        struct gs_state after = node;
        gs_state_take(&after, from, units);
        assert_int_equal(after.left_units, node.left_units - units);
        assert_int_equal(after.gpus, node.gpus - (from == units));
        uint64_t sum = 0;
        for (uint32_t i = 0; i < after.gpus; i++) {
            assert_true(after.free_units[i] > 0);
            assert_true(i == 0 || after.free_units[i - 1] <= after.free_units[i]);
            sum += after.free_units[i];
        }
        assert_int_equal(sum, after.left_units);
    }
}

/* Pods much smaller than the node: one sequence would not fill it, several do. */
static void a_large_node_is_offered_enough_to_fill_it(void **state)
{
    static const struct gs_class small[] = {{10, 1, 1, 0, "", ""}, {10, 3, 1, 0, "", ""}};
    struct gs_supply supply = {0};
    _cleanup_(gs_policy_table_freep) struct gs_policy_table *table =
        gs_policy_table_build(small, GS_COUNT_OF(small), &supply);
    static const uint32_t sizes[] = {1, 3, 80, 500, 1500};
    GS_FOR_EACH_ROW (r, sizes) {
        struct gs_state node = {
            .cpu_milli = INT32_MAX, .gpus = 1, .left_units = *r, .free_units = {*r}};
        assert_int_equal(gs_rollout_stranded(table, &node), 0);
        assert_int_equal(stranded_slowly(table, &node, 64), 0);
    }
}

static void the_loss_is_the_price_of_a_card(void **state)
{
    static const struct {
        const char *row;
        uint64_t before, after;
        int64_t price;
        uint64_t taken;
        uint32_t card;
        int64_t loss;
    } rows[] = {
        {"nothing", 0, 0, 0, 0, 1000, 0},
        {"a card in every sequence", 0, 64 * 1000, 0, 0, 1000, 1000 * GS_LOSS_MILLI},
        {"of another size", 0, 64 * 80, 0, 0, 80, 1000 * GS_LOSS_MILLI},
        {"less stranded than before", 64 * 500, 0, 0, 0, 1000, -500 * GS_LOSS_MILLI},
        {"one unit in one sequence", 0, 1, 0, 0, 1000, GS_LOSS_MILLI / 64},
        {"a scarce model's price", 0, 0, GS_LOSS_MILLI / 2, 1000, 1000, 500 * GS_LOSS_MILLI},
        {"the largest node in MiB", 0, 64 * 64 * (uint64_t)INT32_MAX, 0, 0, INT32_MAX,
         64 * 1000 * GS_LOSS_MILLI},
    };
    GS_FOR_EACH_ROW (r, rows)
        row_equal(r->row, gs_rollout_loss(r->before, r->after, r->price, r->taken, r->card),
                  r->loss);
}

/* --- through the public interface --- */

static void rollout_prefers_the_node_that_strands_least(void **state)
{
    static const struct test_pods halves[] = {{60, 8, 1, 2000, NULL}, {40, 16, 1, 2000, NULL}, {0}};
    static const struct {
        const char *row;
        uint32_t units, gpu_count;
        int64_t cpu_milli;
        const char *better, *worse;
        int64_t better_cpu, worse_cpu;
        gs_gpu_mask gpus; /* on the better one */
    } rows[] = {
        {"a leftover that nobody else wants", 4, 1, 0, "16:12", "16", 0, 0, 1},
        {"the GPU with such a leftover", 4, 1, 0, "16 16:12 16:8", "16 16", 0, 0, 2},
        {"an exact fit", 6, 1, 0, "16:10", "16:8", 0, 0, 1},
        {"two leftovers at once", 4, 2, 0, "16:12 16:12 16", "16:8 16:8", 0, 0, 3},
        {"where CPU has run out", 4, 1, 1000, "16:8", "16:8", 1000, 9000, 1},
        {"the first of equal GPUs", 4, 1, 0, "16:12 16:12", "16", 0, 0, 1},
        {"a pod without GPU goes where CPU is ample", 0, 1, 3000, "16", "16", 9000, 4000, 0},
    };
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    test_learn(policies, halves);
    test_refresh(policies);
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_ask ask = test_ask(r->units, r->gpu_count, r->cpu_milli, NULL);
        struct gs_node_view *view = test_cpu_view(&t, r->better, r->better_cpu, 0);
        struct gs_choice better = test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask);
        view = test_cpu_view(&t, r->worse, r->worse_cpu, 0);
        struct gs_choice worse = test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask);
        row_true(r->row, better.loss < worse.loss);
        row_equal(r->row, better.gpus, r->gpus);
    }
}

/* Pods that are all alike: any GPU will do. Where harm is done the first is taken. */
static void of_equally_good_gpus_the_tightest_is_taken(void **state)
{
    static const struct {
        const char *row, *gpus;
        uint32_t pods_units, units;
        gs_gpu_mask rollout;
    } rows[] = {
        {"used before free", "16 16:8", 4, 4, 2},
        {"used before free, first", "16:8 16", 4, 4, 1},
        {"the tightest", "16:4 16:8 16", 4, 4, 2},
        {"sizes that leave something", "16 16:5", 5, 5, 2},
        {"the first of two", "16 16:8 16:8", 4, 4, 2},
        {"equal harm: the first", "16 16:8", 8, 4, 1},
    };
    static struct test_node t;
    GS_FOR_EACH_ROW (r, rows) {
        struct test_pods alike[] = {{60, r->pods_units, 1, 0, NULL}, {0}};
        _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
        test_learn(policies, alike);
        test_refresh(policies);
        struct gs_ask ask = test_ask(r->units, 1, 0, NULL);
        struct gs_node_view *view = test_cpu_view(&t, r->gpus, 0, 0);
        row_equal(r->row, test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask).gpus, r->rollout);
    }
}

/* Who asks for compute goes where it leaves memory and compute in step; who does not, as if there
 * were none. */
static void compute_counts_for_those_who_ask_for_it(void **state)
{
    static const struct {
        const char *row, *gpus;
        uint32_t units, cores_pct;
        gs_gpu_mask rollout;
    } rows[] = {
        {"much compute: where memory is used up", "16 16:12", 4, 80, 2},
        {"much memory: where compute is used up", "16 16c80", 12, 20, 2},
        {"in step: where the other took as much", "16 16:8c50", 8, 50, 2},
        {"no compute left", "16:12c90 16", 4, 50, 2},
        {"nothing that could be used is taken", "16:8c99 16", 4, 1, 1},
        {"no compute: the used GPU of a node", "16 16:12c100", 4, 0, 2},
    };
    static const struct test_pods pods[] = {
        {40, 8, 1, 0, NULL}, {40, 4, 1, 0, NULL}, {20, 16, 1, 0, NULL}, {0}};
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    test_learn(policies, pods);
    test_refresh(policies);
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_ask ask = test_ask(r->units, 1, 0, NULL);
        struct gs_node_view *view = test_cpu_view(&t, r->gpus, 0, 0);
        ask.cores_pct = r->cores_pct;
        row_equal(r->row, test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask).gpus, r->rollout);
    }
}

/* A node in the same state is remembered by what is asked for, compute included. */
static void what_is_remembered_is_remembered_with_its_compute(void **state)
{
    static struct test_node t;
    static const struct test_pods pods[] = {{40, 4, 1, 0, NULL}, {40, 16, 1, 0, NULL}, {0}};
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    test_learn(policies, pods);
    test_refresh(policies);
    struct gs_node_view *view = test_cpu_view(&t, "16:12c90 16", 0, 7);
    struct gs_ask ask = test_ask(4, 1, 0, NULL);
    for (int i = 0; i < 2; i++) {
        ask.cores_pct = 0;
        assert_int_equal(test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask).gpus, 1);
        ask.cores_pct = 50;
        assert_int_equal(test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask).gpus, 2);
    }
}

/* A card has 16, 16384 or 16000000 units: losses are the same. */
static void the_size_of_a_unit_does_not_matter(void **state)
{
    static const uint32_t units[] = {1, 1024, 1000000};
    int64_t losses[GS_COUNT_OF(units)];
    for (size_t i = 0; i < GS_COUNT_OF(units); i++) {
        static struct test_node t;
        char gpus[64];
        uint32_t u = units[i];
        struct test_pods pods[] = {{50, 5 * u, 1, 0, NULL}, {50, 7 * u, 1, 0, NULL}, {0}};
        _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
        test_learn(policies, pods);
        test_refresh(policies);
        snprintf(gpus, sizeof(gpus), "%u:%u %u", 16 * u, 3 * u, 16 * u);
        struct gs_ask ask = test_ask(5 * u, 1, 0, NULL);
        struct gs_node_view *view = test_cpu_view(&t, gpus, 0, 0);
        losses[i] = test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask).loss;
        assert_int_equal(losses[i], losses[0]);
    }
}

/* GPUs of different size in one node, and many of them. */
static void odd_nodes_are_judged_too(void **state)
{
    static const char *const nodes[] = {
        "16 80 24:3",
        "80@0 80@7 80@63",
        "1",
        "4294967295 4294967295",
        "16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 "
        "16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 "
        "16 16 16 16",
    };
    static const struct test_pods pods[] = {{20, 1, 1, 100, NULL}, {20, 9, 3, 100, NULL}, {0}};
    static struct test_node t;
    _cleanup_(gs_policies_freep) struct gs_policies *policies = gs_policies_new();
    test_learn(policies, pods);
    test_refresh(policies);
    GS_FOR_EACH_ROW (r, nodes) {
        struct gs_ask ask = test_ask(1, 1, 100, NULL);
        struct gs_node_view *view = test_cpu_view(&t, *r, 100000, 0);
        struct gs_choice choice = test_choose(policies, GS_PLACEMENT_ROLLOUT, view, &ask);
        assert_int_equal(gs_gpu_mask_count(choice.gpus), 1);
        assert_true(choice.gpus & gs_view_present(view));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_agree_with_a_slow_simulation),
        cmocka_unit_test(taking_keeps_the_order),
        cmocka_unit_test(compute_counts_for_those_who_ask_for_it),
        cmocka_unit_test(what_is_remembered_is_remembered_with_its_compute),
        cmocka_unit_test(a_large_node_is_offered_enough_to_fill_it),
        cmocka_unit_test(the_loss_is_the_price_of_a_card),
        cmocka_unit_test(rollout_prefers_the_node_that_strands_least),
        cmocka_unit_test(of_equally_good_gpus_the_tightest_is_taken),
        cmocka_unit_test(the_size_of_a_unit_does_not_matter),
        cmocka_unit_test(odd_nodes_are_judged_too),
    };
    return GS_RUN(tests);
}
