/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/source.h"

#include <ctype.h>
#include <string.h>

void source_close(struct source *source)
{
    if (source->close)
        source->close(source->ctx);
    *source = (struct source){0};
}

static int ask(const struct source *source, const struct gs_kube_request *request,
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
    return ask(source, &request, body, err);
}

int source_post(const struct source *source, const char *path, const char *json, int64_t timeout_ns,
                struct gs_buf *body, struct gs_error *err)
{
    const struct gs_kube_request request = {.method = "POST",
                                            .path = path,
                                            .body = json,
                                            .body_len = strlen(json),
                                            .timeout_ns = timeout_ns};
    return ask(source, &request, body, err);
}

void source_escape(struct gs_buf *out, const char *text)
{
    for (; *text; text++) {
        if (isalnum((unsigned char)*text) || strchr("-._~", *text))
            gs_buf_putc(out, *text);
        else
            gs_buf_printf(out, "%%%02X", (unsigned char)*text);
    }
}
