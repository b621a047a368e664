/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/cleanup.h"
#include "said.h"

#define SPEC(fields)      "{'spec':{" fields "}}"
#define CONTAINERS(items) SPEC("'containers':[" items "]")
#define ASKS(resources)   CONTAINERS("{'resources':" resources "}")
#define OWN(resources)                                                                             \
    SPEC("'resources':" resources ",'containers':[{'resources':{'limits':{'aliyun.com/"            \
         "gpu-mem':'8','cpu':'2','memory':'1Ki'}}}]")
#define NOTE(annotation) "{'metadata':{'annotations':{" annotation "}}}"
#define AFFINITY(kinds)  SPEC("'affinity':{" kinds "}")
#define LABEL(label)     "{'metadata':{'labels':{" label "}}}"
#define COUNT(label, note)                                                                         \
    "{'metadata':{'labels':{'aliyun.com/gpu-count':" label                                         \
    "},'annotations':{'aliyun.com/gpu-count':" note "}}}"
#define ALLOCATION(json) "'scheduler.framework.gpushare.allocation':'" json "'"
#define MIRROR(hash)     NOTE("'kubernetes.io/config.mirror':'" hash "'")
#define OWNER(fields)    "{'metadata':{'ownerReferences':[{" fields "}]}}"
#define REPLICA_SET(name, hash)                                                                    \
    "{'metadata':{'ownerReferences':[{'kind':'ReplicaSet','name':'" name                           \
    "','controller':true}],'labels':{'pod-template-hash':'" hash "'}}}"

