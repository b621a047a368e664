/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/model/charge.h"
#include "gpushare/model/reason.h"

#define HUGE "2147483647"
#define MORE "4294967295"

/*
 * Containers "init:9 sidecar:2 main:8,30" by units and compute in percent, each with as much CPU
 * and memory; what gpu-count says ("" nothing, "x" what is no count); and the charge: units, "xN"
 * over GPUs, ",N%" of compute, the reason where it cannot be, and "on" the GPUs of a record that
 * holds.
 */
static const struct {
    const char *row, *containers, *count, *charge;
    const char *node;
    gs_gpu_mask record;
    bool uneven;
} rows[] = {
    {"no containers", "", "", "0"},
    {"no GPU memory", "main:0 init:0", "", "0"},
    {"no GPU memory, broken count", "main:0", "x", "0"},
    {"no GPU memory, a count", "main:0", "4", "0"},
    {"one container", "main:8", "", "8"},
    {"containers add up", "main:8 main:0 main:3", "", "11"},
    {"small init container", "init:3 main:8", "", "8"},
    {"large init container", "init:9 main:8", "", "9"},
    {"init containers do not add up", "init:5 init:6 main:4", "", "6"},
    {"only an init container", "init:5 main:0", "", "5"},
    {"sidecar stays beside main", "sidecar:2 main:8", "", "10"},
    {"sidecar before the init container", "sidecar:2 init:9 main:8", "", "11"},
    {"sidecar after the init container", "init:9 sidecar:2 main:8", "", "10"},
    {"sidecar between init containers", "init:12 sidecar:2 init:9 main:8", "", "12"},
    {"sidecars add up before an init container", "sidecar:2 sidecar:3 init:9 main:1", "", "14"},
    {"only a sidecar", "sidecar:4 main:0", "", "4"},

    {"over one GPU", "main:8", "1", "8"},
    {"over two GPUs", "main:8", "2", "4x2"},
    {"over all GPUs", "main:64", "64", "1x64"},
    {"every container divides", "sidecar:2 init:12 main:8 main:4", "2", "7x2"},
    {"does not divide", "main:9", "2", "9 not_divisible"},
    {"the sum divides, the parts do not", "main:3 main:5", "2", "8 not_divisible"},
    {"the init container does not divide", "init:1 main:8", "2", "8 not_divisible"},
    {"fewer units than GPUs", "main:2", "4", "2 not_divisible"},
    {"broken count", "main:8,101", "x", "8,100% invalid_count"},

    {"largest", "main:" HUGE, "", HUGE},
    {"sum is too large", "main:" HUGE " main:1", "", HUGE " gpu_too_small"},
    {"one is too large", "main:" MORE, "", HUGE " gpu_too_small"},
    {"all are too large", "sidecar:" MORE " sidecar:" MORE " init:" MORE " main:" MORE, "",
     HUGE " gpu_too_small"},
    {"too large even when divided", "main:" HUGE " main:" HUGE, "1", HUGE " gpu_too_small"},

    {"least compute", "main:8,1", "", "8,1%"},
    {"all of a GPU", "main:8,100", "", "8,100%"},
    {"more than a GPU", "main:8,101", "", "8,100% compute_too_large"},
    {"compute adds up", "main:8,30 main:1,40", "", "9,70%"},
    {"together above", "main:8,60 main:1,50", "", "9,100% compute_too_large"},
    {"an init container's compute", "init:1,90 main:8,30", "", "8,90%"},
    {"a sidecar's stays", "sidecar:1,20 init:1,50 main:8,30", "", "9,70%"},
    {"compute of one GPU by its label", "main:8,30", "1", "8,30%"},
    {"compute of two GPUs", "main:8,30", "2", "4x2,30% compute_over_several_gpus"},
    {"compute without memory", "main:0,30", "", "0 compute_without_memory"},
    {"compute of one without memory", "main:8 main:0,30", "", "8,30% compute_without_memory"},
    {"largest compute", "main:8,65535 main:8,65535", "", "16,100% compute_too_large"},

    /* gpu-count may be edited at any time; where the pod is, and what it has there, was decided */
    {"as bound", "main:16", "2", "8x2 on 3", "n", 0x3},
    {"on one GPU", "main:16", "", "16 on 4", "n", 0x4},
    {"count raised", "main:16", "16", "8x2 on 3", "n", 0x3},
    {"count raised from none", "main:16", "2", "16 on 1", "n", 0x1},
    {"count lowered", "main:16", "2", "4x4 on f", "n", 0xf},
    {"count taken off", "main:16", "", "8x2 on 3", "n", 0x3},
    {"count broken", "main:16", "x", "8x2 on 3", "n", 0x3},
    {"forged: does not divide", "main:16", "", "16", "n", 0x7},
    {"forged: more GPUs than units", "main:16", "2", "8x2", "n", UINT32_MAX},
    {"unequal shares", "main:16", "", "16", "n", 0x3, true},
    {"no record", "main:16", "4", "4x4", "n"},
    {"not bound, with a record", "main:16", "4", "4x4", "", 0x1},
    {"not bound, a broken count", "main:16", "x", "16 invalid_count", "", 0x3},
};

