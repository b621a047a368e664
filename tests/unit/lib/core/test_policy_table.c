/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_rig.h"

#include "core/policy_internal.h"

enum { KINDS = 4, MODELS = 4 };

static struct gs_policy_table *build(const struct gs_class *classes, uint32_t count)
{
    struct gs_supply supply = {0};
    struct gs_policy_table *table = gs_policy_table_build(classes, count, &supply);
    assert_non_null(table);
    return table;
}

static void frequent_kinds_come_first(void **state)
{
    static const struct gs_class classes[] = {
        {5, 1, 1, 0, "", ""}, {9, 1, 1, 1, "", ""},   {5, 1, 1, 7, "", ""},   {5, 2, 1, 7, "", ""},
        {5, 2, 2, 7, "", ""}, {5, 2, 2, 7, "T4", ""}, {5, 2, 2, 7, "A2", ""},
    };
    static const uint32_t cpu[] = {1, 7, 7, 7, 7, 7, 0}, gpus[] = {1, 2, 2, 2, 1, 1, 1};
    _cleanup_(gs_policy_table_freep) struct gs_policy_table *table =
        build(classes, GS_COUNT_OF(classes));
    assert_int_equal(table->shape_count, GS_COUNT_OF(classes));
    for (uint32_t i = 0; i < table->shape_count; i++) {
        assert_int_equal(table->shapes[i].cpu_milli, cpu[i]);
        assert_int_equal(table->shapes[i].gpu_count, gpus[i]);
    }
}

/* Elements of 4096 in proportion to count × gpu_count^1.5, pods without GPU apart. */
static void draws_follow_the_weights(void **state)
{
    static const struct {
        const char *row;
        struct gs_class classes[KINDS];
        uint32_t first; /* draws of the most frequent kind; the rest is the second's */
    } rows[] = {
        {"a quarter", {{90, 0, 1, 500, "", ""}, {12, 1, 1, 0, "", ""}, {4, 2, 1, 0, "", ""}}, 3072},
        {"four GPUs weigh eight", {{8, 1, 1, 0, "", ""}, {1, 1, 4, 0, "", ""}}, 2048},
        {"the largest counts",
         {{131072, UINT32_MAX, 64, 0, "", ""}, {131072, 1, 64, 0, "", ""}},
         2048},
    };
    GS_FOR_EACH_ROW (r, rows) {
        const bool plain = !r->classes[0].units;
        _cleanup_(gs_policy_table_freep) struct gs_policy_table *table =
            build(r->classes, plain ? 3 : 2);
        uint32_t drawn[KINDS] = {0};
        for (int i = 0; i < GS_ROLLOUTS * GS_ROLLOUT_DRAWS; i++)
            drawn[table->draws[i / GS_ROLLOUT_DRAWS][i % GS_ROLLOUT_DRAWS]]++;
        row_equal(r->row, drawn[plain], r->first);
        row_equal(r->row, drawn[plain + 1], 4096 - r->first);
    }
}

/* The order is part of the format: results must not change from release to release. */
static void the_order_of_draws_is_fixed(void **state)
{
    static const struct gs_class classes[] = {{3, 1, 1, 0, "", ""}, {1, 2, 1, 0, "", ""}};
    _cleanup_(gs_policy_table_freep) struct gs_policy_table *table = build(classes, 2);
    char text[33] = "";
    for (int i = 0; i < 32; i++)
        text[i] = (char)('0' + table->draws[0][i]);
    assert_string_equal(text, "00000000000010110010100010000011");
}

static void without_gpu_pods_there_is_no_table(void **state)
{
    static const struct gs_class classes[] = {{300, 0, 1, 0, "", ""}, {0, 8, 1, 0, "", ""}};
    struct gs_supply supply = {0};
    assert_null(gs_policy_table_build(classes, 2, &supply));
    assert_null(gs_policy_table_build(classes, 0, &supply));
}

/* Models by number: 1 A100, 2 A10, 3 T4; 0 is unknown. */
static char names[MODELS][GS_MODEL_BYTES] = {"", "NVIDIA A100-SXM4-80GB", "NVIDIA A10", "Tesla T4"};

