/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/pod.h"
#include "gpushare/model/charge.h"

static int decode(const char *json, struct gs_pod *pod, struct gs_error *err)
{
    struct gs_names names = default_names();
    _cleanup_free_ char *text = quoted(json);
    return gs_codec_pod(&names, gs_slice_of(text), pod, err);
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
        assert_int_equal(decode(text, &pod, NULL), 0);
        assert_string_equal(pod.name, "train-0");
        assert_string_equal(pod.ns, "default");
        assert_string_equal(pod.uid, "6f1c0a52-0d7e-4d53-9d0b-6c1f6a3f0001");
        assert_string_equal(pod.resource_version, "123456");
        assert_string_equal(pod.node_name, "node-1");
        assert_string_equal(pod.nominated_node, "node-2");
        assert_string_equal(pod.owner_uid, "owner-1");
        assert_int_equal(pod.phase, GS_PHASE_RUNNING);
        assert_true(pod.deleting);
        assert_int_equal(pod.priority, 1000);
        assert_int_equal(pod.created_s, 1795255200);
        assert_int_equal(pod.overhead_cpu_milli, 250);
        assert_int_equal(pod.count_kind, GS_COUNT_VALID);
        assert_int_equal(pod.gpu_count, 2);
        assert_int_equal(pod.placement, GS_PLACEMENT_SPREAD);
        assert_int_equal(pod.recorded, GS_RECORDED_VALID);
        assert_int_equal(pod.recorded_gpus, GS_GPU_BIT(0) | GS_GPU_BIT(3));
        assert_int_equal(pod.assume_time_ns, 1795257600000000000);
        assert_true(pod.has_assigned && !pod.assigned);
        assert_string_equal(pod.gpu_model, "A100,H100");
        assert_string_equal(pod.gpu_model_deny, "T4");
        assert_string_equal(pod.gpu_uuid, "GPU-1");
        assert_string_equal(pod.gpu_uuid_deny, "GPU-2");
        gs_pod_release(&pod);
    }
}

