/* SPDX-License-Identifier: Apache-2.0 */
#include "api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api_internal.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"

#define BOOKMARK_NS_DEFAULT (10 * GS_NS_PER_S)

int gs_sim_api_new(struct gs_sim_cluster *cluster, const struct gs_sim_api_options *options,
                   struct gs_sim_api **ret_api, struct gs_error *err)
{
    struct gs_sim_api *api = calloc(1, sizeof(*api));
    if (!api)
        return gs_fail_nomem(err);
    api->cluster = cluster;
    api->bookmark_ns = options->bookmark_ns ? options->bookmark_ns : BOOKMARK_NS_DEFAULT;
    if (options->token && !(api->token = strdup(options->token))) {
        free(api);
        return gs_fail_nomem(err);
    }
    *ret_api = api;
    return 0;
}

void gs_sim_api_free(struct gs_sim_api *api)
{
    if (!api)
        return;
    free(api->token);
    free(api);
}

void gs_sim_reply_release(struct gs_sim_reply *reply)
{
    gs_buf_release(&reply->body);
    gs_sim_stream_free(reply->stream);
    reply->stream = NULL;
}

/* ---- the path ---- */

static struct gs_sim_path split_path(const char *path)
{
    struct gs_sim_path ret = {0};
    while (*path && ret.count < GS_SIM_SEGMENTS_MAX) {
        path += strspn(path, "/");
        size_t len = strcspn(path, "/");
        if (len > 0)
            ret.segments[ret.count++] = (struct gs_slice){path, len};
        path += len;
    }
    return ret;
}

static bool copy_slice(struct gs_slice from, char *to, size_t size)
{
    if (from.len >= size)
        return false;
    memcpy(to, from.at, from.len);
    to[from.len] = 0;
    return true;
}

/* [namespaces/NS/]PLURAL[/NAME[/SUB]] below a group and version. */
static bool find_target(struct gs_sim_call *call, const struct gs_sim_path *path)
{
    bool core = path->count > 2 && gs_slice_eq(path->segments[0], GS_SLICE("api"));
    bool group = path->count > 3 && gs_slice_eq(path->segments[0], GS_SLICE("apis"));
    size_t at = core ? 2 : 3;
    if (!core && !group)
        return false;
    struct gs_slice version = path->segments[at - 1], api = {path->segments[1].at, 0};
    api.len = (size_t)(version.at + version.len - api.at);
    if (gs_slice_eq(path->segments[at], GS_SLICE("namespaces")) && path->count > at + 2) {
        if (!copy_slice(path->segments[at + 1], call->ns, sizeof(call->ns)))
            return false;
        at += 2;
    }
    call->kind = gs_sim_kind_of_plural(api, path->segments[at]);
    if (call->kind == GS_SIM_KINDS)
        return false;
    if (call->ns[0] && !gs_sim_resource(call->kind)->namespaced)
        return false;
    size_t rest = path->count - at - 1;
    return rest <= 2 &&
           (rest < 1 || copy_slice(path->segments[at + 1], call->name, sizeof(call->name))) &&
           (rest < 2 || copy_slice(path->segments[at + 2], call->sub, sizeof(call->sub)));
}

/* ---- dispatch ---- */

static bool sub_served(const struct gs_sim_call *call)
{
    if (!call->sub[0])
        return true;
    if (strcmp(call->sub, "status") == 0)
        return gs_sim_resource(call->kind)->has_status;
    return call->kind == GS_SIM_PODS && strcmp(call->sub, "binding") == 0 &&
           strcmp(call->req->method, "POST") == 0;
}

/* A namespaced object has a namespace in its path, but for lists and watches over all of them. */
static bool place_ok(const struct gs_sim_call *call)
{
    bool read_all = strcmp(call->req->method, "GET") == 0 && !call->name[0];
    return !gs_sim_resource(call->kind)->namespaced || call->ns[0] || read_all;
}

static void serve_resource(struct gs_sim_call *call)
{
    static const struct {
        const char *method;
        int (*verb)(struct gs_sim_call *call);
        bool needs_name;
    } verbs[] = {
        {"GET", gs_sim_do_get, false},      {"POST", gs_sim_do_post, false},
        {"PUT", gs_sim_do_put, true},       {"PATCH", gs_sim_do_patch, true},
        {"DELETE", gs_sim_do_delete, true},
    };
    if (gs_sim_call_query(call, "dryRun")[0]) {
        gs_sim_reply_plain_error(call->ret, 400, "BadRequest",
                                 "gpushare-sim does not support dryRun");
        return;
    }
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verbs[i].method, call->req->method) != 0 ||
            (verbs[i].needs_name && !call->name[0]))
            continue;
        if (verbs[i].verb(call) < 0)
            gs_sim_reply_error(call->ret, &call->err);
        return;
    }
    gs_sim_reply_plain_error(call->ret, 405, "MethodNotAllowed",
                             "the server does not allow this method on the requested resource");
}

static bool serve_plain(const struct gs_sim_path *path, struct gs_sim_reply *ret)
{
    static const struct gs_slice health[] = {{"healthz", 7}, {"readyz", 6}, {"livez", 5}};
    if (path->count == 0)
        return false;
    for (size_t i = 0; i < 3; i++) {
        if (gs_slice_eq(path->segments[0], health[i])) {
            ret->content_type = "text/plain";
            gs_buf_puts(&ret->body, "ok");
            return true;
        }
    }
    if (path->count != 1 || !gs_slice_eq(path->segments[0], GS_SLICE("version")))
        return false;
    gs_buf_puts(
        &ret->body,
        "{\"major\":\"1\",\"minor\":\"32\",\"gitVersion\":\"v1.32.0-gpushare-sim." GS_VERSION
        "\",\"platform\":\"linux/amd64\"}");
    return true;
}

static bool authorized(const struct gs_sim_api *api, const char *header)
{
    static const char scheme[] = "Bearer ";
    return !api->token || (header && strncmp(header, scheme, sizeof(scheme) - 1) == 0 &&
                           strcmp(header + sizeof(scheme) - 1, api->token) == 0);
}

void gs_sim_api_handle(struct gs_sim_api *api, const struct gs_sim_request *request,
                       struct gs_sim_reply *ret)
{
    struct gs_sim_path path = split_path(request->path);
    struct gs_sim_call call = {.api = api, .req = request, .ret = ret};
    ret->status = 200;
    ret->content_type = "application/json";
    if (serve_plain(&path, ret))
        return;
    if (!authorized(api, request->authorization)) {
        gs_fail(&call.err, GS_EAUTH, "Unauthorized");
        gs_sim_reply_error(ret, &call.err);
        return;
    }
    if (strcmp(request->method, "GET") == 0 && gs_sim_discovery(request->path, ret))
        return;
    if (!find_target(&call, &path) || !sub_served(&call) || !place_ok(&call))
        gs_sim_reply_plain_error(ret, 404, "NotFound",
                                 "the server could not find the requested resource");
    else
        serve_resource(&call);
    if (gs_buf_failed(&ret->body))
        gs_sim_reply_plain_error(ret, 500, "InternalError",
                                 "the response is too large, or out of memory");
}
