/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

enum {
    SWEEP_BATCH = 32,   /* connections looked at under one hold of a loop's lock */
    BREATH_NS = 50000,  /* between two batches */
    ACCEPT_BATCH = 64,  /* before deadlines are looked at again */
    CLOSING_SLACK = 32, /* connections that are being closed and still count at the limit */
    PAUSE_MS = 10,
    /* include/net/tcp_states.h of Linux; not in its headers for user space */
    TCP_STATE_CLOSE = 7,
    TCP_STATE_CLOSE_WAIT = 8,
};

/* libmicrohttpd has no callback for bytes between requests or on a suspended connection, so the
 * kernel is asked. */
static bool ask_socket(int fd, struct tcp_info *ret)
{
    socklen_t len = sizeof(*ret);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, ret, &len) == 0;
}

bool gs_conn_client_left(const struct gs_http_conn *conn)
{
    struct tcp_info now = {0};
    return ask_socket(conn->fd, &now) &&
           (now.tcpi_state == TCP_STATE_CLOSE_WAIT || now.tcpi_state == TCP_STATE_CLOSE);
}

static void check_idle(struct gs_http_conn *conn, int64_t now_ns)
{
    struct gs_http_server *server = conn->loop->server;
    struct tcp_info now = {0};
    bool known = ask_socket(conn->fd, &now);
    if (known && now.tcpi_bytes_received > conn->received_bytes) {
        gs_conn_set_state_locked(conn, GS_CONN_RECEIVING, now_ns); /* a request begins */
        return;
    }
    if (known)
        conn->received_bytes = now.tcpi_bytes_received;
    if (atomic_load(&server->stopping))
        gs_conn_cut_locked(conn, NULL);
    else if (now_ns - conn->since_ns > server->config.idle_timeout_ns)
        gs_conn_cut_locked(conn, &server->stats.idle_timeouts);
}

/* A client that acknowledged no bytes since the last sweep is stalled. */
static void check_sending(struct gs_http_conn *conn, int64_t now_ns)
{
    struct gs_http_server *server = conn->loop->server;
    struct tcp_info now = {0};
    if (now_ns - conn->since_ns > server->config.response_timeout_ns) {
        gs_conn_cut_locked(conn, &server->stats.response_timeouts);
    } else if (ask_socket(conn->fd, &now)) {
        gs_conn_stalls_locked(conn, now.tcpi_bytes_acked == conn->acked_bytes);
        conn->acked_bytes = now.tcpi_bytes_acked;
    }
}

static void check_stream(struct gs_http_conn *conn)
{
    struct gs_http_server *server = conn->loop->server;
    if (!conn->stream)
        return;
    if (gs_conn_client_left(conn))
        gs_conn_cut_locked(conn, NULL);
    else if (gs_stream_stalled(conn->stream, gs_now_ns() - server->config.response_timeout_ns))
        gs_conn_cut_locked(conn, &server->stats.response_timeouts);
    else if (atomic_load(&server->stopping))
        gs_http_stream_end(conn->stream);
}

static void check(struct gs_http_conn *conn, int64_t now_ns)
{
    struct gs_http_server *server = conn->loop->server;
    int64_t age_ns = now_ns - conn->since_ns;
    if (conn->cut)
        return;
    switch (conn->state) {
    case GS_CONN_IDLE:
        check_idle(conn, now_ns);
        break;
    case GS_CONN_RECEIVING:
        if (age_ns > server->config.request_timeout_ns)
            gs_conn_cut_locked(conn, &server->stats.request_timeouts);
        break;
    case GS_CONN_SENDING:
        check_sending(conn, now_ns);
        break;
    case GS_CONN_STREAMING:
        check_stream(conn);
        break;
    case GS_CONN_HANDLING:
        break;
    }
}

static void sweep_loop(struct gs_http_loop *loop, int64_t now_ns)
{
    pthread_mutex_lock(&loop->lock);
    const unsigned count = loop->count;
    for (unsigned i = 0; i < count && !TAILQ_EMPTY(&loop->all); i++) {
        struct gs_http_conn *conn = TAILQ_FIRST(&loop->all);
        TAILQ_REMOVE(&loop->all, conn, in_all);
        TAILQ_INSERT_TAIL(&loop->all, conn, in_all);
        check(conn, now_ns);
        if (i % SWEEP_BATCH < SWEEP_BATCH - 1)
            continue;
        /* Requests of this loop wait for the lock, and unlocking alone does not let them run. */
        pthread_mutex_unlock(&loop->lock);
        nanosleep(&(const struct timespec){.tv_nsec = BREATH_NS}, NULL);
        pthread_mutex_lock(&loop->lock);
    }
    pthread_mutex_unlock(&loop->lock);
}

static void sweep(struct gs_http_server *server, int64_t now_ns)
{
    for (unsigned i = 0; i < server->loop_count; i++)
        sweep_loop(&server->loops[i], now_ns);
    gs_linger_sweep(&server->linger, gs_now_ns());
    if (server->tls)
        gs_tls_poll(server);
    gs_count(&server->stats.sweeps);
}

static void poll_listener(struct gs_http_server *server, bool on)
{
    struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.u32 = GS_EVENT_LISTEN};
    epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, server->listen_fd, &event);
    server->accepting = on;
}

static bool somebody_waits(const struct gs_http_server *server)
{
    struct pollfd listener = {.fd = server->listen_fd, .events = POLLIN};
    return poll(&listener, 1, 0) > 0;
}

