/* SPDX-License-Identifier: Apache-2.0 */
/* The contract on the curl client, against the embedded cluster's REST API on a socket. */
#include <stdio.h>
#include <stdlib.h>

#include "cluster_fixture.h"
#include "gpushare/base/clock.h"
#include "gpushare/kube/client.h"
#include "gpushare/kube/kubeconfig.h"
#include "sim/api_server.h"

struct http {
    struct cluster_fixture cluster;
    struct api_server *server;
    struct gs_kube_client *client;
};

static int connect_client(struct http *http, struct gs_error *err)
{
    char url[64];
    struct gs_kube_config config = {0};
    const struct gs_kube_options options = {
        .program = "contract",
        .names = &http->cluster.names,
        .page_limit = 3, /* so that lists take several pages */
        .backoff_min_ns = 10 * GS_NS_PER_MS,
        .backoff_max_ns = 100 * GS_NS_PER_MS,
    };
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", api_server_port(http->server));
    return gs_kube_config_plain(url, &config, err) < 0
               ? -1
               : gs_kube_client_new(&config, &options, &http->client, err);
}

static int open_http(struct gs_kube_fixture *ret)
{
    struct gs_error err = {0};
    struct http *http = calloc(1, sizeof(*http));
    if (!http || cluster_fixture_open(&http->cluster, ret) < 0)
        return -1;
    const struct gs_sim_api_options options = {0};
    if (api_server_start(http->cluster.cluster, &options, "127.0.0.1:0", &http->server, &err) < 0 ||
        connect_client(http, &err) < 0) {
        fprintf(stderr, "fixture: %s\n", err.msg);
        return -1;
    }
    ret->kube = gs_kube_client_port(http->client);
    return 0;
}

static void close_http(struct gs_kube_fixture *fixture)
{
    struct http *http = fixture->ctx;
    gs_kube_client_free(http->client);
    api_server_stop(http->server);
    cluster_fixture_close(&http->cluster);
    free(http);
}

int main(void)
{
    return gs_kube_ops_contract_run(&(struct gs_kube_backend){
        .name = "curl client over HTTP", .open = open_http, .close = close_http});
}
