/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "internal.h"

enum {
    /* If a request is refused by its head, a body up to this length is read and discarded, and the
       connection stays. A longer one is answered at once, and the connection closes. */
    SKIP_BYTES = 256 << 10,
    /* Allocated at most for a Content-Length before bytes arrive. */
    RESERVE_BYTES = 256 << 10,
    /* A body that takes about a millisecond to read; a filter of 5,000 names is 70 KiB. */
    HEAVY_BYTES = 256 << 10,
    SMALL_BYTES = 64 << 10,
    /* libmicrohttpd's memory for a key, rounded up; and for a request line beside its URI,
       including the steps of growth. */
    KEY_BYTES = 64,
    LINE_BYTES = 2048,
};

static struct gs_http_conn *conn_of_request(const struct gs_http_request *req)
{
    const char *inside = (const char *)req;
    return (struct gs_http_conn *)(uintptr_t)(inside - offsetof(struct gs_http_conn, request));
}

static const char *lookup(struct gs_http_conn *conn, enum MHD_ValueKind kind, const char *name)
{
    const char *value = NULL;
    size_t len;
    if (MHD_lookup_connection_value_n(conn->mhd, kind, name, strlen(name), &value, &len) != MHD_YES)
        return NULL;
    return value ? value : "";
}

const char *gs_http_query(const struct gs_http_request *req, const char *name)
{
    return lookup(conn_of_request(req), MHD_GET_ARGUMENT_KIND, name);
}

const char *gs_http_header(const struct gs_http_request *req, const char *name)
{
    return lookup(conn_of_request(req), MHD_HEADER_KIND, name);
}

/* libmicrohttpd's own decoder would turn "/healthz%00/x" into "/healthz". */
size_t gs_request_unescape(void *cls, struct MHD_Connection *mhd, char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        int high = *from == '%' ? gs_hex_value(from[1]) : -1;
        int low = high >= 0 ? gs_hex_value(from[2]) : -1;
        if (low >= 0 && high * 16 + low != 0) {
            *to++ = (char)(high * 16 + low);
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return (size_t)(to - text);
}

static struct gs_http_conn *conn_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* Whether libmicrohttpd has memory for a query's keys beside its read buffer: half of its memory,
 * or the request line if that is larger. */
static bool has_room(size_t memory, const char *uri, const char *query)
{
    size_t keys = 1, line = strlen(uri) + LINE_BYTES;
    for (const char *at = query; (at = strchr(at, '&')) != NULL; at++)
        keys++;
    size_t taken = line > memory / 2 ? line : memory / 2;
    return taken < memory && keys <= (memory - taken) / KEY_BYTES;
}

/* libmicrohttpd 0.9.75 ignores running out of memory for a query's keys, then waits forever for
 * headers that do not fit. It parses the query after this callback, so a query that is too large is
 * emptied here. The return value is not used. */
void *gs_request_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    const struct gs_http_loop *loop = cls;
    struct gs_http_conn *conn = conn_of(mhd);
    char *query = strchr(uri, '?');
    if (!conn)
        return NULL;
    conn->crowded = query && !has_room(loop->server->config.max_head_bytes, uri, query);
    if (conn->crowded)
        query[1] = '\0';
    return NULL;
}

/* Refuses the request; the rest of the body is discarded. */
static void refuse(struct gs_http_conn *conn, unsigned status, const char *words)
{
    gs_http_error(&conn->response, status, "%s", words);
    conn->phase = GS_PHASE_REFUSED;
    gs_conn_drop_body(conn);
}

static void refuse_too_large(struct gs_http_conn *conn)
{
    struct gs_http_server *server = conn->loop->server;
    const uint64_t before = __atomic_fetch_add(&server->stats.too_large, 1, __ATOMIC_RELAXED);
    if (server->config.on_too_large && (before & (before + 1)) == 0)
        server->config.on_too_large(server->config.ctx, conn->body_claimed_bytes);
    refuse(conn, 413, "the request body is too large");
}

static void refuse_full(struct gs_http_conn *conn)
{
    gs_count(&conn->loop->server->stats.memory_full);
    refuse(conn, 503, "too many concurrent requests");
}

static void choose_route(struct gs_http_conn *conn, const char *method, const char *path)
{
    const struct gs_http_config *config = &conn->loop->server->config;
    conn->route =
        gs_http_route_find(config->routes, config->route_count, method, path, &conn->request.rest);
    if (conn->route)
        return;
    _cleanup_(gs_buf_release) struct gs_buf allow = GS_BUF(512);
    gs_http_route_allow(config->routes, config->route_count, path, &allow);
    if (!allow.len) {
        refuse(conn, 404, "path not found");
        return;
    }
    refuse(conn, 405, "method not allowed");
    gs_http_add_header(&conn->response, MHD_HTTP_HEADER_ALLOW, allow.data);
}

static size_t body_limit(const struct gs_http_conn *conn)
{
    size_t limit = conn->loop->server->config.max_body_bytes;
    bool small = conn->route && conn->route->flags & GS_HTTP_SMALL;
    return small && limit > SMALL_BYTES ? SMALL_BYTES : limit;
}

