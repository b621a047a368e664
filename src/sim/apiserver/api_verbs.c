/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api_internal.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"

/* The verbs of the embedded API on one resource. */

#define WATCH_NS_DEFAULT (1800 * GS_NS_PER_S) /* --min-request-timeout */

/* ---- the parts of a request ---- */

const char *gs_sim_call_query(const struct gs_sim_call *call, const char *name)
{
    const char *value = call->req->query(call->req->query_ctx, name);
    return value ? value : "";
}

static bool query_bool(const struct gs_sim_call *call, const char *name)
{
    const char *text = gs_sim_call_query(call, name);
    bool value = false;
    return gs_parse_bool(text, &value) && value;
}

/* Absent: 0. */
static int query_u64(struct gs_sim_call *call, const char *name, uint64_t *ret)
{
    const char *text = gs_sim_call_query(call, name);
    *ret = 0;
    if (text[0] && !gs_parse_u64(text, strlen(text), ret))
        return gs_fail(&call->err, GS_EPROTO, "query argument %s is not a number", name);
    return 0;
}

/* ---- answers ---- */

/* rc: of the call that made the object; that is returned. */
static int reply_object(struct gs_sim_call *call, int rc, struct gs_sim_object *object)
{
    if (rc == 0) {
        gs_sim_object_put(object, &call->ret->body);
        gs_sim_object_unref(object);
    }
    return rc;
}

static void reply_list(struct gs_sim_call *call, const struct gs_sim_list *list)
{
    const struct gs_sim_resource *res = gs_sim_resource(call->kind);
    struct gs_buf *out = &call->ret->body;
    gs_buf_printf(
        out,
        "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%llu\"",
        res->kind, res->api, (unsigned long long)list->version);
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

static struct gs_sim_query make_query(const struct gs_sim_call *call, char field[320])
{
    struct gs_sim_query ret = {
        .kind = call->kind,
        .ns = call->ns,
        .field_selector = gs_sim_call_query(call, "fieldSelector"),
        .label_selector = gs_sim_call_query(call, "labelSelector"),
    };
    if (call->name[0]) { /* a watch of one object by its own path */
        snprintf(field, 320, "metadata.name=%s", call->name);
        ret.field_selector = field;
    }
    return ret;
}

static int do_watch(struct gs_sim_call *call)
{
    char field[320];
    struct gs_sim_query about = make_query(call, field);
    uint64_t seconds;
    struct gs_sim_stream_spec spec = {
        .query = &about,
        .bookmarks = query_bool(call, "allowWatchBookmarks"),
    };
    if (gs_sim_call_query(call, "sendInitialEvents")[0])
        return gs_fail(&call->err, GS_EINVAL,
                       "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: "
                       "sendInitialEvents is forbidden for watch unless the WatchList feature gate "
                       "is enabled");
    if (query_u64(call, "resourceVersion", &spec.from) < 0 ||
        query_u64(call, "timeoutSeconds", &seconds) < 0)
        return -1;
    spec.timeout_ns =
        seconds && seconds < 1000000 ? (int64_t)seconds * GS_NS_PER_S : WATCH_NS_DEFAULT;
    return gs_sim_stream_open(call->api, &spec, &call->ret->stream, &call->err);
}

static int do_list(struct gs_sim_call *call)
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
    if (gs_sim_list(call->api->cluster, &about, limit, gs_sim_call_query(call, "continue"), &list,
                    &call->err) < 0)
        return -1;
    reply_list(call, &list);
    gs_sim_list_release(&list);
    return 0;
}

int gs_sim_do_get(struct gs_sim_call *call)
{
    struct gs_sim_object *object;
    if (query_bool(call, "watch"))
        return do_watch(call);
    if (!call->name[0])
        return do_list(call);
    int rc = gs_sim_get(call->api->cluster, call->kind, call->ns, call->name, &object, &call->err);
    return reply_object(call, rc, object);
}

static int do_bind(struct gs_sim_call *call)
{
    if (gs_sim_bind(call->api->cluster, call->ns, call->name, call->req->body, &call->err) < 0)
        return -1;
    call->ret->status = 201;
    gs_buf_puts(&call->ret->body, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                                  "\"status\":\"Success\",\"code\":201}");
    return 0;
}

int gs_sim_do_post(struct gs_sim_call *call)
{
    struct gs_sim_object *object;
    if (strcmp(call->sub, "binding") == 0 && call->kind == GS_SIM_PODS)
        return do_bind(call);
    if (call->name[0])
        return gs_sim_reply_refused(
            call->ret, 405, "MethodNotAllowed",
            "the server does not allow this method on the requested resource");
    call->ret->status = 201;
    int rc = gs_sim_create(call->api->cluster, call->kind, call->ns, call->req->body, &object,
                           &call->err);
    return reply_object(call, rc, object);
}

int gs_sim_do_put(struct gs_sim_call *call)
{
    struct gs_sim_object *object;
    enum gs_sim_part part = call->sub[0] ? GS_SIM_STATUS : GS_SIM_MAIN;
    int rc = gs_sim_update(call->api->cluster, call->kind, part, call->ns, call->name,
                           call->req->body, &object, &call->err);
    return reply_object(call, rc, object);
}

int gs_sim_do_patch(struct gs_sim_call *call)
{
    struct gs_sim_object *object;
    const char *type = call->req->content_type ? call->req->content_type : "";
    bool merge = strncasecmp(type, "application/merge-patch+json", 28) == 0;
    bool strategic = strncasecmp(type, "application/strategic-merge-patch+json", 38) == 0;
    if (!merge && !strategic)
        return gs_sim_reply_refused(
            call->ret, 415, "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types "
            "include: application/merge-patch+json, "
            "application/strategic-merge-patch+json");
    int rc =
        gs_sim_patch(call->api->cluster, call->kind, call->sub[0] ? GS_SIM_STATUS : GS_SIM_MAIN,
                     merge ? GS_SIM_PATCH_MERGE : GS_SIM_PATCH_STRATEGIC, call->ns, call->name,
                     call->req->body, &object, &call->err);
    return reply_object(call, rc, object);
}

int gs_sim_do_delete(struct gs_sim_call *call)
{
    struct gs_sim_object *object;
    int rc = gs_sim_delete(call->api->cluster, call->kind, call->ns, call->name, call->req->body,
                           &object, &call->err);
    return reply_object(call, rc, object);
}