static const struct {
    const char *row, *json, *says; /* as said.h says it */
} pods[] = {
    /* containers */
    {"init containers first",
     SPEC("'initContainers':[{},{'restartPolicy':'Always'}],'containers':[{},{'restartPolicy':'"
          "Always'}]"),
     "init:0 sidecar:0 main:0 main:0"},
    {"the last list of a name counts",
     SPEC("'containers':[{},{},{}],'containers':[{},{}],'initContainers':[{}]"),
     "init:0 main:0 main:0"},
    /* amounts: limits or requests */
    {"nothing", ASKS("{}"), "main:0"},
    {"null sides", ASKS("{'limits':null,'requests':null}"), "main:0"},
    {"requests", ASKS("{'requests':{'aliyun.com/gpu-mem':'8','cpu':'100m','memory':'5'}}"),
     "main:8,100m,5B"},
    {"GPU memory by its limit, the rest by requests",
     ASKS("{'requests':{'aliyun.com/gpu-mem':'1','cpu':'1','memory':'1'},'limits':{'aliyun.com/"
          "gpu-mem':'2','cpu':'2','memory':'2'}}"),
     "main:2,1000m,1B"},
    {"a limit of zero counts",
     CONTAINERS("{'resources':{'limits':{'aliyun.com/gpu-mem':'0'},'requests':{'aliyun.com/"
                "gpu-mem':'3'}}},{}"),
     "main:0 main:0 named=1"},
    {"numbers", ASKS("{'limits':{'aliyun.com/gpu-mem':8,'cpu':1.5,'memory':1e3}}"),
     "main:8,1500m,1000B"},
    {"largest", ASKS("{'limits':{'aliyun.com/gpu-mem':'2147483647'}}"), "main:2147483647"},
    {"beyond 64 bits",
     CONTAINERS("{'resources':{'limits':{'aliyun.com/gpu-mem':'1e30','cpu':'1e30','memory':"
                "'1e30'}}},{}"),
     "main:2147483647,9223372036854775807m,9223372036854775807B main:0 overflow=1"},
    {"another domain", ASKS("{'limits':{'example.com/gpu-mem':'8','nvidia.com/gpu':'1'}}"),
     "main:0"},
    {"key with escapes", ASKS("{'limits':{'aliyun.com\\/gpu-mem':'\\u0034'}}"), "main:4"},
    {"compute by its limit",
     ASKS("{'requests':{'aliyun.com/gpu-core.percentage':'30'},'limits':{'aliyun.com/"
          "gpu-core.percentage':'40'}}"),
     "main:0,40% named=1"},
    {"compute by its request", ASKS("{'requests':{'aliyun.com/gpu-core.percentage':'30'}}"),
     "main:0,30% named=1"},
    {"too much compute for any number",
     ASKS("{'limits':{'aliyun.com/gpu-core.percentage':'1e30'}}"), "main:0,65535% named=1"},
    /* its own, in place of its containers' */
    {"zero is an answer", OWN("{'requests':{'cpu':'0','memory':0}}"),
     "main:8,2000m,1024B own=0m,0B"},
    {"limits alone are no request", OWN("{'limits':{'cpu':'3','memory':'1'}}"),
     "main:8,2000m,1024B"},
    {"both sides", OWN("{'limits':{'cpu':'8','memory':'9'},'requests':{'cpu':'4','memory':'5'}}"),
     "main:8,2000m,1024B own=4000m,5B"},
    {"CPU alone", OWN("{'requests':{'cpu':'4'}}"), "main:8,2000m,1024B own=4000m,1024B"},
    /* gpu-count */
    {"label", COUNT("'4'", "null"), "count=4"},
    {"annotation", COUNT("null", "'4'"), "count=4"},
    {"they differ", COUNT("'4'", "'2'"), "count=broken"},
    {"zero", COUNT("'0'", "null"), "count=broken"},
    {"smallest", COUNT("'1'", "null"), "count=1"},
    {"largest count", COUNT("'64'", "null"), "count=64"},
    {"above the largest count", COUNT("'65'", "null"), "count=broken"},
    {"very long", COUNT("'00000000000000000000000000000001'", "null"), "count=broken"},
    /* annotations that users break */
    {"index list", NOTE("'ALIYUN_COM_GPU_MEM_IDX':'63,0'"), "gpus=0,63"},
    {"index out of range", NOTE("'ALIYUN_COM_GPU_MEM_IDX':'64'"), "gpus=broken"},
    {"index empty", NOTE("'ALIYUN_COM_GPU_MEM_IDX':''"), "gpus=broken"},
    {"allocation alone", NOTE(ALLOCATION("{\\'0\\':{\\'1\\':4},\\'1\\':{\\'1\\':4}}")),
     "idx-missing=1 gpus=1"},
    {"allocation and index",
     NOTE("'ALIYUN_COM_GPU_MEM_IDX':'0'," ALLOCATION("{\\'0\\':{\\'1\\':4}}")), "gpus=0"},
    {"allocation that is none", NOTE(ALLOCATION("GPU 1")), "idx-missing=1 gpus=broken"},
    {"unequal shares", NOTE(ALLOCATION("{\\'0\\':{\\'0\\':12,\\'1\\':4,\\'2\\':12}}")),
     "idx-missing=1 uneven=1 gpus=0,1,2"},
    {"placement", NOTE("'aliyun.com/gpu-placement':'spread'"), "placement=spread"},
    {"placement empty", NOTE("'aliyun.com/gpu-placement':''"), "placement=broken"},
    {"placement very long",
     NOTE("'aliyun.com/gpu-placement':'binpackbinpackbinpackbinpackbinpack'"), "placement=broken"},
    {"time negative", NOTE("'ALIYUN_COM_GPU_MEM_ASSUME_TIME':'-1'"), ""},
    {"time largest", NOTE("'ALIYUN_COM_GPU_MEM_ASSUME_TIME':'9223372036854775807'"),
     "assumed=9223372036854775807"},
    {"assigned", NOTE("'ALIYUN_COM_GPU_MEM_ASSIGNED':'true'"), "assigned=true"},
    {"nominated by an extender", NOTE("'aliyun.com/gpu-nominated':'n7'"), "offer=n7"},
    /* what a limit needs to know, and what nobody may forge (model/pod.h) */
    {"Guaranteed", "{'status':{'qosClass':'Guaranteed'}}", "class=Guaranteed"},
    {"Burstable", "{'status':{'qosClass':'Burstable'}}", "class=Burstable"},
    {"BestEffort", "{'status':{'qosClass':'BestEffort'}}", ""},
    {"a static pod", MIRROR("0123456789abcdef0123456789abcdef"),
     "static=0123456789abcdef0123456789abcdef"},
    {"another pod's UID in its place", MIRROR("6f1c0a52-0d7e-4d53-9d0b-6c1f6a3f0001"), ""},
    {"a path in its place", MIRROR("../0123456789abcdef0123456789abc"), ""},
    {"a static pod whose manifest names a UID", MIRROR("gpu-static-uid-0001"),
     "static=gpu-static-uid-0001"},
    {"a folder in its place", MIRROR(".."), ""},
    {"longer than a folder's name",
     MIRROR("0123456789012345678901234567890123456789012345678901234567890123"), ""},
    {"a hash that no kubelet wrote",
     NOTE("'kubernetes.io/config.hash':'0123456789abcdef0123456789abcdef'"), ""},
    {"required", NOTE("'aliyun.com/gpu-enforce':'required'"), "required=1"},
    /* small fields */
    {"pending", "{'status':{'phase':'Pending'}}", "phase=Pending"},
    {"succeeded", "{'status':{'phase':'Succeeded'}}", "phase=Succeeded"},
    {"failed", "{'status':{'phase':'Failed'}}", "phase=Failed"},
    {"unknown phase", "{'status':{'phase':'Lost'}}", ""},
    {"not scheduled yet",
     "{'status':{'conditions':[{'type':'PodScheduled','message':'full'},{'type':'Ready','message':"
     "'no'}]}}",
     "said=full"},
    {"smallest priority", SPEC("'priority':-2147483648"), "priority=-2147483648"},
    {"a time with all digits and an offset",
     "{'metadata':{'creationTimestamp':'1970-01-01T01:01:00.000000000+01:00'},'spec':{'containers':"
     "[{'resources':{'limits':{'aliyun.com/gpu-mem':'1'}}}]}}",
     "main:1 created=60"},
    {"a gate", SPEC("'schedulingGates':[{'name':'quota'}]"), "gated=1"},
    {"never preempts", SPEC("'preemptionPolicy':'Never'"), "never-preempts=1"},
    /* what kube-scheduler's scores are for */
    {"prefers nodes",
     AFFINITY("'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1}]}"),
     "prefers=1"},
    {"keeps off pods if it can",
     AFFINITY(
         "'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1}]}"),
     "prefers=1"},
    {"keeps to pods if it can",
     AFFINITY("'podAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1}]}"),
     "prefers=1"},
    {"prefers nothing",
     AFFINITY("'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[]},'podAffinity':"
              "null"),
     ""},
    {"spreads if it can",
     SPEC("'topologySpreadConstraints':[{'whenUnsatisfiable':'ScheduleAnyway'}]"), "prefers=1"},
    {"spreads", SPEC("'topologySpreadConstraints':[{'whenUnsatisfiable':'DoNotSchedule'}]"), ""},
    /* its group */
    {"PodGroup before Coscheduling",
     "{'metadata':{'labels':{'scheduling.x-k8s.io/pod-group':'h'}},'spec':{'schedulingGroup':{"
     "'podGroupName':'g'}}}",
     "group=g"},
    {"a group without a name", SPEC("'schedulingGroup':{}"), ""},
    {"Coscheduling",
     LABEL("'scheduling.x-k8s.io/pod-group':'g','pod-group.scheduling.sigs.k8s.io':'h'"),
     "group=g"},
    {"Coscheduling before", LABEL("'pod-group.scheduling.sigs.k8s.io':'g'"), "group=g"},
    /* whose it is */
    {"the first controls it",
     OWNER("'kind':'Job','name':'train','controller':true},{'kind':'DaemonSet','name':'n'"),
     "owner=Job/train by=/Job/train"},
    {"it controls nothing",
     OWNER("'apiVersion':'batch/v1','kind':'DaemonSet','name':'j','uid':'a'"), ""},
    {"no name", OWNER("'kind':'Job','controller':true"), ""},
    {"the second controls it",
     OWNER("'apiVersion':'v1','kind':'DaemonSet','name':'n'},{'apiVersion':'apps/"
           "v1','kind':'ReplicaSet','name':'web-7f','uid':'a','controller':true"),
     "owner=ReplicaSet/web-7f owner-uid=a by=apps/v1/ReplicaSet/web-7f"},
    {"a DaemonSet without a version or a UID",
     OWNER("'apiVersion':null,'kind':'DaemonSet','name':'j','controller':true"),
     "owner=DaemonSet/j daemon=1 by=/DaemonSet/j"},
    {"a Deployment's", REPLICA_SET("web-7f", "7f"), "owner=Deployment/web by=/ReplicaSet/web-7f"},
    {"nobody's", REPLICA_SET("web-7f", ""), "owner=ReplicaSet/web-7f by=/ReplicaSet/web-7f"},
    {"another hash", REPLICA_SET("web-7f", "8f"), "owner=ReplicaSet/web-7f by=/ReplicaSet/web-7f"},
    {"its end by chance", REPLICA_SET("web7f", "7f"),
     "owner=ReplicaSet/web7f by=/ReplicaSet/web7f"},
    {"nothing but the hash", REPLICA_SET("-7f", "7f"), "owner=ReplicaSet/-7f by=/ReplicaSet/-7f"},
    {"a hash longer than the name", REPLICA_SET("f", "web-7f"),
     "owner=ReplicaSet/f by=/ReplicaSet/f"},
    {"a kind beyond reason",
     OWNER("'kind':'0123456789012345678901234567890123456789012345678901234567890123','name':'a','"
           "controller':true"),
     ""},
    /* environment and volumes of its containers */
    {"names devices",
     CONTAINERS("{},{'env':[{'name':'NVIDIA_VISIBLE_DEVICES','value':'all'},{'name':'B'}]},{}"),
     "main:0 main:0 main:0 overrides=NVIDIA_VISIBLE_DEVICES"},
    {"no name, and null",
     CONTAINERS("{'env':[{'value':'NVIDIA_VISIBLE_DEVICES'}]},{'env':null,'volumeMounts':null}"),
     "main:0 main:0"},
    {"names simulated devices",
     CONTAINERS("{'env':[{'name':'SIMULATED_VISIBLE_DEVICES','value':''}]}"),
     "main:0 overrides=SIMULATED_VISIBLE_DEVICES"},
    {"its pipes of MPS",
     CONTAINERS("{'env':[{'name':'A'},{'name':'CUDA_MPS_PIPE_DIRECTORY','value':'/x'},{'name':'B'}]"
                "},{}"),
     "main:0 main:0 sets-mps=1"},
    {"its limit of MPS", CONTAINERS("{'env':[{'name':'CUDA_MPS_PINNED_DEVICE_MEM_LIMIT'}]}"),
     "main:0 sets-mps=1"},
    {"shm",
     CONTAINERS("{},{'volumeMounts':[{'name':'a','mountPath':'/dev/shm'},{'mountPath':'/x'}]}"),
     "main:0 main:0 own-shm=1"},
    {"shm with a slash", CONTAINERS("{'volumeMounts':[{'mountPath':'/dev/shm/'}]}"),
     "main:0 own-shm=1"},
};

