/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/node.h"

static int decode(const char *json, struct gs_node *node, struct gs_error *err)
{
    struct gs_names names = default_names();
    _cleanup_free_ char *text = quoted(json);
    return gs_codec_node(&names, gs_slice_of(text), node, err);
}

#define TWO_GPUS                                                                                   \
    "{\\'v\\':1,\\'unit\\':\\'GiB\\',\\'gpus\\':[{\\'idx\\':4,\\'mem\\':39,\\'uuid\\':\\'GPU-b\\'" \
    "},"                                                                                           \
    "{\\'idx\\':1,\\'mem\\':79,\\'uuid\\':\\'GPU-a\\'}]}"

static void a_whole_node_is_read(void **state)
{
    struct gs_node node = {0};
    assert_int_equal(
        decode(
            "{'metadata':{'name':'n','uid':'u','resourceVersion':'7','labels':{'gpushare':'true'},"
            "'annotations':{'aliyun.com/gpu-inventory':'" TWO_GPUS "'}},"
            "'spec':{'unschedulable':true},'status':{"
            "'capacity':{'cpu':'8','aliyun.com/gpu-mem':'118','aliyun.com/gpu-count':'2',"
            "'aliyun.com/gpu-core.percentage':'200'},"
            "'allocatable':{'cpu':'7500m','memory':'2Gi','aliyun.com/gpu-mem':'117'},"
            "'addresses':[{'type':'Hostname','address':'h'},"
            "{'address':'10.0.0.1','type':'InternalIP'},"
            "{'type':'InternalIP','address':'fd00::1'}],"
            "'nodeInfo':{'kubeletVersion':'v1.28.0'},"
            "'conditions':[{'type':'DiskPressure','status':'False'},"
            "{'type':'Ready','status':'True'}]}}",
            &node, NULL),
        0);
    assert_string_equal(node.name, "n");
    assert_string_equal(node.kubelet, "v1.28.0");
    assert_string_equal(node.uid, "u");
    assert_string_equal(node.resource_version, "7");
    assert_string_equal(node.address, "10.0.0.1");
    assert_true(node.labelled && node.ready && node.unschedulable && node.inventory);
    assert_string_equal(node.inventory_error, "");
    assert_int_equal(node.capacity_units, 118);
    assert_int_equal(node.allocatable_units, 117);
    assert_int_equal(node.capacity_count, 2);
    assert_int_equal(node.capacity_cores_pct, 200);
    assert_int_equal(node.cpu_milli, 7500);
    assert_int_equal(node.memory_bytes, 2147483648);
    assert_int_equal(node.unit, GS_UNIT_GIB);
    assert_int_equal(node.gpu_count, 2);
    assert_int_equal(node.gpus[0].idx, 1);
    assert_int_equal(node.gpus[0].mem_units, 79);
    assert_string_equal(node.gpus[0].uuid, "GPU-a");
    assert_int_equal(node.gpus[1].idx, 4);
    assert_true(gs_gpu_usable(&node.gpus[0]) && gs_gpu_usable(&node.gpus[1]));
    gs_node_release(&node);
}

static void what_others_do_with_the_gpus_is_read(void **state)
{
    static const struct {
        const char *row, *json;
        bool upgrade;
        uint32_t whole;
        const char *enforced;
        bool mps;
    } rows[] = {
        {"MPS", "{'metadata':{'labels':{'aliyun.com/gpu-mps':'true'}}}", false, 0, "", true},
        {"no MPS", "{'metadata':{'labels':{'aliyun.com/gpu-mps':'false'}}}", false, 0, ""},
        {"nothing", "{'metadata':{'name':'n'}}", false, 0, ""},
        {"its limits hold", "{'metadata':{'labels':{'aliyun.com/gpu-enforced':'dmem'}}}", false, 0,
         "dmem"},
        {"a driver is replaced", "{'metadata':{'labels':{'aliyun.com/gpu-driver-upgrade':'true'}}}",
         true, 0, ""},
        {"it was", "{'metadata':{'labels':{'aliyun.com/gpu-driver-upgrade':'false'}}}", false, 0,
         ""},
        {"NVIDIA's device plugin", "{'status':{'capacity':{'nvidia.com/gpu':'4'}}}", false, 4, ""},
        {"it was there", "{'status':{'capacity':{'nvidia.com/gpu':'0'}}}", false, 0, ""},
        {"time slices", "{'status':{'capacity':{'nvidia.com/gpu.shared':'8'}}}", false, 8, ""},
        {"MIG, strategy mixed",
         "{'status':{'capacity':{'nvidia.com/mig-1g.10gb':'7','nvidia.com/gpu':'1'}}}", false, 8,
         ""},
        {"virtual machines", "{'status':{'capacity':{'nvidia.com/vgpu':'2'}}}", false, 2, ""},
        {"no GPUs", "{'status':{'capacity':{'nvidia.com/hostdev':'2','nvidia.com/g':'1'}}}", false,
         0, ""},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_node node = {0};
        row_equal(r->row, decode(r->json, &node, NULL), 0);
        row_equal(r->row, node.driver_upgrade, r->upgrade);
        row_equal(r->row, node.mps, r->mps);
        row_equal(r->row, node.whole_gpus, r->whole);
        row_text(r->row, node.enforced, r->enforced);
        gs_node_release(&node);
    }
}

