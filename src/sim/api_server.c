/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/api_server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "gpushare/base/clock.h"
#include "gpushare/http/router.h"
#include "gpushare/http/server.h"
#include "gpushare/http/stream.h"

enum {
    THREADS = 4,
    WORKERS = 16,
    HEAD_BYTES = 64 << 10,        /* continue tokens and selectors travel in the query */
    BODY_BYTES = 4 << 20,         /* more than an object may have, so that it is told 413 */
    STREAM_BYTES = 64 << 20,      /* what a slow watcher may fall behind */
    STREAM_PAUSE_BYTES = 4 << 20, /* above it the watch waits for its client */
    DRAIN_MS = 1000,              /* for what is still to be sent before a cut */
};

#define BOOKMARK_NS (10 * GS_NS_PER_S)

struct api_server {
    struct gs_sim_api api;
    struct gs_http_server *http;
    pthread_mutex_t lock; /* guards pumps */
    pthread_cond_t fewer_pumps;
    size_t pumps;
};

/* ---- watches ---- */

/* Moves lines from a watch to its client. Two hold it: its thread, and the server until on_close.
 */
struct pump {
    struct api_server *server;
    struct gs_sim_stream *from;
    struct gs_http_stream *to;
    atomic_bool closed;
    atomic_int holders;
};

static void release_pump(struct pump *pump)
{
    struct api_server *server = pump->server;
    if (atomic_fetch_sub(&pump->holders, 1) != 1)
        return;
    gs_sim_stream_free(pump->from);
    gs_http_stream_unref(pump->to);
    free(pump);
    pthread_mutex_lock(&server->lock);
    server->pumps--;
    pthread_cond_signal(&server->fewer_pumps);
    pthread_mutex_unlock(&server->lock);
}

static void on_close(void *ctx)
{
    struct pump *pump = ctx;
    atomic_store(&pump->closed, true);
    gs_sim_cluster_wake(pump->server->api.cluster);
    release_pump(pump);
}

/* A client that reads slowly slows its own watch down; the server cuts one that does not read. */
static void wait_for_client(struct pump *pump)
{
    while (!atomic_load(&pump->closed) &&
           gs_http_stream_pending_bytes(pump->to) > STREAM_PAUSE_BYTES)
        nanosleep(&(struct timespec){.tv_nsec = 2 * GS_NS_PER_MS}, NULL);
}

/* What was written before a fault shall arrive: half a line is another fault than none. */
static void cut(struct pump *pump)
{
    for (int ms = 0;
         ms < DRAIN_MS && !atomic_load(&pump->closed) && gs_http_stream_pending_bytes(pump->to) > 0;
         ms += 2)
        nanosleep(&(struct timespec){.tv_nsec = 2 * GS_NS_PER_MS}, NULL);
    gs_http_stream_abort(pump->to);
}

static void *run_pump(void *arg)
{
    struct pump *pump = arg;
    struct gs_buf lines = GS_BUF(STREAM_BYTES / 2);
    int rc = 0;
    while (rc == 0 && !atomic_load(&pump->closed)) {
        rc = gs_sim_stream_next(pump->from, 3600 * GS_NS_PER_S, &lines);
        wait_for_client(pump);
        if (lines.len > 0 && gs_http_stream_write(pump->to, lines.data, lines.len, NULL) < 0)
            break;
    }
    if (gs_sim_stream_cut(pump->from))
        cut(pump);
    else
        gs_http_stream_end(pump->to);
    gs_buf_release(&lines);
    release_pump(pump);
    return NULL;
}

