/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/model/gpu.h"

static void units_have_exact_names(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        bool ok;
        enum gs_unit unit;
        uint32_t mib;
    } rows[] = {
        {"MiB", "MiB", true, GS_UNIT_MIB, 1},
        {"64MiB", "64MiB", true, GS_UNIT_64MIB, 64},
        {"256MiB", "256MiB", true, GS_UNIT_256MIB, 256},
        {"GiB", "GiB", true, GS_UNIT_GIB, 1024},
        {"empty", "", false, 0, 0},
        {"other case", "gib", false, 0, 0},
        {"prefix", "Gi", false, 0, 0},
        {"longer", "GiBs", false, 0, 0},
        {"number of its own", "128MiB", false, 0, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        enum gs_unit unit = (enum gs_unit)77;
        row_equal(r->row, gs_unit_parse(r->text, strlen(r->text), &unit), r->ok);
        row_equal(r->row, unit, r->ok ? r->unit : 77);
        if (r->ok) {
            row_text(r->row, gs_unit_name(unit), r->text);
            row_equal(r->row, gs_unit_mib(unit), r->mib);
        }
    }
    assert_string_equal(gs_unit_name(GS_UNIT_UNKNOWN), "");
    assert_int_equal(gs_unit_mib(GS_UNIT_UNKNOWN), 0);
}

static void masks_are_walked_lowest_first(void **state)
{
    static const struct {
        const char *row;
        gs_gpu_mask mask;
        uint32_t idx[4];
        uint32_t count;
    } rows[] = {
        {"empty", 0, {0}, 0},
        {"first", 1, {0}, 1},
        {"last", GS_GPU_BIT(63), {63}, 1},
        {"some",
         GS_GPU_BIT(0) | GS_GPU_BIT(5) | GS_GPU_BIT(31) | GS_GPU_BIT(32),
         {0, 5, 31, 32},
         4},
    };
    GS_FOR_EACH_ROW (r, rows) {
        uint32_t seen = 0, idx;
        GS_FOR_EACH_GPU (idx, r->mask) {
            row_true(r->row, seen < r->count);
            row_equal(r->row, idx, r->idx[seen]);
            seen++;
        }
        row_equal(r->row, seen, r->count);
        row_equal(r->row, gs_gpu_mask_count(r->mask), r->count);
    }
    assert_int_equal(gs_gpu_mask_count(~(gs_gpu_mask)0), GS_GPUS_MAX);
}

static void only_healthy_and_schedulable_gpus_are_usable(void **state)
{
    for (int bits = 0; bits < 4; bits++) {
        struct gs_gpu gpu = {.healthy = bits & 1, .schedulable = bits & 2};
        assert_int_equal(gs_gpu_usable(&gpu), bits == 3);
    }
}

static void a_gpu_is_found_by_its_index(void **state)
{
    static const struct gs_gpu gpus[] = {{.idx = 5}, {.idx = 0}, {.idx = 63}};
    static const struct {
        const char *row;
        uint32_t count, idx;
        const struct gs_gpu *found;
    } rows[] = {
        {"first", 3, 5, &gpus[0]},       {"not where it would sort", 3, 0, &gpus[1]},
        {"last", 3, 63, &gpus[2]},       {"absent", 3, 1, NULL},
        {"behind the end", 2, 63, NULL}, {"none at all", 0, 5, NULL},
    };
    GS_FOR_EACH_ROW (r, rows) {
        row_true(r->row, gs_gpu_find(gpus, r->count, r->idx) == r->found);
    }
}

/* What a node's inventory is written again for. */
static void gpus_differ_by_all_that_is_told_of_them(void **state)
{
    struct gs_gpu others[12] = {{.idx = 0},     {.idx = 1},      {.mem_units = 1},
                                {.mem_mib = 1}, {.numa = 1},     {.healthy = true},
                                {.xid = 1},     {.xid_boot = 1}, {.enforced = GS_ENFORCED_DMEM},
                                {.uuid = "x"},  {.model = "x"},  {.pci = "x"}};
    for (size_t i = 0; i < GS_COUNT_OF(others); i++) {
        for (size_t k = 0; k < GS_COUNT_OF(others); k++)
            assert_int_equal(gs_gpu_same(&others[i], &others[k]), i == k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_have_exact_names),
        cmocka_unit_test(masks_are_walked_lowest_first),
        cmocka_unit_test(only_healthy_and_schedulable_gpus_are_usable),
        cmocka_unit_test(a_gpu_is_found_by_its_index),
        cmocka_unit_test(gpus_differ_by_all_that_is_told_of_them),
    };
    return GS_RUN(tests);
}