static void a_pod_is_what_its_object_says(void **state)
{
    GS_FOR_EACH_ROW (r, pods) {
        struct gs_pod pod = {0};
        row_equal(r->row, gs_codec_pod(default_names(), json_of(r->json), &pod, NULL), 0);
        row_text(r->row, say_pod(&pod), r->says);
        gs_pod_release(&pod);
    }
}

static char *read_seed(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), GS_SOURCE_DIR "/tests/fuzz/corpus/codec_pod/%s", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

static void a_whole_pod_is_read(void **state)
{
    static const char *const seeds[] = {"full.json", "pretty.json"};
    GS_FOR_EACH_ROW (seed, seeds) {
        struct gs_pod pod = {0};
        _cleanup_free_ char *text = read_seed(*seed);
        assert_int_equal(gs_codec_pod(default_names(), json_of(text), &pod, NULL), 0);
        row_text(
            *seed, say_pod(&pod),
            "init:2 sidecar:0,100m main:8,1500m,2147483648B main:0 ns=default name=train-0 "
            "uid=6f1c0a52-0d7e-4d53-9d0b-6c1f6a3f0001 version=123456 on=node-1 to=node-2 "
            "phase=Running deleting=1 priority=1000 created=1795255200 overhead=250 "
            "overrides=NVIDIA_VISIBLE_DEVICES owner=StatefulSet/train owner-uid=owner-1 count=2 "
            "placement=spread assumed=1795257600000000000 assigned=false model=A100,H100 "
            "not-model=T4 uuid=GPU-1 not-uuid=GPU-2 by=apps/v1/StatefulSet/train gpus=0,3");
        gs_pod_release(&pod);
    }
}