static void gpus_come_from_inventory_or_division(void **state)
{
    static const struct {
        const char *row;
        const char *annotation; /* JSON */
        const char *capacity;
        uint32_t gpus, units; /* of the first */
        const char *error;
    } rows[] = {
        {"neither", "null", "{}", 0, 0, ""},
        {"division", "null", "{'aliyun.com/gpu-mem':'64','aliyun.com/gpu-count':'4'}", 4, 16, ""},
        {"memory without a count", "null", "{'aliyun.com/gpu-mem':'64'}", 0, 0, ""},
        {"inventory before division", "'" TWO_GPUS "'",
         "{'aliyun.com/gpu-mem':'64','aliyun.com/gpu-count':'4'}", 2, 79, ""},
        {"inventory of a node whose plugin is gone", "'" TWO_GPUS "'", "{'aliyun.com/gpu-mem':'0'}",
         2, 79, ""},
        {"inventory without GPUs", "'{\\'v\\':1,\\'unit\\':\\'MiB\\',\\'gpus\\':[]}'",
         "{'aliyun.com/gpu-mem':'64','aliyun.com/gpu-count':'4'}", 0, 0, ""},
        {"broken inventory", "'{\\'v\\':2}'",
         "{'aliyun.com/gpu-mem':'64','aliyun.com/gpu-count':'4'}", 4, 16, "v is not 1 at byte 7"},
        {"a number", "'4 GPUs'", "{}", 0, 0, "inventory is not an object at byte 0"},
        {"empty inventory", "''", "{}", 0, 0, "JSON: unexpected end of input at byte 0"},
        {"large capacity", "null", "{'aliyun.com/gpu-mem':'1e40','aliyun.com/gpu-count':'64'}", 64,
         UINT32_MAX, ""},
        {"large count", "null", "{'aliyun.com/gpu-mem':'64','aliyun.com/gpu-count':'1e40'}", 64, 0,
         ""},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_node node = {0};
        char json[1024];
        snprintf(json, sizeof(json),
                 "{'status':{'capacity':%s},'metadata':{'annotations':{"
                 "'aliyun.com/gpu-inventory':%s}}}",
                 r->capacity, r->annotation);
        row_equal(r->row, decode(json, &node, NULL), 0);
        row_equal(r->row, node.gpu_count, r->gpus);
        if (node.gpu_count)
            row_equal(r->row, node.gpus[0].mem_units, r->units);
        row_text(r->row, node.inventory_error, r->error);
        row_equal(r->row, node.inventory, strcmp(r->annotation, "null") != 0 && !r->error[0]);
        gs_node_release(&node);
    }
}

