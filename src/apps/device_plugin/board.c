/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/board.h"

#include <stdio.h>

#include "gpushare/base/clock.h"
#include "gpushare/http/server.h"

/* The loop beats every few seconds, whatever happens. */
#define DEAD_AFTER_NS (60 * GS_NS_PER_S)

void board_init(struct board *board, struct gs_kube_client *client)
{
    pthread_mutex_init(&board->lock, NULL);
    board->client = client;
    board->state.beat_ns = gs_clock_now_ns(gs_clock_system());
    board_set_gpu_error(board, "the GPUs were not read yet");
}

void board_set_gpu_error(struct board *board, const char *why)
{
    pthread_mutex_lock(&board->lock);
    snprintf(board->state.gpu_error, sizeof(board->state.gpu_error), "%s", why);
    pthread_mutex_unlock(&board->lock);
}

static void copy_state(struct board *board, struct board_state *ret)
{
    pthread_mutex_lock(&board->lock);
    *ret = board->state;
    pthread_mutex_unlock(&board->lock);
}

unsigned board_ready(const struct board_state *state, const char **ret_why)
{
    *ret_why = "ok";
    if (state->gpu_error[0])
        *ret_why = state->gpu_error;
    else if (!state->pods_listed)
        *ret_why = "this node's pods are not loaded yet";
    else if (!state->linked)
        *ret_why = "the kubelet does not listen";
    else
        return 200;
    return 503;
}

static void on_version(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    res->content_type = "text/plain; charset=utf-8";
    gs_buf_puts(&res->body, GS_VERSION "\n");
}

static void on_healthz(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct board_state state;
    copy_state(ctx, &state);
    bool dead = gs_clock_now_ns(gs_clock_system()) - state.beat_ns > DEAD_AFTER_NS;
    res->content_type = "text/plain; charset=utf-8";
    res->status = dead ? 503 : 200;
    gs_buf_puts(&res->body, dead ? "the loop stands still\n" : "ok\n");
}

static void on_readyz(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct board_state state;
    const char *why;
    copy_state(ctx, &state);
    res->content_type = "text/plain; charset=utf-8";
    res->status = board_ready(&state, &why);
    gs_buf_printf(&res->body, "%s\n", why);
}

static void head(struct gs_buf *out, const char *name, const char *type, const char *help)
{
    gs_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(struct gs_buf *out, const char *name, const char *type, const char *help,
                unsigned long long value)
{
    head(out, name, type, help);
    gs_buf_printf(out, "%s %llu\n", name, value);
}

#define PREFIX "gpushare_device_plugin_"

static void print_gpus(const struct board_state *state, struct gs_buf *out)
{
    static const char *const names[] = {PREFIX "gpu_units", PREFIX "gpu_used_units",
                                        PREFIX "gpu_healthy"};
    static const char *const helps[] = {"Size of a GPU.", "Of these, given to pods.",
                                        "1: new pods may come."};
    for (int what = 0; what < 3; what++) {
        head(out, names[what], "gauge", helps[what]);
        for (uint32_t i = 0; i < state->set.count; i++) {
            const struct gs_gpu *gpu = &state->set.gpus[i];
            const unsigned long long values[] = {gpu->mem_units, state->stats.used_units[gpu->idx],
                                                 gpu->healthy};
            gs_buf_printf(out, "%s{gpu=\"%u\"} %llu\n", names[what], gpu->idx, values[what]);
        }
    }
}

void board_metrics(const struct board_state *state, struct gs_buf *out)
{
    const struct gs_allocator_stats *stats = &state->stats;
    print_gpus(state, out);
    one(out, PREFIX "pods", "gauge", "Pods with GPU memory on this node.", stats->pods);
    one(out, PREFIX "pods_waiting", "gauge", "Of these, not fully allocated.", stats->waiting);
    one(out, PREFIX "writes_queued", "gauge", "Patches and events still to be sent.",
        stats->writes_queued);
    one(out, PREFIX "allocated_total", "counter", "Containers answered.", stats->allocated);
    one(out, PREFIX "unclaimed_total", "counter", "Of these, claimed by no pod at that time.",
        stats->unclaimed);
    one(out, PREFIX "no_room_total", "counter", "Containers refused for lack of memory.",
        stats->no_room);
    one(out, PREFIX "swaps_total", "counter", "Pairs of pods whose records were exchanged.",
        stats->swaps);
    one(out, PREFIX "held_total", "counter", "Starts held back.", stats->held);
    one(out, PREFIX "registrations_total", "counter", "Registrations that the kubelet accepted.",
        state->registrations);
    one(out, PREFIX "kubelet_listens", "gauge", "1: the kubelet reads our list of devices.",
        state->linked);
}

static void on_metrics(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct board *board = ctx;
    struct board_state state;
    struct gs_kube_stats kube;
    copy_state(board, &state);
    gs_kube_client_stats(board->client, &kube);
    res->content_type = "text/plain; version=0.0.4; charset=utf-8";
    board_metrics(&state, &res->body);
    one(&res->body, "gpushare_api_requests_total", "counter", "Answers from the API server.",
        kube.requests);
    one(&res->body, "gpushare_api_failures_total", "counter", "Requests without an answer.",
        kube.failed);
}

static const struct gs_http_route routes[] = {
    {"GET", "/version", on_version, 0},
    {"GET", "/healthz", on_healthz, 0},
    {"GET", "/readyz", on_readyz, 0},
    {"GET", "/metrics", on_metrics, 0},
};

int board_serve(struct board *board, const char *listen, struct gs_http_server **ret_server,
                struct gs_error *err)
{
    struct gs_http_config config = GS_HTTP_CONFIG_DEFAULTS;
    config.listen = listen;
    config.routes = routes;
    config.route_count = sizeof(routes) / sizeof(routes[0]);
    config.ctx = board;
    config.threads = 1;
    config.workers = 0;
    config.max_body_bytes = 4096;
    config.max_head_bytes = 8192;
    config.max_connections = 64;
    config.max_response_bytes = (size_t)256 << 10;
    if (gs_http_server_start(&config, ret_server, err) < 0)
        return gs_error_prefix(err, "--http-listen %s", listen);
    return 0;
}
