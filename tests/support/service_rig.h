/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A service on a scripted cluster port, fed with JSON as the API server would send it. The port
 * remembers what was asked of it and answers as the test says. Header only: every test program
 * links what its layer may call and nothing more.
 */
#include <sys/random.h>

#include "extender/service/service.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "rows.h"
#include "service_calls.h"

/* Hashes are equal in each run: no two namespaces of a test have one share by chance. */
ssize_t getrandom(void *buf, size_t len, unsigned flags)
{
    (void)flags;
    memset(buf, 7, len);
    return (ssize_t)len;
}

struct rig {
    struct gs_names names;
    struct gs_clock clock;
    int64_t now_ns;
    struct gs_service *service;
    struct gs_watch_sink sink;
    uint64_t revision;

    /* What bind answers, and what get_pod then shows. */
    enum gs_code bind_code;
    bool bind_answered; /* the API server itself said so */
    enum gs_code get_code;
    const char *get_json;
    void (*during_bind)(struct rig *rig); /* what happens while the API call is under way */
    void (*during_get)(struct rig *rig);
    int64_t get_ns;      /* how long get_pod takes */
    int64_t deadline_ns; /* what the last bind or patch was given */
    int binds, gets, patches;
    char got[64]; /* name of the last pod that get_pod was asked for */
    char bound_node[64];
    char bound_uid[64];
    char annotations[1024]; /* of the last bind: "KEY=value;…" */
    char patched[256];      /* of the last patch: "ns/name KEY" */
    char nominated[64]; /* likewise: the node, "" when it takes it back, "-" when it says none */
    char marked[64];    /* likewise, of the mark of an offer */
    char expected[32];  /* likewise: the resourceVersion that it is for */
    void (*during_patch)(struct rig *rig, const struct gs_meta_patch *patch);
    enum gs_code nominate_code;
    bool webhook; /* that is an admission webhook's, for this pod */
    enum gs_code patch_code;
    char patched_value[64]; /* of the first annotation */
    int64_t patch_ns;       /* how long a patch takes */
    char patched_label[16]; /* of the last patch: the label's value, "-" when it took it off */
    int events, watch_wakes;
    char event[256]; /* the last one: "ns/name Reason" */
};

static int64_t rig_now(void *ctx)
{
    return ((struct rig *)ctx)->now_ns;
}

static int rig_bind(void *ctx, const struct gs_binding *binding, struct gs_error *err)
{
    struct rig *rig = ctx;
    rig->binds++;
    rig->deadline_ns = binding->deadline_ns;
    snprintf(rig->bound_node, sizeof(rig->bound_node), "%s", binding->node);
    snprintf(rig->bound_uid, sizeof(rig->bound_uid), "%s", binding->uid);
    rig->annotations[0] = '\0';
    for (size_t i = 0; i < binding->annotation_count; i++) {
        size_t len = strlen(rig->annotations);
        snprintf(rig->annotations + len, sizeof(rig->annotations) - len, "%s=%s;",
                 binding->annotations[i].key, binding->annotations[i].value);
    }
    if (rig->during_bind)
        rig->during_bind(rig);
    if (!rig->bind_code)
        return 0;
    if (binding->ret_answered)
        *binding->ret_answered = rig->bind_answered;
    return gs_fail(err, rig->bind_code, "scripted");
}

static int rig_get_pod(void *ctx, const char *ns, const char *name, struct gs_pod *ret,
                       struct gs_error *err)
{
    struct rig *rig = ctx;
    rig->gets++;
    snprintf(rig->got, sizeof(rig->got), "%s", name);
    rig->now_ns += rig->get_ns;
    if (rig->during_get)
        rig->during_get(rig);
    if (rig->get_code)
        return gs_fail(err, rig->get_code, "scripted");
    assert_non_null(rig->get_json);
    return gs_codec_pod(&rig->names, gs_slice_of(rig->get_json), ret, err);
}

