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

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(many_waiting_pods_are_woken_at_a_bounded_rate),
        T(a_node_that_changes_wakes_though_its_memory_did_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
