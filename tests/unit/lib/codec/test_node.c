/* SPDX-License-Identifier: Apache-2.0 */
#include "said.h"

#define TWO_GPUS                                                                                   \
    "{\\'v\\':1,\\'unit\\':\\'GiB\\',\\'gpus\\':[{\\'idx\\':4,\\'mem\\':39,\\'uuid\\':\\'GPU-b\\'" \
    "},"                                                                                           \
    "{\\'idx\\':1,\\'mem\\':79,\\'uuid\\':\\'GPU-a\\'}]}"
#define LABEL(label)     "{'metadata':{'labels':{" label "}}}"
#define HAS(capacity)    "{'status':{'capacity':{" capacity "}}}"
#define NOTE(annotation) "{'metadata':{'annotations':{" annotation "}}}"
#define INVENTORY(json, units)                                                                     \
    "{'status':{'capacity':{'aliyun.com/gpu-mem':'" units                                          \
    "','aliyun.com/gpu-count':'4'}},'metadata':{'annotations':{'aliyun.com/gpu-inventory':" json   \
    "}}}"
#define SPEAKS(version)                                                                            \
    "'aliyun.com/gpu-inventory':'{\\'v\\':" version                                                \
    ",\\'unit\\':\\'GiB\\',\\'gpus\\':[],\\'reassignments\\':true,\\'unitConflict\\':true,\\'"     \
    "rev\\':3}'"
#define CORDON(gpus)                                                                               \
    NOTE("'aliyun.com/gpu-cordon':'" gpus "','aliyun.com/gpu-inventory':'" TWO_GPUS "'")

static const struct {
    const char *row, *json, *says; /* as said.h says it */
} nodes[] = {
    {"a whole node",
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
     "{'type':'Ready','status':'True'},{'type':'PIDPressure','status':'False'}]}}",
     "1:79=GPU-a 4:39=GPU-b name=n uid=u version=7 units=118 count=2 cordoned=1 ready=1 labelled=1 "
     "allocatable=117 cores=200 cpu=7500 memory=2147483648 address=10.0.0.1 kubelet=v1.28.0 "
     "unit=GiB inventory=1"},
    /* what others do with the GPUs */
    {"MPS", LABEL("'aliyun.com/gpu-mps':'true'"), "mps=1"},
    {"its limits hold", LABEL("'aliyun.com/gpu-enforced':'dmem'"), "enforced=dmem"},
    {"a driver is replaced", LABEL("'aliyun.com/gpu-driver-upgrade':'true'"), "upgrade=1"},
    {"it was", LABEL("'aliyun.com/gpu-driver-upgrade':'false'"), ""},
    {"NVIDIA's device plugin", HAS("'nvidia.com/gpu':'4'"), "whole=4"},
    {"time slices", HAS("'nvidia.com/gpu.shared':'8'"), "whole=8"},
    {"MIG, strategy mixed", HAS("'nvidia.com/mig-1g.10gb':'7','nvidia.com/gpu':'1'"), "whole=8"},
    {"virtual machines", HAS("'nvidia.com/vgpu':'2'"), "whole=2"},
    {"no GPUs", HAS("'nvidia.com/hostdev':'2','nvidia.com/g':'1'"), ""},
    /* inventory, or capacity divided */
    {"division", HAS("'aliyun.com/gpu-mem':'64','aliyun.com/gpu-count':'4'"),
     "0:16 1:16 2:16 3:16 units=64 count=4"},
    {"inventory before division", INVENTORY("'" TWO_GPUS "'", "64"),
     "1:79=GPU-a 4:39=GPU-b units=64 count=4 unit=GiB inventory=1"},
    {"inventory of a node whose plugin is gone", INVENTORY("'" TWO_GPUS "'", "0"),
     "1:79=GPU-a 4:39=GPU-b count=4 unit=GiB inventory=1"},
    {"inventory without GPUs", INVENTORY("'{\\'v\\':1,\\'unit\\':\\'MiB\\',\\'gpus\\':[]}'", "64"),
     "units=64 count=4 unit=MiB inventory=1"},
    {"broken inventory", INVENTORY("'{\\'v\\':2}'", "64"),
     "0:16 1:16 2:16 3:16 units=64 count=4 inventory=v is not 1 at byte 7"},
    {"empty inventory", INVENTORY("''", "0"),
     "count=4 inventory=JSON: unexpected end of input at byte 0"},
    {"large capacity", HAS("'aliyun.com/gpu-mem':'1e40','aliyun.com/gpu-count':'2'"),
     "0:4294967295 1:4294967295 units=9223372036854775807 count=2"},
    {"large count", HAS("'aliyun.com/gpu-mem':'64','aliyun.com/gpu-count':'1e40'"),
     "0:0 1:0 2:0 3:0 gpus=64 units=64 count=4294967295"},
    /* pods that were moved */
    {"nobody", NOTE("'aliyun.com/gpu-reassigned':'{}'"), ""},
    {"two", NOTE("'aliyun.com/gpu-reassigned':'{\\'u2\\':[1],\\'u1\\':[0,3]}'"), "u1=0,3 u2=1"},
    {"a plugin that speaks of them",
     NOTE("'aliyun.com/gpu-reassigned':'{\\'u1\\':[1]}'," SPEAKS("1")),
     "unit=GiB inventory=1 reassigns=1 unit-conflict=1 rev=3 u1=1"},
    {"not believed", NOTE("'aliyun.com/gpu-reassigned':'{\\'u1\\':[1],\\'u2\\':[64]}'"),
     "reassigns=GPU index is not between 0 and 63 at byte 18"},
    /* cordoned GPUs */
    {"index", CORDON("4"), "1:79=GPU-a 4:39=GPU-b- unit=GiB inventory=1 off=4"},
    {"UUID", CORDON("GPU-a"), "1:79=GPU-a- 4:39=GPU-b unit=GiB inventory=1 off=1"},
    {"list with spaces and holes", CORDON(" 1 ,, GPU-b ,0,GPU-c,"),
     "1:79=GPU-a- 4:39=GPU-b- unit=GiB inventory=1 cordon-unknown=2 off=1,4"},
    {"other index", CORDON("0"), "1:79=GPU-a 4:39=GPU-b unit=GiB inventory=1 cordon-unknown=1"},
    {"escaped", CORDON("\\u0031"), "1:79=GPU-a- 4:39=GPU-b unit=GiB inventory=1 off=1"},
    {"of divided GPUs",
     "{'metadata':{'annotations':{'aliyun.com/gpu-cordon':'1'}},'status':{'capacity':{'aliyun.com/"
     "gpu-mem':'4','aliyun.com/gpu-count':'2'}}}",
     "0:2 1:2- units=4 count=2 off=1"},
};

static void a_node_is_what_its_object_says(void **state)
{
    GS_FOR_EACH_ROW (r, nodes) {
        struct gs_node node = {0};
        row_equal(r->row, gs_codec_node(default_names(), json_of(r->json), &node, NULL), 0);
        row_text(r->row, say_node(&node), r->says);
        gs_node_release(&node);
    }
}

/* As Go decodes it: pods' rules (Exists) find such a label, too. */
static void a_label_that_is_null_is_there_and_empty(void **state)
{
    struct gs_node node = {0};
    assert_int_equal(
        gs_codec_node(default_names(),
                      json_of("{'metadata':{'labels':{'b':null,'gpushare':null,'a':'x'}}}"), &node,
                      NULL),
        0);
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
        cmocka_unit_test(a_node_is_what_its_object_says),
        cmocka_unit_test(a_label_that_is_null_is_there_and_empty),
    };
    return GS_RUN(tests);
}
