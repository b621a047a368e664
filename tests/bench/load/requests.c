/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/index.h"
#include "gpushare/model/names.h"
#include "sim/rest.h"

static const char *const verb_names[LOAD_VERBS] = {
    [LOAD_FILTER] = "filter", [LOAD_PRIORITIZE] = "prioritize", [LOAD_BIND] = "bind",
    [LOAD_DIRECT] = "direct", [LOAD_EVENT] = "event",           [LOAD_CREATE] = "create",
};

const char *load_verb_name(enum load_verb verb)
{
    return verb_names[verb];
}

enum { EVENT_PODS = 2000, CREATED_DEFAULT = 1000 };

#define TEXT_BYTES_MAX ((size_t)1 << 30)

void load_set_release(struct load_set *set)
{
    gs_buf_release(&set->text);
    free(set->ends);
    *set = (struct load_set){0};
}

static int set_init(struct load_set *set, uint32_t count, struct gs_error *err)
{
    set->text = GS_BUF(TEXT_BYTES_MAX);
    set->ends = calloc(count ? count : 1, sizeof(*set->ends));
    return set->ends ? 0 : gs_fail_nomem(err);
}

/* One complete request; its body is taken out of *body. */
static void put_request(struct load_set *set, const char *method, const char *path,
                        const char *content_type, struct gs_buf *body)
{
    gs_buf_printf(&set->text,
                  "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n"
                  "Content-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                  method, path, content_type, body->len);
    gs_buf_append(&set->text, body->data, body->len);
    if (gs_buf_failed(body))
        set->text.failed = body->failed;
    set->ends[set->count++] = set->text.len;
    gs_buf_reset(body);
}

/* ---- bodies ---- */

/* Classes differ in memory, CPU and, every fifth, number of GPUs. One that does not exist yet has
 * nothing of what the API server gives it. */
static void put_pod(struct gs_buf *out, const char *name, uint32_t class, bool exists)
{
    uint32_t gpus = class % 5 == 4 ? 2 : 1, units = gpus * (1 + class / 2);
    uint32_t cpu = 100 * (1 + class % 8);
    gs_buf_printf(out,
                  "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
                  "\"namespace\":\"team-00\",",
                  name);
    if (exists)
        gs_buf_printf(out,
                      "\"uid\":\"9b2f3c1e-0000-4000-8000-%012x\",\"resourceVersion\":\"123456\","
                      "\"creationTimestamp\":\"2025-01-01T00:00:00Z\",",
                      class);
    gs_buf_printf(out, "\"labels\":{\"app\":\"web-%u\",\"pod-template-hash\":\"7c9d4b5f68\"",
                  class);
    if (gpus > 1)
        gs_buf_printf(out, ",\"aliyun.com/gpu-count\":\"%u\"", gpus);
    gs_buf_printf(
        out,
        "},\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":"
        "\"web\",\"uid\":\"1d0e2a64-8b4c-4a7f-9a51-6b1c0d6b8a11\",\"controller\":true}]},"
        "\"spec\":{\"volumes\":[{\"name\":\"token\",\"secret\":{\"secretName\":\"token\","
        "\"defaultMode\":420}}],\"containers\":[{\"name\":\"main\",\"image\":"
        "\"registry.example.com/serving/web:1.27\",\"resources\":{\"limits\":{\"cpu\":\"%um\","
        "\"memory\":\"1Gi\",\"aliyun.com/gpu-mem\":\"%u\"},\"requests\":{\"cpu\":\"%um\","
        "\"memory\":\"1Gi\",\"aliyun.com/gpu-mem\":\"%u\"}},\"volumeMounts\":[{\"name\":"
        "\"token\",\"readOnly\":true,\"mountPath\":\"/var/run/secrets/kubernetes.io\"}],"
        "\"imagePullPolicy\":\"IfNotPresent\"}],\"restartPolicy\":\"Always\",\"schedulerName\":"
        "\"default-scheduler\",\"tolerations\":[{\"key\":"
        "\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
        "\"tolerationSeconds\":300}]},\"status\":{\"phase\":\"Pending\",\"qosClass\":"
        "\"Burstable\"}}",
        cpu, units, cpu, units);
}

/* Beginning with another node each turn: kube-scheduler's order changes from pod to pod. */
static void put_names(struct gs_buf *out, uint32_t count, uint32_t turn)
{
    gs_buf_puts(out, "\"Nodes\":null,\"NodeNames\":[");
    for (uint32_t i = 0; i < count; i++)
        gs_buf_printf(out, "%s\"node-%05u\"", i ? "," : "", (i + turn) % count);
    gs_buf_putc(out, ']');
}

/* A Node as kubelets leave it; what fills it up to its size is, as on real nodes, images. */
static void put_node(struct gs_buf *out, uint32_t i, uint32_t bytes)
{
    size_t begin = out->len;
    gs_buf_printf(
        out,
        "{\"metadata\":{\"name\":\"node-%05u\",\"uid\":\"5f1c2d3e-0000-4000-8000-%012x\","
        "\"resourceVersion\":\"%u\",\"labels\":{\"gpushare\":\"true\",\"kubernetes.io/hostname\":"
        "\"node-%05u\",\"kubernetes.io/arch\":\"amd64\",\"kubernetes.io/os\":\"linux\"}},"
        "\"spec\":{\"podCIDR\":\"10.%u.%u.0/24\"},\"status\":{\"capacity\":{\"cpu\":\"96\","
        "\"memory\":\"1056Gi\",\"pods\":\"110\",\"aliyun.com/gpu-mem\":\"640\","
        "\"aliyun.com/gpu-count\":\"8\"},\"allocatable\":{\"cpu\":\"95500m\",\"memory\":"
        "\"1000Gi\",\"pods\":\"110\",\"aliyun.com/gpu-mem\":\"640\",\"aliyun.com/gpu-count\":"
        "\"8\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":"
        "\"KubeletReady\",\"message\":\"kubelet is posting ready status\"}],\"images\":[",
        i, i, i + 1, i, i / 256, i % 256);
    for (uint32_t n = 0; out->len - begin < bytes && !gs_buf_failed(out); n++)
        gs_buf_printf(out,
                      "%s{\"names\":[\"registry.example.com/serving/model-%u@sha256:"
                      "4c1d8a4d1e0d2b6d6f0e6c2b9a7f5e3d1c0b9a8f7e6d5c4b3a29180716253443\"],"
                      "\"sizeBytes\":%u}",
                      n ? "," : "", n, 123456789 + n);
    gs_buf_puts(out, "]}}");
}

static void put_nodes(struct gs_buf *out, uint32_t count, uint32_t bytes)
{
    gs_buf_puts(out, "\"Nodes\":{\"metadata\":{},\"items\":[");
    for (uint32_t i = 0; i < count; i++) {
        if (i)
            gs_buf_putc(out, ',');
        put_node(out, i, bytes);
    }
    gs_buf_puts(out, "]},\"NodeNames\":null");
}

static int make_args(const struct load_settings *set, enum load_verb verb, struct load_set *to,
                     struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(TEXT_BYTES_MAX);
    uint32_t turns = set->classes > 1 ? set->classes : 2;
    if (set_init(to, turns, err) < 0)
        return -1;
    to->tail = verb == LOAD_FILTER ? "\"Error\":\"\"}" : "]"; /* nodes of one score: [] */
    for (uint32_t turn = 0; turn < turns; turn++) {
        gs_buf_puts(&body, "{\"Pod\":");
        put_pod(&body, "web", turn % set->classes, true);
        gs_buf_putc(&body, ',');
        if (set->node_bytes)
            put_nodes(&body, set->names, set->node_bytes);
        else
            put_names(&body, set->names, turn);
        gs_buf_putc(&body, '}');
        put_request(to, "POST",
                    verb == LOAD_FILTER ? "/gpushare-scheduler/filter"
                                        : "/gpushare-scheduler/prioritize",
                    "application/json", &body);
    }
    return 0;
}

static int make_creates(const struct load_settings *set, struct load_set *to, struct gs_error *err)
{
    uint32_t count = set->requests ? set->requests : CREATED_DEFAULT;
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(TEXT_BYTES_MAX);
    if (set_init(to, count, err) < 0)
        return -1;
    to->once = to->at_api = true;
    for (uint32_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "load-%u-%06u", set->classes, i);
        put_pod(&body, name, i % set->classes, false);
        put_request(to, "POST", "/api/v1/namespaces/team-00/pods", "application/json", &body);
    }
    return 0;
}