/* A tenth of the demand is tied to a model that is a tenth of the supply: 0.4 × 1. */
static void a_scarce_model_has_a_price_and_models_differ_once_a_list_tells_them_apart(void **state)
{
    static const struct {
        const char *row;
        struct gs_class classes[KINDS];
        uint32_t count;
        double prices[MODELS];
    } rows[] = {
        {"no lists", {{10, 8, 1, 0, "", ""}}, 1, {0, 0, 0, 0}},
        {"a tenth on a tenth", {{90, 8, 1, 0, "", ""}, {10, 8, 1, 0, "T4", ""}}, 2, {0, 0, 0, 0.4}},
        {"half on a tenth", {{50, 8, 1, 1, "", ""}, {50, 8, 1, 0, "T4", ""}}, 2, {0, 0, 0, 2}},
        {"spread over all that it may use",
         {{90, 8, 1, 0, "", ""}, {10, 8, 1, 0, "T4,A100", ""}},
         2,
         {0, 0.4 * 0.1 / 0.9, 0, 0.4 * 0.1 / 0.9}},
        {"two GPUs count twice",
         {{80, 8, 1, 0, "", ""}, {10, 8, 2, 0, "T4", ""}},
         2,
         {0, 0, 0, 0.8}},
        {"a model that nobody has",
         {{90, 8, 1, 0, "", ""}, {10, 8, 1, 0, "H100", ""}},
         2,
         {0, 0, 0, 0}},
    };
    uint64_t units[MODELS] = {0, 800, 100, 100};
    struct gs_supply supply = {MODELS, units, names};
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_policy_table_freep) struct gs_policy_table *table =
            gs_policy_table_build(r->classes, r->count, &supply);
        assert_non_null(table);
        for (uint16_t m = 0; m < MODELS; m++) {
            double price = (double)gs_table_price(table, m) / (double)GS_LOSS_MILLI;
            row_true(r->row, price > r->prices[m] - 1e-4 && price < r->prices[m] + 1e-4);
            row_equal(r->row, gs_table_group(table, m), r == rows ? 0 : m);
        }
        row_equal(r->row, gs_table_group(table, 500), 0);
    }
    static const struct gs_class denies = {9, 8, 1, 0, "", "A10"};
    _cleanup_(gs_policy_table_freep) struct gs_policy_table *table =
        gs_policy_table_build(&denies, 1, &supply);
    assert_int_equal(gs_table_group(table, 3), 3);
}

/* More sets of models than there are groups: those left over take only what runs everywhere. */
static void too_many_groups_share_the_last(void **state)
{
    enum { MANY = 100 };
    static char many[MANY][GS_MODEL_BYTES];
    static char lists[MANY][GS_MODEL_BYTES];
    static struct gs_class classes[MANY + 1];
    static uint64_t units[MANY];
    for (int i = 0; i < MANY; i++) {
        snprintf(many[i], sizeof(many[i]), "model-%03d", i);
        snprintf(lists[i], sizeof(lists[i]), "%03d", i);
        classes[i] = (struct gs_class){1, 8, 1, 0, lists[i], ""};
        units[i] = 8;
    }
    classes[MANY] = (struct gs_class){2, 8, 1, 0, "", ""};
    struct gs_supply supply = {MANY, units, many};
    _cleanup_(gs_policy_table_freep) struct gs_policy_table *table =
        gs_policy_table_build(classes, MANY + 1, &supply);
    assert_non_null(table);
    assert_int_equal(gs_table_group(table, 62), 62);
    assert_int_equal(gs_table_group(table, 63), 63);
    assert_int_equal(gs_table_group(table, 99), 63);
    assert_int_equal(table->shapes[0].groups, UINT64_MAX); /* the most frequent: without a list */
    for (uint32_t i = 1; i <= MANY; i++)
        assert_false(table->shapes[i].groups >> 63 & 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequent_kinds_come_first),
        cmocka_unit_test(draws_follow_the_weights),
        cmocka_unit_test(the_order_of_draws_is_fixed),
        cmocka_unit_test(without_gpu_pods_there_is_no_table),
        cmocka_unit_test(a_scarce_model_has_a_price_and_models_differ_once_a_list_tells_them_apart),
        cmocka_unit_test(too_many_groups_share_the_last),
    };
    return GS_RUN(tests);
}
