/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/options.h"
#include "common/process.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"
#include "gpushare/sim/manifest.h"
#include "gpushare/sim/workload.h"
#include "sim/api_server.h"
#include "sim/commands.h"

/* gpushare-sim serve: a cluster in memory behind a port. */

struct serve_settings {
    const char *listen;
    const char *load; /* comma list of files */
    const char *synthetic;
    const char *kubeconfig_out;
    const char *token;
    const char *domain;
    int64_t bookmark_ns;
    uint32_t history;
    uint64_t seed;
    const char *faults; /* NULL: a server without them */
    uint64_t fault_seed;
};

/* What lives as long as the command. */
struct serve {
    struct serve_settings set;
    struct gs_names names;
    struct gs_sim_cluster *cluster;
    struct gs_sim_faults *faults;
    struct api_server *server;
    char url[96];
};

static void read_settings(struct serve_settings *set, int argc, char **argv)
{
    *set = (struct serve_settings){
        .listen = "127.0.0.1:8001", .domain = "aliyun.com", .bookmark_ns = 10 * GS_NS_PER_S};
    const struct gs_option table[] = {
        OPT_STRING("listen", &set->listen, "ADDR:PORT",
                   "where to serve plain HTTP; port 0: any free one"),
        OPT_STRING("load", &set->load, "FILE[,FILE]",
                   "Kubernetes objects to begin with, status included"),
        OPT_STRING("synthetic", &set->synthetic, "SPEC",
                   "a large cluster to begin with: "
                   "nodes=N,gpus=N,mem=N,pods=N,pod_mem=N,pending=N,other=N,no_inventory"),
        OPT_STRING("kubeconfig-out", &set->kubeconfig_out, "FILE",
                   "written as soon as requests are served"),
        OPT_STRING("token", &set->token, "TEXT", "bearer token that clients must bring"),
        OPT_STRING("domain", &set->domain, "DOMAIN", "of the GPU resources"),
        OPT_U32("history", &set->history, "COUNT",
                "changes of each kind that watches can go back (default 65536)"),
        OPT_DURATION("bookmark-every", &set->bookmark_ns, "TIME", "bookmarks of quiet watches"),
        OPT_U64("seed", &set->seed, "NUMBER", "of the UIDs"),
        OPT_STRING(
            "faults", &set->faults, "PLAN",
            "what the server does wrong, as agent=gpushare-extender,lost_answer=50,watch_cut=20: "
            "chances in 1,000; all=20 for every fault; \"\" for none yet. GET /faults tells what "
            "was injected how often, PUT /faults changes the plan"),
        OPT_U64("fault-seed", &set->fault_seed, "NUMBER", "of the faults"),
    };
    const struct gs_command command = {
        .name = "gpushare-sim serve",
        .doc = "An in-memory Kubernetes API server: nodes, pods, bindings, events, leases.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
}

/* ---- the cluster ---- */

static int load_object(void *ctx, enum gs_sim_kind kind, struct gs_slice json, struct gs_error *err)
{
    struct serve *serve = ctx;
    return gs_sim_load(serve->cluster, kind, json, NULL, err);
}

static int sort_once(struct gs_sim_cluster *cluster, struct gs_error *err)
{
    struct gs_sim_query query = {.kind = GS_SIM_PODS};
    struct gs_sim_list list;
    if (gs_sim_list(cluster, &query, 0, NULL, &list, err) < 0)
        return -1;
    gs_sim_list_release(&list);
    return 0;
}

static int make_cluster(struct serve *serve, struct gs_error *err)
{
    struct gs_sim_options options = {.seed = serve->set.seed, .log_max = serve->set.history};
    if (gs_names_init(&serve->names, serve->set.domain, err) < 0 ||
        gs_sim_cluster_new(&options, &serve->cluster, err) < 0)
        return -1;
    if (serve->set.synthetic) {
        struct gs_sim_workload workload;
        if (gs_sim_workload_parse(gs_slice_of(serve->set.synthetic), &workload, err) < 0 ||
            gs_sim_workload_load(serve->cluster, &serve->names, &workload, err) < 0)
            return gs_error_prefix(err, "--synthetic");
        /* What was made is no history to anybody, and the first list shall not wait for sorting. */
        gs_sim_cluster_compact(serve->cluster);
        if (sort_once(serve->cluster, err) < 0)
            return -1;
    }
    return gs_sim_manifest_read_listed("--load", serve->set.load, load_object, serve, err);
}

/* ---- the port ---- */

static int make_faults(struct serve *serve, struct gs_error *err)
{
    if (!serve->set.faults)
        return 0;
    serve->faults = gs_sim_faults_new(serve->set.fault_seed);
    if (!serve->faults)
        return gs_fail_nomem(err);
    if (gs_sim_faults_plan(serve->faults, gs_slice_of(serve->set.faults), err) < 0)
        return gs_error_prefix(err, "--faults");
    return 0;
}

/* What was injected, for those who read it at the end. */
static void print_faults(const struct serve *serve)
{
    struct gs_buf text = GS_BUF(64 << 10);
    if (!serve->faults)
        return;
    gs_sim_faults_print(serve->faults, &text);
    if (!gs_buf_failed(&text))
        fputs(text.data, stdout);
    gs_buf_release(&text);
}

static int start_server(struct serve *serve, struct gs_error *err)
{
    struct gs_sim_api_options options = {
        .names = &serve->names,
        .token = serve->set.token,
        .bookmark_ns = serve->set.bookmark_ns,
        .faults = serve->faults,
    };
    const char *colon = strrchr(serve->set.listen, ':');
    if (api_server_start(serve->cluster, &options, serve->set.listen, &serve->server, err) < 0)
        return gs_error_prefix(err, "--listen %s", serve->set.listen);
    int len = colon ? (int)(colon - serve->set.listen) : 0;
    snprintf(serve->url, sizeof(serve->url), "http://%.*s:%u", len > 0 ? len : 9,
             len > 0 ? serve->set.listen : "127.0.0.1", api_server_port(serve->server));
    return 0;
}

/* Whole or not at all, because others wait for the file to appear. */
static int write_kubeconfig(const struct serve *serve, struct gs_error *err)
{
    const char *path = serve->set.kubeconfig_out;
    char partial[1024];
    if (!path)
        return 0;
    if (snprintf(partial, sizeof(partial), "%s.partial", path) >= (int)sizeof(partial))
        return gs_fail(err, GS_EINVAL, "--kubeconfig-out: the name is too long");
    unlink(partial); /* what is left of an earlier one may be readable to all */
    int fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file)
        return gs_fail_errno(err, GS_EIO, errno, "%.200s", partial);
    fprintf(file,
            "apiVersion: v1\nkind: Config\ncurrent-context: sim\n"
            "clusters:\n- name: sim\n  cluster:\n    server: %s\n"
            "contexts:\n- name: sim\n  context:\n    cluster: sim\n    user: sim\n"
            "users:\n- name: sim\n  user:",
            serve->url);
    if (serve->set.token)
        fprintf(file, "\n    token: \"%s\"\n", serve->set.token);
    else
        fputs(" {}\n", file);
    if (fclose(file) != 0 || rename(partial, path) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "%.200s", path);
    return 0;
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
        result = make_faults(&serve, &err);
    if (result == 0)
        result = start_server(&serve, &err);
    if (result == 0)
        result = write_kubeconfig(&serve, &err);
    if (result == 0) {
        gs_log(GS_LOG_INFO, "serving", GS_STR("url", serve.url),
               GS_INT("nodes", gs_sim_count(serve.cluster, GS_SIM_NODES)),
               GS_INT("pods", gs_sim_count(serve.cluster, GS_SIM_PODS)));
        int number = process_wait_for_stop();
        gs_log(GS_LOG_INFO, "stopping", GS_STR("signal", sigabbrev_np(number)));
    } else {
        gs_log(GS_LOG_ERROR, "cannot start", GS_STR("why", err.msg));
    }
    api_server_stop(serve.server);
    print_faults(&serve);
    gs_sim_faults_free(serve.faults);
    gs_sim_cluster_free(serve.cluster);
    bool usage = err.code == GS_EINVAL;
    return result == 0 ? 0 : usage ? 2 : 1;
}