/* The evicted connection stays open for a moment, so the limit may be exceeded briefly. */
static bool make_room(struct gs_http_server *server)
{
    return gs_evict_one(server, NULL) &&
           gs_open_count(server) < (uint64_t)server->config.max_connections + CLOSING_SLACK;
}

/* The loop with the fewest connections; among equals in turn, because new connections are counted
 * late. */
static struct gs_http_loop *choose_loop(struct gs_http_server *server)
{
    struct gs_http_loop *best = &server->loops[server->next_loop];
    for (unsigned i = 1; i < server->loop_count; i++) {
        struct gs_http_loop *loop = &server->loops[(server->next_loop + i) % server->loop_count];
        if (loop->count < best->count)
            best = loop;
    }
    server->next_loop = (server->next_loop + 1) % server->loop_count;
    return best;
}

static void hand_over(struct gs_http_server *server, int fd, const struct sockaddr *addr,
                      socklen_t len)
{
    gs_count(&server->stats.connections);
    if (MHD_add_connection(choose_loop(server)->daemon, fd, addr, len) == MHD_YES)
        return;
    gs_count(&server->closed); /* it has closed the socket */
}

static void accept_some(struct gs_http_server *server)
{
    for (unsigned i = 0; i < ACCEPT_BATCH; i++) {
        bool full = gs_open_count(server) >= server->config.max_connections;
        if (full && !somebody_waits(server))
            return; /* do not evict without a newcomer */
        if (full && !make_room(server)) {
            poll_listener(server, false); /* until the next sweep; the kernel queues connections */
            return;
        }
        struct sockaddr_storage addr;
        socklen_t len = sizeof(addr);
        int fd = accept4(server->listen_fd, (struct sockaddr *)&addr, &len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            hand_over(server, fd, (const struct sockaddr *)&addr, len);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            gs_evict_one(server, NULL);
            poll_listener(server, false);
            return;
        }
    }
}

static int sleep_ms(const struct gs_http_server *server)
{
    if (atomic_load(&server->stopping) || (server->listen_fd >= 0 && !server->accepting))
        return PAUSE_MS;
    return (int)(server->tick_ns / GS_NS_PER_MS);
}

static void handle_event(struct gs_http_server *server, uint32_t what)
{
    eventfd_t count;
    if (what == GS_EVENT_WAKE)
        eventfd_read(server->wake_fd, &count); /* only wakes epoll_wait() */
    else if (what != GS_EVENT_LISTEN)
        gs_linger_event(&server->linger, what);
    else if (server->accepting)
        accept_some(server);
}

static void *watch_main(void *arg)
{
    struct gs_http_server *server = arg;
    int64_t swept_ns = gs_server_now_ns(server);
    while (!atomic_load(&server->quit)) {
        struct epoll_event events[16];
        int timeout_ms = sleep_ms(server);
        int count = epoll_wait(server->epoll_fd, events, 16, timeout_ms);
        for (int i = 0; i < count; i++)
            handle_event(server, events[i].data.u32);
        if (atomic_load(&server->stopping)) {
            gs_closep(&server->listen_fd);
            server->listen_fd = -1;
            server->accepting = false;
        }
        if (gs_server_now_ns(server) - swept_ns < timeout_ms * GS_NS_PER_MS)
            continue;
        swept_ns = gs_server_now_ns(server);
        sweep(server, swept_ns);
        if (server->listen_fd >= 0 && !server->accepting)
            poll_listener(server, true);
    }
    return NULL;
}

static int64_t choose_tick(const struct gs_http_config *config)
{
    const int64_t least_ns = PAUSE_MS * GS_NS_PER_MS;
    const int64_t limits_ns[] = {config->request_timeout_ns, config->idle_timeout_ns,
                                 config->response_timeout_ns};
    int64_t tick_ns = GS_NS_PER_S / 2;
    for (int i = 0; i < 3; i++)
        tick_ns = limits_ns[i] / 8 < tick_ns ? limits_ns[i] / 8 : tick_ns;
    return tick_ns < least_ns ? least_ns : tick_ns;
}

int gs_acceptor_start(struct gs_http_server *server, struct gs_error *err)
{
    server->tick_ns = choose_tick(&server->config);
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event wake = {.events = EPOLLIN, .data.u32 = GS_EVENT_WAKE};
    struct epoll_event listener = {.events = EPOLLIN, .data.u32 = GS_EVENT_LISTEN};
    if (server->epoll_fd < 0 || server->wake_fd < 0 ||
        epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, server->wake_fd, &wake) < 0 ||
        epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, server->listen_fd, &listener) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot watch the listening socket");
    server->accepting = true;
    int why = pthread_create(&server->watcher, NULL, watch_main, server);
    if (why != 0)
        return gs_fail_errno(err, GS_EIO, why, "cannot start a thread");
    server->watcher_runs = true;
    return 0;
}

void gs_acceptor_wake(struct gs_http_server *server)
{
    eventfd_write(server->wake_fd, 1); /* a full counter wakes as well */
}

void gs_acceptor_stop(struct gs_http_server *server)
{
    if (!server->watcher_runs)
        return;
    atomic_store(&server->quit, true);
    gs_acceptor_wake(server);
    pthread_join(server->watcher, NULL);
    server->watcher_runs = false;
}
