/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/model/charge.h"

#define INIT GS_CONTAINER_INIT
#define SIDE GS_CONTAINER_SIDECAR
#define MAIN GS_CONTAINER_MAIN
#define HUGE INT32_MAX

struct part {
    enum gs_container_kind kind;
    uint32_t units;
};

enum { PARTS_MAX = 6 };

static const struct {
    const char *row;
    struct part parts[PARTS_MAX];
    uint32_t part_count;
    enum gs_count_kind count_kind;
    uint32_t gpu_count;
    enum gs_reason result;
    uint32_t units, over;
} rows[] = {
    {"no containers", {{0}}, 0, GS_COUNT_ABSENT, 0, GS_FITS, 0, 1},
    {"no GPU memory", {{MAIN, 0}, {INIT, 0}}, 2, GS_COUNT_ABSENT, 0, GS_FITS, 0, 1},
    {"no GPU memory, broken count", {{MAIN, 0}}, 1, GS_COUNT_BROKEN, 0, GS_FITS, 0, 1},
    {"no GPU memory, a count", {{MAIN, 0}}, 1, GS_COUNT_VALID, 4, GS_FITS, 0, 1},
    {"one container", {{MAIN, 8}}, 1, GS_COUNT_ABSENT, 0, GS_FITS, 8, 1},
    {"containers add up", {{MAIN, 8}, {MAIN, 0}, {MAIN, 3}}, 3, GS_COUNT_ABSENT, 0, GS_FITS, 11, 1},
    {"small init container", {{INIT, 3}, {MAIN, 8}}, 2, GS_COUNT_ABSENT, 0, GS_FITS, 8, 1},
    {"large init container", {{INIT, 9}, {MAIN, 8}}, 2, GS_COUNT_ABSENT, 0, GS_FITS, 9, 1},
    {"init containers do not add up",
     {{INIT, 5}, {INIT, 6}, {MAIN, 4}},
     3,
     GS_COUNT_ABSENT,
     0,
     GS_FITS,
     6,
     1},
    {"only an init container", {{INIT, 5}, {MAIN, 0}}, 2, GS_COUNT_ABSENT, 0, GS_FITS, 5, 1},
    {"sidecar stays beside main", {{SIDE, 2}, {MAIN, 8}}, 2, GS_COUNT_ABSENT, 0, GS_FITS, 10, 1},
    {"sidecar before the init container",
     {{SIDE, 2}, {INIT, 9}, {MAIN, 8}},
     3,
     GS_COUNT_ABSENT,
     0,
     GS_FITS,
     11,
     1},
    {"sidecar after the init container",
     {{INIT, 9}, {SIDE, 2}, {MAIN, 8}},
     3,
     GS_COUNT_ABSENT,
     0,
     GS_FITS,
     10,
     1},
    {"sidecar between init containers",
     {{INIT, 12}, {SIDE, 2}, {INIT, 9}, {MAIN, 8}},
     4,
     GS_COUNT_ABSENT,
     0,
     GS_FITS,
     12,
     1},
    {"sidecars add up before an init container",
     {{SIDE, 2}, {SIDE, 3}, {INIT, 9}, {MAIN, 1}},
     4,
     GS_COUNT_ABSENT,
     0,
     GS_FITS,
     14,
     1},
    {"only a sidecar", {{SIDE, 4}, {MAIN, 0}}, 2, GS_COUNT_ABSENT, 0, GS_FITS, 4, 1},

    {"over one GPU", {{MAIN, 8}}, 1, GS_COUNT_VALID, 1, GS_FITS, 8, 1},
    {"over two GPUs", {{MAIN, 8}}, 1, GS_COUNT_VALID, 2, GS_FITS, 4, 2},
    {"over all GPUs", {{MAIN, 64}}, 1, GS_COUNT_VALID, 64, GS_FITS, 1, 64},
    {"every container divides",
     {{SIDE, 2}, {INIT, 12}, {MAIN, 8}, {MAIN, 4}},
     4,
     GS_COUNT_VALID,
     2,
     GS_FITS,
     7,
     2},
    {"does not divide", {{MAIN, 9}}, 1, GS_COUNT_VALID, 2, GS_REASON_NOT_DIVISIBLE, 9, 1},
    {"the sum divides, the parts do not",
     {{MAIN, 3}, {MAIN, 5}},
     2,
     GS_COUNT_VALID,
     2,
     GS_REASON_NOT_DIVISIBLE,
     8,
     1},
    {"the init container does not divide",
     {{INIT, 1}, {MAIN, 8}},
     2,
     GS_COUNT_VALID,
     2,
     GS_REASON_NOT_DIVISIBLE,
     8,
     1},
    {"fewer units than GPUs", {{MAIN, 2}}, 1, GS_COUNT_VALID, 4, GS_REASON_NOT_DIVISIBLE, 2, 1},
    {"broken count", {{MAIN, 8}}, 1, GS_COUNT_BROKEN, 0, GS_REASON_BAD_COUNT, 8, 1},

    {"largest", {{MAIN, HUGE}}, 1, GS_COUNT_ABSENT, 0, GS_FITS, HUGE, 1},
    {"sum is too large",
     {{MAIN, HUGE}, {MAIN, 1}},
     2,
     GS_COUNT_ABSENT,
     0,
     GS_REASON_GPU_TOO_SMALL,
     HUGE,
     1},
    {"one is too large",
     {{MAIN, UINT32_MAX}},
     1,
     GS_COUNT_ABSENT,
     0,
     GS_REASON_GPU_TOO_SMALL,
     HUGE,
     1},
    {"all are too large",
     {{SIDE, UINT32_MAX}, {SIDE, UINT32_MAX}, {INIT, UINT32_MAX}, {MAIN, UINT32_MAX}},
     4,
     GS_COUNT_ABSENT,
     0,
     GS_REASON_GPU_TOO_SMALL,
     HUGE,
     1},
    {"too large even when divided",
     {{MAIN, HUGE}, {MAIN, HUGE}},
     2,
     GS_COUNT_VALID,
     1,
     GS_REASON_GPU_TOO_SMALL,
     HUGE,
     1},
};