static int rig_patch_pod(void *ctx, const struct gs_meta_patch *patch, struct gs_error *err)
{
    struct rig *rig = ctx;
    rig->patches++;
    rig->deadline_ns = patch->deadline_ns;
    snprintf(rig->patched, sizeof(rig->patched), "%s/%s %s", patch->ns, patch->name,
             patch->annotation_count ? patch->annotations[0].key : "");
    if (patch->annotation_count)
        snprintf(rig->patched_value, sizeof(rig->patched_value), "%s", patch->annotations[0].value);
    snprintf(rig->nominated, sizeof(rig->nominated), "%s",
             patch->nominated_node ? patch->nominated_node : "-");
    snprintf(rig->expected, sizeof(rig->expected), "%s",
             patch->resource_version ? patch->resource_version : "");
    snprintf(rig->marked, sizeof(rig->marked), "-");
    for (size_t i = 0; i < patch->annotation_count; i++) {
        const struct gs_kv *kv = &patch->annotations[i];
        if (strcmp(kv->key, rig->names.offer) == 0)
            snprintf(rig->marked, sizeof(rig->marked), "%s", kv->value ? kv->value : "");
    }
    if (rig->during_patch)
        rig->during_patch(rig, patch);
    if (patch->nominated_node && rig->nominate_code)
        return gs_fail(err, rig->nominate_code,
                       rig->webhook ? "admission webhook denied the request"
                                    : "pods is forbidden: User cannot patch resource pods/status");
    const char *label = patch->label_count ? patch->labels[0].value : "";
    snprintf(rig->patched_label, sizeof(rig->patched_label), "%s", label ? label : "-");
    rig->now_ns += rig->patch_ns;
    if (rig->patch_code)
        return gs_fail(err, rig->patch_code, "scripted");
    return 0;
}

static void rig_wake(void *ctx)
{
    ((struct rig *)ctx)->watch_wakes++;
}

static int rig_create_event(void *ctx, const struct gs_event *event, struct gs_error *err)
{
    struct rig *rig = ctx;
    rig->events++;
    snprintf(rig->event, sizeof(rig->event), "%s/%s %s", event->ns ? event->ns : "", event->name,
             event->reason);
    return 0;
}

/* Given back by the holder before. */
static int rig_get_lease(void *ctx, struct gs_lease *lease, struct gs_error *err)
{
    *lease = (struct gs_lease){
        .ns = lease->ns, .name = lease->name, .resource_version = "1", .duration_s = 1};
    return 0;
}

static int rig_put_lease(void *ctx, struct gs_lease *lease, struct gs_error *err)
{
    return 0;
}

static const struct gs_kube_ops rig_ops = {.bind = rig_bind,
                                           .get_pod = rig_get_pod,
                                           .patch_pod = rig_patch_pod,
                                           .wake = rig_wake,
                                           .create_event = rig_create_event,
                                           .get_lease = rig_get_lease,
                                           .put_lease = rig_put_lease};

/* An election that this rig's replica wins at each step. */
static inline struct gs_election *rig_election(struct rig *rig)
{
    const struct gs_election_config config = {
        .kube = {&rig_ops, rig}, .clock = &rig->clock, .ns = "n", .name = "l", .identity = "i"};
    return gs_election_new(&config);
}

/* config: what a test wants otherwise than this rig does. */
static inline void rig_start_as(struct rig *rig, struct gs_service_config config)
{
    struct gs_error err = {0};
    *rig = (struct rig){.now_ns = 1000000000000};
    assert_int_equal(gs_names_init(&rig->names, "aliyun.com", &err), 0);
    rig->clock = (struct gs_clock){rig_now, rig_now, rig};
    config.names = &rig->names;
    config.clock = &rig->clock;
    config.kube = (struct gs_kube){&rig_ops, rig};
    if (config.policy == GS_PLACEMENT_DEFAULT)
        config.policy = GS_PLACEMENT_BINPACK;
    rig->service = gs_service_new(&config, &err);
    assert_non_null(rig->service);
    rig->sink = gs_service_sink(rig->service);
}

static inline void rig_start(struct rig *rig)
{
    rig_start_as(rig, (struct gs_service_config){0});
}