static void moved_pods_are_read_from_their_annotation(void **state)
{
    static const struct {
        const char *row;
        const char *annotations; /* JSON */
        bool tells;
        uint32_t moved;
        const char *error;
    } rows[] = {
        {"no annotation", "{}", false, 0, ""},
        {"null", "{'aliyun.com/gpu-reassigned':null}", false, 0, ""},
        {"nobody", "{'aliyun.com/gpu-reassigned':'{}'}", false, 0, ""},
        {"two", "{'aliyun.com/gpu-reassigned':'{\\'u2\\':[1],\\'u1\\':[0,3]}'}", false, 2, ""},
        {"a plugin that speaks of them",
         "{'aliyun.com/gpu-reassigned':'{\\'u1\\':[1]}','aliyun.com/gpu-inventory':"
         "'{\\'v\\':1,\\'unit\\':\\'GiB\\',\\'gpus\\':[],\\'reassignments\\':true}'}",
         true, 1, ""},
        {"an inventory that is not believed",
         "{'aliyun.com/gpu-inventory':"
         "'{\\'v\\':2,\\'unit\\':\\'GiB\\',\\'gpus\\':[],\\'reassignments\\':true}'}",
         false, 0, ""},
        {"not believed", "{'aliyun.com/gpu-reassigned':'{\\'u1\\':[1],\\'u2\\':[64]}'}", false, 0,
         "GPU index is not between 0 and 63 at byte 18"},
        {"empty", "{'aliyun.com/gpu-reassigned':''}", false, 0,
         "JSON: unexpected end of input at byte 0"},
        {"another domain's", "{'example.org/gpu-reassigned':'{\\'u1\\':[1]}'}", false, 0, ""},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_node node = {0};
        char json[512];
        snprintf(json, sizeof(json), "{'metadata':{'annotations':%s}}", r->annotations);
        row_equal(r->row, decode(json, &node, NULL), 0);
        row_equal(r->row, node.tells_moved, r->tells);
        row_equal(r->row, node.moved_count, r->moved);
        row_text(r->row, node.moved_error, r->error);
        if (node.moved_count) {
            row_text(r->row, node.moved[0].uid, "u1");
            row_equal(r->row, node.moved[0].gpus, r->moved == 2 ? 0x9 : 0x2);
        }
        gs_node_release(&node);
    }
}

static void a_cordon_takes_gpus_out_of_service(void **state)
{
    static const struct {
        const char *row;
        const char *cordon; /* JSON */
        bool first, second; /* schedulable; indices 1 (GPU-a) and 4 (GPU-b) */
        uint32_t unknown;   /* words that name neither */
    } rows[] = {
        {"none", "null", true, true},
        {"empty", "''", true, true},
        {"index", "'4'", true, false},
        {"UUID", "'GPU-a'", false, true},
        {"list", "'GPU-a,4'", false, false},
        {"list with spaces and holes", "' 1 ,, GPU-b ,'", false, false},
        {"other index", "'0'", true, true, 1},
        {"part of a UUID", "'GPU-'", true, true, 1},
        {"UUID in another case", "'gpu-a'", true, true, 1},
        {"no such words", "'all,-1,99999999999'", true, true, 3},
        {"escaped", "'\\u0031'", false, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_node node = {0};
        char json[512];
        snprintf(json, sizeof(json),
                 "{'metadata':{'annotations':{'aliyun.com/gpu-cordon':%s,"
                 "'aliyun.com/gpu-inventory':'" TWO_GPUS "'}}}",
                 r->cordon);
        row_equal(r->row, decode(json, &node, NULL), 0);
        row_equal(r->row, node.gpus[0].schedulable, r->first);
        row_equal(r->row, node.gpus[1].schedulable, r->second);
        row_equal(r->row, node.cordoned,
                  (r->first ? 0 : GS_GPU_BIT(1)) | (r->second ? 0 : GS_GPU_BIT(4)));
        row_equal(r->row, node.cordon_unknown, r->unknown);
        row_true(r->row, node.gpus[0].healthy && node.gpus[1].healthy);
        gs_node_release(&node);
    }
}

static void a_cordon_works_on_divided_gpus(void **state)
{
    struct gs_node node = {0};
    assert_int_equal(decode("{'metadata':{'annotations':{'aliyun.com/gpu-cordon':'1'}},'status':{"
                            "'capacity':{'aliyun.com/gpu-mem':'4','aliyun.com/gpu-count':'2'}}}",
                            &node, NULL),
                     0);
    assert_true(node.gpus[0].schedulable && !node.gpus[1].schedulable);
    gs_node_release(&node);
}

/* As Go decodes it: pods' rules (Exists) find such a label, too. */
static void a_label_that_is_null_is_there_and_empty(void **state)
{
    struct gs_node node = {0};
    assert_int_equal(
        decode("{'metadata':{'labels':{'b':null,'gpushare':null,'a':'x'}}}", &node, NULL), 0);
    assert_int_equal(node.rules.label_count, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_string_equal(node.rules.labels[i].value, i ? "" : "x");
    assert_string_equal(node.rules.labels[1].key, "b");
    assert_false(node.labelled);
    gs_node_release(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_node_is_read),
        cmocka_unit_test(what_others_do_with_the_gpus_is_read),
        cmocka_unit_test(gpus_come_from_inventory_or_division),
        cmocka_unit_test(moved_pods_are_read_from_their_annotation),
        cmocka_unit_test(a_cordon_takes_gpus_out_of_service),
        cmocka_unit_test(a_cordon_works_on_divided_gpus),
        cmocka_unit_test(a_label_that_is_null_is_there_and_empty),
    };
    return GS_RUN(tests);
}
