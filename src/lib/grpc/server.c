/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server_internal.h"

#define ACCEPT_PAUSE_NS (100 * GS_NS_PER_MS)

/* ---- connections ---- */

/* Accepts as long as there is room for one more connection. */
static void update_accepting(struct gs_grpc_server *server)
{
    bool room = server->conn_count < GS_SERVER_MAX_CONNECTIONS && !server->accept_again.armed;
    gs_loop_fd_events(&server->acceptable, room ? POLLIN : 0);
}

static void close_conn(struct gs_grpc_conn *conn)
{
    struct gs_grpc_server *server = conn->server;
    LIST_REMOVE(conn, link);
    server->conn_count--;
    while (!LIST_EMPTY(&conn->calls))
        gs_grpc_call_detach(LIST_FIRST(&conn->calls));
    gs_h2_close(&conn->h2);
    free(conn);
    update_accepting(server);
}

static void on_broken(void *ctx)
{
    close_conn(ctx);
}

int gs_grpc_server_adopt(struct gs_grpc_server *server, int fd, struct gs_error *err)
{
    struct gs_grpc_conn *conn = calloc(1, sizeof(*conn));
    nghttp2_session *session = NULL;
    if (!conn) {
        close(fd);
        return gs_fail_nomem(err);
    }
    conn->server = server;
    conn->h2.broken = on_broken;
    conn->h2.ctx = conn;
    if (gs_grpc_conn_session(conn, &session, err) < 0) {
        close(fd);
        free(conn);
        return -1;
    }
    if (gs_h2_start(&conn->h2, server->loop, fd, session, err) < 0) {
        free(conn);
        return -1;
    }
    LIST_INSERT_HEAD(&server->conns, conn, link);
    server->conn_count++;
    update_accepting(server);
    return 0;
}

/* ---- the listening socket ---- */

static void pause_accepting(struct gs_grpc_server *server)
{
    gs_loop_timer_arm_in(server->loop, &server->accept_again, ACCEPT_PAUSE_NS);
    update_accepting(server);
}

static void on_accept_again(void *ctx)
{
    update_accepting(ctx);
}

static void on_acceptable(void *ctx, short revents)
{
    struct gs_grpc_server *server = ctx;
    int fd = accept4(server->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        /* Out of descriptors or memory: poll(2) would report the same connection at once again. */
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            pause_accepting(server);
        return;
    }
    if (gs_grpc_server_adopt(server, fd, NULL) < 0)
        pause_accepting(server);
}

int gs_grpc_server_listen(struct gs_grpc_server *server, const char *path, struct gs_error *err)
{
    int old_fd = server->listener.fd;
    if (gs_unix_listener_open(&server->listener, path, err) < 0)
        return -1;
    if (server->listener.fd == old_fd)
        return 0;
    gs_loop_fd_remove(server->loop, &server->acceptable);
    if (gs_loop_fd_add(server->loop, &server->acceptable, server->listener.fd, POLLIN, err) < 0) {
        gs_unix_listener_close(&server->listener);
        return -1;
    }
    update_accepting(server);
    return 0;
}

/* ---- life ---- */

int gs_grpc_server_new(struct gs_loop *loop, const struct gs_grpc_method *methods, size_t count,
                       void *ctx, struct gs_grpc_server **ret, struct gs_error *err)
{
    struct gs_grpc_server *server = calloc(1, sizeof(*server));
    if (!server)
        return gs_fail_nomem(err);
    server->loop = loop;
    server->methods = methods;
    server->method_count = count;
    server->ctx = ctx;
    server->listener = GS_UNIX_LISTENER_NONE;
    server->acceptable = (struct gs_loop_fd){.fn = on_acceptable, .ctx = server};
    server->accept_again = (struct gs_loop_timer){.fn = on_accept_again, .ctx = server};
    *ret = server;
    return 0;
}

void gs_grpc_server_free(struct gs_grpc_server *server)
{
    gs_loop_fd_remove(server->loop, &server->acceptable);
    while (!LIST_EMPTY(&server->conns))
        close_conn(LIST_FIRST(&server->conns));
    gs_loop_timer_disarm(server->loop, &server->accept_again);
    gs_unix_listener_close(&server->listener);
    free(server);
}
