/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "faults.h"

static void only_whole_plans_are_taken(void **state)
{
    static const struct {
        const char *plan;
        bool ok;
    } rows[] = {
        {"", true},
        {"drop=0", true},
        {"agent=gpushare-extender,lost_answer=50,watch_cut=20,stall_ms=100,big_mib=1", true},
        {"all=1000,watch_lose=1000", true},
        {"drop=1001", false},
        {"drop=-1", false},
        {"drop=", false},
        {"drop", false},
        {"=5", false},
        {"dorp=5", false},
        {"all=x", false},
        {"drop=5,,gone=5", false},
        {"stall_ms=600001", false},
        {"drop=99999999999999999999", false},
        {"agent=0123456789012345678901234567890123456789012345678901234567890123", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gs_error err = {0};
        struct gs_sim_faults *faults = gs_sim_faults_new(1);
        assert_int_equal(gs_sim_faults_plan(faults, gs_slice_of("gone=1000"), &err), 0);
        print_message("%s\n", rows[i].plan);
        int rc = gs_sim_faults_plan(faults, gs_slice_of(rows[i].plan), &err);
        assert_int_equal(rc, rows[i].ok ? 0 : -1);
        assert_int_equal(err.code, rows[i].ok ? GS_OK : GS_EINVAL);
        if (!rows[i].ok) /* the old plan stays */
            assert_true(gs_sim_faults_hit(faults, GS_SIM_GONE, "x"));
        gs_sim_faults_free(faults);
    }
}

static void faults_happen_as_often_as_planned_to_whom_they_concern_and_are_counted(void **state)
{
    struct gs_sim_faults *faults = gs_sim_faults_new(7);
    unsigned hits = 0;
    assert_int_equal(gs_sim_faults_plan(faults, gs_slice_of("agent=gpu,drop=100"), NULL), 0);
    for (int i = 0; i < 10000; i++) {
        hits += gs_sim_faults_hit(faults, GS_SIM_DROP, "gpushare-extender/1");
        assert_false(gs_sim_faults_hit(faults, GS_SIM_DROP, "kubectl"));
        assert_false(gs_sim_faults_hit(faults, GS_SIM_DROP, NULL));
        assert_false(gs_sim_faults_hit(faults, GS_SIM_GONE, "gpushare-extender/1"));
    }
    assert_in_range(hits, 800, 1200);
    assert_int_equal(gs_sim_faults_count(faults, GS_SIM_DROP), hits);
    assert_int_equal(gs_sim_faults_count(faults, GS_SIM_GONE), 0);
    gs_sim_faults_free(faults);
}

static void the_same_seed_gives_the_same_faults(void **state)
{
    struct gs_sim_faults *a = gs_sim_faults_new(3), *b = gs_sim_faults_new(3);
    gs_sim_faults_plan(a, gs_slice_of("all=300"), NULL);
    gs_sim_faults_plan(b, gs_slice_of("all=300"), NULL);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(gs_sim_faults_hit(a, (enum gs_sim_fault)(i % GS_SIM_FAULTS), "x"),
                         gs_sim_faults_hit(b, (enum gs_sim_fault)(i % GS_SIM_FAULTS), "x"));
    gs_sim_faults_free(a);
    gs_sim_faults_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_whole_plans_are_taken),
        cmocka_unit_test(faults_happen_as_often_as_planned_to_whom_they_concern_and_are_counted),
        cmocka_unit_test(the_same_seed_gives_the_same_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
