/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_fail.h"
#include "codec_fixture.h"
#include "item_lists.h"

#include "gpushare/codec/annotation.h"
#include "gpushare/codec/checkpoint.h"
#include "gpushare/codec/extender.h"
#include "gpushare/codec/inventory.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"

/*
 * Every decoder with its first, second, third … allocation failing, until it gets through: each
 * time it must say so, leave nothing half filled, and lose nothing (sanitizers look).
 */

#define LONG                                                                                       \
    "\\u0030123456789012345678901234567890123456789012345678901234567890123456789012345678901234"  \
    "56789"
#define NAME   LONG LONG LONG
#define LONGER LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG

static const char pod_json[] =
    "{'metadata':{'name':'p','uid':'" LONGER "','namespace':'" LONGER "','annotations':{"
    "'aliyun.com/gpu-model':'" LONGER LONGER "','aliyun.com/gpu-uuid':'" LONGER LONGER LONGER "'},"
    "'ownerReferences':[{'uid':'" LONGER LONGER "','controller':true}],'labels':{'" LONGER
    "':'" LONGER "'}},"
    "'spec':{'nodeName':'n','nodeSelector':{'" LONGER "':'" LONGER
    "'},'tolerations':[{'key':'" LONGER "'}],"
    "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
    "'nodeSelectorTerms':[{'matchExpressions':[{'key':'" LONGER
    "','operator':'In','values':['" LONGER "','" LONGER
    "']}]}]}}},'initContainers':[{},{},{},{},{}],'containers':[{'resources':{'limits':{'aliyun.com/"
    "gpu-mem':'1'}}},{},{},{},{},{},{},{},{},{}]}}";

static const char node_json[] =
    "{'spec':{'taints':[{'key':'" LONGER "','effect':'" LONGER "'}]},"
    "'metadata':{'name':'" LONGER "','labels':{'" LONGER "':'" LONGER "'},"
    "'annotations':{'aliyun.com/gpu-inventory':'{\\'v\\':1,"
    "\\'unit\\':\\'GiB\\',\\'gpus\\':[{\\'idx\\':0,\\'mem\\':1,\\'model\\':\\'" LONGER LONGER
    "\\'},{\\'idx\\':9,\\'mem\\':1}]}','aliyun.com/gpu-reassigned':'{\\'" LONGER
    "\\':[1],\\'a\\':[0],\\'b\\':[0],"
    "\\'c\\':[0],\\'" LONGER "e\\':[0]}','aliyun.com/gpu-cordon':'" LONGER LONGER LONGER "'}},"
    "'status':{'addresses':[{'type':'InternalIP','address':'" LONGER LONGER "'}]}}";

typedef int (*attempt_fn)(struct gs_slice json, struct gs_error *err);

static void try_all(attempt_fn attempt, const char *text, unsigned least_failures)
{
    const struct gs_slice json = json_of(text);
    unsigned n = 1;
    for (bool happened = true; happened; n++) {
        struct gs_error err = {0};
        alloc_fail_begin(n);
        int result = attempt(json, &err);
        happened = alloc_fail_end();
        assert_int_equal(result, happened ? -1 : 0);
        assert_int_equal(err.code, happened ? GS_ENOMEM : GS_OK);
        assert_int_equal(strstr(err.msg, "out of memory") != NULL, happened);
    }
    assert_true(n >= least_failures + 2);
}

static int attempt_pod(struct gs_slice json, struct gs_error *err)
{
    struct gs_pod pod = {0};
    int result = gs_codec_pod(default_names(), json, &pod, err);
    assert_int_equal(pod.container_count, result < 0 ? 0 : 15);
    assert_int_equal(pod.name[0] != '\0', result == 0);
    gs_pod_release(&pod);
    return result;
}

static int attempt_node(struct gs_slice json, struct gs_error *err)
{
    struct gs_node node = {0};
    int result = gs_codec_node(default_names(), json, &node, err);
    assert_int_equal(node.gpu_count, result < 0 ? 0 : 2);
    assert_int_equal(node.moved_count, result < 0 ? 0 : 5);
    assert_string_equal(node.moved_error, "");
    assert_string_equal(node.inventory_error, "");
    gs_node_release(&node);
    return result;
}

