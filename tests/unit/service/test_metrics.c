/* SPDX-License-Identifier: Apache-2.0 */
#include "service_rig.h"

static struct rig rig;

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_node(&rig, "n2", "16");
    rig_pod(&rig, "old", "u0", 10, "n1", "0", "Running");
    gs_service_tick(rig.service);
    return 0;
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

/* line: NULL when the series must not be there at all. */
static void expect(const char *series, const char *line)
{
    struct gs_buf text = GS_BUF(1 << 20);
    gs_service_metrics(rig.service, &text);
    if (line)
        assert_non_null(strstr(text.data, line));
    else
        assert_null(strstr(text.data, series));
    gs_buf_release(&text);
}

static void free_and_largest_are_of_the_whole_cluster(void **state)
{
    expect("gpushare_memory_free_bytes", "\ngpushare_memory_free_bytes 23622320128\n");
    expect("gpushare_memory_largest_free_bytes",
           "\ngpushare_memory_largest_free_bytes 17179869184\n");
    rig_pod_gone(&rig, "old", "u0");
    expect("gpushare_memory_free_bytes", "\ngpushare_memory_free_bytes 34359738368\n");
}

static void a_full_cluster_has_nothing_free(void **state)
{
    rig_pod(&rig, "more", "u1", 6, "n1", "0", "Running");
    rig_pod(&rig, "all", "u2", 16, "n2", "0", "Running");
    expect("gpushare_memory_free_bytes", "\ngpushare_memory_free_bytes 0\n");
    expect("gpushare_memory_largest_free_bytes", "\ngpushare_memory_largest_free_bytes 0\n");
}

static void stranded_memory_is_not_told_before_it_is_known(void **state)
{
    expect("gpushare_memory_stranded_bytes", NULL);
}

/* All pods ask for 10: what a GPU of 16 has left beside one is of no use to the next. */
static void what_no_known_pod_can_use_is_stranded(void **state)
{
    for (int i = 0; i < 32; i++) {
        char name[16], uid[16];
        snprintf(name, sizeof(name), "p%d", i);
        snprintf(uid, sizeof(uid), "v%d", i);
        rig_pod(&rig, name, uid, 10, NULL, NULL, "Pending");
    }
    rig.now_ns += 2 * GS_NS_PER_S;
    gs_service_tick(rig.service);
    expect("gpushare_memory_stranded_bytes", "\ngpushare_memory_stranded_bytes 12884901888\n");
    rig_pod_gone(&rig, "old", "u0");
    expect("gpushare_memory_free_bytes", "\ngpushare_memory_free_bytes 34359738368\n");
    expect("gpushare_memory_stranded_bytes", "\ngpushare_memory_stranded_bytes 12884901888\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(free_and_largest_are_of_the_whole_cluster, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_cluster_has_nothing_free, setup, teardown),
        cmocka_unit_test_setup_teardown(stranded_memory_is_not_told_before_it_is_known, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_no_known_pod_can_use_is_stranded, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
