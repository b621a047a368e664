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
    *state = &rig;
    return 0;
}

static void a_refused_pod_is_woken_when_memory_comes_free(void **state)
{
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
    rig_pod_gone(&rig, "old", "u0");
    rig_tick(&rig, GS_NS_PER_S);
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
    rig_tick(&rig, GS_NS_PER_S);
    assert_string_equal(rig.patched, "default/whole aliyun.com/gpu-wake");
}

/* The same index and units: only the node's name says that it moved. */
static void memory_that_a_pod_leaves_for_another_node_wakes(void **state)
{
    rig_node(&rig, "n2", "16");
    rig_pod(&rig, "old", "u0", 16, "n2", "0", "Running");
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
    assert_int_equal(rig_used(&rig, "n2", 0), 16);
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
}

/* Without a record it was charged on both GPUs, until the plugin tells which it has. */
static void memory_that_a_pod_turns_out_not_to_have_wakes(void **state)
{
    char json[2048];
    rig_pod(&rig, "x", "ux", 16, "n2", NULL, "Running");
    rig_node_moved(&rig, "n2", "16,16", "{}");
    assert_int_equal(rig_used(&rig, "n2", 1), 16);
    free(rig_filter(&rig,
                    rig_pod_json(&rig, json, sizeof(json), "p", "u1", 8, NULL, NULL, "Pending"),
                    "\"n1\",\"n2\""));
    rig_tick(&rig, GS_NS_PER_S);
    int before = rig.patches;
    rig_node_moved(&rig, "n2", "16,16", "{\\\"ux\\\":[0]}");
    assert_int_equal(rig_used(&rig, "n2", 1), 0);
    for (int s = 0; s < 3; s++)
        rig_tick(&rig, GS_NS_PER_S);
    assert_in_range(rig.patches, before + 1, before + 2);
}

static void too_little_memory_wakes_nobody(void **state)
{
    rig_pod(&rig, "small", "u5", 4, "n1", "0", "Running");
    rig_pod(&rig, "more", "u6", 10, "n1", "0", "Running");
    rig_pod_gone(&rig, "old", "u0");
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
    rig_pod_gone(&rig, "more", "u6");
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
}

static void a_pod_that_is_not_bound_is_woken_again_at_growing_distances(void **state)
{
    rig_pod_gone(&rig, "old", "u0");
    for (int tenths = 0; tenths < 600; tenths++)
        rig_tick(&rig, GS_NS_PER_S / 10);
    /* after 0, 1, 3, 7, 15, 31 seconds */
    assert_int_equal(rig.patches, 6);
}

static void a_bound_pod_is_not_woken(void **state)
{
    rig_pod_gone(&rig, "old", "u0");
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Pending");
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
}

static void a_deleted_pod_is_not_woken(void **state)
{
    rig_pod_gone(&rig, "old", "u0");
    rig_pod_gone(&rig, "p", "u1");
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
}

static void many_waiting_pods_are_woken_at_a_bounded_rate(void **state)
{
    char json[2048], name[32], uid[32];
    for (int i = 0; i < 600; i++) { /* more than are looked at under one lock */
        snprintf(name, sizeof(name), "w%d", i);
        snprintf(uid, sizeof(uid), "w%d", i);
        rig_pod(&rig, name, uid, 2, NULL, NULL, "Pending");
        free(rig_filter(&rig,
                        rig_pod_json(&rig, json, sizeof(json), name, uid, 2, NULL, NULL, "Pending"),
                        "\"n1\""));
    }
    rig_pod_gone(&rig, "old", "u0");
    rig_tick(&rig, GS_NS_PER_S);
    assert_in_range(rig.patches, 1, 5);
    for (int i = 0; i < 150; i++)
        rig_tick(&rig, GS_NS_PER_S / 500);
    assert_int_equal(rig.patches, 601);
}

/* Whoever reaches the port may call any pod one that asks for GPU memory and was refused. */
static void a_pod_of_which_filter_alone_told_is_woken_when_the_watch_shows_it(void **state)
{
    char json[2048];
    rig_pod_gone(&rig, "p", "u1");
    free(rig_filter(&rig,
                    rig_pod_json(&rig, json, sizeof(json), "q", "u2", 2, NULL, NULL, "Pending"),
                    "\"n1\""));
    rig_pod_gone(&rig, "old", "u0");
    for (int i = 0; i < 20; i++)
        rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
    rig_pod(&rig, "q", "u2", 2, NULL, NULL, "Pending");
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
}

