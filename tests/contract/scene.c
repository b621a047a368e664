/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/base/clock.h"
#include "gpushare/kube/kubeconfig.h"
#include "watch_recorder.h"

static void connect_client(struct scene *f)
{
    char url[64];
    struct gs_error err = {0};
    struct gs_kube_config config = {0};
    const struct gs_kube_options options = {
        .program = "contract",
        .names = &f->names,
        .page_limit = 3, /* so that lists take several pages */
        .backoff_min_ns = 10 * GS_NS_PER_MS,
        .backoff_max_ns = 100 * GS_NS_PER_MS,
    };
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", api_server_port(f->server));
    expect_ok(gs_kube_config_plain(url, &config, &err), &err);
    expect_ok(gs_kube_client_new(&config, &options, &f->client, &err), &err);
    f->kube = gs_kube_client_port(f->client);
}

int scene_open(void **state)
{
    struct gs_error err = {0};
    const struct gs_sim_options cluster = {0};
    struct scene *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    expect_ok(gs_names_init(&f->names, "aliyun.com", &err), &err);
    expect_ok(gs_sim_cluster_new(&cluster, &f->cluster, &err), &err);
    expect_ok(api_server_start(f->cluster, NULL, "127.0.0.1:0", &f->server, &err), &err);
    connect_client(f);
    *state = f;
    return 0;
}

int scene_close(void **state)
{
    struct scene *f = *state;
    recorder_stop_all();
    gs_kube_client_free(f->client);
    api_server_stop(f->server);
    gs_sim_cluster_free(f->cluster);
    free(f);
    return 0;
}

static void load(struct scene *f, const char *kind, const char *json)
{
    struct gs_error err = {0};
    expect_ok(gs_sim_load_object(f->cluster, "v1", kind, gs_slice_of(json), &err), &err);
}

void make_node(struct scene *f, const char *name, unsigned units, unsigned count)
{
    _cleanup_free_ char *json = NULL;
    assert_true(asprintf(&json,
                         "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\","
                         "\"labels\":{\"gpushare\":\"true\"}},\"status\":{"
                         "\"capacity\":{\"cpu\":\"8\",\"memory\":\"16Gi\",\"%s\":\"%u\","
                         "\"%s\":\"%u\"},\"allocatable\":{\"cpu\":\"8\",\"memory\":\"16Gi\","
                         "\"%s\":\"%u\",\"%s\":\"%u\"},\"conditions\":[{\"type\":\"Ready\","
                         "\"status\":\"True\"}],\"addresses\":[{\"type\":\"InternalIP\","
                         "\"address\":\"10.0.0.1\"}]}}",
                         name, f->names.gpu_mem, units, f->names.gpu_count, count, f->names.gpu_mem,
                         units, f->names.gpu_count, count) > 0);
    load(f, "Node", json);
}

void make_pod(struct scene *f, const char *ns, const char *name, unsigned units, const char *node)
{
    _cleanup_free_ char *json = NULL;
    _cleanup_free_ char *limits = NULL;
    _cleanup_free_ char *bound = NULL;
    assert_true(asprintf(&limits, ",\"%s\":\"%u\"", f->names.gpu_mem, units) > 0);
    assert_true(asprintf(&bound, "\"nodeName\":\"%s\",", node) > 0);
    assert_true(asprintf(&json,
                         "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
                         "\"namespace\":\"%s\"},\"spec\":{%s\"containers\":[{\"name\":\"c\","
                         "\"image\":\"busybox\",\"resources\":{\"limits\":{\"cpu\":\"1\"%s}}}]},"
                         "\"status\":{\"phase\":\"Pending\"}}",
                         name, ns, node[0] ? bound : "", units > 0 ? limits : "") > 0);
    load(f, "Pod", json);
}

void delete_object(struct scene *f, enum gs_sim_kind kind, const char *ns, const char *name)
{
    struct gs_error err = {0};
    expect_ok(gs_sim_delete(f->cluster, kind, ns, name, GS_SLICE(""), NULL, &err), &err);
}

void uid_of_pod(struct scene *f, const char *ns, const char *name, char ret[UID_BYTES])
{
    struct gs_pod pod = {0};
    struct gs_error err = {0};
    expect_ok(f->kube.ops->get_pod(f->kube.ctx, ns, name, &pod, &err), &err);
    snprintf(ret, UID_BYTES, "%s", pod.uid);
    gs_pod_release(&pod);
}

/* JSON is searched as text without spaces. */
static void remove_spaces(char *text)
{
    bool quoted = false;
    char *to = text;
    for (char *from = text; *from; from++) {
        if (*from == '"' && (from == text || from[-1] != '\\'))
            quoted = !quoted;
        if (quoted || !strchr(" \n\r\t", *from))
            *to++ = *from;
    }
    *to = '\0';
}

bool pod_says(struct scene *f, const char *ns, const char *name, const char *words)
{
    struct gs_sim_object *object;
    struct gs_error err = {0};
    expect_ok(gs_sim_get(f->cluster, GS_SIM_PODS, ns, name, &object, &err), &err);
    _cleanup_free_ char *json = strndup(object->json, object->json_len);
    gs_sim_object_unref(object);
    assert_non_null(json);
    remove_spaces(json);
    return strstr(json, words) != NULL;
}
