/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "api_internal.h"

/*
 * What kubectl asks before it does anything: which groups, versions and resources there are, and
 * whether the server validates fields (a PATCH operation in /openapi/v3 that takes the argument
 * fieldValidation: k8s.io/kubectl/pkg/... query_param_verifier_v3.go).
 */

static const char core_verbs[] =
    "[\"create\",\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\",\"update\",\"watch\"]";

static void put_resource(const struct gs_sim_resource *res, struct gs_buf *out)
{
    gs_buf_printf(out,
                  "{\"name\":\"%s\",\"singularName\":\"%s\",\"namespaced\":%s,\"kind\":\"%s\","
                  "\"verbs\":%s",
                  res->plural, res->singular, res->namespaced ? "true" : "false", res->kind,
                  core_verbs);
    if (res->short_name[0])
        gs_buf_printf(out, ",\"shortNames\":[\"%s\"]", res->short_name);
    gs_buf_putc(out, '}');
    if (res->has_status)
        gs_buf_printf(out,
                      ",{\"name\":\"%s/status\",\"singularName\":\"\",\"namespaced\":%s,"
                      "\"kind\":\"%s\",\"verbs\":[\"get\",\"patch\",\"update\"]}",
                      res->plural, res->namespaced ? "true" : "false", res->kind);
}

/* APIResourceList of a group and version; false when nothing is served there. */
static bool put_resources(struct gs_slice group, struct gs_slice version, struct gs_buf *out)
{
    bool any = false;
    for (int kind = 0; kind < GS_SIM_KINDS; kind++) {
        const struct gs_sim_resource *res = gs_sim_resource((enum gs_sim_kind)kind);
        if (!gs_slice_eq(gs_slice_of(res->group), group) ||
            !gs_slice_eq(gs_slice_of(res->version), version))
            continue;
        if (!any)
            gs_buf_printf(out,
                          "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\","
                          "\"groupVersion\":\"%s%s%s\",\"resources\":[",
                          res->group, res->group[0] ? "/" : "", res->version);
        else
            gs_buf_putc(out, ',');
        any = true;
        put_resource(res, out);
    }
    if (!any)
        return false;
    if (group.len == 0)
        gs_buf_puts(out, ",{\"name\":\"bindings\",\"singularName\":\"binding\","
                         "\"namespaced\":true,\"kind\":\"Binding\",\"verbs\":[\"create\"]},"
                         "{\"name\":\"pods/binding\",\"singularName\":\"\",\"namespaced\":true,"
                         "\"kind\":\"Binding\",\"verbs\":[\"create\"]}");
    gs_buf_puts(out, "]}");
    return true;
}

static void put_group(const struct gs_sim_resource *res, struct gs_buf *out)
{
    gs_buf_printf(out,
                  "\"name\":\"%s\",\"versions\":[{\"groupVersion\":\"%s/%s\",\"version\":\"%s\"}],"
                  "\"preferredVersion\":{\"groupVersion\":\"%s/%s\",\"version\":\"%s\"}}",
                  res->group, res->group, res->version, res->version, res->group, res->version,
                  res->version);
}

