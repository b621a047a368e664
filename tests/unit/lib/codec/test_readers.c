/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table for everybody who reads an object: alone, as an item of a list, in a watch's event, in
 * kube-scheduler's request to filter or to preempt, in a file that the CLI is given, as JSON and as
 * YAML. All say the
 * same of it, and of one that cannot be read.
 */
#include "said.h"

#include "gpushare/codec/extender.h"
#include "gpushare/codec/list.h"
#include "gpushare/codec/manifest.h"
#include "gpushare/codec/watch.h"

static struct gs_names names;
static char said[1024]; /* of the reader whose turn it is */

/* --- what is said --- */

/* Without the place where it stands, which is each reader's own. */
static void say_why(const struct gs_error *err)
{
    static const char *const places[] = {"Pod: ", "file:1: ", "file:2: "};
    const char *why = err->msg;
    GS_FOR_EACH_ROW (place, places)
        why += strncmp(why, *place, strlen(*place)) == 0 ? strlen(*place) : 0;
    const char *byte = strstr(why, strncmp(why, "not YAML: ", 10) == 0 ? ": " : " at byte ");
    snprintf(said, sizeof(said), "%.*s", (int)(byte ? byte - why : (long)strlen(why)), why);
}

/* What this reader says: TEXT of the row's "\nREADER: TEXT", or what those like him do. */
static void expected_of(const char *reader, const char *like, const char *says, const char *but,
                        char *ret, size_t size)
{
    const char *own = NULL, *keys[] = {reader, like};
    for (int i = 0; i < 2 && but && !own && keys[i]; i++) {
        char key[64];
        snprintf(key, sizeof(key), "\n%s: ", keys[i]);
        own = strstr(but, key);
        own = own ? own + strlen(key) : NULL;
    }
    own = own ? own : says;
    snprintf(ret, size, "%.*s", (int)strcspn(own, "\n"), own);
}

#define OLD_NODE                                                                                   \
    "{\"metadata\":{\"name\":\"old\"},\"status\":{\"capacity\":{\"aliyun.com/gpu-mem\":\"4\","     \
    "\"aliyun.com/gpu-count\":\"2\"}}}"
#define OLD_POD "{\"metadata\":{\"name\":\"old\"},\"spec\":{\"containers\":[{}]}}"

static int tell(bool is_node, struct gs_slice json, struct gs_error *err)
{
    struct gs_node node = {0};
    struct gs_pod pod = {0};
    /* used before, to see it emptied */
    assert_int_equal(gs_codec_node(&names, GS_SLICE(OLD_NODE), &node, NULL), 0);
    assert_int_equal(gs_codec_pod(&names, GS_SLICE(OLD_POD), &pod, NULL), 0);
    const int result =
        is_node ? gs_codec_node(&names, json, &node, err) : gs_codec_pod(&names, json, &pod, err);
    if (result == 0 && is_node)
        snprintf(said, sizeof(said), "%s", say_node(&node));
    else if (result == 0)
        snprintf(said, sizeof(said), "%s", say_pod(&pod));
    else if (is_node ? node.name[0] || node.gpu_count : pod.name[0] || pod.containers)
        fail_msg("something is left of what was there before: %s", err->msg);
    gs_node_release(&node);
    gs_pod_release(&pod);
    return result;
}

/* --- readers: -1 with err, or it is told --- */

typedef int reader(bool is_node, const char *json, struct gs_error *err);

static int alone(bool is_node, const char *json, struct gs_error *err)
{
    return tell(is_node, gs_slice_of(json), err);
}

struct item {
    bool is_node;
    int result;
    struct gs_error *err;
};

