/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/http/router.h"

#include <string.h>

#include "internal.h"

/* The part of path after the route's path, or NULL if it does not match. */
static const char *match_path(const struct gs_http_route *route, const char *path)
{
    size_t len = strlen(route->path);
    if (strncmp(path, route->path, len) != 0)
        return NULL;
    const char *rest = path + len;
    bool prefix = route->flags & GS_HTTP_PREFIX;
    return prefix == (*rest != '\0') ? rest : NULL;
}

const struct gs_http_route *gs_http_route_find(const struct gs_http_route *routes, size_t count,
                                               const char *method, const char *path,
                                               const char **ret_rest)
{
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (size_t i = 0; i < count; i++) {
        const char *rest = match_path(&routes[i], path);
        if (!rest || (routes[i].method && strcmp(routes[i].method, method) != 0))
            continue;
        *ret_rest = rest;
        return &routes[i];
    }
    return NULL;
}

void gs_http_route_allow(const struct gs_http_route *routes, size_t count, const char *path,
                         struct gs_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        /* Several rows may have one path and one method (an exact row and a prefix). */
        if (!match_path(&routes[i], path) || (out->len && strstr(out->data, routes[i].method)))
            continue;
        if (out->len)
            gs_buf_puts(out, ", ");
        gs_buf_puts(out, routes[i].method);
        if (strcmp(routes[i].method, "GET") == 0)
            gs_buf_puts(out, ", HEAD");
    }
}
