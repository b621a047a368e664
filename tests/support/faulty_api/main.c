/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gpushare-sim serve` with what tests and benchmarks need besides:
 *
 *   --synthetic SPEC   a large cluster to begin with (workload.h)
 *   --faults PLAN      what the server does wrong (faults.h); "" for nothing yet. GET /faults says
 *                      what was injected how often, PUT /faults changes the plan
 *   --fault-seed N     of the faults
 *
 * The program is made of the product's own files. The linker sends the calls between them that
 * matter here (--wrap) through this file, so that the product has no seam for faults.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sim_upset.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"
#include "gpushare/http/router.h"
#include "gpushare/http/server.h"
#include "sim/commands.h"
#include "spoil.h"
#include "workload.h"

#define HELD_NS (200 * GS_NS_PER_MS) /* for the next line, after which one held back may come */

static struct gs_sim_faults *faults; /* NULL: none */
static struct gs_sim_workload workload;
static const char *synthetic, *domain = "aliyun.com";

/* ---- the cluster ---- */

typedef int cluster_new(const struct gs_sim_options *options, struct gs_sim_cluster **ret,
                        struct gs_error *err);
cluster_new __real_gs_sim_cluster_new, __wrap_gs_sim_cluster_new;

int __wrap_gs_sim_cluster_new(const struct gs_sim_options *options, struct gs_sim_cluster **ret,
                              struct gs_error *err)
{
    struct gs_names names;
    struct gs_sim_list list;
    if (__real_gs_sim_cluster_new(options, ret, err) < 0)
        return -1;
    if (!synthetic)
        return 0;
    if (gs_names_init(&names, domain, err) < 0 ||
        gs_sim_workload_load(*ret, &names, &workload, err) < 0)
        return gs_error_prefix(err, "--synthetic");
    /* What was made is no history to a watch, and the first list shall not wait for sorting. */
    gs_sim_cluster_compact(*ret);
    if (gs_sim_list(*ret, &(struct gs_sim_query){.kind = GS_SIM_PODS}, 0, NULL, &list, err) < 0)
        return -1;
    gs_sim_list_release(&list);
    return 0;
}

/* ---- requests ---- */

/* What the HTTP layer pumps: a watch with its faults, or an answer that breaks off. */
struct spoiled {
    struct gs_sim_stream *from; /* NULL: `body`, then the cut */
    struct gs_buf body;
    struct gs_sim_line_faults lines;
    bool cut;
};

static const char *type_of(const char *path)
{
    static const char *const types[GS_SIM_KINDS] = {
        [GS_SIM_NODES] = "\"kind\":\"Node\",\"apiVersion\":\"v1\"",
        [GS_SIM_PODS] = "\"kind\":\"Pod\",\"apiVersion\":\"v1\"",
        [GS_SIM_EVENTS] = "\"kind\":\"Event\",\"apiVersion\":\"v1\"",
        [GS_SIM_LEASES] = "\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\"",
    };
    const char *at = strrchr(path, '/');
    for (int kind = 0; at && kind < GS_SIM_KINDS; kind++) {
        if (strcmp(at + 1, gs_sim_resource((enum gs_sim_kind)kind)->plural) == 0)
            return types[kind];
    }
    return types[GS_SIM_PODS];
}

static void wrap_stream(const struct gs_sim_request *request, struct gs_sim_reply *ret, bool cut)
{
    struct spoiled *spoiled = calloc(1, sizeof(*spoiled));
    if (!spoiled)
        abort();
    spoiled->from = ret->stream;
    gs_sim_line_faults_init(&spoiled->lines, faults, request->agent, type_of(request->path));
    if (cut && !ret->stream) {
        spoiled->body = ret->body;
        ret->body = GS_SIM_REPLY.body;
    }
    ret->stream = (struct gs_sim_stream *)spoiled;
}

typedef void handle(const struct gs_sim_api *api, const struct gs_sim_request *request,
                    struct gs_sim_reply *ret);
handle __real_gs_sim_api_handle, __wrap_gs_sim_api_handle;

void __wrap_gs_sim_api_handle(const struct gs_sim_api *api, const struct gs_sim_request *request,
                              struct gs_sim_reply *ret)
{
    static const char *const plain[] = {"/healthz", "/readyz", "/livez", "/version"};
    bool cut = false, spared = !faults;
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        spared |= strncmp(request->path, plain[i], strlen(plain[i])) == 0;
    ret->status = 200;
    ret->content_type = "application/json";
    if (spared) {
        __real_gs_sim_api_handle(api, request, ret);
    } else if (!gs_sim_faults_serve(faults, request, ret) &&
               !gs_sim_faults_before(faults, request, ret, &cut)) {
        __real_gs_sim_api_handle(api, request, ret);
        gs_sim_faults_after(faults, request, ret, &cut);
    }
    if (cut || (faults && ret->stream))
        wrap_stream(request, ret, cut);
}

/* ---- watches ---- */

typedef int stream_next(struct gs_sim_stream *stream, int64_t wait_ns, struct gs_buf *lines);
stream_next __real_gs_sim_stream_next, __wrap_gs_sim_stream_next;

int __wrap_gs_sim_stream_next(struct gs_sim_stream *stream, int64_t wait_ns, struct gs_buf *lines)
{
    struct spoiled *spoiled = (struct spoiled *)stream;
    if (!faults)
        return __real_gs_sim_stream_next(stream, wait_ns, lines);
    if (!spoiled->from) {
        gs_buf_release(lines);
        *lines = spoiled->body;
        spoiled->body = GS_BUF(0);
        spoiled->cut = true;
        return -1;
    }
    if (spoiled->lines.held.len > 0 && wait_ns > HELD_NS)
        wait_ns = HELD_NS;
    int rc = __real_gs_sim_stream_next(spoiled->from, wait_ns, lines);
    enum gs_sim_line_fate fate = gs_sim_line_faults_apply(&spoiled->lines, lines);
    if (fate == GS_SIM_LINES_CUT)
        spoiled->cut = true;
    return fate == GS_SIM_LINES_GO_ON && !gs_buf_failed(lines) ? rc : -1;
}

typedef bool stream_cut(const struct gs_sim_stream *stream);
stream_cut __real_gs_sim_stream_cut, __wrap_gs_sim_stream_cut;

bool __wrap_gs_sim_stream_cut(const struct gs_sim_stream *stream)
{
    const struct spoiled *spoiled = (const struct spoiled *)stream;
    if (!faults)
        return __real_gs_sim_stream_cut(stream);
    return spoiled->cut || (spoiled->from && __real_gs_sim_stream_cut(spoiled->from));
}

typedef void stream_free(struct gs_sim_stream *stream);
stream_free __real_gs_sim_stream_free, __wrap_gs_sim_stream_free;

void __wrap_gs_sim_stream_free(struct gs_sim_stream *stream)
{
    struct spoiled *spoiled = (struct spoiled *)stream;
    if (!faults || !stream) {
        __real_gs_sim_stream_free(stream);
        return;
    }
    __real_gs_sim_stream_free(spoiled->from);
    gs_buf_release(&spoiled->lines.held);
    gs_buf_release(&spoiled->body);
    free(spoiled);
}

/* ---- the port ---- */

typedef int server_start(const struct gs_http_config *config, struct gs_http_server **ret,
                         struct gs_error *err);
server_start __real_gs_http_server_start, __wrap_gs_http_server_start;

/* With faults anything may take a while: every request gets a worker, which may sleep. */
int __wrap_gs_http_server_start(const struct gs_http_config *config, struct gs_http_server **ret,
                                struct gs_error *err)
{
    enum { WORKERS = 64 };
    static struct gs_http_route route;
    struct gs_http_config own = *config;
    if (faults) {
        route = (struct gs_http_route){NULL, "/", config->routes[0].handler,
                                       GS_HTTP_PREFIX | GS_HTTP_BLOCKING};
        own.routes = &route;
        own.route_count = 1;
        own.workers = WORKERS;
    }
    return __real_gs_http_server_start(&own, ret, err);
}

/* ---- options ---- */

static int bad_usage(const char *why)
{
    fprintf(stderr, "faulty-api: %s\n", why);
    return 2;
}

/* "--name VALUE" or "--name=VALUE": the value, and how many words it took. */
static const char *value_of(char **argv, const char *name, int *ret_words)
{
    size_t len = strlen(name);
    if (strncmp(argv[0], name, len) != 0)
        return NULL;
    *ret_words = argv[0][len] ? 1 : 2;
    return argv[0][len] == '=' ? argv[0] + len + 1 : argv[0][len] ? NULL : argv[1];
}

int main(int argc, char **argv)
{
    char **rest = calloc((size_t)argc + 1, sizeof(*rest));
    const char *plan = NULL, *value;
    uint64_t seed = 0;
    int kept = 0;
    struct gs_error err = {0};
    if (!rest)
        return 1;
    rest[kept++] = argv[0];
    for (int i = 1, words = 1; i < argc; i += words) {
        words = 1;
        if ((value = value_of(argv + i, "--faults", &words))) {
            plan = value;
        } else if ((value = value_of(argv + i, "--fault-seed", &words))) {
            if (!gs_parse_u64(value, strlen(value), &seed))
                return bad_usage("--fault-seed is no number");
        } else if ((value = value_of(argv + i, "--synthetic", &words))) {
            synthetic = value;
        } else {
            if ((value = value_of(argv + i, "--domain", &words)))
                domain = value;
            words = 1;
            rest[kept++] = argv[i];
        }
    }
    if (synthetic && gs_sim_workload_parse(gs_slice_of(synthetic), &workload, &err) < 0)
        return bad_usage(err.msg);
    if (plan && !(faults = gs_sim_faults_new(seed)))
        return 1;
    if (plan && gs_sim_faults_plan(faults, gs_slice_of(plan), &err) < 0)
        return bad_usage(err.msg);
    int rc = cmd_serve(kept, rest);
    if (faults) {
        struct gs_buf text = GS_BUF(64 << 10);
        gs_sim_faults_print(faults, &text);
        fputs(text.data ? text.data : "", stdout);
        gs_buf_release(&text);
    }
    gs_sim_faults_free(faults);
    free(rest);
    return rc;
}