/* ---- about pods that the API server has ---- */

static void put_binding(struct load_set *to, bool direct, const json_t *meta, uint32_t node,
                        struct gs_buf *body)
{
    const char *name = gs_sim_tree_str(meta, "name"), *ns = gs_sim_tree_str(meta, "namespace");
    const char *uid = gs_sim_tree_str(meta, "uid");
    char path[600];
    if (!direct) {
        gs_buf_printf(body,
                      "{\"PodName\":\"%s\",\"PodNamespace\":\"%s\",\"PodUID\":\"%s\","
                      "\"Node\":\"node-%05u\"}",
                      name, ns, uid, node);
        put_request(to, "POST", "/gpushare-scheduler/bind", "application/json", body);
        return;
    }
    /* with annotations as the extender sends them: the server's work is to be the same */
    snprintf(path, sizeof(path), "/api/v1/namespaces/%.253s/pods/%.253s/binding", ns, name);
    gs_buf_printf(
        body,
        "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\","
        "\"namespace\":\"%s\",\"uid\":\"%s\",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\","
        "\"ALIYUN_COM_GPU_MEM_DEV\":\"80\",\"ALIYUN_COM_GPU_MEM_POD\":\"4\","
        "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\",\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":"
        "\"1735689600000000000\",\"scheduler.framework.gpushare.allocation\":"
        "\"{\\\"0\\\":{\\\"0\\\":4}}\"}},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\","
        "\"name\":\"node-%05u\"}}",
        name, ns, uid, node);
    put_request(to, "POST", path, "application/json", body);
}