/* APIGroupList, or one APIGroup when named; false when it is not served. */
static bool put_groups(const struct gs_slice *named, struct gs_buf *out)
{
    bool any = false;
    const char *last = "";
    if (!named)
        gs_buf_puts(out, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[");
    for (int kind = 0; kind < GS_SIM_KINDS; kind++) {
        const struct gs_sim_resource *res = gs_sim_resource((enum gs_sim_kind)kind);
        if (!res->group[0] || strcmp(res->group, last) == 0 ||
            (named && !gs_slice_eq(gs_slice_of(res->group), *named)))
            continue;
        last = res->group;
        gs_buf_puts(out, named ? "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\","
                         : any ? ",{"
                               : "{");
        any = true;
        put_group(res, out);
    }
    if (!named)
        gs_buf_puts(out, "]}");
    return any || !named;
}

/* ---- /openapi/v3 ---- */

static void base_path(const struct gs_sim_resource *res, char *ret, size_t size)
{
    if (res->group[0])
        snprintf(ret, size, "apis/%s/%s", res->group, res->version);
    else
        snprintf(ret, size, "api/%s", res->version);
}

static void put_openapi_root(struct gs_buf *out)
{
    char last[128] = "";
    gs_buf_puts(out, "{\"paths\":{");
    for (int kind = 0; kind < GS_SIM_KINDS; kind++) {
        char base[128];
        base_path(gs_sim_resource((enum gs_sim_kind)kind), base, sizeof(base));
        if (strcmp(base, last) == 0)
            continue;
        gs_buf_printf(out, "%s\"%s\":{\"serverRelativeURL\":\"/openapi/v3/%s\"}",
                      last[0] ? "," : "", base, base);
        memcpy(last, base, sizeof(last));
    }
    gs_buf_puts(out, "}}");
}

static void put_openapi_path(const struct gs_sim_resource *res, const char *base,
                             struct gs_buf *out)
{
    gs_buf_printf(out,
                  "\"/%s/%s%s/{name}\":{\"patch\":{\"parameters\":[{\"name\":\"fieldValidation\","
                  "\"in\":\"query\",\"schema\":{\"type\":\"string\"}}],\"responses\":{},"
                  "\"x-kubernetes-group-version-kind\":{\"group\":\"%s\",\"version\":\"%s\","
                  "\"kind\":\"%s\"}}}",
                  base, res->namespaced ? "namespaces/{namespace}/" : "", res->plural, res->group,
                  res->version, res->kind);
}

/* The document of the group and version whose path this is; false when there is none. */
static bool put_openapi(const char *wanted, struct gs_buf *out)
{
    bool any = false;
    for (int kind = 0; kind < GS_SIM_KINDS; kind++) {
        const struct gs_sim_resource *res = gs_sim_resource((enum gs_sim_kind)kind);
        char base[128];
        base_path(res, base, sizeof(base));
        if (strcmp(base, wanted) != 0)
            continue;
        gs_buf_puts(out, any ? ","
                             : "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"gpushare-sim\","
                               "\"version\":\"v1\"},\"paths\":{");
        any = true;
        put_openapi_path(res, base, out);
    }
    if (any)
        gs_buf_puts(out, "}}");
    return any;
}

/* ---- */

static bool openapi(const struct gs_sim_path *path, struct gs_buf *out)
{
    char wanted[200];
    if (!gs_slice_eq(path->segments[1], GS_SLICE("v3")))
        return false;
    if (path->count == 2) {
        put_openapi_root(out);
        return true;
    }
    int len = 0;
    for (size_t i = 2; i < path->count && len < (int)sizeof(wanted); i++)
        len += snprintf(wanted + len, sizeof(wanted) - (size_t)len, "%s%.*s", i > 2 ? "/" : "",
                        (int)path->segments[i].len, path->segments[i].at);
    return len < (int)sizeof(wanted) && put_openapi(wanted, out);
}

bool gs_sim_discovery(const struct gs_sim_path *path, struct gs_sim_reply *ret)
{
    struct gs_slice none = {"", 0};
    if (path->count == 0)
        return false;
    const struct gs_slice *at = path->segments;
    if (gs_slice_eq(at[0], GS_SLICE("openapi")) && path->count > 1)
        return openapi(path, &ret->body);
    if (gs_slice_eq(at[0], GS_SLICE("api"))) {
        if (path->count == 2)
            return put_resources(none, at[1], &ret->body);
        if (path->count == 1)
            gs_buf_puts(&ret->body, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],"
                                    "\"serverAddressByClientCIDRs\":[]}");
        return path->count == 1;
    }
    if (!gs_slice_eq(at[0], GS_SLICE("apis")) || path->count > 3)
        return false;
    if (path->count == 3)
        return put_resources(at[1], at[2], &ret->body);
    return put_groups(path->count == 2 ? &at[1] : NULL, &ret->body);
}
