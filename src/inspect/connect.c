/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspect/kubectl_proxy.h"

/* The API server: through kubectl, in the cluster that this pod runs in, or --server. */

/* A client, and the kubectl that it speaks to, if it does. */
struct live {
    struct gs_kube_client *client;
    struct kubectl_proxy proxy;
};

/* What kubectl itself has to say comes as HTTP 500 in plain text, the API server's as a Status. */
static int ask_live(void *ctx, const struct gs_kube_request *request, int *ret_status,
                    struct gs_buf *body, struct gs_error *err)
{
    const struct live *live = ctx;
    if (gs_kube_request(live->client, request, ret_status, body, err) < 0)
        return -1;
    if (*ret_status != 500 || !live->proxy.pid || !body->data || body->data[0] == '{')
        return 0;
    return gs_fail(err, GS_EIO, "kubectl: %.*s", (int)strcspn(body->data, "\n"), body->data);
}

static void close_live(void *ctx)
{
    struct live *live = ctx;
    gs_kube_client_free(live->client);
    kubectl_proxy_stop(&live->proxy);
    free(live);
}

/* A credential plugin runs once for each request until one was answered: so one goes first, alone,
 * for as long as its user may think. */
static int log_in(struct live *live, const struct connection *connection, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(1 << 20);
    const struct gs_kube_request version = {
        .method = "GET",
        .path = "/version",
        .timeout_ns = live->proxy.asks_user ? 3600 * GS_NS_PER_S : connection->timeout_ns};
    int status;
    return ask_live(live, &version, &status, &body, err);
}

bool connection_names_account(const struct connection *connection)
{
    return connection->kubeconfig || connection->context || connection->cluster ||
           connection->user || connection->as || connection->as_uid || connection->as_groups->count;
}

/* As kubectl: a pod's service account counts where there is no kubeconfig. */
static bool in_cluster(const struct connection *connection)
{
    const char *home = getenv("HOME");
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    gs_buf_printf(&path, "%s/.kube/config", home ? home : "");
    return getenv("KUBERNETES_SERVICE_HOST") && !getenv("KUBECONFIG") &&
           !connection_names_account(connection) && path.data && access(path.data, R_OK) < 0;
}

static int configure(const struct connection *connection, struct live *live,
                     struct gs_kube_config *config, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf address = GS_BUF(1024);
    if (connection->server)
        return gs_kube_config_plain(connection->server, config, err);
    if (in_cluster(connection))
        return gs_kube_config_in_cluster(NULL, config, err);
    if (kubectl_proxy_start(&live->proxy, connection, err) < 0)
        return -1;
    gs_buf_printf(&address, "http://localhost%s", live->proxy.prefix);
    if (gs_buf_failed(&address))
        return gs_fail_nomem(err);
    if (gs_kube_config_plain(address.data, config, err) < 0)
        return -1;
    config->unix_socket = strdup(live->proxy.socket);
    return config->unix_socket ? 0 : gs_fail_nomem(err);
}

static int open_live(const struct connection *connection, struct live *live, struct source *ret,
                     struct gs_error *err)
{
    const struct gs_kube_options options = {.program = "inspect",
                                            .names = connection->names,
                                            .request_timeout_ns = connection->timeout_ns,
                                            .list_timeout_ns = connection->timeout_ns,
                                            .page_limit = PAGE_LIMIT};
    _cleanup_(gs_kube_config_release) struct gs_kube_config config = {0};
    if (configure(connection, live, &config, err) < 0)
        return -1;
    const char *server = live->proxy.pid ? live->proxy.server : config.server;
    const char *ns = connection->ns ? connection->ns : config.ns ? config.ns : live->proxy.ns;
    *ret = (struct source){.ctx = live, .ask = ask_live, .close = close_live};
    snprintf(ret->server, sizeof(ret->server), "%s", server);
    snprintf(ret->ns, sizeof(ret->ns), "%s", ns[0] ? ns : "default");
    if (gs_kube_client_new(&config, &options, &live->client, err) < 0)
        return -1;
    ret->kube = gs_kube_client_port(live->client);
    return live->proxy.pid ? log_in(live, connection, err) : 0;
}

int connect_kube(const struct connection *connection, struct source *ret, struct gs_error *err)
{
    struct live *live = calloc(1, sizeof(*live));
    if (!live)
        return gs_fail_nomem(err);
    struct source source = {0};
    if (open_live(connection, live, &source, err) < 0) {
        close_live(live);
        return -1;
    }
    *ret = source;
    return 0;
}
