/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/sim/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api_internal.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/status.h"

#define BOOKMARK_NS_DEFAULT (10 * GS_NS_PER_S)
#define WATCH_NS_DEFAULT    (1800 * GS_NS_PER_S) /* --min-request-timeout */

int gs_sim_api_new(struct gs_sim_cluster *cluster, const struct gs_sim_api_options *options,
                   struct gs_sim_api **ret_api, struct gs_error *err)
{
    struct gs_sim_api *api = calloc(1, sizeof(*api));
    if (!api)
        return gs_fail_nomem(err);
    api->cluster = cluster;
    api->names = options->names;
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

/* ---- failures ---- */

int gs_sim_status_put(const struct gs_error *err, struct gs_buf *out)
{
    static const struct {
        enum gs_code code;
        int http;
        const char *reason;
    } rows[] = {
        {GS_EPROTO, 400, "BadRequest"},    {GS_EAUTH, 401, "Unauthorized"},
        {GS_EDENIED, 403, "Forbidden"},    {GS_ENOENT, 404, "NotFound"},
        {GS_EEXIST, 409, "AlreadyExists"}, {GS_ECONFLICT, 409, "Conflict"},
        {GS_EGONE, 410, "Expired"},        {GS_ETOOBIG, 413, "RequestEntityTooLarge"},
        {GS_EINVAL, 422, "Invalid"},       {GS_EBUSY, 429, "TooManyRequests"},
        {GS_ETIMEOUT, 504, "Timeout"},
    };
    struct gs_api_status status = {.code = 500, .reason = "InternalError"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].code == err->code) {
            status.code = rows[i].http;
            snprintf(status.reason, sizeof(status.reason), "%s", rows[i].reason);
        }
    }
    snprintf(status.message, sizeof(status.message), "%s", err->msg);
    gs_codec_status_encode(out, &status);
    return status.code;
}

void gs_sim_reply_error(struct gs_sim_reply *ret, const struct gs_error *err)
{
    gs_buf_reset(&ret->body);
    ret->status = gs_sim_status_put(err, &ret->body);
}

/* For what has no code of its own. */
static void reply_plain_error(struct gs_sim_reply *ret, int http, const char *reason,
                              const char *message)
{
    struct gs_api_status status = {.code = http};
    snprintf(status.reason, sizeof(status.reason), "%s", reason);
    snprintf(status.message, sizeof(status.message), "%s", message);
    gs_buf_reset(&ret->body);
    gs_codec_status_encode(&ret->body, &status);
    ret->status = http;
}

/* ---- the parts of a request ---- */

/* One request on its way; the target's strings are NUL-terminated copies. */
struct call {
    struct gs_sim_api *api;
    const struct gs_sim_request *req;
    struct gs_sim_reply *ret;
    enum gs_sim_kind kind;
    char ns[256];
    char name[256];
    char sub[32];
    struct gs_error err;
};

static const char *query(const struct call *call, const char *name)
{
    const char *value = call->req->query(call->req->query_ctx, name);
    return value ? value : "";
}

static bool query_bool(const struct call *call, const char *name)
{
    const char *text = query(call, name);
    bool value = false;
    return gs_parse_bool(text, strlen(text), &value) && value;
}

/* Absent: 0. */
static int query_u64(struct call *call, const char *name, uint64_t *ret)
{
    const char *text = query(call, name);
    *ret = 0;
    if (text[0] && !gs_parse_u64(text, strlen(text), ret))
        return gs_fail(&call->err, GS_EPROTO, "query argument %s is no number", name);
    return 0;
}

static enum gs_sim_form wanted_form(const struct call *call)
{
    const char *accept = call->req->accept;
    return accept && strstr(accept, "as=Table") ? GS_SIM_TABLE : GS_SIM_JSON;
}

static enum gs_sim_include wanted_include(const struct call *call)
{
    const char *text = query(call, "includeObject");
    if (strcmp(text, "Object") == 0)
        return GS_SIM_INCLUDE_OBJECT;
    return strcmp(text, "None") == 0 ? GS_SIM_INCLUDE_NONE : GS_SIM_INCLUDE_METADATA;
}