static bool has_host(struct gs_http_conn *conn, const char *version)
{
    return strcmp(version, MHD_HTTP_VERSION_1_1) != 0 ||
           lookup(conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
}

/* The first call for a request: the head is complete. */
static enum MHD_Result begin(struct gs_http_conn *conn, const char *method, const char *path,
                             const char *version)
{
    const struct gs_http_server *server = conn->loop->server;
    const char *why;
    gs_conn_set_state(conn, GS_CONN_RECEIVING);
    gs_answer_prepare(conn);
    conn->phase = GS_PHASE_BODY;
    conn->head = strcmp(method, "HEAD") == 0;
    conn->request = (struct gs_http_request){
        .method = conn->head ? "GET" : method,
        .path = path,
        .body = "",
        .client_name = conn->tls && conn->tls->named ? conn->tls->name : NULL,
    };
    unsigned unframed =
        gs_framing_read(conn->mhd, method, version, &conn->body_claimed_bytes, &why);
    conn->last = unframed || (conn->tls && gs_tls_conn_outdated(server, conn->tls));
    if (conn->tls && !(conn->tls->complete && (conn->tls->named || !server->config.tls_client_ca)))
        refuse(conn, 403, "no valid client certificate");
    else if (unframed)
        refuse(conn, unframed, why);
    else if (conn->crowded)
        refuse(conn, 414, "the query has too many keys");
    else if (!has_host(conn, version))
        refuse(conn, 400, "the Host header is missing");
    else
        choose_route(conn, method, path);
    if (conn->phase == GS_PHASE_BODY && conn->body_claimed_bytes > body_limit(conn))
        refuse_too_large(conn);
    if (conn->phase != GS_PHASE_REFUSED)
        return MHD_YES;
    bool asks = conn->body_claimed_bytes && lookup(conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT);
    if (!unframed && !asks && conn->body_claimed_bytes <= SKIP_BYTES)
        return MHD_YES;
    conn->linger = true;
    return gs_answer_send(conn);
}

/* libmicrohttpd passes on no more than Content-Length. */
static void receive(struct gs_http_conn *conn, const char *bytes, size_t len)
{
    if (!gs_conn_claim(conn, len, conn->body.len + len)) {
        refuse_full(conn);
        return;
    }
    if (conn->body.len == 0 && conn->body_claimed_bytes > len)
        gs_buf_reserve(&conn->body, conn->body_claimed_bytes < RESERVE_BYTES
                                        ? (size_t)conn->body_claimed_bytes
                                        : RESERVE_BYTES);
    gs_buf_append(&conn->body, bytes, len);
    if (gs_buf_failed(&conn->body))
        refuse_full(conn);
}

/* NULL: run the handler on this thread. */
static struct gs_workers *workers_for(const struct gs_http_conn *conn)
{
    struct gs_http_server *server = conn->loop->server;
    if (conn->route->flags & GS_HTTP_BLOCKING)
        return &server->workers;
    bool heavy = conn->route->flags & GS_HTTP_HEAVY || conn->body.len > HEAVY_BYTES;
    return heavy ? &server->heavy : NULL;
}

/* The request is complete. */
static enum MHD_Result dispatch(struct gs_http_conn *conn)
{
    struct gs_http_server *server = conn->loop->server;
    /* accepted while the server stopped: close, so that the client connects to another server */
    if (atomic_load(&server->hard))
        return MHD_NO;
    if (conn->body.len) {
        conn->request.body = conn->body.data;
        conn->request.body_len = conn->body.len;
    }
    gs_conn_set_state(conn, GS_CONN_HANDLING);
    struct gs_workers *workers = workers_for(conn);
    conn->request.may_block = workers == &server->workers;
    conn->group = 0;
    if (!workers) {
        conn->route->handler(server->config.ctx, &conn->request, &conn->response);
        if (!gs_wants_worker(conn))
            return gs_answer_send(conn);
        workers = &server->workers;
    }
    if (gs_workers_submit(workers, conn, false))
        return MHD_YES;
    gs_count(&server->stats.queue_full);
    gs_http_error(&conn->response, 503, "too many concurrent requests");
    return gs_answer_send(conn);
}

enum MHD_Result gs_request_access(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_len, void **request_context)
{
    struct gs_http_conn *conn = conn_of(mhd);
    if (!conn || (conn->loop->server->tls && !conn->tls))
        return MHD_NO; /* memory was out when it opened */
    size_t len = *upload_len;
    *upload_len = 0;
    switch (conn->phase) {
    case GS_PHASE_NEW:
        *request_context = conn;
        return begin(conn, method, url, version);
    case GS_PHASE_BODY:
        if (len == 0)
            return dispatch(conn);
        receive(conn, upload, len);
        return MHD_YES;
    case GS_PHASE_REFUSED:
        return len > 0 ? MHD_YES : gs_answer_send(conn); /* the rest of the body is discarded */
    case GS_PHASE_HANDLED:
        return gs_answer_send(conn);
    case GS_PHASE_ANSWERED:
        break;
    }
    return MHD_NO;
}
