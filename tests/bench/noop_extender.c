/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cheapest extender there can be, over this project's own HTTP server and API client: filter
 * keeps every node, prioritize says nothing, bind forwards the binding. What kube-scheduler reaches
 * with it is the ceiling for every extender (tests/bench/e2e_rate). Node objects it reads and
 * prints the usual way, with jansson: what an extender that decides in no time would need for them
 * (scripts/bench.sh). It decides nothing, counts nothing, and trusts its caller.
 *
 *   noop_extender PORT [KUBECONFIG]      without one there is no bind
 */
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/http/server.h"
#include "gpushare/kube/client.h"

static struct gs_kube_client *client;

static int put(const char *bytes, size_t len, void *to)
{
    gs_buf_append(to, bytes, len);
    return gs_buf_failed(to) ? -1 : 0;
}

static void answer_objects(const struct gs_http_request *req, struct gs_http_response *res)
{
    json_auto_t *args = json_loadb(req->body, req->body_len, 0, NULL);
    json_auto_t *answer =
        json_pack("{s:O?, s:n, s:{}, s:s}", "Nodes", json_object_get(args, "Nodes"), "NodeNames",
                  "FailedNodes", "Error", "");
    if (!answer || json_dump_callback(answer, put, &res->body, JSON_COMPACT) < 0)
        gs_http_error(res, 400, "no JSON");
}

/* Names are not read: kube-scheduler writes that member last. */
static void filter(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    static const char key[] = "\"NodeNames\":[";
    const char *names = memmem(req->body, req->body_len, key, sizeof(key) - 1);
    const char *end =
        names ? memchr(names, ']', (size_t)(req->body + req->body_len - names)) : NULL;
    if (end)
        gs_buf_printf(&res->body, "{%.*s],\"FailedNodes\":{},\"Error\":\"\"}", (int)(end - names),
                      names);
    else
        answer_objects(req, res);
}

static void prioritize(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    gs_buf_puts(&res->body, "[]");
}

static void bind_pod(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    _cleanup_(gs_buf_release) struct gs_buf said = GS_BUF(1 << 20);
    json_auto_t *args = json_loadb(req->body, req->body_len, 0, NULL);
    const char *name, *namespace, *node;
    struct gs_error err = {0};
    char path[600], body[600];
    int status = 0;
    if (!client || json_unpack(args, "{s:s,s:s,s:s}", "PodName", &name, "PodNamespace", &namespace,
                               "Node", &node) < 0) {
        gs_http_error(res, 400, "no bind");
        return;
    }
    snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s/binding", namespace, name);
    snprintf(body, sizeof(body),
             "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\"},"
             "\"target\":{\"kind\":\"Node\",\"name\":\"%s\"}}",
             name, node);
    const struct gs_kube_request post = {
        .method = "POST", .path = path, .body = body, .body_len = strlen(body)};
    if (gs_kube_request(client, &post, &status, &said, &err) < 0 || status != 201)
        gs_buf_printf(&res->body, "{\"Error\":\"the API server answered %d\"}", status);
    else
        gs_buf_puts(&res->body, "{\"Error\":\"\"}");
}

static int start(char **argv, struct gs_http_server **ret, struct gs_error *err)
{
    static const struct gs_http_route routes[] = {
        {"POST", "/gpushare-scheduler/filter", filter, 0},
        {"POST", "/gpushare-scheduler/prioritize", prioritize, 0},
        {"POST", "/gpushare-scheduler/bind", bind_pod, GS_HTTP_BLOCKING},
    };
    const struct gs_kube_options options = {.program = "noop"};
    struct gs_kube_config kubeconfig;
    struct gs_http_config config = GS_HTTP_CONFIG_DEFAULTS;
    char listen[32];
    snprintf(listen, sizeof(listen), "127.0.0.1:%s", argv[1]);
    config.listen = listen;
    config.routes = routes;
    config.route_count = sizeof(routes) / sizeof(routes[0]);
    if (argv[2] && (gs_kube_config_load(argv[2], &kubeconfig, err) < 0 ||
                    gs_kube_client_new(&kubeconfig, &options, &client, err) < 0))
        return -1;
    return gs_http_server_start(&config, ret, err);
}

int main(int argc, char **argv)
{
    struct gs_http_server *server = NULL;
    struct gs_error err = {0};
    sigset_t ending;
    int number;
    if (argc < 2 || argc > 3) {
        fputs("usage: noop_extender PORT [KUBECONFIG]\n", stderr);
        return 2;
    }
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ending, NULL);
    if (start(argv, &server, &err) < 0) {
        fprintf(stderr, "noop_extender: %s\n", err.msg);
        return 1;
    }
    sigwait(&ending, &number);
    gs_http_server_free(server);
    gs_kube_client_free(client);
    return 0;
}