static bool accepts_json(const char *accept)
{
    return !accept || !accept[0] || strstr(accept, "json") || strstr(accept, "*/*") ||
           strstr(accept, "application/*");
}

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
static bool find_target(struct call *call, const struct gs_sim_path *path)
{
    bool core = path->count > 2 && gs_slice_eq(path->segments[0], GS_SLICE("api"));
    bool group = path->count > 3 && gs_slice_eq(path->segments[0], GS_SLICE("apis"));
    size_t at = core ? 2 : 3;
    if (!core && !group)
        return false;
    struct gs_slice empty = {"", 0};
    if (gs_slice_eq(path->segments[at], GS_SLICE("namespaces")) && path->count > at + 2) {
        if (!copy_slice(path->segments[at + 1], call->ns, sizeof(call->ns)))
            return false;
        at += 2;
    }
    struct gs_slice plural = path->segments[at];
    call->kind = gs_sim_kind_of_plural(group ? path->segments[1] : empty,
                                       path->segments[core ? 1 : 2], plural);
    /* namespaces/NAME/status is no resource in a namespace. */
    if (call->kind == GS_SIM_KINDS && core && call->ns[0] && path->count == at + 1 &&
        gs_slice_eq(plural, GS_SLICE("status"))) {
        call->kind = GS_SIM_NAMESPACES;
        memcpy(call->name, call->ns, sizeof(call->name));
        call->ns[0] = 0;
        memcpy(call->sub, "status", sizeof("status"));
        return true;
    }
    if (call->kind == GS_SIM_KINDS && gs_slice_eq(plural, GS_SLICE("bindings")) &&
        path->count == at + 1) {
        call->kind = GS_SIM_PODS;
        memcpy(call->sub, "binding", sizeof("binding"));
        return call->ns[0] != 0;
    }
    if (call->kind == GS_SIM_KINDS || (call->ns[0] && !gs_sim_resource(call->kind)->namespaced))
        return false;
    size_t rest = path->count - at - 1;
    return rest <= 2 &&
           (rest < 1 || copy_slice(path->segments[at + 1], call->name, sizeof(call->name))) &&
           (rest < 2 || copy_slice(path->segments[at + 2], call->sub, sizeof(call->sub)));
}

/* ---- answers ---- */

static void reply_object(struct call *call, int http, struct gs_sim_object *object)
{
    call->ret->status = http;
    if (wanted_form(call) == GS_SIM_TABLE && strcmp(call->req->method, "GET") == 0) {
        gs_sim_table_begin(call->kind, object->version, "", 0, &call->ret->body);
        gs_sim_table_row(call->api, object, wanted_include(call), &call->ret->body);
        gs_sim_table_end(&call->ret->body);
    } else {
        gs_sim_object_put(object, &call->ret->body);
    }
    gs_sim_object_unref(object);
}

static void reply_success(struct call *call, int http, const char *uid)
{
    struct gs_buf *out = &call->ret->body;
    call->ret->status = http;
    gs_buf_puts(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                     "\"status\":\"Success\"");
    if (uid) {
        gs_buf_puts(out, ",\"details\":{\"name\":");
        gs_buf_json_string(out, call->name, strlen(call->name));
        gs_buf_printf(out, ",\"kind\":\"%s\",\"uid\":", gs_sim_resource(call->kind)->plural);
        gs_buf_json_string(out, uid, strlen(uid));
        gs_buf_putc(out, '}');
    }
    if (http == 201)
        gs_buf_puts(out, ",\"code\":201");
    gs_buf_putc(out, '}');
}

static void reply_list(struct call *call, const struct gs_sim_list *list)
{
    const struct gs_sim_resource *res = gs_sim_resource(call->kind);
    struct gs_buf *out = &call->ret->body;
    call->ret->status = 200;
    if (wanted_form(call) == GS_SIM_TABLE) {
        gs_sim_table_begin(call->kind, list->version, list->next, list->remaining, out);
        for (size_t i = 0; i < list->count; i++) {
            if (i > 0)
                gs_buf_putc(out, ',');
            gs_sim_table_row(call->api, list->items[i], wanted_include(call), out);
        }
        gs_sim_table_end(out);
        return;
    }
    gs_buf_printf(out, "{\"kind\":\"%sList\",\"apiVersion\":\"%s%s%s\",\"metadata\":{", res->kind,
                  res->group, res->group[0] ? "/" : "", res->version);
    gs_buf_printf(out, "\"resourceVersion\":\"%llu\"", (unsigned long long)list->version);
    if (list->next[0])
        gs_buf_printf(out, ",\"continue\":\"%s\",\"remainingItemCount\":%llu", list->next,
                      (unsigned long long)list->remaining);
    gs_buf_puts(out, "},\"items\":[");
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            gs_buf_putc(out, ',');
        gs_buf_append(out, list->items[i]->json, list->items[i]->json_len);
    }
    gs_buf_puts(out, "]}");
}

