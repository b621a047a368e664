/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/options.h"
#include "common/process.h"
#include "gpushare/base/file.h"
#include "gpushare/base/log.h"
#include "sim/api_server.h"
#include "sim/commands.h"
#include "sim/rest.h"

/* gpushare-sim serve: a cluster in memory behind a port. */

struct serve_settings {
    const char *listen;
    const char *load; /* comma list of files */
    const char *kubeconfig_out;
    const char *token;
    uint32_t history;
};

/* What lives as long as the command. */
struct serve {
    struct serve_settings set;
    struct gs_sim_cluster *cluster;
    struct api_server *server;
    char url[96];
};

static void read_settings(struct serve_settings *set, int argc, char **argv)
{
    *set = (struct serve_settings){.listen = "127.0.0.1:8001"};
    const struct gs_option table[] = {
        OPT_STRING("listen", &set->listen, "ADDR:PORT",
                   "plain HTTP address; port 0: any free port (default 127.0.0.1:8001)"),
        OPT_STRING("load", &set->load, "FILE[,FILE]",
                   "Kubernetes objects to start with, including their status"),
        OPT_STRING("kubeconfig-out", &set->kubeconfig_out, "FILE",
                   "write a kubeconfig of this server to this file once it is ready"),
        OPT_STRING("token", &set->token, "TEXT", "bearer token that clients must send"),
        OPT_U32("history", &set->history, "COUNT",
                "number of changes of each resource from which watches can resume (default 65536)"),
    };
    const struct gs_command command = {
        .name = "gpushare-sim serve",
        .doc = "An in-memory Kubernetes API server with nodes, pods, bindings, Events and Leases.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
}

/* ---- the cluster ---- */

static int make_cluster(struct serve *serve, struct gs_error *err)
{
    struct gs_sim_options options = {.log_max = serve->set.history};
    if (gs_sim_cluster_new(&options, &serve->cluster, err) < 0)
        return -1;
    return rest_read_listed(serve->set.load, gs_sim_load_object, serve->cluster, err);
}

/* ---- the port ---- */

static int start_server(struct serve *serve, struct gs_error *err)
{
    const char *colon = strrchr(serve->set.listen, ':');
    if (api_server_start(serve->cluster, serve->set.token, serve->set.listen, &serve->server, err) <
        0)
        return gs_error_prefix(err, "--listen %s", serve->set.listen);
    int len = colon ? (int)(colon - serve->set.listen) : 0;
    snprintf(serve->url, sizeof(serve->url), "http://%.*s:%u", len > 0 ? len : 9,
             len > 0 ? serve->set.listen : "127.0.0.1", api_server_port(serve->server));
    return 0;
}

/* Whole or not at all, because others wait for the file to appear. */
static int write_kubeconfig(const struct serve *serve, struct gs_error *err)
{
    const char *path = serve->set.kubeconfig_out, *token = serve->set.token;
    _cleanup_(gs_buf_wipe) struct gs_buf text = GS_BUF(64 << 10);
    if (!path)
        return 0;
    gs_buf_printf(&text,
                  "apiVersion: v1\nkind: Config\ncurrent-context: sim\n"
                  "clusters:\n- name: sim\n  cluster:\n    server: %s\n"
                  "contexts:\n- name: sim\n  context:\n    cluster: sim\n    user: sim\n"
                  "users:\n- name: sim\n  user: {%s%s%s}\n",
                  serve->url, token ? "token: \"" : "", token ? token : "", token ? "\"" : "");
    if (gs_buf_failed(&text))
        return gs_fail(err, GS_EINVAL, "--token is too long");
    return gs_file_replace(path, text.data, text.len, 0600, false, err);
}

int cmd_serve(int argc, char **argv)
{
    struct serve serve = {0};
    struct gs_error err = {0};
    read_settings(&serve.set, argc, argv);
    process_block_signals();
    process_raise_files();
    int result = make_cluster(&serve, &err);
    if (result == 0)
        result = start_server(&serve, &err);
    if (result == 0)
        result = write_kubeconfig(&serve, &err);
    if (result == 0) {
        gs_log(GS_LOG_INFO, "serving", GS_STR("url", serve.url),
               GS_INT("nodes", gs_sim_count(serve.cluster, GS_SIM_NODES)),
               GS_INT("pods", gs_sim_count(serve.cluster, GS_SIM_PODS)));
        process_wait_for_stop();
    } else {
        gs_log(GS_LOG_ERROR, "cannot start", GS_STR("error", err.msg));
    }
    api_server_stop(serve.server);
    gs_sim_cluster_free(serve.cluster);
    return result == 0 ? 0 : err.code == GS_EINVAL ? 2 : 1;
}