static void a_bigger_gpu_wakes_too(void **state)
{
    rig_node(&rig, "n1", "32");
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
}

static void a_heartbeat_of_the_node_wakes_nobody(void **state)
{
    rig_node(&rig, "n1", "16");
    rig_tick(&rig, GS_NS_PER_S);
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
        rig_tick(&rig, GS_NS_PER_S);
        rig_tick(&rig, GS_NS_PER_S);
        assert_int_equal(rig.patches, 0);
        end_nomination(rows[i].end);
        rig_tick(&rig, GS_NS_PER_S);
        if (rig.patches != 1)
            fail_msg("%s: %d wakes", rows[i].row, rig.patches);
    }
}

static void a_pod_whose_bind_was_refused_is_woken_for_any_node(void **state)
{
    rig_node(&rig, "n2", "4");
    rig_tick(&rig, GS_NS_PER_S);
    rig_pod(&rig, "q", "u2", 4, NULL, NULL, "Pending");
    rig_expect(rig_try_bind(&rig, "q", "u2", "n1"), "insufficient free GPU memory");
    rig_tick(&rig, GS_NS_PER_S / 10);
    assert_int_equal(rig.patches, 0); /* not before kube-scheduler has parked it */
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    assert_string_equal(rig.patched, "default/q aliyun.com/gpu-wake");
}

/* One node is noted for the pod, and taken before kube-scheduler has parked it. */
static void of_two_nodes_that_came_free_the_other_wakes(void **state)
{
    char json[2048];
    rig_node(&rig, "n2", "16");
    rig_pod(&rig, "old2", "u9", 16, "n2", "0", "Running");
    rig_tick(&rig, GS_NS_PER_S);
    free(rig_filter(&rig,
                    rig_pod_json(&rig, json, sizeof(json), "p", "u1", 8, NULL, NULL, "Pending"),
                    "\"n1\",\"n2\""));
    rig_pod_gone(&rig, "old", "u0");
    rig_pod_gone(&rig, "old2", "u9");
    rig_tick(&rig, GS_NS_PER_S / 10);
    assert_int_equal(rig.patches, 0);
    rig_pod(&rig, "x", "ux", 16, "n1", "0", "Running");
    for (int i = 0; i < 20; i++)
        rig_tick(&rig, GS_NS_PER_S / 10);
    assert_in_range(rig.patches, 1, 2);
}