/* ---- verbs ---- */

static struct gs_sim_query make_query(const struct call *call, char field[320])
{
    struct gs_sim_query ret = {
        .kind = call->kind,
        .ns = call->ns,
        .field_selector = query(call, "fieldSelector"),
        .label_selector = query(call, "labelSelector"),
    };
    if (call->name[0]) { /* a watch of one object by its own path */
        snprintf(field, 320, "metadata.name=%s", call->name);
        ret.field_selector = field;
    }
    return ret;
}

static int do_watch(struct call *call)
{
    char field[320];
    struct gs_sim_query about = make_query(call, field);
    uint64_t seconds;
    struct gs_sim_stream_spec spec = {
        .query = &about,
        .bookmarks = query_bool(call, "allowWatchBookmarks"),
        .form = wanted_form(call),
        .include = wanted_include(call),
    };
    if (query(call, "sendInitialEvents")[0])
        return gs_fail(&call->err, GS_EINVAL,
                       "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: "
                       "sendInitialEvents is forbidden for watch unless the WatchList feature gate "
                       "is enabled");
    if (query_u64(call, "resourceVersion", &spec.from) < 0 ||
        query_u64(call, "timeoutSeconds", &seconds) < 0)
        return -1;
    spec.timeout_ns =
        seconds && seconds < 1000000 ? (int64_t)seconds * GS_NS_PER_S : WATCH_NS_DEFAULT;
    call->ret->status = 200;
    return gs_sim_stream_open(call->api, &spec, &call->ret->stream, &call->err);
}

static int do_list(struct call *call)
{
    char field[320];
    uint64_t limit, version;
    struct gs_sim_list list;
    struct gs_sim_query about = make_query(call, field);
    if (query_u64(call, "limit", &limit) < 0 || query_u64(call, "resourceVersion", &version) < 0)
        return -1;
    if (version > gs_sim_cluster_version(call->api->cluster))
        return gs_fail(&call->err, GS_ETIMEOUT, "Too large resource version: %llu",
                       (unsigned long long)version);
    if (gs_sim_list(call->api->cluster, &about, limit, query(call, "continue"), &list, &call->err) <
        0)
        return -1;
    reply_list(call, &list);
    gs_sim_list_release(&list);
    return 0;
}

static int do_get(struct call *call)
{
    struct gs_sim_object *object;
    if (query_bool(call, "watch"))
        return do_watch(call);
    if (!call->name[0])
        return do_list(call);
    if (gs_sim_get(call->api->cluster, call->kind, call->ns, call->name, &object, &call->err) < 0)
        return -1;
    reply_object(call, 200, object);
    return 0;
}

static int do_bind(struct call *call)
{
    if (gs_sim_bind(call->api->cluster, call->ns, call->name, call->req->body, &call->err) < 0)
        return -1;
    reply_success(call, 201, NULL);
    return 0;
}

static int do_post(struct call *call)
{
    struct gs_sim_object *object;
    if (strcmp(call->sub, "binding") == 0 && call->kind == GS_SIM_PODS)
        return do_bind(call);
    if (call->name[0] || call->sub[0]) {
        reply_plain_error(call->ret, 405, "MethodNotAllowed",
                          "the server does not allow this method on the requested resource");
        return 0;
    }
    if (gs_sim_create(call->api->cluster, call->kind, call->ns, call->req->body, &object,
                      &call->err) < 0)
        return -1;
    reply_object(call, 201, object);
    return 0;
}

static int do_put(struct call *call)
{
    struct gs_sim_object *object;
    enum gs_sim_part part = call->sub[0] ? GS_SIM_STATUS : GS_SIM_MAIN;
    if (gs_sim_update(call->api->cluster, call->kind, part, call->ns, call->name, call->req->body,
                      &object, &call->err) < 0)
        return -1;
    reply_object(call, 200, object);
    return 0;
}

