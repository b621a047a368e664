/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include "views.h"

static void the_summary_follows_from_the_gpus(void **state)
{
    static const struct {
        const char *row;
        const char *gpus;
        uint32_t max_free, max_total;
        uint64_t sum_free, sum_total, sum_used;
        gs_gpu_mask present;
    } rows[] = {
        {"no GPUs", "", 0, 0, 0, 0, 0, 0},
        {"one empty", "16", 16, 16, 16, 16, 0, 1},
        {"one full", "16:16", 0, 16, 0, 16, 16, 1},
        {"mixed sizes", "16:4 24:20 8", 12, 24, 24, 48, 24, 7},
        {"overfull counts as full", "16:20 8:1", 7, 16, 7, 24, 21, 3},
        {"unusable has a size and users, nothing free", "80:10x 16:6", 10, 80, 10, 96, 16, 3},
        {"gaps in the indices", "8@2 8@63", 8, 8, 16, 16, 0, GS_GPU_BIT(2) | GS_GPU_BIT(63)},
        {"sums beyond 32 bits", "4294967295 4294967295:1", UINT32_MAX, UINT32_MAX,
         2ull * UINT32_MAX - 1, 2ull * UINT32_MAX, 1, 3},
        {"size zero", "0 0", 0, 0, 0, 0, 0, 3},
    };
    static struct test_node t;
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_node_view *view = test_view_init(&t, r->gpus);
        row_equal(r->row, view->max_free_units, r->max_free);
        row_equal(r->row, view->max_total_units, r->max_total);
        row_equal(r->row, view->sum_free_units, r->sum_free);
        row_equal(r->row, view->sum_total_units, r->sum_total);
        row_equal(r->row, view->sum_used_units, r->sum_used);
        row_true(r->row, gs_view_present(view) == r->present);
    }
}

static void a_new_summary_forgets_the_old(void **state)
{
    static struct test_node t;
    struct gs_node_view *view = test_view_init(&t, "16 24");
    view->gpu_count = 0;
    gs_view_summarise(view);
    assert_int_equal(view->max_free_units + view->max_total_units, 0);
    assert_int_equal(view->sum_free_units + view->sum_total_units + view->sum_used_units, 0);
}

static void a_charge_counts_on_its_gpus_alone(void **state)
{
    static const struct {
        const char *row;
        const char *gpus, *after;
        gs_gpu_mask charged;
        int64_t units;
        int32_t cores_pct;
    } rows[] = {
        {"one of two", "16:4 16", "16:7 16", 1, 3},
        {"both", "16:4 24", "16:12 24:8", 3, 8},
        {"none", "16:4 24", "16:4 24", 0, 8},
        {"a GPU that is not there", "16:4 24@5", "16:4 24:8@5", GS_GPU_BIT(2) | GS_GPU_BIT(5), 8},
        {"to the last unit", "16:4", "16:16", 1, 12},
        {"overfull has nothing free", "16:4", "16:17", 1, 13},
        {"taken back", "16:17 24:8", "16:4 24:8", 1, -13},
        {"taken back, still overfull", "16:40", "16:27", 1, -13},
        {"largest", "16", "16:4294967295", 1, UINT32_MAX},
        {"compute of one", "16:4c10 16c70", "16:7c60 16c70", 1, 3, 50},
        {"compute of more than there is", "16c60", "16:3c110", 1, 3, 50},
        {"compute taken back", "16:9c110", "16:6c60", 1, -3, -50},
        {"memory alone taken back", "16:9c60", "16:6c60", 1, -3},
    };
    static struct test_node t, expected;
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_node_view *view = test_view_init(&t, r->gpus);
        test_view_init(&expected, r->after);
        const struct gs_amount each = {(uint32_t)llabs(r->units), (uint32_t)abs(r->cores_pct)};
        gs_view_charge(view, r->charged, each, r->units < 0 ? -1 : 1);
        for (uint32_t i = 0; i < view->gpu_count; i++) {
            row_equal(r->row, view->gpus[i].used_units, expected.states[i].used_units);
            row_equal(r->row, view->gpus[i].free_units, expected.states[i].free_units);
            row_equal(r->row, view->gpus[i].used_cores_pct, expected.states[i].used_cores_pct);
            row_equal(r->row, view->gpus[i].free_cores_pct, expected.states[i].free_cores_pct);
        }
    }
}

static void a_view_of_a_node_has_nothing_used(void **state)
{
    static struct test_node t;
    struct gs_node *node = test_node_init(&t, "n", "16n1 24@5x 8");
    t.gpus[2].schedulable = false;
    node->cpu_milli = 4000;
    struct gs_node_view view;
    memset(&view, 0xEE, sizeof(view));
    gs_view_of_node(&view, node, t.states);
    assert_int_equal(view.gpu_count, 3);
    assert_int_equal(view.cpu_milli, 4000);
    assert_int_equal(view.cpu_used_milli, 0);
    assert_int_equal(view.nominated, 0);
    assert_int_equal(view.slot, UINT32_MAX);
    assert_ptr_equal(view.inventory, node->gpus);
    static const struct gs_gpu_state expected[] = {
        {.idx = 0, .total_units = 16, .free_units = 16, .usable = true, .numa = 1},
        {.idx = 5, .total_units = 24, .free_units = 24, .usable = false, .numa = GS_NUMA_NONE},
        {.idx = 6, .total_units = 8, .free_units = 8, .usable = false, .numa = GS_NUMA_NONE},
    };
    for (int i = 0; i < 3; i++) {
        assert_int_equal(view.gpus[i].idx, expected[i].idx);
        assert_int_equal(view.gpus[i].total_units, expected[i].total_units);
        assert_int_equal(view.gpus[i].free_units, expected[i].free_units);
        assert_int_equal(view.gpus[i].used_units, 0);
        assert_int_equal(view.gpus[i].usable, expected[i].usable);
        assert_int_equal(view.gpus[i].numa, expected[i].numa);
        assert_int_equal(view.gpus[i].model, 0);
    }
    assert_int_equal(view.max_free_units, 16);
    assert_int_equal(view.max_total_units, 24);
}

static void cpu_left_is_never_negative(void **state)
{
    static const struct {
        const char *row;
        int64_t cpu, used, left;
    } rows[] = {
        {"some", 4000, 1500, 2500},           {"none", 4000, 4000, 0},
        {"too much asked", 4000, 5000, 0},    {"unknown node", 0, 0, 0},
        {"largest", INT64_MAX, 0, INT64_MAX},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_node_view view = {.cpu_milli = r->cpu, .cpu_used_milli = r->used};
        row_equal(r->row, gs_view_cpu_left_milli(&view), r->left);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_summary_follows_from_the_gpus),
        cmocka_unit_test(a_new_summary_forgets_the_old),
        cmocka_unit_test(a_charge_counts_on_its_gpus_alone),
        cmocka_unit_test(a_view_of_a_node_has_nothing_used),
        cmocka_unit_test(cpu_left_is_never_negative),
    };
    return GS_RUN(tests);
}
