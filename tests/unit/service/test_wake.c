/* SPDX-License-Identifier: Apache-2.0 */
#include "service_rig.h"

static struct rig rig;

/* One full GPU, and a pod that was refused because of it. */
static int setup(void **state)
{
    char json[2048];
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_pod(&rig, "old", "u0", 16, "n1", "0", "Running");
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
    gs_service_tick(rig.service);
    free(rig_filter(&rig,
                    rig_pod_json(&rig, json, sizeof(json), "p", "u1", 8, NULL, NULL, "Pending"),
                    "\"n1\""));
    return 0;
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

static void tick(int64_t ns)
{
    rig.now_ns += ns;
    gs_service_tick(rig.service);
}

static void a_refused_pod_is_woken_when_memory_comes_free(void **state)
{
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
    rig_pod_gone(&rig, "old", "u0");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    assert_string_equal(rig.patched, "default/p aliyun.com/gpu-wake");
}

static void a_gpu_that_is_just_large_enough_wakes(void **state)
{
    char json[2048];
    rig_pod_gone(&rig, "p", "u1");
    rig_pod(&rig, "whole", "u2", 16, NULL, NULL, "Pending");
    free(rig_filter(
        &rig, rig_pod_json(&rig, json, sizeof(json), "whole", "u2", 16, NULL, NULL, "Pending"),
        "\"n1\""));
    rig_pod_gone(&rig, "old", "u0");
    tick(GS_NS_PER_S);
    assert_string_equal(rig.patched, "default/whole aliyun.com/gpu-wake");
}

/* The same index and units: only the node's name says that it moved. */
static void memory_that_a_pod_leaves_for_another_node_wakes(void **state)
{
    rig_node(&rig, "n2", "16");
    rig_pod(&rig, "old", "u0", 16, "n2", "0", "Running");
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
    assert_int_equal(rig_used(&rig, "n2", 0), 16);
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
}

static void too_little_memory_wakes_nobody(void **state)
{
    rig_pod(&rig, "small", "u5", 4, "n1", "0", "Running");
    rig_pod(&rig, "more", "u6", 10, "n1", "0", "Running");
    rig_pod_gone(&rig, "old", "u0");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
    rig_pod_gone(&rig, "more", "u6");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
}

static void a_pod_that_is_not_bound_is_woken_again_at_growing_distances(void **state)
{
    rig_pod_gone(&rig, "old", "u0");
    for (int tenths = 0; tenths < 600; tenths++)
        tick(GS_NS_PER_S / 10);
    /* after 0, 1, 3, 7, 15, 31 seconds */
    assert_int_equal(rig.patches, 6);
}

static void a_bound_pod_is_not_woken(void **state)
{
    rig_pod_gone(&rig, "old", "u0");
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Pending");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
}

static void a_deleted_pod_is_not_woken(void **state)
{
    rig_pod_gone(&rig, "old", "u0");
    rig_pod_gone(&rig, "p", "u1");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
}

static void many_waiting_pods_are_woken_at_a_bounded_rate(void **state)
{
    char json[2048], name[32], uid[32];
    for (int i = 0; i < 600; i++) { /* more than are looked at under one lock */
        snprintf(name, sizeof(name), "w%d", i);
        snprintf(uid, sizeof(uid), "w%d", i);
        free(rig_filter(&rig,
                        rig_pod_json(&rig, json, sizeof(json), name, uid, 2, NULL, NULL, "Pending"),
                        "\"n1\""));
    }
    rig_pod_gone(&rig, "old", "u0");
    tick(GS_NS_PER_S);
    assert_in_range(rig.patches, 1, 5);
    for (int i = 0; i < 150; i++)
        tick(GS_NS_PER_S / 500);
    assert_int_equal(rig.patches, 601);
}

static void a_bigger_gpu_wakes_too(void **state)
{
    rig_node(&rig, "n1", "32");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
}

static void a_heartbeat_of_the_node_wakes_nobody(void **state)
{
    rig_node(&rig, "n1", "16");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
}

/* A pod of 12 that is nominated to a node, or (node NULL) to none any more; it is bound to `bound`
 * unless that is NULL. */
static void nominated(const char *node, const char *bound)
{
    char json[2048];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"big\",\"namespace\":\"default\",\"uid\":\"ub\","
             "\"resourceVersion\":\"%llu\",\"annotations\":{%s}},\"spec\":{\"priority\":9,"
             "\"nodeName\":\"%s\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"
             "\"aliyun.com/gpu-mem\":\"12\"}}}]},\"status\":{\"phase\":\"Pending\","
             "\"nominatedNodeName\":\"%s\"}}",
             (unsigned long long)++rig.revision, bound ? "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"" : "",
             bound ? bound : "", node ? node : "");
    rig_feed(&rig, json, false);
}

