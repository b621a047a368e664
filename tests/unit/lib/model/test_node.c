/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/model/node.h"

static void capacity_is_divided_as_the_original_does(void **state)
{
    static const struct {
        const char *row;
        uint64_t capacity;
        uint32_t count;
        uint32_t gpus, units;
    } rows[] = {
        {"even", 64, 4, 4, 16},
        {"a remainder is lost", 65, 4, 4, 16},
        {"one GPU", 24, 1, 1, 24},
        {"no memory", 0, 4, 0, 0},
        {"no count", 64, 0, 0, 0},
        {"fewer units than GPUs", 3, 4, 4, 0},
        {"most GPUs", 128, 64, 64, 2},
        {"more than the most", 1000, 100, 64, 10},
        {"largest count", UINT64_MAX, UINT32_MAX, 64, UINT32_MAX},
        {"largest capacity", UINT64_MAX, 2, 2, UINT32_MAX},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_node_release) struct gs_node node = {0};
        gs_node_reset(&node);
        node.capacity_units = r->capacity;
        node.capacity_count = r->count;
        row_equal(r->row, gs_node_divide_capacity(&node), 0);
        row_equal(r->row, node.gpu_count, r->gpus);
        row_true(r->row, (node.gpus == NULL) == (r->gpus == 0));
        for (uint32_t i = 0; i < node.gpu_count; i++) {
            row_equal(r->row, node.gpus[i].idx, i);
            row_equal(r->row, node.gpus[i].mem_units, r->units);
            row_true(r->row, gs_gpu_usable(&node.gpus[i]));
            row_equal(r->row, node.gpus[i].numa, GS_NUMA_NONE);
            row_text(r->row, node.gpus[i].uuid, "");
            row_text(r->row, node.gpus[i].model, "");
        }
        row_true(r->row, !node.inventory);
    }
}

static void an_inventory_is_not_divided_over(void **state)
{
    struct gs_gpu gpu = {.idx = 5, .mem_units = 79};
    struct gs_node node = {.gpus = &gpu, .gpu_count = 1, .capacity_units = 64, .capacity_count = 4};
    assert_int_equal(gs_node_divide_capacity(&node), 0);
    assert_int_equal(node.gpu_count, 1);
    assert_ptr_equal(node.gpus, &gpu);
    assert_null(node.arena.head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capacity_is_divided_as_the_original_does),
        cmocka_unit_test(an_inventory_is_not_divided_over),
    };
    return GS_RUN(tests);
}