/* Takes the stream out of the reply. */
static void answer_in_pieces(struct api_server *server, struct gs_sim_reply *reply,
                             struct gs_http_response *res)
{
    struct pump *pump = calloc(1, sizeof(*pump));
    struct gs_http_stream *to = pump ? gs_http_stream_new(STREAM_BYTES, on_close, pump) : NULL;
    if (!to) {
        free(pump);
        gs_http_error(res, 500, "out of memory");
        return;
    }
    *pump = (struct pump){.server = server, .from = gs_steal(&reply->stream), .to = to};
    atomic_init(&pump->holders, 2);
    pthread_mutex_lock(&server->lock);
    server->pumps++;
    pthread_mutex_unlock(&server->lock);
    gs_http_respond_stream(res, to);
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_pump, pump) == 0) {
        pthread_detach(thread);
    } else {
        gs_http_stream_abort(to);
        release_pump(pump);
    }
}

/* ---- requests ---- */

static const char *query_of(void *ctx, const char *name)
{
    return gs_http_query(ctx, name);
}

static void handle(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct api_server *server = ctx;
    struct gs_sim_request request = {
        .method = req->method,
        .path = req->path,
        .query = query_of,
        .query_ctx = (void *)(uintptr_t)req,
        .content_type = gs_http_header(req, "Content-Type"),
        .authorization = gs_http_header(req, "Authorization"),
        .agent = gs_http_header(req, "User-Agent"),
        .body = {req->body, req->body_len},
    };
    /* The answer grows in the connection's own buffer and goes out from there. */
    struct gs_sim_reply reply = {.body = res->body};
    gs_sim_api_handle(&server->api, &request, &reply);
    res->status = (unsigned)reply.status;
    res->content_type = reply.content_type;
    res->body = reply.body;
    reply.body = GS_BUF(0);
    if (reply.stream)
        answer_in_pieces(server, &reply, res);
    gs_sim_reply_release(&reply);
}

/* Lists may take a while; writes are answered by the thread that read them. */
static const struct gs_http_route routes[] = {
    {"GET", "/", handle, GS_HTTP_PREFIX | GS_HTTP_BLOCKING},
    {NULL, "/", handle, GS_HTTP_PREFIX},
};

/* ---- the server ---- */

static int start_http(struct api_server *server, const char *listen, struct gs_error *err)
{
    struct gs_http_config config = GS_HTTP_CONFIG_DEFAULTS;
    config.listen = listen;
    config.routes = routes;
    config.route_count = sizeof(routes) / sizeof(routes[0]);
    config.ctx = server;
    config.threads = THREADS;
    config.workers = WORKERS;
    config.max_body_bytes = BODY_BYTES;
    config.max_head_bytes = HEAD_BYTES;
    config.max_response_bytes = GS_SIM_REPLY_BYTES_MAX;
    config.max_buffered_bytes = 4 * (size_t)GS_SIM_REPLY_BYTES_MAX;
    return gs_http_server_start(&config, &server->http, err);
}

int api_server_start(struct gs_sim_cluster *cluster, const char *token, const char *listen,
                     struct api_server **ret_server, struct gs_error *err)
{
    struct api_server *server = calloc(1, sizeof(*server));
    if (!server)
        return gs_fail_nomem(err);
    server->api = (struct gs_sim_api){cluster, token, BOOKMARK_NS};
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->fewer_pumps, NULL);
    if (start_http(server, listen, err) < 0) {
        api_server_stop(server);
        return -1;
    }
    *ret_server = server;
    return 0;
}

uint16_t api_server_port(const struct api_server *server)
{
    return gs_http_server_port(server->http);
}

void api_server_stop(struct api_server *server)
{
    if (!server)
        return;
    if (server->http)
        gs_http_server_stop(server->http, GS_NS_PER_S);
    /* The pumps may still write to their streams, which outlive the connections. */
    pthread_mutex_lock(&server->lock);
    while (server->pumps > 0)
        pthread_cond_wait(&server->fewer_pumps, &server->lock);
    pthread_mutex_unlock(&server->lock);
    if (server->http)
        gs_http_server_free(server->http);
    pthread_cond_destroy(&server->fewer_pumps);
    pthread_mutex_destroy(&server->lock);
    free(server);
}
