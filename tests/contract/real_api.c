/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract on the curl client and a real API server that $KUBECONFIG names: one that nothing
 * else uses, with ServiceAccount admission off. Deletes every pod, node, event and lease it finds.
 * No test of ctest, which has no Kubernetes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/clock.h"
#include "gpushare/kube/client.h"
#include "kube_ops_contract.h"

struct real {
    struct gs_names names;
    struct gs_kube_client *client;
};

static const char *const namespaces[] = {"default", "team", "a", "b"};
enum { NAMESPACES = sizeof(namespaces) / sizeof(namespaces[0]) };

/* *ret (may be NULL): the answer's body, caller frees. -1 when it is no 2xx. */
static int call(struct real *real, const char *method, const char *path, const char *type,
                const char *body, char **ret)
{
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(64 << 20);
    struct gs_kube_request request = {.method = method,
                                      .path = path,
                                      .content_type = type,
                                      .body = body,
                                      .body_len = body ? strlen(body) : 0};
    struct gs_error err = {0};
    int status = 0;
    if (gs_kube_request(real->client, &request, &status, &answer, &err) < 0) {
        fprintf(stderr, "%s %s: %s\n", method, path, err.msg);
        return -1;
    }
    if (status >= 300)
        return -1;
    if (ret)
        *ret = gs_buf_steal(&answer);
    return 0;
}

/* The value of "key":"…" in compact JSON; for the few names the suite uses. */
static void text_of(const char *json, const char *key, char *ret, size_t size)
{
    char quoted[64];
    snprintf(quoted, sizeof(quoted), "\"%s\":\"", key);
    const char *at = strstr(json, quoted);
    at = at ? at + strlen(quoted) : "";
    snprintf(ret, size, "%.*s", (int)strcspn(at, "\""), at);
}

/* Creates the object, then puts its status, which a create leaves out. */
static int create(struct real *real, const char *collection, const char *json)
{
    char name[128], path[512];
    text_of(json, "name", name, sizeof(name));
    if (call(real, "POST", collection, "application/json", json, NULL) < 0)
        return -1;
    const char *status = strstr(json, "\"status\":");
    _cleanup_free_ char *patch = NULL;
    if (!status || asprintf(&patch, "{%s", status) < 0)
        return status ? -1 : 0;
    snprintf(path, sizeof(path), "%s/%s/status", collection, name);
    return call(real, "PATCH", path, "application/merge-patch+json", patch, NULL);
}

static int create_node_json(void *ctx, const char *json)
{
    return create(ctx, "/api/v1/nodes", json);
}

static int create_pod_json(void *ctx, const char *json)
{
    char ns[128], collection[256];
    text_of(json, "namespace", ns, sizeof(ns));
    snprintf(collection, sizeof(collection), "/api/v1/namespaces/%s/pods", ns);
    return create(ctx, collection, json);
}

static int delete_node(void *ctx, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "/api/v1/nodes/%s", name);
    return call(ctx, "DELETE", path, NULL, NULL, NULL);
}

static int delete_pod(void *ctx, const char *ns, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", ns, name);
    return call(ctx, "DELETE", path, "application/json", "{\"gracePeriodSeconds\":0}", NULL);
}

static int set_phase(void *ctx, const char *ns, const char *name, const char *phase)
{
    char path[512], patch[128];
    snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s/status", ns, name);
    snprintf(patch, sizeof(patch), "{\"status\":{\"phase\":\"%s\"}}", phase);
    return call(ctx, "PATCH", path, "application/merge-patch+json", patch, NULL);
}

static char *get(struct real *real, const char *path)
{
    char *text = NULL;
    return call(real, "GET", path, NULL, NULL, &text) < 0 ? NULL : text;
}

static char *pod_json(void *ctx, const char *ns, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", ns, name);
    return get(ctx, path);
}

static char *node_json(void *ctx, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "/api/v1/nodes/%s", name);
    return get(ctx, path);
}

static char *events_json(void *ctx, const char *ns)
{
    char path[512];
    snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events", ns);
    return get(ctx, path);
}

static int empty_cluster(struct real *real)
{
    static const char at_once[] = "{\"gracePeriodSeconds\":0}";
    int result = call(real, "DELETE", "/api/v1/nodes", "application/json", at_once, NULL);
    for (size_t i = 0; i < NAMESPACES; i++) {
        static const char *const kinds[] = {"pods", "events"};
        char path[512], body[256];
        snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"}}", namespaces[i]);
        call(real, "POST", "/api/v1/namespaces", "application/json", body, NULL);
        for (size_t kind = 0; kind < 2 && result == 0; kind++) {
            snprintf(path, sizeof(path), "/api/v1/namespaces/%s/%s", namespaces[i], kinds[kind]);
            result = call(real, "DELETE", path, "application/json", at_once, NULL);
        }
    }
    call(real, "DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases",
         "application/json", at_once, NULL);
    return result;
}

static int open_real(struct gs_kube_fixture *ret)
{
    struct real *real = calloc(1, sizeof(*real));
    struct gs_kube_config config = {0};
    struct gs_error err = {0};
    if (!real || gs_names_init(&real->names, "aliyun.com", &err) < 0 ||
        gs_kube_config_load(getenv("KUBECONFIG"), &config, &err) < 0 ||
        gs_kube_client_new(&config,
                           &(struct gs_kube_options){.program = "contract",
                                                     .names = &real->names,
                                                     .request_timeout_ns = 60 * GS_NS_PER_S},
                           &real->client, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return -1;
    }
    *ret = (struct gs_kube_fixture){
        .ctx = real,
        .kube = gs_kube_client_port(real->client),
        .names = &real->names,
        .create_node_json = create_node_json,
        .create_pod_json = create_pod_json,
        .delete_node = delete_node,
        .delete_pod = delete_pod,
        .set_phase = set_phase,
        .pod_json = pod_json,
        .node_json = node_json,
        .events_json = events_json,
    };
    return empty_cluster(real);
}

static void close_real(struct gs_kube_fixture *fixture)
{
    struct real *real = fixture->ctx;
    gs_kube_client_free(real->client);
    free(real);
}

int main(void)
{
    if (!getenv("KUBECONFIG")) {
        fprintf(stderr, "usage: KUBECONFIG=FILE contract_real_api, of a cluster to be emptied\n");
        return 2;
    }
    return gs_kube_ops_contract_run(
        &(struct gs_kube_backend){.name = "API server", .open = open_real, .close = close_real});
}
