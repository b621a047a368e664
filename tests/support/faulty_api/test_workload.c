/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "gpushare/model/charge.h"
#include "workload.h"

static void a_specification_is_numbers_by_name(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        struct gs_sim_workload expected;
    } rows[] = {
        {"nothing", "", {.gpus = 8, .mem = 80, .pod_mem = 4}},
        {"nodes", "nodes=3", {.nodes = 3, .gpus = 8, .mem = 80, .pod_mem = 4}},
        {"all",
         "nodes=2,gpus=4,mem=16,pods=8,pod_mem=16,pending=5,other=7,no_inventory",
         {2, 4, 16, 8, 16, 5, 7, true}},
        {"pods as large as fits",
         "nodes=1,gpus=1,mem=7,pods=3",
         {.nodes = 1, .gpus = 1, .mem = 7, .pods = 3, .pod_mem = 2}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_sim_workload got = {0};
        struct gs_error err = {0};
        row_equal(r->row, gs_sim_workload_parse(gs_slice_of(r->text), &got, &err), 0);
        row_equal(r->row, got.nodes, r->expected.nodes);
        row_equal(r->row, got.gpus, r->expected.gpus);
        row_equal(r->row, got.mem, r->expected.mem);
        row_equal(r->row, got.pods, r->expected.pods);
        row_equal(r->row, got.pod_mem, r->expected.pod_mem);
        row_equal(r->row, got.pending, r->expected.pending);
        row_equal(r->row, got.other, r->expected.other);
        row_equal(r->row, got.no_inventory, r->expected.no_inventory);
    }
}

static void a_specification_that_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *row;
        const char *text;
    } rows[] = {
        {"an unknown word", "nodes=1,size=3"},
        {"no number", "nodes=many"},
        {"no value", "nodes"},
        {"an empty value", "nodes="},
        {"twice", "nodes=1,nodes=2"},
        {"too many GPUs", "gpus=65"},
        {"no GPUs", "gpus=0"},
        {"no memory", "mem=0"},
        {"beyond 32 bits", "nodes=4294967296"},
        {"pods without nodes", "pods=1"},
        {"more pods than fit", "nodes=1,gpus=1,mem=3,pods=4"},
        {"larger pods than fit", "nodes=1,gpus=2,mem=3,pods=4,pod_mem=2"},
        {"an empty word", "nodes=1,,gpus=2"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_sim_workload got = {.nodes = 99};
        struct gs_error err = {0};
        row_equal(r->row, gs_sim_workload_parse(gs_slice_of(r->text), &got, &err), -1);
        row_equal(r->row, err.code, GS_EINVAL);
        row_equal(r->row, got.nodes, 99);
    }
}

static void load(struct gs_sim_cluster *cluster, const struct gs_names *names, const char *text)
{
    struct gs_sim_workload workload;
    struct gs_error err = {0};
    if (gs_sim_workload_parse(gs_slice_of(text), &workload, &err) < 0 ||
        gs_sim_workload_load(cluster, names, &workload, &err) < 0)
        fail_msg("%s", err.msg);
}

static struct gs_sim_list list_of(struct gs_sim_cluster *cluster, enum gs_sim_kind kind)
{
    struct gs_sim_query query = {.kind = kind};
    struct gs_sim_list list;
    assert_int_equal(gs_sim_list(cluster, &query, 0, NULL, &list, NULL), 0);
    return list;
}