static uint32_t read_containers(const char *text, struct gs_container *into)
{
    uint32_t count = 0;
    while (*text) {
        char *end;
        struct gs_container one = {.kind = *text == 'i'   ? GS_CONTAINER_INIT
                                           : *text == 's' ? GS_CONTAINER_SIDECAR
                                                          : GS_CONTAINER_MAIN};
        one.gpu_units = (uint32_t)strtoul(strchr(text, ':') + 1, &end, 10);
        one.cpu_milli = one.memory_bytes = one.gpu_units;
        if (*end == ',')
            one.cores_pct = (uint16_t)strtoul(end + 1, &end, 10);
        into[count++] = one;
        text = end + (*end == ' ');
    }
    return count;
}

static void the_charge_is_the_larger_phase_divided_or_its_record(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_container containers[8];
        struct gs_charge charge = {4711, {{4711, 4711}}};
        struct gs_pod pod = {.containers = containers,
                             .container_count = read_containers(r->containers, containers),
                             .count_kind = !r->count[0]         ? GS_COUNT_ABSENT
                                           : r->count[0] == 'x' ? GS_COUNT_BROKEN
                                                                : GS_COUNT_VALID,
                             .gpu_count = (uint32_t)strtoul(r->count, NULL, 10),
                             .node_name = r->node,
                             .recorded = r->record ? GS_RECORDED_VALID : GS_RECORDED_NONE,
                             .recorded_gpus = r->record,
                             .uneven = r->uneven};
        char text[96], over[16] = "", cores[16] = "", on[24] = "";
        const enum gs_reason reason = gs_pod_charge(&pod, &charge);
        const gs_gpu_mask recorded = gs_pod_recorded(&pod);
        if (charge.gpu_count != 1)
            snprintf(over, sizeof(over), "x%u", charge.gpu_count);
        if (charge.cores_pct)
            snprintf(cores, sizeof(cores), ",%u%%", charge.cores_pct);
        if (recorded)
            snprintf(on, sizeof(on), " on %llx", (unsigned long long)recorded);
        snprintf(text, sizeof(text), "%u%s%s%s%s%s", charge.units, over, cores, reason ? " " : "",
                 reason ? gs_reason_label(reason) : "", on);
        row_text(r->row, text, r->charge);
        if (reason == GS_REASON_GPU_TOO_SMALL)
            continue;
        const int64_t whole = (int64_t)charge.units * charge.gpu_count;
        row_equal(r->row, gs_pod_memory_bytes(&pod), whole);
        pod.overhead_cpu_milli = 250;
        row_equal(r->row, gs_pod_cpu_milli(&pod), whole + 250);
    }
}

static void a_request_beyond_counting_is_a_wish_for_gpu_memory(void **state)
{
    struct gs_container container = {.kind = GS_CONTAINER_MAIN};
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

static void what_is_told_otherwise_is_divided_by_what_was_told(void **state)
{
    struct gs_container container = {.gpu_units = 14, .cores_pct = 30, .kind = GS_CONTAINER_MAIN};
    const struct gs_pod pod = {.containers = &container,
                               .container_count = 1,
                               .node_name = "n",
                               .recorded = GS_RECORDED_VALID,
                               .recorded_gpus = 0x3};
    const struct gs_charge one = gs_pod_charge_on(&pod, 0x8), three = gs_pod_charge_on(&pod, 0x7);
    assert_true(one.units == 14 && one.gpu_count == 1 && one.cores_pct == 30);
    assert_true(three.units == 5 && three.gpu_count == 3); /* a rest is rounded up */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_charge_is_the_larger_phase_divided_or_its_record),
        cmocka_unit_test(what_is_told_otherwise_is_divided_by_what_was_told),
        cmocka_unit_test(a_request_beyond_counting_is_a_wish_for_gpu_memory),
    };
    return GS_RUN(tests);
}
