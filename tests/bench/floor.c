/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public floor of filter and prioritize: the project's own HTTP server, and behind it nothing
 * but jansson, which builds the tree of the request and prints the answer that keeps every node.
 * What an extender that decides in no time at all would need, if it read JSON the usual way.
 *
 *   floor PORT
 */
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/http/server.h"

static int put(const char *bytes, size_t len, void *to)
{
    gs_buf_append(to, bytes, len);
    return gs_buf_failed(to) ? -1 : 0;
}

static json_t *filter_answer(json_t *args)
{
    json_t *names = json_object_get(args, "NodeNames");
    json_t *nodes = json_object_get(args, "Nodes");
    return json_pack("{s:O?, s:O?, s:{}, s:s}", "Nodes", nodes, "NodeNames", names, "FailedNodes",
                     "Error", "");
}

static json_t *prioritize_answer(json_t *args)
{
    json_t *list = json_array(), *name;
    size_t i;
    json_array_foreach(json_object_get(args, "NodeNames"), i, name)
        json_array_append_new(list, json_pack("{s:O, s:i}", "Host", name, "Score", 5));
    return list;
}

static void handle(const struct gs_http_request *req, struct gs_http_response *res,
                   json_t *(*answer_of)(json_t *))
{
    json_auto_t *args = json_loadb(req->body, req->body_len, 0, NULL);
    json_auto_t *answer = args ? answer_of(args) : NULL;
    if (!answer || json_dump_callback(answer, put, &res->body, JSON_COMPACT) < 0)
        gs_http_error(res, 400, "no JSON");
}

static void handle_filter(void *ctx, const struct gs_http_request *req,
                          struct gs_http_response *res)
{
    handle(req, res, filter_answer);
}

static void handle_prioritize(void *ctx, const struct gs_http_request *req,
                              struct gs_http_response *res)
{
    handle(req, res, prioritize_answer);
}

int main(int argc, char **argv)
{
    static const struct gs_http_route routes[] = {
        {"POST", "/gpushare-scheduler/filter", handle_filter, 0},
        {"POST", "/gpushare-scheduler/prioritize", handle_prioritize, 0},
    };
    struct gs_http_config config = GS_HTTP_CONFIG_DEFAULTS;
    struct gs_http_server *server = NULL;
    struct gs_error err = {0};
    char listen[32];
    uint32_t port;
    sigset_t ending;
    int number;
    if (argc != 2 || !gs_parse_u32(argv[1], strlen(argv[1]), &port)) {
        fputs("usage: floor PORT\n", stderr);
        return 2;
    }
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ending, NULL);
    snprintf(listen, sizeof(listen), "127.0.0.1:%" PRIu32, port);
    config.listen = listen;
    config.routes = routes;
    config.route_count = sizeof(routes) / sizeof(routes[0]);
    if (gs_http_server_start(&config, &server, &err) < 0) {
        fprintf(stderr, "floor: %s\n", err.msg);
        return 1;
    }
    sigwait(&ending, &number);
    gs_http_server_free(server);
    return 0;
}