static int take_item(void *ctx, struct gs_scan *scan)
{
    struct item *item = ctx;
    struct gs_node node = {0};
    struct gs_pod pod = {0};
    item->result = item->is_node ? gs_codec_node_take(&names, scan, &node, item->err)
                                 : gs_codec_pod_take(&names, scan, &pod, item->err);
    if (item->result == 0 && item->is_node)
        snprintf(said, sizeof(said), "%s", say_node(&node));
    else if (item->result == 0)
        snprintf(said, sizeof(said), "%s", say_pod(&pod));
    gs_node_release(&node);
    gs_pod_release(&pod);
    return 0;
}

static int of_a_list(bool is_node, const char *json, struct gs_error *err)
{
    char text[2048];
    struct gs_list_meta meta;
    struct item item = {is_node, 0, err};
    snprintf(text, sizeof(text), "{\"items\":[%s]}", json);
    const int result = gs_codec_list_items(gs_slice_of(text), take_item, &item, &meta, err);
    return result < 0 ? result : item.result;
}

static int of_a_watch(bool is_node, const char *json, struct gs_error *err)
{
    char text[2048];
    struct gs_watch_event event;
    snprintf(text, sizeof(text), "{\"type\":\"MODIFIED\",\"object\":%s}", json);
    if (gs_codec_watch_event(gs_slice_of(text), &event, err) < 0)
        return -1;
    return tell(is_node, event.object, err);
}

/* As the only candidate, or as the pod that is asked about. */
static int of_filter(bool is_node, const char *json, struct gs_error *err)
{
    char text[2048];
    struct gs_filter_args args = {0};
    snprintf(text, sizeof(text),
             is_node ? "{\"Pod\":{},\"Nodes\":{\"items\":[%s]}}" : "{\"Pod\":%s,\"NodeNames\":[]}",
             json);
    int result = gs_codec_filter_args(&names, gs_slice_of(text), &args, err);
    if (result == 0 && !is_node)
        snprintf(said, sizeof(said), "%s", say_pod(&args.pod));
    else if (result == 0 && args.node_count)
        result = tell(true, args.nodes[0], err);
    gs_filter_args_release(&args);
    return result;
}

static int of_preempt(bool is_node, const char *json, struct gs_error *err)
{
    char text[2048];
    struct gs_preemption_args args = {0};
    snprintf(text, sizeof(text), "{\"Pod\":%s,\"NodeNameToMetaVictims\":{}}", json);
    const int result = gs_codec_preemption_args(&names, gs_slice_of(text), &args, err);
    if (result == 0)
        snprintf(said, sizeof(said), "%s", say_pod(&args.pod));
    gs_preemption_args_release(&args);
    return result;
}

static int take_object(void *ctx, const char *version, const char *kind, struct gs_slice json,
                       struct gs_error *err)
{
    return tell(*(bool *)ctx, json, err);
}

static int of_a_file(bool is_node, const char *json, struct gs_error *err)
{
    return gs_manifest_parse(gs_slice_of(json), "file", take_object, &is_node, err);
}

/* What begins so is no JSON, and is read as YAML. */
static int of_yaml(bool is_node, const char *json, struct gs_error *err)
{
    char text[2048];
    snprintf(text, sizeof(text), "--- %s", json);
    return gs_manifest_parse(gs_slice_of(text), "file", take_object, &is_node, err);
}

static const struct {
    const char *name;
    reader *read;
    bool pods_only;
    const char *like; /* says what this one does, if nothing else */
} readers[] = {{"alone", alone},
               {"in a list", of_a_list},
               {"in a watch", of_a_watch},
               {"in filter", of_filter},
               {"in preempt", of_preempt, true},
               {"in a file", of_a_file},
               {"in YAML", of_yaml, .like = "in a file"}};