/* The API server asks of some that they are not empty, and of nothing how long they are. */
static void a_name_longer_than_any_is_none(void **state)
{
    static const struct {
        const char *row;
        int len;
        bool kept;
    } rows[] = {{"the longest", 317, true}, {"longer", 318, false}};
    GS_FOR_EACH_ROW (r, rows) {
        char name[320], json[2048];
        struct gs_pod pod = {0};
        snprintf(name, sizeof(name), "%0*d", r->len, 7);
        snprintf(json, sizeof(json),
                 "{'metadata':{'ownerReferences':[{'apiVersion':'%s','kind':'Job','name':'j',"
                 "'uid':'%s','controller':true}]},'spec':{'schedulerName':'%s'}}",
                 name, name, name);
        row_equal(r->row, gs_codec_pod(default_names(), json_of(json), &pod, NULL), 0);
        row_text(r->row, pod.owner_api, r->kept ? name : "");
        row_text(r->row, pod.owner_uid, r->kept ? name : "");
        row_text(r->row, pod.scheduler_name, r->kept ? name : "(none)");
        gs_pod_release(&pod);
    }
}

/* What they ask for counts all the same: an API server takes such a pod, and it runs. */
static void containers_above_the_ceiling_count_with_the_last(void **state)
{
    static const struct {
        const char *row;
        const char *kind; /* key of the list */
        const char *last; /* the last one that is kept */
        const char *more; /* those behind it, each with a comma */
        uint32_t charged, cpus;
    } rows[] = {
#define OF(n)                                                                                      \
    "{'resources':{'limits':{'aliyun.com/gpu-mem':'" n "','aliyun.com/gpu-core.percentage':'" n    \
    "'},'requests':{'cpu':'1'}}"
        {"none more", "containers", OF("3") "}", "", 3, 1},
        {"one more that asks for nothing", "containers", OF("3") "}", ",{}", 3, 1},
        {"two more", "containers", OF("3") "}", "," OF("4") "}," OF("5") "}", 12, 3},
        {"one more alone asks", "containers", "{}", "," OF("4") "}", 4, 1},
        {"init containers", "initContainers", OF("3") "}", "," OF("4") "}", 7, 2},
        {"a sidecar stays beside the main container", "initContainers", OF("3") "}",
         "," OF("4") ",'restartPolicy':'Always'}", 7 + 2, 3},
        {"the largest", "containers", OF("2147483647") "}", "," OF("2147483647") "}", INT32_MAX, 2},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_buf json = GS_BUF(1 << 20);
        struct gs_pod pod = {0};
        struct gs_error err = {0};
        struct gs_charge charge;
        bool init = r->kind[0] == 'i';
        gs_buf_printf(&json, "{'spec':{%s'%s':[{}", init ? "'containers':[" OF("2") "}]," : "",
                      r->kind);
        for (int i = 2; i < GS_POD_CONTAINERS_MAX; i++)
            gs_buf_puts(&json, ",{}");
        gs_buf_printf(&json, ",%s%s]}}", r->last, r->more);
        row_equal(r->row, gs_codec_pod(default_names(), json_of(json.data), &pod, &err), 0);
        row_equal(r->row, pod.container_count, GS_POD_CONTAINERS_MAX + init);
        gs_pod_charge(&pod, &charge);
        row_equal(r->row, charge.units, r->charged);
        row_equal(r->row, charge.cores_pct, r->charged < 100 ? r->charged : 100);
        row_equal(r->row, gs_pod_cpu_milli(&pod), r->cpus * 1000);
        gs_pod_release(&pod);
        gs_buf_release(&json);
    }
}