static void pods_are_valid_and_no_gpu_is_overfull(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    struct gs_names names;
    struct gs_pod pod = {0};
    uint64_t used[5][4] = {0};
    uint32_t bound = 0, other = 0, pending = 0;
    assert_int_equal(gs_names_init(&names, "example.org", NULL), 0);
    load(cluster, &names, "nodes=5,gpus=4,mem=10,pods=47,pending=3,other=11");
    struct gs_sim_list list = list_of(cluster, GS_SIM_PODS);
    assert_int_equal(list.count, 61);
    for (size_t i = 0; i < list.count; i++) {
        const struct gs_sim_object *object = list.items[i];
        struct gs_error err = {0};
        struct gs_charge charge;
        if (gs_codec_pod(&names, (struct gs_slice){object->json, object->json_len}, &pod, &err) < 0)
            fail_msg("%s: %s", object->name, err.msg);
        assert_string_equal(pod.name, object->name);
        assert_string_equal(pod.node_name, object->node);
        assert_int_equal(gs_pod_charge(&pod, &charge), GS_FITS);
        other += charge.units == 0;
        pending += !object->node[0];
        if (charge.units == 0 || !object->node[0])
            continue;
        bound++;
        assert_int_equal(pod.recorded, GS_RECORDED_VALID);
        assert_int_equal(gs_gpu_mask_count(pod.recorded_gpus), 1);
        used[object->node[9] - '0'][__builtin_ctzll(pod.recorded_gpus)] += charge.units;
    }
    gs_sim_list_release(&list);
    gs_pod_release(&pod);
    assert_int_equal(bound, 47);
    assert_int_equal(other, 11);
    assert_int_equal(pending, 3);
    for (size_t node = 0; node < 5; node++) {
        for (size_t gpu = 0; gpu < 4; gpu++)
            assert_true(used[node][gpu] <= 10 && used[node][gpu] >= 6);
    }
}

static void nodes_are_valid_with_and_without_inventory(void **state)
{
    struct gs_names names;
    assert_int_equal(gs_names_init(&names, "aliyun.com", NULL), 0);
    for (int without = 0; without < 2; without++) {
        struct gs_sim_cluster *cluster;
        struct gs_node node = {0};
        assert_int_equal(gs_sim_cluster_new(&(struct gs_sim_options){0}, &cluster, NULL), 0);
        load(cluster, &names, without ? "nodes=2,no_inventory" : "nodes=2");
        struct gs_sim_list list = list_of(cluster, GS_SIM_NODES);
        assert_int_equal(list.count, 2);
        struct gs_slice text = {list.items[1]->json, list.items[1]->json_len};
        assert_int_equal(gs_codec_node(&names, text, &node, NULL), 0);
        assert_string_equal(node.name, "node-00001");
        assert_true(node.labelled && node.ready);
        assert_int_equal(node.capacity_units, 640);
        assert_int_equal(node.gpu_count, 8);
        assert_int_equal(node.gpus[7].mem_units, 80);
        assert_int_equal(node.inventory, !without);
        gs_node_release(&node);
        gs_sim_list_release(&list);
        gs_sim_cluster_free(cluster);
    }
}

static void what_was_made_can_be_worked_with(void **state)
{
    struct gs_sim_cluster *cluster = *state;
    struct gs_names names;
    assert_int_equal(gs_names_init(&names, "aliyun.com", NULL), 0);
    load(cluster, &names, "nodes=1,pending=1");
    /* The texts have the store's own form: a write that changes nothing is seen as one. */
    uint64_t version = gs_sim_cluster_version(cluster);
    assert_int_equal(gs_sim_patch(cluster, GS_SIM_PODS, GS_SIM_MAIN, GS_SIM_PATCH_MERGE, "team-00",
                                  "wait-000000", GS_SLICE("{\"metadata\":{}}"), NULL, NULL),
                     0);
    assert_int_equal(gs_sim_patch(cluster, GS_SIM_NODES, GS_SIM_MAIN, GS_SIM_PATCH_MERGE, "",
                                  "node-00000", GS_SLICE("{\"metadata\":{}}"), NULL, NULL),
                     0);
    assert_true(gs_sim_cluster_version(cluster) == version);
    assert_int_equal(gs_sim_bind(cluster, "team-00", "wait-000000",
                                 GS_SLICE("{\"target\":{\"name\":\"node-00000\"}}"), NULL),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_specification_is_numbers_by_name),
        cmocka_unit_test(a_specification_that_cannot_be_is_refused),
        test_with_cluster(pods_are_valid_and_no_gpu_is_overfull),
        cmocka_unit_test(nodes_are_valid_with_and_without_inventory),
        test_with_cluster(what_was_made_can_be_worked_with),
    };
    return GS_RUN(tests);
}