static void node_json(const char *text)
{
    char json[2048];
    struct gs_node node = {0};
    struct gs_error err = {0};
    snprintf(json, sizeof(json), "%s", text);
    rig_quote(json);
    if (gs_codec_node(&rig.names, gs_slice_of(json), &node, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(rig.sink.node(rig.sink.ctx, &node), 0);
    gs_node_release(&node);
}

#define SIZE(count)                                                                                \
    "'status':{'capacity':{'aliyun.com/gpu-mem':'32','aliyun.com/gpu-count':'" count "'},"         \
    "'allocatable':{'cpu':'64'}}}"
#define INVENTORY(uuid, model) INVENTORY_OF(uuid, model, "true")
#define INVENTORY_OF(uuid, model, healthy)                                                         \
    "{'metadata':{'name':'n2','annotations':{'aliyun.com/gpu-inventory':'{\\'v\\':1,"              \
    "\\'unit\\':\\'GiB\\',\\'gpus\\':[{\\'idx\\':0,\\'uuid\\':\\'" uuid                            \
    "\\',\\'mem\\':32,\\'model\\':\\'" model "\\',\\'healthy\\':" healthy                          \
    ",\\'schedulable\\':true}]}'}},"

static void a_node_that_changes_wakes_though_its_memory_did_not_grow(void **state)
{
    static const struct {
        const char *row;
        const char *meta; /* of the pod */
        const char *before, *after;
    } rows[] = {
        {"its inventory comes after its capacity", "'annotations':{'aliyun.com/gpu-model':'A100'}",
         "{'metadata':{'name':'n2'}," SIZE("1"), INVENTORY("GPU-1", "NVIDIA A100") SIZE("1")},
        {"another GPU", "'annotations':{'aliyun.com/gpu-uuid':'GPU-2'}",
         INVENTORY("GPU-1", "NVIDIA A100") SIZE("1"), INVENTORY("GPU-2", "NVIDIA A100") SIZE("1")},
        {"its GPU is healthy again", "'labels':{}",
         INVENTORY_OF("GPU-1", "NVIDIA A100", "false") SIZE("1"),
         INVENTORY("GPU-1", "NVIDIA A100") SIZE("1")},
        {"its count comes after its memory", "'labels':{'aliyun.com/gpu-count':'2'}",
         "{'metadata':{'name':'n2'}," SIZE("1"), "{'metadata':{'name':'n2'}," SIZE("2")},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char json[2048];
        rig_stop(&rig);
        rig_start(&rig);
        rig_lists(&rig);
        node_json(rows[i].before);
        snprintf(
            json, sizeof(json),
            "{'metadata':{'name':'p','namespace':'default','uid':'up',%s},'spec':{'containers':["
            "{'name':'c','resources':{'limits':{'aliyun.com/gpu-mem':'16'}}}]},'status':{'phase':"
            "'Pending'}}",
            rows[i].meta);
        rig_quote(json);
        rig_feed(&rig, json, false);
        rig_tick(&rig, GS_NS_PER_S);
        rig_expect(rig_filter(&rig, json, "\"n2\""), "\"NodeNames\":[]");
        for (int s = 0; s < 3; s++) {
            node_json(rows[i].before); /* a heartbeat */
            rig_tick(&rig, GS_NS_PER_S);
        }
        if (rig.patches)
            fail_msg("%s: %d wakes by nothing", rows[i].row, rig.patches);
        node_json(rows[i].after);
        rig_tick(&rig, GS_NS_PER_S);
        rig_tick(&rig, GS_NS_PER_S);
        if (rig.patches < 1)
            fail_msg("%s: not woken", rows[i].row);
    }
}

static void refuse_another_during(struct rig *r)
{
    char json[2048];
    rig_expect(rig_filter(r,
                          rig_pod_json(r, json, sizeof(json), "r", "u3", 8, NULL, NULL, "Pending"),
                          "\"n2\""),
               "\"NodeNames\":[]");
}

/* The memory that a bind had reserved is another pod's again when it fails. */
static void a_bind_that_failed_wakes_who_was_refused_for_it(void **state)
{
    rig_node(&rig, "n2", "16");
    rig_pod(&rig, "q", "u2", 16, NULL, NULL, "Pending");
    rig_pod_gone(&rig, "p", "u1");
    rig_tick(&rig, GS_NS_PER_S);
    rig.bind_code = GS_EDENIED;
    rig.during_bind = refuse_another_during;
    rig_pod(&rig, "r", "u3", 8, NULL, NULL, "Pending");
    rig_expect(rig_try_bind(&rig, "q", "u2", "n2"), "bind failed");
    rig_pod_gone(&rig, "q", "u2"); /* it frees nothing any more, and is not woken itself */
    assert_int_equal(rig.patches, 0);
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    assert_string_equal(rig.patched, "default/r aliyun.com/gpu-wake");
}

static void end_q(struct rig *r)
{
    rig_pod_gone(r, "q", "u2");
}

/* kube-scheduler's caches may still have it. */
static void a_pod_that_ended_waits_no_more_whoever_asks(void **state)
{
    char json[2048];
    struct gs_buf metrics = GS_BUF(1 << 20);
    rig_pod_gone(&rig, "p", "u1");
    rig_node(&rig, "n2", "16");
    rig_pod(&rig, "q", "u2", 16, NULL, NULL, "Pending");
    rig.bind_code = GS_ENOENT;
    rig.during_bind = end_q;
    rig_expect(rig_try_bind(&rig, "q", "u2", "n2"), "bind failed");
    rig_tick(&rig, GS_NS_PER_S);
    rig_expect(
        rig_filter(&rig,
                   rig_pod_json(&rig, json, sizeof(json), "q", "u2", 16, NULL, NULL, "Pending"),
                   "\"n1\""),
        "\"NodeNames\":[]");
    gs_service_metrics(rig.service, &metrics);
    assert_non_null(strstr(metrics.data, "\ngpushare_pending_pods 0\n"));
    gs_buf_release(&metrics);
}

/* It was refused elsewhere for that bind's sake alone. */
static void a_bind_that_is_given_up_lets_its_pod_go_anywhere(void **state)
{
    char json[2048];
    rig_pod(&rig, "q", "u2", 8, NULL, NULL, "Pending");
    rig_node(&rig, "n2", "16");
    rig_node(&rig, "n3", "16");
    rig_pod_gone(&rig, "p", "u1");
    rig_tick(&rig, GS_NS_PER_S);
    rig.get_json = rig_pod_json(&rig, json, sizeof(json), "q", "u2", 8, NULL, NULL, "Pending");
    rig.bind_code = GS_ETIMEOUT;
    rig_expect(rig_try_bind(&rig, "q", "u2", "n2"), "no known outcome");
    const struct gs_node gone = {.name = "n2"};
    rig.sink.node_gone(rig.sink.ctx, &gone);
    free(rig_filter(&rig, json, "\"n3\""));
    for (int i = 0; i < 30; i++)
        rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
    for (int i = 0; i < 40; i++)
        rig_tick(&rig, GS_NS_PER_S);
    assert_in_range(rig.patches, 1, 6);
    assert_string_equal(rig.patched, "default/q aliyun.com/gpu-wake");
}

static void a_nominated_pod_whose_bind_failed_holds_its_place_again(void **state)
{
    rig_node(&rig, "n2", "16");
    nominated("n2", NULL);
    rig_pod(&rig, "small", "us", 8, NULL, NULL, "Pending");
    rig_expect(rig_try_bind(&rig, "small", "us", "n2"), "nominated");
    rig.bind_code = GS_EDENIED;
    rig_expect(rig_try_bind(&rig, "big", "ub", "n2"), "bind failed");
    rig.bind_code = GS_OK;
    rig_expect(rig_try_bind(&rig, "small", "us", "n2"), "nominated");
}

static void pods_that_came_while_nobody_answered_are_woken(void **state)
{
    rig_stop(&rig);
    rig_start(&rig);
    rig_node(&rig, "n1", "16");
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
    rig_tick(&rig, GS_NS_PER_S);
    rig.sink.list_begin(rig.sink.ctx, GS_KIND_NODE);
    rig_node(&rig, "n1", "16");
    rig.sink.list_end(rig.sink.ctx, GS_KIND_NODE);
    rig.sink.list_begin(rig.sink.ctx, GS_KIND_POD);
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
    rig.sink.list_end(rig.sink.ctx, GS_KIND_POD);
    assert_int_equal(rig.patches, 0);
    rig_tick(&rig, GS_NS_PER_S);
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(a_refused_pod_is_woken_when_memory_comes_free),
        T(a_gpu_that_is_just_large_enough_wakes),
        T(memory_that_a_pod_leaves_for_another_node_wakes),
        T(memory_that_a_pod_turns_out_not_to_have_wakes),
        T(too_little_memory_wakes_nobody),
        T(a_pod_that_is_not_bound_is_woken_again_at_growing_distances),
        T(a_bound_pod_is_not_woken),
        T(a_deleted_pod_is_not_woken),
        T(many_waiting_pods_are_woken_at_a_bounded_rate),
        T(a_pod_of_which_filter_alone_told_is_woken_when_the_watch_shows_it),
        T(a_bigger_gpu_wakes_too),
        T(a_heartbeat_of_the_node_wakes_nobody),
        T(a_place_that_is_held_no_more_wakes),
        T(a_pod_whose_bind_was_refused_is_woken_for_any_node),
        T(of_two_nodes_that_came_free_the_other_wakes),
        T(a_node_that_changes_wakes_though_its_memory_did_not_grow),
        T(a_bind_that_failed_wakes_who_was_refused_for_it),
        T(a_pod_that_ended_waits_no_more_whoever_asks),
        T(a_bind_that_is_given_up_lets_its_pod_go_anywhere),
        T(a_nominated_pod_whose_bind_failed_holds_its_place_again),
        T(pods_that_came_while_nobody_answered_are_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