static void put_event(struct load_set *to, const json_t *meta, size_t value, struct gs_buf *body)
{
    char path[600];
    snprintf(path, sizeof(path), "/api/v1/namespaces/%.253s/pods/%.253s",
             gs_sim_tree_str(meta, "namespace"), gs_sim_tree_str(meta, "name"));
    gs_buf_printf(body, "{\"metadata\":{\"annotations\":{\"load\":\"%zu\"}}}", value);
    put_request(to, "PATCH", path, "application/merge-patch+json", body);
}

/* Pods that wait (bind, direct) or any (event). */
static int list_pods(const struct load_settings *set, enum load_verb verb, json_t **ret,
                     struct gs_error *err)
{
    struct gs_names names;
    _cleanup_(gs_kube_client_freep) struct gs_kube_client *client = NULL;
    char path[128];
    if (gs_names_init(&names, "aliyun.com", err) < 0 ||
        rest_connect(set->api, &names, &client, err) < 0)
        return -1;
    if (verb == LOAD_EVENT)
        snprintf(path, sizeof(path), "/api/v1/pods?limit=%d", EVENT_PODS);
    else
        snprintf(path, sizeof(path), "/api/v1/pods?fieldSelector=spec.nodeName%%3D");
    return rest_call(client, "GET", path, NULL, NULL, ret, err);
}

/* The same pod in every run, other pods elsewhere: runs do not all fill the first nodes. */
static uint32_t node_of(const json_t *meta, uint32_t nodes)
{
    const char *uid = gs_sim_tree_str(meta, "uid");
    return (uint32_t)(gs_hash_lasting(uid, strlen(uid)) % nodes);
}

/* Two verbs that bind in one run share the pods: bind takes every other one. */
static int make_about_pods(const struct load_settings *set, enum load_verb verb,
                           struct load_set *to, struct gs_error *err)
{
    json_auto_t *tree = NULL;
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(1 << 20);
    if (list_pods(set, verb, &tree, err) < 0)
        return -1;
    const json_t *items = json_object_get(tree, "items");
    size_t count = json_array_size(items);
    /* a patch that changes nothing is no event: every pod once with each of two values */
    size_t rounds = verb == LOAD_EVENT ? 2 : 1;
    if (set_init(to, (uint32_t)(count * rounds), err) < 0)
        return -1;
    to->at_api = verb != LOAD_BIND;
    to->once = verb != LOAD_EVENT;
    to->tail = verb == LOAD_BIND ? "\"Error\":\"\"}" : NULL;
    bool shared = set->verbs[LOAD_BIND] && set->verbs[LOAD_DIRECT];
    for (size_t i = 0; i < count * rounds; i++) {
        const json_t *meta = json_object_get(json_array_get(items, i % count), "metadata");
        bool bind_takes = i % 2 == 0;
        if (verb == LOAD_EVENT)
            put_event(to, meta, i / count, &body);
        else if (!shared || bind_takes == (verb == LOAD_BIND))
            put_binding(to, verb == LOAD_DIRECT, meta, node_of(meta, set->names), &body);
    }
    return to->count ? 0 : gs_fail(err, GS_ENOENT, "the API server has no pods for it");
}

static int make_one(const struct load_settings *set, enum load_verb verb, struct load_set *to,
                    struct gs_error *err)
{
    int result = verb == LOAD_FILTER || verb == LOAD_PRIORITIZE ? make_args(set, verb, to, err)
                 : verb == LOAD_CREATE                          ? make_creates(set, to, err)
                                       : make_about_pods(set, verb, to, err);
    if (result == 0 && gs_buf_failed(&to->text))
        return gs_fail(err, GS_ETOOBIG, "the requests do not fit in memory");
    return result;
}

int load_requests_make(const struct load_settings *set, struct load_set *sets, struct gs_error *err)
{
    for (int verb = 0; verb < LOAD_VERBS; verb++) {
        if (set->verbs[verb] && make_one(set, (enum load_verb)verb, &sets[verb], err) < 0)
            return gs_error_prefix(err, "%s", load_verb_name((enum load_verb)verb));
    }
    return 0;
}
