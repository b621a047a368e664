/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "internal.h"

/* An idle connection keeps buffers up to KEEP_BYTES for its next request; all idle connections
 * together keep up to KEEP_TOTAL_BYTES. */
enum { KEEP_BYTES = 1 << 20, KEEP_TOTAL_BYTES = 8 << 20 };

enum {
    SMALL_SHARE = 256, /* a body or answer up to this part of max_buffered_bytes is small */
    RESERVE_SHARE = 4, /* this part of max_buffered_bytes is reserved for small ones */
};

/* GS_CLASS_COUNT: no class; the connection cannot be evicted. */
static void move_to_class(struct gs_http_conn *conn, enum gs_conn_class class)
{
    if (conn->class_list)
        TAILQ_REMOVE(conn->class_list, conn, in_class);
    conn->class_list = class == GS_CLASS_COUNT || conn->cut ? NULL : &conn->loop->classes[class];
    if (conn->class_list)
        TAILQ_INSERT_TAIL(conn->class_list, conn, in_class);
}

static enum gs_conn_class class_of_state(const struct gs_http_conn *conn)
{
    switch (conn->state) {
    case GS_CONN_IDLE:
        return conn->used ? GS_CLASS_IDLE : GS_CLASS_FRESH;
    case GS_CONN_RECEIVING:
        return GS_CLASS_SLOW;
    case GS_CONN_SENDING:
        return GS_CLASS_SENDING;
    default:
        return GS_CLASS_COUNT;
    }
}

void gs_conn_stalls_locked(struct gs_http_conn *conn, bool stalls)
{
    enum gs_conn_class class = stalls ? GS_CLASS_STALLED : GS_CLASS_SENDING;
    if (conn->class_list != &conn->loop->classes[class])
        move_to_class(conn, class);
}

void gs_conn_set_state_locked(struct gs_http_conn *conn, enum gs_conn_state state, int64_t now_ns)
{
    conn->state = state;
    conn->since_ns = now_ns;
    if (state == GS_CONN_IDLE)
        conn->received_bytes = UINT64_MAX;
    if (state == GS_CONN_SENDING)
        conn->acked_bytes = UINT64_MAX;
    move_to_class(conn, class_of_state(conn));
}

void gs_conn_set_state(struct gs_http_conn *conn, enum gs_conn_state state)
{
    int64_t now_ns = gs_server_now_ns(conn->loop->server);
    pthread_mutex_lock(&conn->loop->lock);
    /* If the watcher has seen the request begin, its deadline runs already. */
    if (state != GS_CONN_RECEIVING || conn->state != GS_CONN_RECEIVING)
        gs_conn_set_state_locked(conn, state, now_ns);
    pthread_mutex_unlock(&conn->loop->lock);
}

void gs_conn_cut_locked(struct gs_http_conn *conn, uint64_t *counter)
{
    if (conn->cut)
        return;
    conn->cut = true;
    move_to_class(conn, GS_CLASS_COUNT);
    if (counter)
        gs_count(counter);
    /* discard unsent bytes, which would stay in the kernel's memory */
    if (conn->state == GS_CONN_SENDING)
        setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
                   sizeof(struct linger));
    shutdown(conn->fd, SHUT_RDWR);
    if (conn->stream)
        gs_http_stream_abort(conn->stream);
}

void gs_conn_attach_stream(struct gs_http_conn *conn, struct gs_http_stream *stream)
{
    struct gs_http_server *server = conn->loop->server;
    gs_count(&server->stats.streams_open);
    gs_stream_attach(stream, conn->mhd, conn->fd);
    gs_conn_set_state(conn, GS_CONN_STREAMING);
    pthread_mutex_lock(&conn->loop->lock);
    conn->stream = stream;
    /* stop() has passed this connection by already, or will find the stream now. */
    bool late = conn->cut || atomic_load(&server->hard);
    pthread_mutex_unlock(&conn->loop->lock);
    if (late)
        gs_http_stream_abort(stream);
}

static void drop_stream(struct gs_http_conn *conn)
{
    pthread_mutex_lock(&conn->loop->lock);
    struct gs_http_stream *stream = conn->stream;
    conn->stream = NULL;
    pthread_mutex_unlock(&conn->loop->lock);
    if (!stream)
        return;
    gs_stream_detach(stream);
    __atomic_fetch_sub(&conn->loop->server->stats.streams_open, 1, __ATOMIC_RELAXED);
    gs_http_stream_unref(stream);
}

/* The limit on all buffered bytes for a body of this size. It is lower for larger bodies, so that a
 * few large ones leave memory for small ones. */
static size_t memory_for(const struct gs_http_server *server, size_t body_bytes)
{
    size_t most = server->config.max_buffered_bytes;
    double small = (double)most / SMALL_SHARE;
    double share = (double)body_bytes / ((double)body_bytes + small);
    return most - (size_t)(share * (double)most / RESERVE_SHARE);
}

bool gs_conn_claim(struct gs_http_conn *conn, size_t more_bytes, size_t whole_bytes)
{
    struct gs_http_server *server = conn->loop->server;
    conn->counted_bytes += more_bytes;
    size_t before = atomic_fetch_add(&server->buffered_bytes, more_bytes);
    return before + more_bytes <= memory_for(server, whole_bytes);
}

