/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/source.h"

#include <string.h>

void source_close(struct source *source)
{
    if (source->close)
        source->close(source->ctx);
    *source = (struct source){0};
}

int source_ask(const struct source *source, const struct gs_kube_request *request,
               struct gs_buf *body, struct gs_error *err)
{
    int status;
    if (source->ask(source->ctx, request, &status, body, err) < 0)
        return -1;
    if (status < 200 || status > 299)
        return gs_kube_fail_status(status, body->data ? body->data : "", body->len, err);
    return 0;
}

int source_get(const struct source *source, const char *path, const char *query,
               struct gs_buf *body, struct gs_error *err)
{
    const struct gs_kube_request request = {.method = "GET", .path = path, .query = query};
    return source_ask(source, &request, body, err);
}

void source_pods(struct gs_buf *out, const char *ns, const char *name)
{
    gs_buf_puts(out, "/api/v1/namespaces/");
    gs_url_escape(out, ns);
    gs_buf_puts(out, name ? "/pods/" : "/pods");
    if (name)
        gs_url_escape(out, name);
}

int source_list(const struct source *source, struct gs_pages pages, struct gs_error *err)
{
    pages.ask = source->ask;
    pages.ask_ctx = source->ctx;
    pages.page_limit = PAGE_LIMIT;
    pages.page_max_bytes = pages.object_max_bytes = SOURCE_BODY_MAX;
    return gs_pages_read(&pages, NULL, err);
}
