/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/annotation.h"

static void index_lists_are_read_whole_or_not_at_all(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        gs_gpu_mask gpus; /* 0: refused */
    } rows[] = {
        {"empty", "", 0},    {"largest", "63", GS_GPU_BIT(63)}, {"above the largest", "64", 0},
        {"list", "0,3", 9},  {"list in any order", "3,0", 9},   {"leading zero", "03", 8},
        {"twice", "1,1", 0}, {"comma last", "1,", 0},           {"space", "1, 2", 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        gs_gpu_mask gpus = 7;
        bool read = gs_codec_idx_parse(gs_slice_of(r->text), &gpus);
        row_equal(r->row, read, r->gpus != 0);
        row_true(r->row, gpus == (read ? r->gpus : 7));
    }
}

static struct gs_container containers[] = {
    {.kind = GS_CONTAINER_INIT, .gpu_units = 16}, {.kind = GS_CONTAINER_SIDECAR, .gpu_units = 2},
    {.kind = GS_CONTAINER_MAIN, .gpu_units = 4},  {.kind = GS_CONTAINER_MAIN, .gpu_units = 0},
    {.kind = GS_CONTAINER_MAIN, .gpu_units = 8},
};

static void allocations_list_main_containers_with_gpu_memory(void **state)
{
    static const struct {
        const char *row;
        uint32_t containers;
        enum gs_count_kind kind;
        uint32_t count;
        gs_gpu_mask gpus;
        const char *json;
    } rows[] = {
        {"one GPU", 5, GS_COUNT_ABSENT, 0, 2, "{'0':{'1':4},'2':{'1':8}}"},
        {"two GPUs", 5, GS_COUNT_VALID, 2, 9, "{'0':{'0':2,'3':2},'2':{'0':4,'3':4}}"},
        {"init containers only", 2, GS_COUNT_ABSENT, 0, 1, "{}"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {.containers = containers,
                             .container_count = r->containers,
                             .count_kind = r->kind,
                             .gpu_count = r->count};
        struct gs_buf out = GS_BUF(1024);
        gs_codec_allocation(&out, &pod, r->gpus);
        row_json(r->row, &out, r->json);
    }
}

static void bind_records_the_largest_pod(void **state)
{
    enum { MANY = 2048 };
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    _cleanup_free_ struct gs_container *many = calloc(MANY, sizeof(*many));
    assert_non_null(many);
    for (uint32_t i = 0; i < MANY; i++)
        many[i] = (struct gs_container){.kind = GS_CONTAINER_MAIN, .gpu_units = INT32_MAX};
    struct gs_pod pod = {.containers = many, .container_count = MANY};
    struct gs_bind_record record = {.gpus = UINT64_MAX,
                                    .dev_units = UINT64_MAX,
                                    .charge = {.units = INT32_MAX, .gpu_count = 64},
                                    .assume_time_ns = INT64_MAX};
    struct gs_kv *kv;
    size_t count;
    assert_int_equal(
        gs_codec_bind_annotations(default_names(), &pod, &record, &arena, &kv, &count, NULL), 0);
    assert_string_equal(kv[1].value, "18446744073709551615");
    assert_string_equal(kv[2].value, "137438953408");
    assert_true(strlen(kv[4].value) > (size_t)MANY * 64 * 13);
}

static void an_allocation_names_its_gpus(void **state)
{
    static const struct {
        const char *row;
        const char *json;
        gs_gpu_mask gpus; /* 0: refused */
        bool even;
    } rows[] = {
        {"two on one GPU", "{\"0\":{\"1\":4},\"2\":{\"1\":8}}", 2, true},
        {"two GPUs", "{\"0\":{\"0\":4,\"63\":4}}", GS_GPU_BIT(63) | 1, true},
        {"two GPUs for each container", "{\"0\":{\"0\":4,\"1\":4},\"1\":{\"1\":2,\"0\":2}}", 3,
         true},
        {"unequal in the second", "{\"0\":{\"0\":4,\"1\":4},\"1\":{\"0\":3,\"1\":2}}", 3},
        {"the second on more GPUs", "{\"0\":{\"0\":4},\"1\":{\"0\":4,\"1\":4}}", 3},
        {"the second on fewer GPUs", "{\"0\":{\"0\":4,\"1\":4},\"1\":{\"0\":4}}", 3},
        {"containers on different GPUs", "{\"0\":{\"0\":4},\"1\":{\"3\":4}}", 9},
        {"a container without", "{\"0\":{},\"1\":{\"3\":4}}", 8, true},
        {"none", "{}", 0},
        {"none in a container", "{\"0\":{}}", 0},
        {"a container that is none", "{\"0\":1}", 0},
        {"index too large", "{\"0\":{\"64\":4}}", 0},
        {"index very long", "{\"0\":{\"00000000000000000001\":4}}", 0},
        {"cut", "{\"0\":{\"1\":4}", 0},
        {"more behind", "{\"0\":{\"1\":4}}}", 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        gs_gpu_mask gpus = 77;
        bool even = !r->even;
        row_equal(r->row, gs_codec_allocation_gpus(gs_slice_of(r->json), &gpus, &even),
                  r->gpus != 0);
        row_true(r->row, gpus == (r->gpus ? r->gpus : 77));
        row_equal(r->row, even, r->gpus ? r->even : !r->even);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index_lists_are_read_whole_or_not_at_all),
        cmocka_unit_test(allocations_list_main_containers_with_gpu_memory),
        cmocka_unit_test(bind_records_the_largest_pod),
        cmocka_unit_test(an_allocation_names_its_gpus),
    };
    return GS_RUN(tests);
}