void gs_conn_drop_body(struct gs_http_conn *conn)
{
    struct gs_http_server *server = conn->loop->server;
    atomic_fetch_sub(&server->buffered_bytes, conn->counted_bytes);
    conn->counted_bytes = 0;
    if (conn->body.cap > KEEP_BYTES)
        gs_buf_release(&conn->body);
    else
        gs_buf_reset(&conn->body);
}

/* Decides which buffers stay for the next request. */
static void keep_buffers(struct gs_http_conn *conn)
{
    struct gs_http_server *server = conn->loop->server;
    struct gs_buf *answer = &conn->response.body;
    gs_conn_drop_body(conn);
    if (answer->cap > KEEP_BYTES)
        gs_buf_release(answer);
    size_t keep = conn->body.cap + answer->cap;
    if (atomic_fetch_sub(&server->kept_bytes, conn->kept_bytes) - conn->kept_bytes + keep >
        KEEP_TOTAL_BYTES) {
        gs_buf_release(&conn->body);
        gs_buf_release(answer);
        keep = 0;
    }
    conn->kept_bytes = keep;
    atomic_fetch_add(&server->kept_bytes, keep);
}

static void free_conn(struct gs_http_conn *conn)
{
    struct gs_http_server *server = conn->loop->server;
    if (conn->tls && !gs_tls_conn_free(conn->tls))
        gs_count(&server->stats.tls_refused);
    gs_conn_drop_body(conn);
    atomic_fetch_sub(&server->kept_bytes, conn->kept_bytes);
    gs_buf_release(&conn->body);
    gs_buf_release(&conn->response.body);
    gs_buf_release(&conn->response.headers);
    free(conn);
}

static struct in6_addr peer_address(struct MHD_Connection *mhd)
{
    const struct sockaddr *peer =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    struct in6_addr addr = IN6ADDR_ANY_INIT;
    if (peer->sa_family == AF_INET6) {
        addr = ((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
    } else {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)peer;
        memcpy(&addr.s6_addr[12], &v4->sin_addr, sizeof(v4->sin_addr));
    }
    return addr;
}

static void opened(struct gs_http_loop *loop, struct MHD_Connection *mhd, void **socket_context)
{
    struct gs_http_server *server = loop->server;
    struct gs_http_conn *conn = calloc(1, sizeof(*conn));
    *socket_context = conn;
    if (!conn)
        return; /* its first request is refused by closing it */
    conn->loop = loop;
    conn->mhd = mhd;
    conn->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    conn->addr = peer_address(mhd);
    conn->body = GS_BUF(server->config.max_body_bytes);
    conn->response.body = GS_BUF(server->config.max_response_bytes);
    conn->response.headers = GS_BUF(16 << 10);
    if (server->tls)
        conn->tls = gs_tls_conn_new(server, mhd);
    pthread_mutex_lock(&loop->lock);
    TAILQ_INSERT_TAIL(&loop->all, conn, in_all);
    loop->count++;
    gs_conn_set_state_locked(conn, GS_CONN_IDLE, gs_server_now_ns(server));
    conn->received_bytes = 0; /* no byte was read so far */
    pthread_mutex_unlock(&loop->lock);
    unsigned limit = server->config.max_connections_per_address;
    bool many =
        limit && gs_count_address(server, &conn->addr) > limit && !gs_evict_one(server, conn);
    if (many || (server->tls && !conn->tls)) {
        pthread_mutex_lock(&loop->lock);
        gs_conn_cut_locked(conn, many ? &server->stats.connections_refused : NULL);
        pthread_mutex_unlock(&loop->lock);
    }
}

static void closed(struct gs_http_loop *loop, struct gs_http_conn *conn)
{
    struct gs_http_server *server = loop->server;
    if (conn) {
        pthread_mutex_lock(&loop->lock);
        move_to_class(conn, GS_CLASS_COUNT);
        TAILQ_REMOVE(&loop->all, conn, in_all);
        loop->count--;
        pthread_mutex_unlock(&loop->lock);
        if (conn->linger)
            gs_linger_add(server, conn->fd);
        free_conn(conn);
    }
    pthread_mutex_lock(&server->closed_lock);
    gs_count(&server->closed);
    pthread_cond_signal(&server->closed_wake);
    pthread_mutex_unlock(&server->closed_lock);
}

void gs_conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                    enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        opened(cls, mhd, socket_context);
    else
        closed(cls, *socket_context);
}

void gs_conn_completed(void *cls, struct MHD_Connection *mhd, void **request_context,
                       enum MHD_RequestTerminationCode why)
{
    struct gs_http_conn *conn = *request_context;
    if (!conn)
        return;
    if (conn->phase != GS_PHASE_ANSWERED)
        gs_count(&conn->loop->server->stats.requests[0]);
    drop_stream(conn);
    gs_answer_drop_stream(&conn->response);
    keep_buffers(conn);
    conn->phase = GS_PHASE_NEW;
    conn->used = true;
    gs_conn_set_state(conn, GS_CONN_IDLE);
}
