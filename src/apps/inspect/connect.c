/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/connect.h"

#include <stdio.h>
#include <string.h>

#include "gpushare/kube/kubeconfig.h"

/* A page of this many pods is a few megabytes, and a tenth of a second for the API server. */
enum { PAGE_LIMIT = 500 };

static int ask(void *ctx, const struct gs_kube_request *request, int *ret_status,
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
        *ret = (struct source){
            .ctx = client, .ask = ask, .close = close_client, .kube = gs_kube_client_port(client)};
        snprintf(ret->server, sizeof(ret->server), "%s", config.server);
        snprintf(ret->ns, sizeof(ret->ns), "%s", config.ns ? config.ns : "default");
    } else {
        fail_config(&why, err);
    }
    gs_kube_config_release(&config);
    return result;
}
