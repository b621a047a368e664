/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/http/router.h"

#include <string.h>

#include "internal.h"

/* What of path follows the route's, or NULL when it is another path. */
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
                                               const char **ret_rest, bool *ret_known_path)
{
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    bool known = false;
    for (size_t i = 0; i < count; i++) {
        const char *rest = match_path(&routes[i], path);
        if (!rest)
            continue;
        known = true;
        if (!routes[i].method || strcmp(routes[i].method, method) == 0) {
            *ret_rest = rest;
            return &routes[i];
        }
    }
    *ret_known_path = known;
    return NULL;
}

/* Several rows may have one path and one method (an exact row and a prefix). */
static bool seen_before(const struct gs_http_route *routes, size_t at, const char *path)
{
    for (size_t i = 0; i < at; i++) {
        if (match_path(&routes[i], path) && strcmp(routes[i].method, routes[at].method) == 0)
            return true;
    }
    return false;
}

void gs_route_allow(const struct gs_http_route *routes, size_t count, const char *path,
                    struct gs_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        if (!match_path(&routes[i], path) || seen_before(routes, i, path))
            continue;
        if (out->len)
            gs_buf_puts(out, ", ");
        gs_buf_puts(out, routes[i].method);
        if (strcmp(routes[i].method, "GET") == 0)
            gs_buf_puts(out, ", HEAD");
    }
}