static inline void rig_stop(struct rig *rig)
{
    gs_service_free(rig->service);
}

/* Of tests whose setup has *state point to the rig. */
static inline int rig_teardown(void **state)
{
    rig_stop(*state);
    return 0;
}

/* A test of a program whose setup() starts a rig. */
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

/* So long later. */
static inline void rig_tick(struct rig *rig, int64_t ns)
{
    rig->now_ns += ns;
    service_tick(rig->service);
}

/* One node with GPUs of these sizes: "16,16,24", without a list of moved pods. */
static inline void rig_node(struct rig *rig, const char *name, const char *sizes)
{
    char json[4096];
    int len = snprintf(json, sizeof(json),
                       "{\"metadata\":{\"name\":\"%s\",\"annotations\":{\"aliyun.com/"
                       "gpu-inventory\":\"{\\\"v\\\":1,\\\"unit\\\":\\\"GiB\\\",\\\"gpus\\\":[",
                       name);
    unsigned idx = 0, total = 0;
    for (const char *at = sizes; *at; idx++) {
        unsigned mem = 0;
        while (*at >= '0' && *at <= '9')
            mem = mem * 10 + (unsigned)(*at++ - '0');
        at += *at == ',';
        total += mem;
        len += snprintf(json + len, sizeof(json) - (size_t)len,
                        "%s{\\\"idx\\\":%u,\\\"mem\\\":%u,\\\"healthy\\\":true,"
                        "\\\"schedulable\\\":true}",
                        idx ? "," : "", idx, mem);
    }
    snprintf(json + len, sizeof(json) - (size_t)len,
             "]}\"}},\"status\":{\"capacity\":{\"aliyun.com/gpu-mem\":\"%u\","
             "\"aliyun.com/gpu-count\":\"%u\"},\"allocatable\":{\"cpu\":\"64\",\"aliyun.com/"
             "gpu-mem\":\"%u\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
             total, idx, total);
    struct gs_node node = {0};
    struct gs_error err = {0};
    if (gs_codec_node(&rig->names, gs_slice_of(json), &node, &err) < 0)
        fail_msg("%s in %s", err.msg, json);
    assert_int_equal(rig->sink.node(rig->sink.ctx, &node), 0);
    gs_node_release(&node);
}

static inline void rig_feed(struct rig *rig, const char *json, bool gone)
{
    struct gs_pod pod = {0};
    struct gs_error err = {0};
    if (gs_codec_pod(&rig->names, gs_slice_of(json), &pod, &err) < 0)
        fail_msg("%s in %s", err.msg, json);
    if (gone)
        rig->sink.pod_gone(rig->sink.ctx, &pod);
    else
        assert_int_equal(rig->sink.pod(rig->sink.ctx, &pod), 0);
    gs_pod_release(&pod);
}

/* JSON is easier to read with single quotes: each becomes a double one. */
static inline void rig_quote(char *text)
{
    for (; *text; text++)
        *text = *text == '\'' ? '"' : *text;
}

/* What is not said: namespace "default", UID "uNAME" ("NS/NAME" where a namespace is), one unit,
 * not bound. Other texts are parts of its JSON with ' for ". */
struct rig_pod {
    const char *ns, *name;
    int priority;
    const char *spec; /* "'key':value," */
    unsigned units;
    const char *uid, *node, *idx, *nominated;
    const char *labels; /* "{…}" */
    bool deleting;
};

