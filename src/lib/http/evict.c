/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "internal.h"

/* A flood of connections must not block new ones: at the limit a connection is closed for the
 * newcomer. A client that reads its answer is evicted last, but it can be: reading slowly could
 * take forever. */
enum { SLOW_SHARE = 32 /* part of the request's deadline after which it may be evicted */ };
#define SENDING_NS                                                                                 \
    (100 * GS_NS_PER_MS) /* a client that reads receives a small answer in less time */

static bool same_address(const struct gs_http_conn *a, const struct gs_http_conn *b)
{
    return memcmp(&a->addr, &b->addr, sizeof(a->addr)) == 0;
}

unsigned gs_count_address(struct gs_http_server *server, const struct in6_addr *addr)
{
    unsigned count = 0;
    for (unsigned i = 0; i < server->loop_count; i++) {
        struct gs_http_loop *loop = &server->loops[i];
        const struct gs_http_conn *conn;
        pthread_mutex_lock(&loop->lock);
        TAILQ_FOREACH(conn, &loop->all, in_all)
        count += !conn->cut && memcmp(&conn->addr, addr, sizeof(*addr)) == 0;
        pthread_mutex_unlock(&loop->lock);
    }
    return count;
}

/* The first connection of a class that may be evicted for the newcomer. Under loop->lock. */
static struct gs_http_conn *first_of(struct gs_http_loop *loop, enum gs_conn_class class,
                                     const struct gs_http_conn *newcomer)
{
    struct gs_http_conn *conn = TAILQ_FIRST(&loop->classes[class]);
    while (newcomer && conn && (conn == newcomer || !same_address(conn, newcomer)))
        conn = TAILQ_NEXT(conn, in_class);
    return conn;
}

/* The loop with the oldest connection of a class, or NULL. */
static struct gs_http_loop *oldest_of(struct gs_http_server *server, enum gs_conn_class class,
                                      const struct gs_http_conn *newcomer, int64_t before_ns)
{
    struct gs_http_loop *from = NULL;
    for (unsigned i = 0; i < server->loop_count; i++) {
        struct gs_http_loop *loop = &server->loops[i];
        pthread_mutex_lock(&loop->lock);
        const struct gs_http_conn *conn = first_of(loop, class, newcomer);
        if (conn && conn->since_ns < before_ns) {
            from = loop;
            before_ns = conn->since_ns;
        }
        pthread_mutex_unlock(&loop->lock);
    }
    return from;
}

bool gs_evict_one(struct gs_http_server *server, const struct gs_http_conn *newcomer)
{
    const int64_t patience_ns[GS_CLASS_COUNT] = {
        [GS_CLASS_SLOW] = server->config.request_timeout_ns / SLOW_SHARE,
        [GS_CLASS_SENDING] = SENDING_NS,
    };
    int64_t now_ns = gs_server_now_ns(server);
    for (enum gs_conn_class class = 0; class < GS_CLASS_COUNT; class ++) {
        /* at the limit per address every connection of the address may be evicted */
        int64_t before_ns = newcomer ? INT64_MAX : now_ns - patience_ns[class];
        struct gs_http_loop *from = oldest_of(server, class, newcomer, before_ns);
        if (!from)
            continue;
        pthread_mutex_lock(&from->lock);
        struct gs_http_conn *conn = first_of(from, class, newcomer); /* may have changed since */
        if (conn)
            gs_conn_cut_locked(conn, &server->stats.connections_evicted);
        pthread_mutex_unlock(&from->lock);
        if (conn)
            return true;
    }
    return false;
}