static int attempt_filter(struct gs_slice json, struct gs_error *err)
{
    struct gs_filter_args args = {0};
    int result = gs_codec_filter_args(default_names(), json, &args, err);
    assert_int_equal(args.name_count, result < 0 ? 0 : 2);
    assert_int_equal(args.node_count, result < 0 ? 0 : 1);
    gs_filter_args_release(&args);
    return result;
}

static int attempt_preempt(struct gs_slice json, struct gs_error *err)
{
    struct gs_preemption_args args = {0};
    int result = gs_codec_preemption_args(default_names(), json, &args, err);
    assert_int_equal(args.node_count, result < 0 ? 0 : 1);
    gs_preemption_args_release(&args);
    return result;
}

static int attempt_bind(struct gs_slice json, struct gs_error *err)
{
    struct gs_binding_args args = {0};
    int result = gs_codec_binding_args(json, &args, err);
    assert_int_equal(args.name[0] != '\0', result == 0);
    gs_binding_args_release(&args);
    return result;
}

static bool on_checkpoint(void *ctx, const struct gs_checkpoint_entry *entry, size_t done)
{
    *(uint32_t *)ctx += entry->id_count > 0;
    return true;
}

static int attempt_checkpoint(struct gs_slice json, struct gs_error *err)
{
    uint32_t count = 0;
    int result = gs_codec_checkpoint_decode(json, "gpu", on_checkpoint, &count, err);
    assert_int_equal(count, result < 0 ? 0 : 1);
    return result;
}

static int attempt_budgets(struct gs_slice json, struct gs_error *err)
{
    struct gs_arena arena = {0};
    struct gs_budget *all = NULL;
    uint32_t count = 77;
    int result = budget_list(json, &arena, &all, &count, err);
    assert_int_equal(count, result < 0 ? 77 : 1);
    gs_arena_release(&arena);
    return result;
}

static int attempt_record(struct gs_slice json, struct gs_error *err)
{
    struct gs_arena arena = {0};
    struct gs_container container = {.kind = GS_CONTAINER_MAIN, .gpu_units = 4};
    struct gs_pod pod = {.containers = &container, .container_count = 1};
    struct gs_bind_record record = {
        .gpus = UINT64_MAX, .charge = {1, .units = 4}, .assume_time_ns = 1};
    struct gs_kv *kv = NULL;
    size_t count = 77;
    int result =
        gs_codec_bind_annotations(default_names(), &pod, &record, &arena, &kv, &count, err);
    assert_int_equal(count, result < 0 ? 77 : GS_BIND_ANNOTATIONS);
    assert_true((kv != NULL) == (result == 0));
    gs_arena_release(&arena);
    return result;
}

static void every_failed_allocation_is_told_and_undone(void **state)
{
    try_all(attempt_pod, pod_json, 3);
    try_all(attempt_checkpoint,
            "{'Data':{'PodDeviceEntries':[{'ResourceName':'gpu','PodUID':'" LONGER
            "','DeviceIDs':['" LONGER LONGER "','" LONGER LONGER
            "'],'AllocResp':'" LONGER LONGER LONGER LONGER "'}]}}",
            2);
    try_all(attempt_node, node_json, 3);
    try_all(attempt_filter,
            "{'Pod':{'metadata':{'name':'p'}},'NodeNames':['a','" LONGER LONGER "'],"
            "'Nodes':{'items':[{'metadata':{'name':'" LONGER LONGER LONGER "'}}]}}",
            5);
    try_all(attempt_preempt,
            "{'Pod':{'metadata':{'name':'p'}},'NodeNameToMetaVictims':{'" LONGER LONGER
            "':{'Pods':[{'UID':'" NAME "'},{'UID':'" NAME "'},{},{},{}]}}}",
            3);
    try_all(attempt_bind,
            "{'PodName':'" NAME "','PodNamespace':'" NAME "','PodUID':'" NAME "','Node':'" NAME
            "'}",
            2);
    try_all(attempt_budgets,
            "{'items':[{'metadata':{'namespace':'" LONGER
            "'},'spec':{'selector':{'matchLabels':{'" LONGER "':'" LONGER
            "'},'matchExpressions':[{'key':'" LONGER "','operator':'In','values':['" LONGER
            "']}]}},'status':{'disruptedPods':{'" LONGER "':''}}}]}",
            2);
    try_all(attempt_record, "", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failed_allocation_is_told_and_undone),
    };
    return GS_RUN(tests);
}