enum end { DELETED, NOMINATED_NO_MORE, NOMINATED_ELSEWHERE, BOUND_ELSEWHERE, BINDS_ELSEWHERE };

static void end_nomination(enum end end)
{
    switch (end) {
    case DELETED:
        rig_pod_gone(&rig, "big", "ub");
        break;
    case NOMINATED_NO_MORE:
        nominated(NULL, NULL);
        break;
    case NOMINATED_ELSEWHERE:
        nominated("n2", NULL);
        break;
    case BOUND_ELSEWHERE:
        nominated("n1", "n2");
        break;
    case BINDS_ELSEWHERE:
        rig_expect(rig_try_bind(&rig, "big", "ub", "n2"), "{\"Error\":\"\"}");
        break;
    }
}

static void a_place_that_is_held_no_more_wakes(void **state)
{
    static const struct {
        const char *row;
        enum end end;
    } rows[] = {
        {"deleted", DELETED},
        {"nominated no more", NOMINATED_NO_MORE},
        {"nominated elsewhere", NOMINATED_ELSEWHERE},
        {"bound elsewhere", BOUND_ELSEWHERE},
        {"its bind elsewhere has begun", BINDS_ELSEWHERE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char json[2048];
        rig_stop(&rig);
        rig_start(&rig);
        rig_lists(&rig);
        rig_node(&rig, "n1", "16");
        rig_node(&rig, "n2", "12");
        gs_service_tick(rig.service);
        nominated("n1", NULL);
        rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
        rig_expect(
            rig_filter(&rig,
                       rig_pod_json(&rig, json, sizeof(json), "p", "u1", 8, NULL, NULL, "Pending"),
                       "\"n1\""),
            "held for a nominated pod");
        tick(GS_NS_PER_S);
        tick(GS_NS_PER_S);
        assert_int_equal(rig.patches, 0);
        end_nomination(rows[i].end);
        tick(GS_NS_PER_S);
        if (rig.patches != 1)
            fail_msg("%s: %d wakes", rows[i].row, rig.patches);
    }
}

static void a_pod_whose_bind_was_refused_is_woken_for_any_node(void **state)
{
    rig_node(&rig, "n2", "4");
    tick(GS_NS_PER_S);
    rig_pod(&rig, "q", "u2", 4, NULL, NULL, "Pending");
    rig_expect(rig_try_bind(&rig, "q", "u2", "n1"), "insufficient free GPU memory");
    tick(GS_NS_PER_S / 10);
    assert_int_equal(rig.patches, 0); /* not before kube-scheduler has parked it */
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    assert_string_equal(rig.patched, "default/q aliyun.com/gpu-wake");
}

static void pods_that_came_while_nobody_answered_are_woken(void **state)
{
    rig_stop(&rig);
    rig_start(&rig);
    rig_node(&rig, "n1", "16");
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
    tick(GS_NS_PER_S);
    rig.sink.list_begin(rig.sink.ctx, GS_KIND_NODE);
    rig_node(&rig, "n1", "16");
    rig.sink.list_end(rig.sink.ctx, GS_KIND_NODE);
    rig.sink.list_begin(rig.sink.ctx, GS_KIND_POD);
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
    rig.sink.list_end(rig.sink.ctx, GS_KIND_POD);
    assert_int_equal(rig.patches, 0);
    tick(GS_NS_PER_S);
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_refused_pod_is_woken_when_memory_comes_free),
        T(a_gpu_that_is_just_large_enough_wakes),
        T(memory_that_a_pod_leaves_for_another_node_wakes),
        T(too_little_memory_wakes_nobody),
        T(a_pod_that_is_not_bound_is_woken_again_at_growing_distances),
        T(a_bound_pod_is_not_woken),
        T(a_deleted_pod_is_not_woken),
        T(many_waiting_pods_are_woken_at_a_bounded_rate),
        T(a_bigger_gpu_wakes_too),
        T(a_heartbeat_of_the_node_wakes_nobody),
        T(a_place_that_is_held_no_more_wakes),
        T(a_pod_whose_bind_was_refused_is_woken_for_any_node),
        T(pods_that_came_while_nobody_answered_are_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