static void a_pod_is_taken_off_a_list_whatever_becomes_of_it(void **state)
{
    static const struct {
        const char *row;
        const char *json;
        int result;
        const char *rest;
        bool failed; /* of the text around it */
    } rows[] = {
        {"first of two", " {'metadata':{'uid':'a'}} , {}]", 0, " , {}]", false},
        {"wrong type", "{'metadata':7,'a':[{}]}]", -1, "]", false},
        {"no object", "[{}],1", -1, ",1", false},
        {"cut", "{'metadata':{'uid':'a'}", -1, "", true},
        {"no value", "]", -1, "]", true},
        {"nothing", "", -1, "", true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {0};
        struct gs_scan scan;
        struct gs_error err = {0};
        gs_scan_init(&scan, json_of(r->json));
        scan.trusting = true;
        row_equal(r->row, gs_codec_pod_take(default_names(), &scan, &pod, &err), r->result);
        row_text(r->row, scan.at, r->rest);
        row_equal(r->row, scan.failed, r->failed);
        row_equal(r->row, err.code, r->result < 0 ? GS_EPROTO : GS_OK);
        gs_pod_release(&pod);
    }
}

static void another_domain_has_other_names(void **state)
{
    struct gs_names names;
    struct gs_pod pod = {0};
    assert_int_equal(gs_names_init(&names, "example.org", NULL), 0);
    const struct gs_slice text =
        json_of("{'metadata':{'annotations':{'EXAMPLE_ORG_GPU_MEM_IDX':'2'}},'spec':{'containers':["
                "{'resources':{'limits':{'example.org/gpu-mem':'3','aliyun.com/gpu-mem':'9'}}}]}}");
    assert_int_equal(gs_codec_pod(&names, text, &pod, NULL), 0);
    assert_string_equal(say_pod(&pod), "main:3 gpus=2");
    gs_pod_release(&pod);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_is_what_its_object_says),
        cmocka_unit_test(a_whole_pod_is_read),
        cmocka_unit_test(a_name_longer_than_any_is_none),
        cmocka_unit_test(a_pod_is_taken_off_a_list_whatever_becomes_of_it),
        cmocka_unit_test(containers_above_the_ceiling_count_with_the_last),
        cmocka_unit_test(another_domain_has_other_names),
    };
    return GS_RUN(tests);
}