/* Good until the thread's next. */
static inline const char *rig_json(struct rig *rig, struct rig_pod pod)
{
    static _Thread_local char json[1 << 13];
    char uid[64];
    snprintf(uid, sizeof(uid), "%.20s%s%.40s", pod.ns ? pod.ns : "", pod.ns ? "/" : "u", pod.name);
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'%.63s','namespace':'%s','uid':'%s','resourceVersion':'%llu'%s,"
             "'labels':%s,'annotations':{%s%s%s}},'spec':{%s'priority':%d,'nodeName':'%s',"
             "'containers':[{'name':'c','resources':{'limits':{'aliyun.com/gpu-mem':'%u'}}}]},"
             "'status':{'phase':'%s','nominatedNodeName':'%s'}}",
             pod.name, pod.ns ? pod.ns : "default", pod.uid ? pod.uid : uid,
             (unsigned long long)++rig->revision,
             pod.deleting ? ",'deletionTimestamp':'2026-01-01T00:00:00Z'" : "",
             pod.labels ? pod.labels : "{}", pod.idx ? "'ALIYUN_COM_GPU_MEM_IDX':'" : "",
             pod.idx ? pod.idx : "", pod.idx ? "'" : "", pod.spec ? pod.spec : "", pod.priority,
             pod.node ? pod.node : "", pod.units ? pod.units : 1, pod.node ? "Running" : "Pending",
             pod.nominated ? pod.nominated : "");
    rig_quote(json);
    return json;
}

/* The watch shows it; node and idx may be NULL. */
static inline void rig_pod(struct rig *rig, const char *name, unsigned units, const char *node,
                           const char *idx)
{
    const struct rig_pod pod = {.name = name, .units = units, .node = node, .idx = idx};
    rig_feed(rig, rig_json(rig, pod), false);
}

static inline void rig_pod_gone(struct rig *rig, const char *name)
{
    rig_feed(rig, rig_json(rig, (struct rig_pod){.name = name}), true);
}

static inline void rig_lists(struct rig *rig)
{
    for (int kind = GS_KIND_NODE; kind <= GS_KIND_POD; kind++) {
        assert_int_equal(rig->sink.list_begin(rig->sink.ctx, (enum gs_kind)kind), 0);
        assert_int_equal(rig->sink.list_end(rig->sink.ctx, (enum gs_kind)kind), 0);
        rig->sink.live(rig->sink.ctx, (enum gs_kind)kind, true, NULL);
    }
}

typedef int rig_verb(struct gs_service *service, const char *body, size_t len,
                     struct gs_buf *answer, struct gs_error *err);

/* The verb's answer, *caller frees*; fails the test when there is none. */
static inline char *rig_ask(struct rig *rig, rig_verb *verb, const char *body)
{
    struct gs_buf answer = GS_BUF(1 << 20);
    struct gs_error err = {0};
    if (verb(rig->service, body, strlen(body), &answer, &err) < 0)
        fail_msg("%s: %s", err.msg, body);
    return gs_buf_steal(&answer);
}

static inline char *rig_filter(struct rig *rig, const char *pod_json, const char *names)
{
    char *body;
    if (asprintf(&body, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[%s]}", pod_json, names) < 0)
        fail();
    char *answer = rig_ask(rig, gs_service_filter, body);
    free(body);
    return answer;
}

static inline char *rig_try_bind(struct rig *rig, const char *name, const char *uid,
                                 const char *node)
{
    char body[512];
    snprintf(body, sizeof(body),
             "{\"PodName\":\"%s\",\"PodNamespace\":\"default\",\"PodUID\":\"%s\",\"Node\":\"%s\"}",
             name, uid, node);
    return rig_ask(rig, service_bind, body);
}

/* Units charged on one GPU, read from inspect. */
static inline long rig_used(struct rig *rig, const char *node, unsigned gpu)
{
    struct gs_buf answer = GS_BUF(1 << 20);
    struct gs_error err = {0};
    char key[32];
    assert_int_equal(gs_service_inspect(rig->service, node, &answer, &err), 0);
    snprintf(key, sizeof(key), "{\"id\":%u,", gpu);
    const char *dev = strstr(answer.data, key);
    assert_non_null(dev);
    const char *used = strstr(dev, "\"usedGPU\":");
    long value = 0;
    for (used += strlen("\"usedGPU\":"); *used >= '0' && *used <= '9'; used++)
        value = value * 10 + (*used - '0');
    gs_buf_release(&answer);
    return value;
}

static inline void rig_expect(char *answer, const char *part)
{
    if (!strstr(answer, part))
        fail_msg("\"%s\" is not in %s", part, answer);
    free(answer);
}