static const struct {
    const char *row;
    bool is_node;
    const char *json, *says;
    const char *but; /* "\nREADER: TEXT": who says something else, and what */
} rows[] = {
    {"a whole pod", false,
     "{'metadata':{'name':'p','namespace':'d','uid':'u','resourceVersion':'7','labels':{'aliyun."
     "com/gpu-count':'2'},'annotations':{'ALIYUN_COM_GPU_MEM_IDX':'0,3','aliyun.com/"
     "gpu-placement':'rollout','aliyun.com/"
     "gpu-model':'A100'},'deletionTimestamp':'2026-01-01T00:00:00Z'},'spec':{'nodeName':'n','"
     "priority':-5,'initContainers':[{'name':'i'}],'containers':[{'name':'c','resources':{'limits':"
     "{'aliyun.com/gpu-mem':'8'}}}]},'status':{'phase':'Running','nominatedNodeName':'m'}}",
     "init:0 main:8 ns=d name=p uid=u version=7 on=n to=m phase=Running deleting=1 priority=-5 "
     "count=2 placement=rollout model=A100 gpus=0,3"},
    {"nulls", false, "{'metadata':null,'spec':null,'status':null}", ""},
    {"fields nobody knows", false,
     "{'kind':'Pod','x':[{'y':1e999}],'metadata':{'name':'p','z':{}}}", "name=p"},
    {"escapes", false, "{'metadata':{'name':'\\u0070\\ud83d\\ude00'}}", "name=p😀",
     "\nin YAML: not YAML"},
    {"half a surrogate", false, "{'metadata':{'name':'\\ud83d'}}",
     "JSON: invalid character in a string", "\nin a file: not YAML"},
    {"a NUL byte", false, "{'metadata':{'name':'a\\u0000b'}}",
     "name=a\xef\xbf\xbd"
     "b"},
    {"no UTF-8", false, "{'metadata':{'name':'\xff'}}", "JSON: invalid character in a string",
     "\nin a file: not YAML"},
    {"a field twice", false, "{'metadata':{'name':'a','name':'b'}}", "name=b",
     "\nin YAML: duplicate key"},
    {"a number as text", false, "{'spec':{'priority':'5'}}", "spec.priority is not a number"},
    {"true as text", false, "{'metadata':{'name':true}}", "metadata.name is not a string"},
    {"priority with an exponent", false, "{'spec':{'priority':1e2}}",
     "spec.priority is not an integer in range"},
    {"a text", false, "'p'", "pod is not an object",
     "\nin a watch: watch event has no object\nin a file: not an object"},
    {"null", false, "null", "pod is not an object",
     "\nin a watch: watch event has no object\nin filter: Pod is missing\nin preempt: Pod is "
     "missing\nin a file: nothing"},
    {"a bare word", false, "{'metadata':{'name':p}}", "JSON: invalid syntax",
     "\nin a file: name=p"},
    {"a whole node", true,
     "{'metadata':{'name':'n','uid':'u','annotations':{'aliyun.com/"
     "gpu-inventory':'{\\'v\\':1,\\'unit\\':\\'GiB\\',\\'gpus\\':[{\\'idx\\':1,\\'mem\\':16},{\\'"
     "idx\\':0,\\'mem\\':24,\\'healthy\\':false}]}'}},'spec':{'unschedulable':true},'status':{'"
     "capacity':{'aliyun.com/gpu-mem':'40','aliyun.com/gpu-count':'2'}}}",
     "0:24! 1:16 name=n uid=u units=40 count=2 cordoned=1 unit=GiB inventory=1"},
    {"an inventory that is none", true,
     "{'metadata':{'name':'n','annotations':{'aliyun.com/"
     "gpu-inventory':'x'}},'status':{'capacity':{'aliyun.com/gpu-mem':'32','aliyun.com/"
     "gpu-count':'2'}}}",
     "0:16 1:16 name=n units=32 count=2 inventory=JSON: invalid syntax at byte 0"},
    {"capacity as a list", true, "{'metadata':{'name':'n'},'status':{'capacity':[]}}",
     "status.capacity is not an object"},
    {"a node that is a text", true, "'n'", "node is not an object",
     "\nin a watch: watch event has no object\nin filter: Nodes.items[] is not an object\nin a "
     "file: not an object"},
    {"empty", false, "", "JSON: unexpected end of input",
     "\nin a list: nothing\nin a watch: JSON: invalid syntax\nin filter: JSON: invalid syntax\nin "
     "preempt: JSON: invalid syntax\nin a file: nothing"},
    {"cut", false, "{'metadata':{'name':'a'", "JSON: unexpected end of input",
     "\nin a list: JSON: invalid syntax\nin a file: not YAML"},
    {"more", false, "{}{}", "JSON: unexpected data after the value",
     "\nin a list: JSON: invalid syntax\nin a watch: JSON: invalid syntax\nin filter: JSON: "
     "invalid syntax\nin preempt: JSON: invalid syntax\nin a file: not YAML"},
    {"metadata", false, "{'metadata':1}", "metadata is not an object"},
    {"labels", false, "{'metadata':{'labels':[]}}", "metadata.labels is not an object"},
    {"containers", false, "{'spec':{'containers':{}}}", "spec.containers is not an array"},
    {"container", false, "{'spec':{'containers':['x']}}", "spec.containers[] is not an object"},
    {"no quantity", false,
     "{'spec':{'containers':[{'resources':{'limits':{'aliyun.com/gpu-mem':'8 GiB'}}}]}}",
     "spec.containers.resources.limits.aliyun.com/gpu-mem is not a quantity"},
    {"part of a unit", false,
     "{'spec':{'containers':[{'resources':{'limits':{'aliyun.com/gpu-mem':'1.5'}}}]}}",
     "spec.containers.resources.limits.aliyun.com/gpu-mem is not an integer"},
    {"negative", false,
     "{'spec':{'containers':[{'resources':{'limits':{'aliyun.com/gpu-mem':'-1'}}}]}}",
     "spec.containers.resources.limits.aliyun.com/gpu-mem is negative"},
    {"cpu", false, "{'spec':{'containers':[{'resources':{'limits':{'cpu':[]}}}]}}",
     "spec.containers.resources.limits.cpu is not a string"},
    {"cut in what is not read", false, "{'spec':{'volumes':[{]}}", "JSON: unexpected end of input",
     "\nin a list: JSON: invalid syntax\nin filter: JSON: invalid syntax\nin preempt: JSON: "
     "invalid syntax\nin a file: not YAML"},
    {"node: empty", true, "", "JSON: unexpected end of input",
     "\nin a list: nothing\nin a watch: JSON: invalid syntax\nin filter: nothing\nin a file: "
     "nothing"},
    {"node: no object", true, "null", "node is not an object",
     "\nin a watch: watch event has no object\nin filter: Nodes.items[] is not an object\nin a "
     "file: nothing"},
    {"node: name", true, "{'metadata':{'name':[]}}", "metadata.name is not a string",
     "\nin filter: Nodes.items.metadata.name is not a string"},
    {"node: unschedulable", true, "{'spec':{'unschedulable':'true'}}",
     "spec.unschedulable is not true or false"},
    {"node: address", true, "{'status':{'addresses':[7]}}", "status.addresses[] is not an object"},
};

static void every_reader_says_the_same(void **state)
{
    assert_int_equal(gs_names_init(&names, "aliyun.com", NULL), 0);
    GS_FOR_EACH_ROW (r, rows) {
        char *json = strdup(json_of(r->json).at);
        GS_FOR_EACH_ROW (reads, readers) {
            char row[256], expected[512];
            struct gs_error err = {0};
            if (r->is_node && reads->pods_only)
                continue;
            snprintf(row, sizeof(row), "%s, %s", r->row, reads->name);
            snprintf(said, sizeof(said), "nothing");
            if (reads->read(r->is_node, json, &err) < 0)
                say_why(&err);
            expected_of(reads->name, reads->like, r->says, r->but, expected, sizeof(expected));
            row_text(row, said, expected);
        }
        free(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_reader_says_the_same)};
    return GS_RUN(tests);
}