static struct gs_pod pod_of(const struct part *parts, uint32_t count, struct gs_container *into)
{
    for (uint32_t i = 0; i < count; i++)
        into[i] = (struct gs_container){.kind = parts[i].kind,
                                        .gpu_units = parts[i].units,
                                        .cpu_milli = parts[i].units,
                                        .memory_bytes = parts[i].units};
    return (struct gs_pod){.containers = into, .container_count = count};
}

static void the_charge_is_the_larger_phase_divided(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_container containers[PARTS_MAX];
        struct gs_pod pod = pod_of(r->parts, r->part_count, containers);
        pod.count_kind = r->count_kind;
        pod.gpu_count = r->gpu_count;
        struct gs_charge charge = {4711, {{4711, 4711}}};
        row_equal(r->row, gs_pod_charge(&pod, &charge), r->result);
        row_equal(r->row, charge.units, r->units);
        row_equal(r->row, charge.gpu_count, r->over);
        row_equal(r->row, charge.cores_pct, 0);
    }
}

static void compute_follows_the_same_phases_and_is_of_one_gpu(void **state)
{
    static const struct {
        const char *row;
        struct {
            enum gs_container_kind kind;
            uint32_t units;
            uint16_t cores_pct;
        } parts[PARTS_MAX];
        uint32_t part_count, gpu_count; /* label, 0: none */
        enum gs_reason result;
        uint32_t cores_pct;
    } compute[] = {
        {"one container", {{MAIN, 8, 30}}, 1, 0, GS_FITS, 30},
        {"least", {{MAIN, 8, 1}}, 1, 0, GS_FITS, 1},
        {"all of a GPU", {{MAIN, 8, 100}}, 1, 0, GS_FITS, 100},
        {"more than a GPU", {{MAIN, 8, 101}}, 1, 0, GS_REASON_CORES_ABOVE, 100},
        {"containers add up", {{MAIN, 8, 30}, {MAIN, 1, 40}}, 2, 0, GS_FITS, 70},
        {"together above", {{MAIN, 8, 60}, {MAIN, 1, 50}}, 2, 0, GS_REASON_CORES_ABOVE, 100},
        {"one with, one without", {{MAIN, 8, 60}, {MAIN, 1, 0}}, 2, 0, GS_FITS, 60},
        {"large init container", {{INIT, 1, 90}, {MAIN, 8, 30}}, 2, 0, GS_FITS, 90},
        {"sidecar stays", {{SIDE, 1, 20}, {INIT, 1, 50}, {MAIN, 8, 30}}, 3, 0, GS_FITS, 70},
        {"over one GPU by its label", {{MAIN, 8, 30}}, 1, 1, GS_FITS, 30},
        {"over two GPUs", {{MAIN, 8, 30}}, 1, 2, GS_REASON_CORES_SPREAD, 30},
        {"no memory", {{MAIN, 0, 30}}, 1, 0, GS_REASON_CORES_ALONE, 0},
        {"no memory in that one", {{MAIN, 8, 0}, {MAIN, 0, 30}}, 2, 0, GS_REASON_CORES_ALONE, 30},
        {"largest",
         {{MAIN, 8, UINT16_MAX}, {MAIN, 8, UINT16_MAX}},
         2,
         0,
         GS_REASON_CORES_ABOVE,
         100},
    };
    GS_FOR_EACH_ROW (r, compute) {
        struct gs_container containers[PARTS_MAX] = {0};
        struct gs_pod pod = {.containers = containers, .container_count = r->part_count};
        struct gs_charge charge;
        for (uint32_t i = 0; i < r->part_count; i++)
            containers[i] = (struct gs_container){.kind = r->parts[i].kind,
                                                  .gpu_units = r->parts[i].units,
                                                  .cores_pct = r->parts[i].cores_pct};
        pod.count_kind = r->gpu_count ? GS_COUNT_VALID : GS_COUNT_ABSENT;
        pod.gpu_count = r->gpu_count;
        row_equal(r->row, gs_pod_charge(&pod, &charge), r->result);
        row_equal(r->row, charge.cores_pct, r->cores_pct);
    }
}

