/* SPDX-License-Identifier: Apache-2.0 */
#include "allocate_rig.h"
#include "rows.h"

/* The kubelet counts memory alone: it says nothing of compute. */

static void each_container_is_told_its_own_compute(void **state)
{
    static const struct {
        const char *row;
        struct given_pod given;
        uint32_t cores_pct[3]; /* as answered */
    } rows[] = {
        {"none", {"p", {8}, 1}, {0}},
        {"one", {"p", {8}, 1, .cores_pct = {30}}, {30}},
        {"in their order", {"p", {4, 2, 1}, 1, .cores_pct = {10, 0, 50}}, {10, 0, 50}},
        {"of one size", {"p", {2, 2, 2}, 1, .cores_pct = {10, 20, 30}}, {10, 20, 30}},
        {"init containers first", {"p", {4, 2}, 1, .inits = 1, .cores_pct = {90, 20}}, {90, 20}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        rig_up(&rig);
        give_pod(&rig, &r->given);
        for (int i = 0; i < 3 && r->given.units[i]; i++) {
            struct gs_error err = {0};
            row_equal(r->row, allocate(&rig, r->given.units[i], NULL, 0, NULL, &err), 1);
            row_equal(r->row, rig.cores_pct, r->cores_pct[i]);
        }
        gs_allocator_free(rig.alloc);
    }
}

/* GPU 0 is the tighter one, and its compute is given away. */
static void a_pod_that_was_not_bound_gets_a_gpu_with_the_compute(void **state)
{
    static const struct {
        const char *row;
        uint32_t cores_pct;
        int gpu;
    } rows[] = {
        {"asks for none", 0, 0}, {"there is enough", 40, 0}, {"there is too little", 41, 1}};
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_error err = {0};
        rig_up(&rig);
        give_pod(&rig, &(struct given_pod){"a", {2}, 0, .cores_pct = {60}});
        give_pod(&rig, &(struct given_pod){"b", {4}, -1, .cores_pct = {r->cores_pct}});
        row_equal(r->row, allocate(&rig, 4, NULL, 0, NULL, &err), r->gpu);
        row_equal(r->row, rig.cores_pct, r->cores_pct);
        gs_allocator_free(rig.alloc);
    }
}

/* What is bound goes where it was bound: nobody fails for want of it. */
static void compute_keeps_no_bound_pod_from_its_gpu(void **state)
{
    struct rig rig;
    struct gs_error err = {0};
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"a", {4}, 0, .cores_pct = {60}});
    give_pod(&rig, &(struct given_pod){"b", {8}, 0, .cores_pct = {60}});
    assert_int_equal(allocate(&rig, 4, NULL, 0, NULL, &err), 0);
    assert_int_equal(allocate(&rig, 8, NULL, 0, NULL, &err), 0);
    gs_allocator_free(rig.alloc);
}

static void whose_a_call_is_may_not_be_known(void **state)
{
    struct rig rig;
    struct gs_error err = {0};
    rig_up(&rig);
    assert_int_equal(allocate(&rig, 4, NULL, 0, NULL, &err), 0);
    assert_int_equal(rig.cores_pct, 0);
    gs_allocator_free(rig.alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_container_is_told_its_own_compute),
        cmocka_unit_test(a_pod_that_was_not_bound_gets_a_gpu_with_the_compute),
        cmocka_unit_test(compute_keeps_no_bound_pod_from_its_gpu),
        cmocka_unit_test(whose_a_call_is_may_not_be_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
