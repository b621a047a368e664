/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/http/server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/* TLS 1.2 with the properties of 1.3: forward secrecy and AEAD. */
#define TLS_PRIORITIES                                                                             \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-CIPHER-ALL:"      \
    "+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:-MAC-ALL:+AEAD:%SERVER_PRECEDENCE"

/* Other parts of the program need descriptors as well. */
static unsigned connection_limit(unsigned wanted)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur == RLIM_INFINITY)
        return wanted;
    rlim_t most = files.rlim_cur / 4 * 3;
    return most < wanted ? (unsigned)most : wanted;
}

static int start_loop(struct gs_http_server *server, struct gs_http_loop *loop,
                      struct gs_error *err)
{
    loop->server = server;
    TAILQ_INIT(&loop->all);
    for (unsigned i = 0; i < GS_CLASS_COUNT; i++)
        TAILQ_INIT(&loop->classes[i]);
    pthread_mutex_init(&loop->lock, NULL);
    server->loop_count++;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
        {MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)gs_tls_no_certificate},
        {MHD_OPTION_END, 0, NULL},
    };
    const struct MHD_OptionItem *more = server->tls ? tls : &tls[2];
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET |
                     MHD_ALLOW_SUSPEND_RESUME | (server->tls ? MHD_USE_TLS : 0U);
    /* The watcher enforces limits and deadlines, so libmicrohttpd's own limit is set high. */
    loop->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, gs_request_access, loop, MHD_OPTION_NOTIFY_CONNECTION, gs_conn_notify,
        loop, MHD_OPTION_NOTIFY_COMPLETED, gs_conn_completed, loop, MHD_OPTION_UNESCAPE_CALLBACK,
        gs_request_unescape, loop, MHD_OPTION_URI_LOG_CALLBACK, gs_request_line, loop,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, server->config.max_head_bytes,
        MHD_OPTION_CONNECTION_LIMIT, server->config.max_connections * 2 + 1024, MHD_OPTION_ARRAY,
        more, MHD_OPTION_END);
    return loop->daemon ? 0 : gs_fail_errno(err, GS_EIO, errno, "cannot start an HTTP thread");
}

static int start_threads(struct gs_http_server *server, struct gs_error *err)
{
    for (unsigned i = 0; i < server->config.threads; i++) {
        if (start_loop(server, &server->loops[i], err) < 0)
            return -1;
    }
    if (gs_workers_start(&server->workers, server->config.workers, err) < 0 ||
        gs_workers_start(&server->heavy, 1, err) < 0)
        return -1;
    return gs_acceptor_start(server, err);
}

static struct gs_http_server *new_server(const struct gs_http_config *config)
{
    struct gs_http_server *server = calloc(1, sizeof(*server));
    if (!server)
        return NULL;
    server->config = *config;
    server->config.clock = config->clock ? config->clock : gs_clock_system();
    server->config.max_connections = connection_limit(config->max_connections);
    server->listen_fd = server->epoll_fd = server->wake_fd = -1;
    pthread_mutex_init(&server->linger.lock, NULL);
    gs_workers_init(&server->workers, config->queue_max);
    gs_workers_init(&server->heavy, config->queue_max);
    pthread_mutex_init(&server->closed_lock, NULL);
    gs_clock_cond_init(&server->closed_wake);
    server->loops = calloc(config->threads, sizeof(*server->loops));
    if (!server->loops) {
        gs_http_server_free(server);
        return NULL;
    }
    return server;
}

int gs_http_server_start(const struct gs_http_config *config, struct gs_http_server **ret_server,
                         struct gs_error *err)
{
    _cleanup_(gs_http_server_freep) struct gs_http_server *server = new_server(config);
    if (!server)
        return gs_fail_nomem(err);
    if (gs_tls_new(config, &server->tls, err) < 0)
        return -1;
    if (gs_listen_open(config->listen, &server->listen_fd, &server->port, err) < 0)
        return -1;
    /* Block signals in all threads: the main thread handles them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = start_threads(server, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0)
        *ret_server = gs_steal(&server);
    return result;
}

uint16_t gs_http_server_port(const struct gs_http_server *server)
{
    return server->port;
}

static void wait_closed(struct gs_http_server *server, int64_t grace_ns)
{
    struct timespec until = gs_clock_wait_until(gs_now_ns() + grace_ns);
    pthread_mutex_lock(&server->closed_lock);
    int why = 0;
    while (gs_open_count(server) > 0 && why == 0)
        why = pthread_cond_timedwait(&server->closed_wake, &server->closed_lock, &until);
    pthread_mutex_unlock(&server->closed_lock);
}

static void cut_all(struct gs_http_server *server)
{
    atomic_store(&server->hard, true);
    for (unsigned i = 0; i < server->loop_count; i++) {
        struct gs_http_loop *loop = &server->loops[i];
        struct gs_http_conn *conn;
        pthread_mutex_lock(&loop->lock);
        TAILQ_FOREACH(conn, &loop->all, in_all)
        gs_conn_cut_locked(conn, NULL);
        pthread_mutex_unlock(&loop->lock);
    }
}

void gs_http_server_stop(struct gs_http_server *server, int64_t grace_ns)
{
    if (server->stopped)
        return;
    server->stopped = true;
    atomic_store(&server->stopping, true);
    if (server->watcher_runs) {
        gs_acceptor_wake(server);
        wait_closed(server, grace_ns);
    }
    cut_all(server);
    /* Streams no longer suspend connections; stopping the workers resumes the rest. A loop must not
     * be stopped with a suspended connection. */
    gs_workers_stop(&server->workers);
    gs_workers_stop(&server->heavy);
    gs_acceptor_stop(server);
    gs_closep(&server->listen_fd);
    server->listen_fd = -1;
    for (unsigned i = 0; i < server->loop_count; i++) {
        MHD_stop_daemon(server->loops[i].daemon);
        server->loops[i].daemon = NULL;
    }
    /* A loop that stops closes connections that it has not opened yet without a notification. */
    server->closed = server->stats.connections;
    gs_linger_sweep(&server->linger, INT64_MAX);
}

void gs_http_server_free(struct gs_http_server *server)
{
    if (!server)
        return;
    gs_http_server_stop(server, 0);
    for (unsigned i = 0; i < server->loop_count; i++)
        pthread_mutex_destroy(&server->loops[i].lock);
    free(server->loops);
    gs_tls_free(server->tls);
    gs_closep(&server->listen_fd);
    gs_closep(&server->wake_fd);
    gs_closep(&server->epoll_fd);
    pthread_mutex_destroy(&server->linger.lock);
    gs_workers_destroy(&server->workers);
    gs_workers_destroy(&server->heavy);
    pthread_mutex_destroy(&server->closed_lock);
    pthread_cond_destroy(&server->closed_wake);
    free(server);
}

void gs_http_server_stats(struct gs_http_server *server, struct gs_http_stats *ret_stats)
{
    const uint64_t closed =
        gs_counted(&server->closed); /* first, so that `open` is never negative */
    const uint64_t *from = (const uint64_t *)&server->stats;
    struct gs_http_stats stats = {0};
    uint64_t *to = (uint64_t *)&stats;
    for (size_t i = 0; i < offsetof(struct gs_http_stats, tls_stale) / sizeof(*to); i++)
        to[i] = gs_counted(&from[i]);
    stats.connections_open = stats.connections - closed;
    stats.queued = server->workers.queued;
    stats.buffered_bytes = atomic_load(&server->buffered_bytes);
    if (server->tls)
        gs_tls_status(server->tls, &stats.tls_stale, &stats.tls_expires_s);
    *ret_stats = stats;
}