static void cpu_and_memory_follow_the_same_phases(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_container containers[PARTS_MAX];
        struct gs_pod pod = pod_of(r->parts, r->part_count, containers);
        if (r->result == GS_REASON_GPU_TOO_SMALL)
            continue;
        int64_t whole = (int64_t)r->units * r->over;
        row_equal(r->row, gs_pod_cpu_milli(&pod), whole);
        row_equal(r->row, gs_pod_memory_bytes(&pod), whole);
        pod.overhead_cpu_milli = 250;
        row_equal(r->row, gs_pod_cpu_milli(&pod), whole + 250);
    }
}

static void cpu_saturates(void **state)
{
    struct gs_container containers[] = {
        {.kind = MAIN, .cpu_milli = INT64_MAX, .memory_bytes = INT64_MAX},
        {.kind = MAIN, .cpu_milli = 1, .memory_bytes = 1},
    };
    struct gs_pod pod = {.containers = containers, .container_count = 2, .overhead_cpu_milli = 5};
    assert_int_equal(gs_pod_cpu_milli(&pod), INT64_MAX);
    assert_int_equal(gs_pod_memory_bytes(&pod), INT64_MAX);
}

static void a_request_beyond_counting_is_a_wish_for_gpu_memory(void **state)
{
    struct gs_container container = {.kind = MAIN};
    struct gs_pod pod = {.containers = &container, .container_count = 1};
    struct gs_charge charge;
    assert_false(gs_pod_wants_gpu(&pod));
    pod.gpu_units_overflow = true;
    assert_true(gs_pod_wants_gpu(&pod));
    assert_int_equal(gs_pod_charge(&pod, &charge), GS_REASON_GPU_TOO_SMALL);
    assert_int_equal(charge.units, INT32_MAX);
    pod.gpu_units_overflow = false;
    container.gpu_units = 1;
    assert_true(gs_pod_wants_gpu(&pod));
}

