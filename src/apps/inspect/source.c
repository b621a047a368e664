/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/source.h"

#include <stdio.h>
#include <string.h>

#include "gpushare/kube/kubeconfig.h"
#include "inspect/app.h"

/* A page of this many pods is a few megabytes, and a tenth of a second for the API server. */
enum { PAGE_LIMIT = 500 };

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

int source_post(const struct source *source, const char *path, const char *json, int64_t timeout_ns,
                struct gs_buf *body, struct gs_error *err)
{
    const struct gs_kube_request request = {.method = "POST",
                                            .path = path,
                                            .body = json,
                                            .body_len = strlen(json),
                                            .timeout_ns = timeout_ns};
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
    pages.body_max_bytes = SOURCE_BODY_MAX;
    return gs_pages_read(&pages, NULL, err);
}

/* ---- an API server ---- */

static int ask_kube(void *ctx, const struct gs_kube_request *request, int *ret_status,
                    struct gs_buf *body, struct gs_error *err)
{
    return gs_kube_request(ctx, request, ret_status, body, err);
}

static void close_client(void *ctx)
{
    gs_kube_client_free(ctx);
}

/* Says what to do about a configuration that cannot be used. */
static int fail_config(const struct gs_error *why, struct gs_error *err)
{
    const char *what_to_do = "";
    if (why->code == GS_EINVAL)
        what_to_do = "; mend it, or name another file with --kubeconfig";
    else if (why->code == GS_ENOENT && !strstr(why->msg, "--kubeconfig"))
        what_to_do = "; see --kubeconfig, --context, $KUBECONFIG";
    return gs_fail(err, why->code, "%.200s%s", why->msg, what_to_do);
}

int connect_kube(const struct connection *connection, struct source *ret, struct gs_error *err)
{
    const struct gs_kubeconfig_source from = {.path = connection->kubeconfig,
                                              .context = connection->context,
                                              .ns = connection->ns,
                                              .env = gs_kube_getenv};
    const struct gs_kube_options options = {.program = "inspect",
                                            .names = connection->names,
                                            .request_timeout_ns = connection->timeout_ns,
                                            .list_timeout_ns = connection->timeout_ns,
                                            .page_limit = PAGE_LIMIT};
    struct gs_kube_config config = {0};
    struct gs_kube_client *client;
    struct gs_error why = {0};
    int result = gs_kube_config_load(&from, &config, &why);
    if (result == 0)
        result = gs_kube_client_new(&config, &options, &client, &why);
    if (result == 0) {
        *ret = (struct source){.ctx = client,
                               .ask = ask_kube,
                               .close = close_client,
                               .kube = gs_kube_client_port(client)};
        snprintf(ret->server, sizeof(ret->server), "%s", config.server);
        snprintf(ret->ns, sizeof(ret->ns), "%s", config.ns ? config.ns : "default");
    } else {
        fail_config(&why, err);
    }
    gs_kube_config_release(&config);
    return result;
}