static int do_patch(struct call *call)
{
    struct gs_sim_object *object;
    const char *type = call->req->content_type ? call->req->content_type : "";
    bool merge = strncasecmp(type, "application/merge-patch+json", 28) == 0;
    bool strategic = strncasecmp(type, "application/strategic-merge-patch+json", 38) == 0;
    if (!merge && !strategic) {
        reply_plain_error(call->ret, 415, "UnsupportedMediaType",
                          "the body of the request was in an unknown format - accepted media types "
                          "include: application/merge-patch+json, "
                          "application/strategic-merge-patch+json");
        return 0;
    }
    if (gs_sim_patch(call->api->cluster, call->kind, call->sub[0] ? GS_SIM_STATUS : GS_SIM_MAIN,
                     merge ? GS_SIM_PATCH_MERGE : GS_SIM_PATCH_STRATEGIC, call->ns, call->name,
                     call->req->body, &object, &call->err) < 0)
        return -1;
    reply_object(call, 200, object);
    return 0;
}

/* DELETE of a collection: what its selectors match. */
static int delete_all(struct call *call)
{
    char field[320];
    struct gs_sim_list list;
    struct gs_sim_query about = make_query(call, field);
    if (gs_sim_list(call->api->cluster, &about, 0, NULL, &list, &call->err) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++) /* one that is gone by now is fine */
        gs_sim_delete(call->api->cluster, call->kind, list.items[i]->ns, list.items[i]->name,
                      (struct gs_slice){0}, NULL, NULL);
    reply_list(call, &list);
    gs_sim_list_release(&list);
    return 0;
}

static int do_delete(struct call *call)
{
    struct gs_sim_object *object;
    if (!call->name[0])
        return delete_all(call);
    if (gs_sim_delete(call->api->cluster, call->kind, call->ns, call->name, call->req->body,
                      &object, &call->err) < 0)
        return -1;
    if (call->kind == GS_SIM_PODS) { /* ReturnDeletedObject of the pod's storage */
        reply_object(call, 200, object);
        return 0;
    }
    reply_success(call, 200, object->uid);
    gs_sim_object_unref(object);
    return 0;
}

/* ---- dispatch ---- */

static bool sub_served(const struct call *call)
{
    if (!call->sub[0])
        return true;
    if (strcmp(call->sub, "status") == 0)
        return gs_sim_resource(call->kind)->has_status;
    return call->kind == GS_SIM_PODS && strcmp(call->sub, "binding") == 0 &&
           strcmp(call->req->method, "POST") == 0;
}

/* A namespaced object has a namespace in its path, but for lists and watches over all of them. */
static bool place_ok(const struct call *call)
{
    bool read_all = strcmp(call->req->method, "GET") == 0 && !call->name[0];
    return !gs_sim_resource(call->kind)->namespaced || call->ns[0] || read_all;
}

static void serve_resource(struct call *call)
{
    static const struct {
        const char *method;
        int (*verb)(struct call *call);
        bool needs_name;
    } verbs[] = {
        {"GET", do_get, false},    {"POST", do_post, false},     {"PUT", do_put, true},
        {"PATCH", do_patch, true}, {"DELETE", do_delete, false},
    };
    const char *type = call->req->content_type;
    if (type && strstr(type, "protobuf")) {
        reply_plain_error(call->ret, 415, "UnsupportedMediaType",
                          "the body of the request was in an unknown format - accepted media types "
                          "include: application/json");
        return;
    }
    if (query(call, "dryRun")[0]) {
        reply_plain_error(call->ret, 400, "BadRequest", "dryRun is not served here");
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
    reply_plain_error(call->ret, 405, "MethodNotAllowed",
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
    struct call call = {.api = api, .req = request, .ret = ret};
    ret->status = 200;
    ret->content_type = "application/json";
    if (serve_plain(&path, ret))
        return;
    if (!authorized(api, request->authorization)) {
        gs_fail(&call.err, GS_EAUTH, "Unauthorized");
        gs_sim_reply_error(ret, &call.err);
        return;
    }
    if (strcmp(request->method, "GET") == 0 && gs_sim_discovery(&path, ret))
        return;
    if (!find_target(&call, &path) || !sub_served(&call) || !place_ok(&call))
        reply_plain_error(ret, 404, "NotFound", "the server could not find the requested resource");
    else if (!accepts_json(request->accept))
        reply_plain_error(ret, 406, "NotAcceptable",
                          "only the following media types are accepted: application/json");
    else
        serve_resource(&call);
    if (gs_buf_failed(&ret->body))
        reply_plain_error(ret, 500, "InternalError", "the answer is too large or memory is out");
}