/* gpu-count may be edited at any time; where the pod is, and what it has there, was decided. */
static void a_bound_pod_is_its_record(void **state)
{
    static const struct {
        const char *row, *node;
        enum gs_count_kind kind;
        uint32_t gpu_count; /* label, annotation */
        enum gs_recorded recorded;
        gs_gpu_mask gpus, is_on;
        uint32_t units, over; /* of 16 */
    } bound[] = {
        {"as bound", "n", GS_COUNT_VALID, 2, GS_RECORDED_VALID, 0x3, 0x3, 8, 2},
        {"on one GPU", "n", GS_COUNT_ABSENT, 0, GS_RECORDED_VALID, 0x4, 0x4, 16, 1},
        {"count raised", "n", GS_COUNT_VALID, 16, GS_RECORDED_VALID, 0x3, 0x3, 8, 2},
        {"count raised from none", "n", GS_COUNT_VALID, 2, GS_RECORDED_VALID, 0x1, 0x1, 16, 1},
        {"count lowered", "n", GS_COUNT_VALID, 2, GS_RECORDED_VALID, 0xf, 0xf, 4, 4},
        {"count taken off", "n", GS_COUNT_ABSENT, 0, GS_RECORDED_VALID, 0x3, 0x3, 8, 2},
        {"count broken", "n", GS_COUNT_BROKEN, 0, GS_RECORDED_VALID, 0x3, 0x3, 8, 2},
        {"count that does not divide", "n", GS_COUNT_VALID, 3, GS_RECORDED_VALID, 1, 1, 16, 1},
        {"forged: does not divide", "n", GS_COUNT_ABSENT, 0, GS_RECORDED_VALID, 0x7, 0, 16, 1},
        {"forged: more GPUs than units", "n", GS_COUNT_VALID, 2, GS_RECORDED_VALID, UINT32_MAX, 0,
         8, 2},
        {"no record", "n", GS_COUNT_VALID, 4, GS_RECORDED_NONE, 0, 0, 4, 4},
        {"broken record", "n", GS_COUNT_VALID, 4, GS_RECORDED_BROKEN, 0, 0, 4, 4},
        {"not bound, with a record", "", GS_COUNT_VALID, 4, GS_RECORDED_VALID, 0x1, 0, 4, 4},
        {"not bound, a broken count", "", GS_COUNT_BROKEN, 0, GS_RECORDED_VALID, 0x3, 0, 16, 1},
    };
    GS_FOR_EACH_ROW (r, bound) {
        struct gs_container container = {.kind = MAIN, .gpu_units = 16};
        struct gs_charge charge;
        const struct gs_pod pod = {.containers = &container,
                                   .container_count = 1,
                                   .node_name = r->node,
                                   .count_kind = r->kind,
                                   .gpu_count = r->gpu_count,
                                   .recorded = r->recorded,
                                   .recorded_gpus = r->gpus};
        const bool bad = r->kind == GS_COUNT_BROKEN && !r->is_on;
        row_equal(r->row, gs_pod_recorded(&pod), r->is_on);
        row_equal(r->row, gs_pod_charge(&pod, &charge), bad ? GS_REASON_BAD_COUNT : GS_FITS);
        row_equal(r->row, charge.units, r->units);
        row_equal(r->row, charge.gpu_count, r->over);
    }
}

static void a_record_that_gives_unequal_shares_cannot_be(void **state)
{
    struct gs_container container = {.kind = MAIN, .gpu_units = 16};
    struct gs_pod pod = {.containers = &container,
                         .container_count = 1,
                         .node_name = "n",
                         .recorded = GS_RECORDED_VALID,
                         .recorded_gpus = 0x3};
    assert_int_equal(gs_pod_recorded(&pod), 0x3);
    pod.uneven = true;
    assert_int_equal(gs_pod_recorded(&pod), 0);
}

static void what_is_told_otherwise_is_divided_by_what_was_told(void **state)
{
    static const struct {
        const char *row;
        gs_gpu_mask gpus;
        uint32_t units, over;
    } told[] = {
        {"one", 0x8, 14, 1},
        {"two", 0x9, 7, 2},
        {"a rest is rounded up", 0x7, 5, 3},
        {"all", ~(gs_gpu_mask)0, 1, GS_GPUS_MAX},
    };
    GS_FOR_EACH_ROW (r, told) {
        struct gs_container container = {.kind = MAIN, .gpu_units = 14, .cores_pct = 30};
        const struct gs_pod pod = {.containers = &container,
                                   .container_count = 1,
                                   .node_name = "n",
                                   .count_kind = GS_COUNT_VALID,
                                   .gpu_count = 2,
                                   .recorded = GS_RECORDED_VALID,
                                   .recorded_gpus = 0x3};
        const struct gs_charge charge = gs_pod_charge_on(&pod, r->gpus);
        row_equal(r->row, charge.units, r->units);
        row_equal(r->row, charge.gpu_count, r->over);
        row_equal(r->row, charge.cores_pct, 30);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_charge_is_the_larger_phase_divided),
        cmocka_unit_test(compute_follows_the_same_phases_and_is_of_one_gpu),
        cmocka_unit_test(cpu_and_memory_follow_the_same_phases),
        cmocka_unit_test(cpu_saturates),
        cmocka_unit_test(a_request_beyond_counting_is_a_wish_for_gpu_memory),
        cmocka_unit_test(a_bound_pod_is_its_record),
        cmocka_unit_test(a_record_that_gives_unequal_shares_cannot_be),
        cmocka_unit_test(what_is_told_otherwise_is_divided_by_what_was_told),
    };
    return GS_RUN(tests);
}
