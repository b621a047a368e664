/* SPDX-License-Identifier: Apache-2.0 */
#include "api.h"

#include <string.h>

#include "api_internal.h"

void gs_sim_reply_release(struct gs_sim_reply *reply)
{
    gs_buf_release(&reply->body);
    gs_sim_stream_free(reply->stream);
    reply->stream = NULL;
}

/* ---- the path ---- */

/* Taken apart; slices of it. */
enum { SEGMENTS_MAX = 8 };

struct path {
    struct gs_slice segments[SEGMENTS_MAX];
    size_t count;
};

static struct path split_path(const char *path)
{
    struct path ret = {0};
    while (*path && ret.count < SEGMENTS_MAX) {
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
static bool find_target(struct gs_sim_call *call, const struct path *path)
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

static int serve_resource(struct gs_sim_call *call)
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
    if (gs_sim_call_query(call, "dryRun")[0])
        return gs_fail(&call->err, GS_EPROTO, "gpushare-sim does not support dryRun");
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verbs[i].method, call->req->method) == 0 &&
            (!verbs[i].needs_name || call->name[0]))
            return verbs[i].verb(call);
    }
    return gs_sim_reply_refused(call->ret, 405, "MethodNotAllowed",
                                "the server does not allow this method on the requested resource");
}

static bool authorized(const struct gs_sim_api *api, const char *header)
{
    static const char scheme[] = "Bearer ";
    return !api->token || (header && strncmp(header, scheme, sizeof(scheme) - 1) == 0 &&
                           strcmp(header + sizeof(scheme) - 1, api->token) == 0);
}

static int serve(struct gs_sim_call *call)
{
    const struct gs_sim_request *request = call->req;
    struct path path = split_path(request->path);
    if (!authorized(call->api, request->authorization))
        return gs_fail(&call->err, GS_EAUTH, "Unauthorized");
    if (strcmp(request->method, "GET") == 0 && gs_sim_discovery(request->path, call->ret))
        return 0;
    if (!find_target(call, &path) || !sub_served(call) || !place_ok(call))
        return gs_fail(&call->err, GS_ENOENT, "the server could not find the requested resource");
    if (serve_resource(call) < 0)
        return -1;
    return gs_buf_failed(&call->ret->body)
               ? gs_fail(&call->err, GS_EINTERNAL, "the response is too large, or out of memory")
               : 0;
}

void gs_sim_api_handle(const struct gs_sim_api *api, const struct gs_sim_request *request,
                       struct gs_sim_reply *ret)
{
    struct gs_sim_call call = {.api = api, .req = request, .ret = ret};
    ret->status = 200;
    ret->content_type = "application/json";
    if (serve(&call) < 0)
        gs_sim_reply_error(ret, &call.err);
}