static void containers_are_read_in_order_init_first(void **state)
{
    static const struct {
        const char *row;
        const char *json;
    } rows[] = {
        {"init containers first", "{'spec':{'initContainers':[{},{'restartPolicy':'Always'}],"
                                  "'containers':[{},{'restartPolicy':'Always'}]}}"},
        {"init containers last",
         "{'spec':{'containers':[{},{'restartPolicy':'Always'}],"
         "'initContainers':[{'restartPolicy':'Never'},{'restartPolicy':'Always'}]}}"},
        {"the last list of a name counts", "{'spec':{'containers':[{},{},{}],'containers':[{},{}],"
                                           "'initContainers':[{},{'restartPolicy':'Always'}]}}"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {0};
        row_equal(r->row, decode(r->json, &pod, NULL), 0);
        row_equal(r->row, pod.container_count, 4);
        static const enum gs_container_kind kinds[] = {GS_CONTAINER_INIT, GS_CONTAINER_SIDECAR,
                                                       GS_CONTAINER_MAIN, GS_CONTAINER_MAIN};
        for (uint32_t i = 0; i < 4; i++)
            row_equal(r->row, pod.containers[i].kind, kinds[i]);
        gs_pod_release(&pod);
    }
}

static void amounts_come_from_limits_or_requests(void **state)
{
    static const struct {
        const char *row;
        const char *resources;
        uint32_t gpu_units;
        int64_t cpu_milli, memory_bytes;
        bool overflow;
        uint32_t cores_pct;
    } rows[] = {
        {"nothing", "{}", 0, 0, 0, false},
        {"null", "null", 0, 0, 0, false},
        {"null sides", "{'limits':null,'requests':null}", 0, 0, 0, false},
        {"null amounts", "{'limits':{'cpu':null,'aliyun.com/gpu-mem':null}}", 0, 0, 0, false},
        {"limits", "{'limits':{'aliyun.com/gpu-mem':'8','cpu':'2','memory':'1Ki'}}", 8, 2000, 1024,
         false},
        {"requests", "{'requests':{'aliyun.com/gpu-mem':'8','cpu':'100m','memory':'5'}}", 8, 100, 5,
         false},
        {"GPU memory by its limit, the rest by requests",
         "{'requests':{'aliyun.com/gpu-mem':'1','cpu':'1','memory':'1'},"
         "'limits':{'aliyun.com/gpu-mem':'2','cpu':'2','memory':'2'}}",
         2, 1000, 1, false},
        {"a limit of zero counts",
         "{'limits':{'aliyun.com/gpu-mem':'0'},'requests':{'aliyun.com/gpu-mem':'3'}}", 0, 0, 0,
         false},
        {"numbers", "{'limits':{'aliyun.com/gpu-mem':8,'cpu':1.5,'memory':1e3}}", 8, 1500, 1000,
         false},
        {"suffix", "{'limits':{'aliyun.com/gpu-mem':'1k'}}", 1000, 0, 0, false},
        {"largest", "{'limits':{'aliyun.com/gpu-mem':'2147483647'}}", INT32_MAX, 0, 0, false},
        {"above the largest", "{'limits':{'aliyun.com/gpu-mem':'2147483648'}}", INT32_MAX, 0, 0,
         true},
        {"beyond 64 bits", "{'limits':{'aliyun.com/gpu-mem':'1e30','cpu':'1e30','memory':'1e30'}}",
         INT32_MAX, INT64_MAX, INT64_MAX, true},
        {"the last one counts", "{'limits':{'aliyun.com/gpu-mem':'1','aliyun.com/gpu-mem':'2'}}", 2,
         0, 0, false},
        {"another domain", "{'limits':{'example.com/gpu-mem':'8','nvidia.com/gpu':'1'}}", 0, 0, 0,
         false},
        {"compute", "{'limits':{'aliyun.com/gpu-mem':'8','aliyun.com/gpu-core.percentage':'30'}}",
         8, 0, 0, false, 30},
        {"compute by its limit",
         "{'requests':{'aliyun.com/gpu-core.percentage':'30'},"
         "'limits':{'aliyun.com/gpu-core.percentage':'40'}}",
         0, 0, 0, false, 40},
        {"compute by its request", "{'requests':{'aliyun.com/gpu-core.percentage':'30'}}", 0, 0, 0,
         false, 30},
        {"too much compute for any number", "{'limits':{'aliyun.com/gpu-core.percentage':'1e30'}}",
         0, 0, 0, false, UINT16_MAX},
        {"compute of another domain", "{'limits':{'example.com/gpu-core.percentage':'30'}}", 0, 0,
         0, false},
        {"key with escapes", "{'limits':{'aliyun.com\\/gpu-mem':'\\u0034'}}", 4, 0, 0, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {0};
        struct gs_error err = {0};
        char json[512];
        snprintf(json, sizeof(json), "{'spec':{'containers':[{'name':'c','resources':%s}]}}",
                 r->resources);
        row_equal(r->row, decode(json, &pod, &err), 0);
        row_text(r->row, err.msg, "");
        row_equal(r->row, pod.containers[0].gpu_units, r->gpu_units);
        row_equal(r->row, pod.containers[0].cpu_milli, r->cpu_milli);
        row_equal(r->row, pod.containers[0].memory_bytes, r->memory_bytes);
        row_equal(r->row, pod.gpu_units_overflow, r->overflow);
        row_equal(r->row, pod.names_gpu,
                  strstr(r->resources, "aliyun.com") && !strstr(r->resources, "gpu-mem':null"));
        row_equal(r->row, pod.containers[0].cores_pct, r->cores_pct);
        gs_pod_release(&pod);
    }
}

static void a_pods_own_requests_take_the_place_of_its_containers(void **state)
{
    static const struct {
        const char *row;
        const char *resources;
        int64_t cpu_milli, memory_bytes;
    } rows[] = {
        {"null", "null", 2000, 1024},
        {"nothing", "{}", 2000, 1024},
        {"null requests", "{'requests':null}", 2000, 1024},
        {"requests", "{'requests':{'cpu':'500m','memory':'2Ki'}}", 500, 2048},
        {"zero is an answer", "{'requests':{'cpu':'0','memory':0}}", 0, 0},
        {"CPU alone", "{'requests':{'cpu':'3'}}", 3000, 1024},
        {"limits alone are no request", "{'limits':{'cpu':'3','memory':'1'}}", 2000, 1024},
        {"both sides", "{'limits':{'cpu':'8','memory':'9'},'requests':{'cpu':'4','memory':'5'}}",
         4000, 5},
        {"beyond 64 bits", "{'requests':{'cpu':'1e30','memory':'1e30'}}", INT64_MAX, INT64_MAX},
        {"GPU memory stays its containers'", "{'requests':{'aliyun.com/gpu-mem':'7'}}", 2000, 1024},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {0};
        struct gs_charge charge;
        char json[512];
        snprintf(json, sizeof(json),
                 "{'spec':{'resources':%s,'containers':[{'name':'c','resources':{"
                 "'limits':{'aliyun.com/gpu-mem':'8','cpu':'2','memory':'1Ki'}}}]}}",
                 r->resources);
        row_equal(r->row, decode(json, &pod, NULL), 0);
        row_equal(r->row, gs_pod_cpu_milli(&pod), r->cpu_milli);
        row_equal(r->row, gs_pod_memory_bytes(&pod), r->memory_bytes);
        row_equal(r->row, gs_pod_charge(&pod, &charge), GS_FITS);
        row_equal(r->row, charge.units, 8);
        gs_pod_release(&pod);
    }
}

static void gpu_count_is_read_from_label_and_annotation(void **state)
{
    static const struct {
        const char *row;
        const char *label, *annotation; /* JSON, NULL: absent */
        enum gs_count_kind kind;
        uint32_t count;
    } rows[] = {
        {"neither", NULL, NULL, GS_COUNT_ABSENT, 0},
        {"null", "null", "null", GS_COUNT_ABSENT, 0},
        {"label", "'4'", NULL, GS_COUNT_VALID, 4},
        {"annotation", NULL, "'4'", GS_COUNT_VALID, 4},
        {"both the same", "'4'", "'4'", GS_COUNT_VALID, 4},
        {"both the same number", "'4'", "'04'", GS_COUNT_VALID, 4},
        {"they differ", "'4'", "'2'", GS_COUNT_BROKEN, 0},
        {"broken label", "'x'", "'2'", GS_COUNT_BROKEN, 0},
        {"broken annotation", "'2'", "''", GS_COUNT_BROKEN, 0},
        {"both broken", "'x'", "'x'", GS_COUNT_BROKEN, 0},
        {"zero", "'0'", NULL, GS_COUNT_BROKEN, 0},
        {"smallest", "'1'", NULL, GS_COUNT_VALID, 1},
        {"largest", "'64'", NULL, GS_COUNT_VALID, 64},
        {"above the largest", "'65'", NULL, GS_COUNT_BROKEN, 0},
        {"negative", "'-1'", NULL, GS_COUNT_BROKEN, 0},
        {"empty", "''", NULL, GS_COUNT_BROKEN, 0},
        {"very long", "'00000000000000000000000000000001'", NULL, GS_COUNT_BROKEN, 0},
        {"escaped", "'\\u0032'", NULL, GS_COUNT_VALID, 2},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {0};
        char json[256];
        snprintf(json, sizeof(json), "{'metadata':{'labels':{%s%s},'annotations':{%s%s}}}",
                 r->label ? "'aliyun.com/gpu-count':" : "", r->label ? r->label : "",
                 r->annotation ? "'aliyun.com/gpu-count':" : "",
                 r->annotation ? r->annotation : "");
        row_equal(r->row, decode(json, &pod, NULL), 0);
        row_equal(r->row, pod.count_kind, r->kind);
        row_equal(r->row, pod.gpu_count, r->count);
        gs_pod_release(&pod);
    }
}

static void annotations_that_users_break_are_told_not_failed(void **state)
{
    static const struct {
        const char *row;
        const char *annotations;
        enum gs_recorded recorded;
        gs_gpu_mask gpus;
        enum gs_placement placement;
        int64_t assume_time_ns;
        bool has_assigned, assigned;
    } rows[] = {
        {"none", "", GS_RECORDED_NONE, 0, GS_PLACEMENT_DEFAULT, 0, false, false},
        {"index", "'ALIYUN_COM_GPU_MEM_IDX':'5'", GS_RECORDED_VALID, 1 << 5, GS_PLACEMENT_DEFAULT,
         0, false, false},
        {"index list", "'ALIYUN_COM_GPU_MEM_IDX':'63,0'", GS_RECORDED_VALID, GS_GPU_BIT(63) | 1,
         GS_PLACEMENT_DEFAULT, 0, false, false},
        {"index below zero", "'ALIYUN_COM_GPU_MEM_IDX':'-1'", GS_RECORDED_BROKEN, 0,
         GS_PLACEMENT_DEFAULT, 0, false, false},
        {"index out of range", "'ALIYUN_COM_GPU_MEM_IDX':'64'", GS_RECORDED_BROKEN, 0,
         GS_PLACEMENT_DEFAULT, 0, false, false},
        {"index empty", "'ALIYUN_COM_GPU_MEM_IDX':''", GS_RECORDED_BROKEN, 0, GS_PLACEMENT_DEFAULT,
         0, false, false},
        {"index null", "'ALIYUN_COM_GPU_MEM_IDX':null", GS_RECORDED_NONE, 0, GS_PLACEMENT_DEFAULT,
         0, false, false},
        {"index of another domain", "'EXAMPLE_COM_GPU_MEM_IDX':'1'", GS_RECORDED_NONE, 0,
         GS_PLACEMENT_DEFAULT, 0, false, false},
#define ALLOCATION(text) "'scheduler.framework.gpushare.allocation':'" text "'"
        {"allocation alone", ALLOCATION("{\\'0\\':{\\'1\\':4},\\'1\\':{\\'1\\':4}}"),
         GS_RECORDED_VALID, 2, GS_PLACEMENT_DEFAULT, 0, false, false},
        {"allocation and index",
         "'ALIYUN_COM_GPU_MEM_IDX':'0'," ALLOCATION("{\\'0\\':{\\'1\\':4}}"), GS_RECORDED_VALID, 1,
         GS_PLACEMENT_DEFAULT, 0, false, false},
        {"allocation and a broken index",
         "'ALIYUN_COM_GPU_MEM_IDX':'x'," ALLOCATION("{\\'0\\':{\\'1\\':4}}"), GS_RECORDED_BROKEN, 0,
         GS_PLACEMENT_DEFAULT, 0, false, false},
        {"allocation that is none", ALLOCATION("GPU 1"), GS_RECORDED_BROKEN, 0,
         GS_PLACEMENT_DEFAULT, 0, false, false},
        {"placement", "'aliyun.com/gpu-placement':'spread'", GS_RECORDED_NONE, 0,
         GS_PLACEMENT_SPREAD, 0, false, false},
        {"placement in another case", "'aliyun.com/gpu-placement':'Spread'", GS_RECORDED_NONE, 0,
         GS_PLACEMENT_BROKEN, 0, false, false},
        {"placement empty", "'aliyun.com/gpu-placement':''", GS_RECORDED_NONE, 0,
         GS_PLACEMENT_BROKEN, 0, false, false},
        {"placement very long", "'aliyun.com/gpu-placement':'binpackbinpackbinpackbinpackbinpack'",
         GS_RECORDED_NONE, 0, GS_PLACEMENT_BROKEN, 0, false, false},
        {"time", "'ALIYUN_COM_GPU_MEM_ASSUME_TIME':'1'", GS_RECORDED_NONE, 0, GS_PLACEMENT_DEFAULT,
         1, false, false},
        {"time broken", "'ALIYUN_COM_GPU_MEM_ASSUME_TIME':'now'", GS_RECORDED_NONE, 0,
         GS_PLACEMENT_DEFAULT, 0, false, false},
        {"time negative", "'ALIYUN_COM_GPU_MEM_ASSUME_TIME':'-1'", GS_RECORDED_NONE, 0,
         GS_PLACEMENT_DEFAULT, 0, false, false},
        {"time largest", "'ALIYUN_COM_GPU_MEM_ASSUME_TIME':'9223372036854775807'", GS_RECORDED_NONE,
         0, GS_PLACEMENT_DEFAULT, INT64_MAX, false, false},
        {"time too large", "'ALIYUN_COM_GPU_MEM_ASSUME_TIME':'9223372036854775808'",
         GS_RECORDED_NONE, 0, GS_PLACEMENT_DEFAULT, 0, false, false},
        {"assigned", "'ALIYUN_COM_GPU_MEM_ASSIGNED':'true'", GS_RECORDED_NONE, 0,
         GS_PLACEMENT_DEFAULT, 0, true, true},
        {"not assigned", "'ALIYUN_COM_GPU_MEM_ASSIGNED':'false'", GS_RECORDED_NONE, 0,
         GS_PLACEMENT_DEFAULT, 0, true, false},
        {"assigned in another case", "'ALIYUN_COM_GPU_MEM_ASSIGNED':'True'", GS_RECORDED_NONE, 0,
         GS_PLACEMENT_DEFAULT, 0, true, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {0};
        char json[256];
        snprintf(json, sizeof(json), "{'metadata':{'annotations':{%s}}}", r->annotations);
        row_equal(r->row, decode(json, &pod, NULL), 0);
        row_equal(r->row, pod.recorded, r->recorded);
        row_true(r->row, pod.recorded_gpus == r->gpus);
        row_equal(r->row, pod.idx_missing, pod.recorded && !strstr(r->annotations, "_IDX"));
        row_equal(r->row, pod.placement, r->placement);
        row_equal(r->row, pod.assume_time_ns, r->assume_time_ns);
        row_equal(r->row, pod.has_assigned, r->has_assigned);
        row_equal(r->row, pod.assigned, r->assigned);
        gs_pod_release(&pod);
    }
}

/* What a limit needs to know of a pod, and what nobody may forge (model/pod.h). */
static void what_a_limit_asks_for_is_read(void **state)
{
#define MIRROR(hash)  "{'metadata':{'annotations':{'kubernetes.io/config.mirror':'" hash "'}}}"
#define ENFORCE(word) "{'metadata':{'annotations':{'aliyun.com/gpu-enforce':'" word "'}}}"
#define CLASS(name)   "{'status':{'qosClass':'" name "'}}"
    static const struct {
        const char *row, *json;
        enum gs_qos qos;
        const char *static_uid;
        bool required;
    } rows[] = {
        {"nothing", "{}", GS_QOS_BEST_EFFORT, "", false},
        {"Guaranteed", CLASS("Guaranteed"), GS_QOS_GUARANTEED, "", false},
        {"Burstable", CLASS("Burstable"), GS_QOS_BURSTABLE, "", false},
        {"BestEffort", CLASS("BestEffort"), GS_QOS_BEST_EFFORT, "", false},
        {"a later class", CLASS("Best"), GS_QOS_BEST_EFFORT, "", false},
        {"a static pod", MIRROR("0123456789abcdef0123456789abcdef"), GS_QOS_BEST_EFFORT,
         "0123456789abcdef0123456789abcdef", false},
        {"another pod's UID in its place", MIRROR("6f1c0a52-0d7e-4d53-9d0b-6c1f6a3f0001"),
         GS_QOS_BEST_EFFORT, "", false},
        {"a path in its place", MIRROR("../0123456789abcdef0123456789abc"), GS_QOS_BEST_EFFORT, "",
         false},
        {"a static pod whose manifest names a UID", MIRROR("gpu-static-uid-0001"),
         GS_QOS_BEST_EFFORT, "gpu-static-uid-0001", false},
        {"nothing in its place", MIRROR(""), GS_QOS_BEST_EFFORT, "", false},
        {"a folder in its place", MIRROR(".."), GS_QOS_BEST_EFFORT, "", false},
        {"longer than a folder's name",
         MIRROR("0123456789012345678901234567890123456789012345678901234567890123"),
         GS_QOS_BEST_EFFORT, "", false},
        {"a hash that no kubelet wrote",
         "{'metadata':{'annotations':{'kubernetes.io/config.hash':"
         "'0123456789abcdef0123456789abcdef'}}}",
         GS_QOS_BEST_EFFORT, "", false},
        {"required", ENFORCE("required"), GS_QOS_BEST_EFFORT, "", true},
        {"another word", ENFORCE("off"), GS_QOS_BEST_EFFORT, "", false},
        {"another case", ENFORCE("Required"), GS_QOS_BEST_EFFORT, "", false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {0};
        row_equal(r->row, decode(r->json, &pod, NULL), 0);
        row_equal(r->row, pod.qos, r->qos);
        row_text(r->row, pod.static_uid, r->static_uid);
        row_equal(r->row, pod.enforce_required, r->required);
        gs_pod_release(&pod);
    }
}

static void small_fields_are_read(void **state)
{
    static const struct {
        const char *row;
        const char *json;
        enum gs_pod_phase phase;
        bool deleting;
        int32_t priority;
        int64_t created_s;
    } rows[] = {
        {"empty", "{}", GS_PHASE_UNKNOWN, false, 0, 0},
        {"pending", "{'status':{'phase':'Pending'}}", GS_PHASE_PENDING, false, 0, 0},
        {"succeeded", "{'status':{'phase':'Succeeded'}}", GS_PHASE_SUCCEEDED, false, 0, 0},
        {"failed", "{'status':{'phase':'Failed'}}", GS_PHASE_FAILED, false, 0, 0},
        {"unknown phase", "{'status':{'phase':'Lost'}}", GS_PHASE_UNKNOWN, false, 0, 0},
        {"null phase", "{'status':{'phase':null}}", GS_PHASE_UNKNOWN, false, 0, 0},
        {"not deleted", "{'metadata':{'deletionTimestamp':null}}", GS_PHASE_UNKNOWN, false, 0, 0},
        {"smallest priority", "{'spec':{'priority':-2147483648}}", GS_PHASE_UNKNOWN, false,
         INT32_MIN, 0},
        {"no time", "{'metadata':{'creationTimestamp':'never'}}", GS_PHASE_UNKNOWN, false, 0, 0},
        {"a time with all digits and an offset",
         "{'metadata':{'creationTimestamp':'1970-01-01T01:01:00.000000000+01:00'},'spec':{"
         "'containers':[{'resources':{'limits':{'aliyun.com/gpu-mem':'1'}}}]}}",
         GS_PHASE_UNKNOWN, false, 0, 60},
        {"a time of a pod with GPU memory",
         "{'metadata':{'creationTimestamp':'1970-01-01T00:01:00Z'},'spec':{'containers':[{"
         "'resources':{'limits':{'aliyun.com/gpu-mem':'1'}}}]}}",
         GS_PHASE_UNKNOWN, false, 0, 60},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {0};
        row_equal(r->row, decode(r->json, &pod, NULL), 0);
        row_equal(r->row, pod.phase, r->phase);
        row_equal(r->row, pod.deleting, r->deleting);
        row_equal(r->row, pod.priority, r->priority);
        row_equal(r->row, pod.created_s, r->created_s);
        gs_pod_release(&pod);
    }
}

static void an_owner_is_named_by_what_its_people_made(void **state)
{
#define REPLICA_SET(name, hash)                                                                    \
    "{'metadata':{'ownerReferences':[{'kind':'ReplicaSet','name':'" name                           \
    "','controller':true}],'labels':{'pod-template-hash':'" hash "'}}}"
    static const struct {
        const char *row, *json, *owner;
    } rows[] = {
        {"none", "{}", ""},
        {"a Job",
         "{'metadata':{'ownerReferences':[{'kind':'Job','name':'train','controller':true}]}}",
         "Job/train"},
        {"it controls nothing", "{'metadata':{'ownerReferences':[{'kind':'Job','name':'train'}]}}",
         ""},
        {"no name", "{'metadata':{'ownerReferences':[{'kind':'Job','controller':true}]}}", ""},
        {"null", "{'metadata':{'ownerReferences':[{'kind':null,'name':null,'controller':true}]}}",
         ""},
        {"a Deployment's", REPLICA_SET("web-7f", "7f"), "Deployment/web"},
        {"nobody's", REPLICA_SET("web-7f", ""), "ReplicaSet/web-7f"},
        {"another hash", REPLICA_SET("web-7f", "8f"), "ReplicaSet/web-7f"},
        {"its end by chance", REPLICA_SET("web7f", "7f"), "ReplicaSet/web7f"},
        {"nothing but the hash", REPLICA_SET("-7f", "7f"), "ReplicaSet/-7f"},
        {"a hash longer than the name", REPLICA_SET("f", "web-7f"), "ReplicaSet/f"},
        {"a kind beyond reason",
         "{'metadata':{'ownerReferences':[{'kind':'0123456789012345678901234567890123456789"
         "012345678901234567890123','name':'a','controller':true}]}}",
         ""},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {0};
        row_equal(r->row, decode(r->json, &pod, NULL), 0);
        row_text(r->row, pod.owner, r->owner);
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
        row_equal(r->row, decode(json, &pod, NULL), 0);
        row_text(r->row, pod.owner_api, r->kept ? name : "");
        row_text(r->row, pod.owner_uid, r->kept ? name : "");
        row_text(r->row, pod.scheduler_name, r->kept ? name : "(none)");
        gs_pod_release(&pod);
    }
}

static void a_controller_is_kept_as_its_pods_name_it(void **state)
{
    static const struct {
        const char *row, *json, *api, *kind, *name, *uid;
        bool daemon;
    } rows[] = {
        {"none", "{}", "", "", "", ""},
        {"a Deployment's ReplicaSet",
         "{'metadata':{'ownerReferences':[{'apiVersion':'v1','kind':'DaemonSet','name':'n'},"
         "{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'web-7f','uid':'a',"
         "'controller':true}],'labels':{'pod-template-hash':'7f'}}}",
         "apps/v1", "ReplicaSet", "web-7f", "a"},
        {"it controls nothing",
         "{'metadata':{'ownerReferences':[{'apiVersion':'batch/v1','kind':'DaemonSet','name':'j',"
         "'uid':'a'}]}}",
         "", "", "", ""},
        {"a DaemonSet without a version or a UID",
         "{'metadata':{'ownerReferences':[{'apiVersion':null,'kind':'DaemonSet','name':'j',"
         "'controller':true}]}}",
         "", "DaemonSet", "j", "", true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {0};
        row_equal(r->row, decode(r->json, &pod, NULL), 0);
        row_text(r->row, pod.owner_api, r->api);
        row_text(r->row, pod.owner_kind, r->kind);
        row_text(r->row, pod.owner_name, r->name);
        row_text(r->row, pod.owner_uid, r->uid);
        row_equal(r->row, pod.daemon, r->daemon);
        gs_pod_release(&pod);
    }
}

static void an_environment_that_names_devices_is_noticed(void **state)
{
    static const struct {
        const char *env, *overrides;
    } rows[] = {
        {"[{'name':'NVIDIA_VISIBLE_DEVICES','value':'all'},{'name':'B'}]",
         "NVIDIA_VISIBLE_DEVICES"},
        {"[{'name':'NVIDIA_VISIBLE_DEVICE','value':'all'}]", ""},
        {"null", ""},
        {"[{'value':'NVIDIA_VISIBLE_DEVICES'}]", ""},
        {"[{'name':'SIMULATED_VISIBLE_DEVICES','value':''}]", "SIMULATED_VISIBLE_DEVICES"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {0};
        char json[256];
        snprintf(json, sizeof(json), "{'spec':{'containers':[{},{'env':%s},{}]}}", r->env);
        row_equal(r->env, decode(json, &pod, NULL), 0);
        row_text(r->env, pod.overrides ? pod.overrides : "", r->overrides);
        gs_pod_release(&pod);
    }
}

static void what_concerns_mps_is_noticed(void **state)
{
    static const struct {
        const char *row, *json;
        bool sets_mps, own_shm;
    } rows[] = {
        {"nothing", "{'env':[{'name':'A'}],'volumeMounts':[{'mountPath':'/dev'}]}", false, false},
        {"its pipes", "{'env':[{'name':'A'},{'name':'CUDA_MPS_PIPE_DIRECTORY','value':'/x'}]}",
         true, false},
        {"its limit", "{'env':[{'name':'CUDA_MPS_PINNED_DEVICE_MEM_LIMIT'}]}", true, false},
        {"almost", "{'env':[{'name':'CUDA_MP'},{'name':'XCUDA_MPS_'}]}", false, false},
        {"shm", "{'volumeMounts':[{'name':'a','mountPath':'/dev/shm'},{'mountPath':'/x'}]}", false,
         true},
        {"shm with a slash", "{'volumeMounts':[{'mountPath':'/dev/shm/'}]}", false, true},
        {"below shm", "{'volumeMounts':[{'mountPath':'/dev/shm/a'}]}", false, false},
        {"null", "{'env':null,'volumeMounts':null}", false, false},
        {"the second container", "{},{'volumeMounts':[{'mountPath':'/dev/shm'}]}", false, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pod pod = {0};
        char json[512];
        snprintf(json, sizeof(json), "{'spec':{'containers':[%s]}}", r->json);
        row_equal(r->row, decode(json, &pod, NULL), 0);
        row_equal(r->row, pod.sets_mps, r->sets_mps);
        row_equal(r->row, pod.own_shm, r->own_shm);
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
        uint32_t charged;
    } rows[] = {
#define ASKS(n)                                                                                    \
    "{'resources':{'limits':{'aliyun.com/gpu-mem':'" n "','aliyun.com/gpu-core.percentage':'" n    \
    "'},'requests':{'cpu':'1'}}"
        {"none more", "containers", ASKS("3") "}", "", 3},
        {"one more that asks for nothing", "containers", ASKS("3") "}", ",{}", 3},
        {"two more", "containers", ASKS("3") "}", "," ASKS("4") "}," ASKS("5") "}", 12},
        {"one more alone asks", "containers", "{}", "," ASKS("4") "}", 4},
        {"init containers", "initContainers", ASKS("3") "}", "," ASKS("4") "}", 7},
        {"a sidecar stays beside the main container", "initContainers", ASKS("3") "}",
         "," ASKS("4") ",'restartPolicy':'Always'}", 7 + 2},
        {"the largest", "containers", ASKS("2147483647") "}", "," ASKS("2147483647") "}",
         INT32_MAX},
    };
    struct gs_names names = default_names();
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_buf json = GS_BUF(1 << 20);
        struct gs_pod pod = {0};
        struct gs_error err = {0};
        struct gs_charge charge;
        bool init = r->kind[0] == 'i';
        gs_buf_printf(&json, "{'spec':{%s'%s':[{}", init ? "'containers':[" ASKS("2") "}]," : "",
                      r->kind);
        for (int i = 2; i < GS_POD_CONTAINERS_MAX; i++)
            gs_buf_puts(&json, ",{}");
        gs_buf_printf(&json, ",%s%s]}}", r->last, r->more);
        _cleanup_free_ char *text = quoted(json.data);
        row_equal(r->row, gs_codec_pod(&names, gs_slice_of(text), &pod, &err), 0);
        row_equal(r->row, pod.container_count, GS_POD_CONTAINERS_MAX + init);
        gs_pod_charge(&pod, &charge);
        row_equal(r->row, charge.units, r->charged);
        row_equal(r->row, charge.cores_pct, r->charged < 100 ? r->charged : 100);
        gs_pod_release(&pod);
        gs_buf_release(&json);
    }
#undef ASKS
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
    const struct gs_names names = default_names();
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_free_ char *text = quoted(r->json);
        struct gs_pod pod = {0};
        struct gs_scan scan;
        struct gs_error err = {0};
        gs_scan_init(&scan, gs_slice_of(text));
        scan.trusting = true;
        row_equal(r->row, gs_codec_pod_take(&names, &scan, &pod, &err), r->result);
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
    _cleanup_free_ char *text =
        quoted("{'metadata':{'annotations':{'EXAMPLE_ORG_GPU_MEM_IDX':'2'}},'spec':{'containers':["
               "{'resources':{'limits':{'example.org/gpu-mem':'3','aliyun.com/gpu-mem':'9'}}}]}}");
    assert_int_equal(gs_codec_pod(&names, gs_slice_of(text), &pod, NULL), 0);
    assert_int_equal(pod.recorded_gpus, 4);
    assert_int_equal(pod.containers[0].gpu_units, 3);
    gs_pod_release(&pod);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_pod_is_read),
        cmocka_unit_test(containers_are_read_in_order_init_first),
        cmocka_unit_test(amounts_come_from_limits_or_requests),
        cmocka_unit_test(a_pods_own_requests_take_the_place_of_its_containers),
        cmocka_unit_test(gpu_count_is_read_from_label_and_annotation),
        cmocka_unit_test(annotations_that_users_break_are_told_not_failed),
        cmocka_unit_test(what_a_limit_asks_for_is_read),
        cmocka_unit_test(small_fields_are_read),
        cmocka_unit_test(an_owner_is_named_by_what_its_people_made),
        cmocka_unit_test(a_name_longer_than_any_is_none),
        cmocka_unit_test(a_controller_is_kept_as_its_pods_name_it),
        cmocka_unit_test(an_environment_that_names_devices_is_noticed),
        cmocka_unit_test(what_concerns_mps_is_noticed),
        cmocka_unit_test(a_pod_is_taken_off_a_list_whatever_becomes_of_it),
        cmocka_unit_test(containers_above_the_ceiling_count_with_the_last),
        cmocka_unit_test(another_domain_has_other_names),
    };
    return GS_RUN(tests);
}
