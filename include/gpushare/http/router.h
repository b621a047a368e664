/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/buf.h"

/*
 * What a program writes to serve HTTP: a const table of routes and their handlers. No sockets here
 * (server.h), no JSON, no domain.
 *
 *   static const struct gs_http_route routes[] = {
 *       {"GET", "/healthz", handle_healthz, 0},
 *       {"POST", "/gpushare-scheduler/bind", handle_bind, GS_HTTP_SMALL},
 *       {"GET", "/gpushare-scheduler/inspect/", handle_inspect_node, GS_HTTP_PREFIX},
 *       {NULL, "/api/", handle_api, GS_HTTP_PREFIX | GS_HTTP_BLOCKING},
 *   };
 *
 *   static void handle_inspect_node(void *ctx, const struct gs_http_request *req,
 *                                   struct gs_http_response *res)
 *   {
 *       const struct node *node = find(ctx, req->rest);
 *       if (!node) {
 *           gs_http_error(res, 404, "no such node");
 *           return;
 *       }
 *       gs_buf_puts(&res->body, ...);
 *   }
 *
 * The first row whose path matches and whose method fits wins, so an exact row stands before the
 * prefix that would swallow it. A path that no row knows is answered 404; one that is known, but
 * for other methods, 405 with an Allow header. HEAD is served by the GET row: the handler sees
 * "GET" and the server leaves the body out.
 */

enum {
    /* The path ends with '/', and every longer path below it matches; the remainder is in `rest`.
     * The path itself with nothing after the '/' does not match. */
    GS_HTTP_PREFIX = 1 << 0,
    /* The handler may sleep or call other servers: it runs on a pool of worker threads while the
     * connection waits. Others run on the thread that read the request, for the least latency, and
     * hold up every connection of that thread while they run. */
    GS_HTTP_BLOCKING = 1 << 1,
    /* The handler computes for longer than others should wait. It runs, as does every plain handler
     * whose request has a body over 256 KiB, on a thread for such, one after the other. */
    GS_HTTP_HEAVY = 1 << 2,
    /* Bodies over 64 KiB are refused. */
    GS_HTTP_SMALL = 1 << 3,
};

/* One request. Everything is *borrowed until* the handler returns. */
struct gs_http_request {
    const char *method; /* as sent, except that HEAD reads "GET" */
    const char *path;   /* percent-decoded, without the query; "%00" and broken escapes stay as they
                           are, so it holds no NUL */
    const char *rest;   /* what follows a GS_HTTP_PREFIX route's path; "" for an exact route */
    const char *body;   /* body_len bytes and a NUL after them; never NULL */
    size_t body_len;
    const char *client_name; /* of the verified client certificate, "" when it has none; NULL
                                without a certificate */
    bool may_block;          /* this is a worker's thread: the handler may sleep */
};

enum { GS_WORKER_GROUPS = 4096, GS_GROUP_SHARE = 8 }; /* of the queue */

/* The answer, prepared by the server as 200, "application/json", empty body. */
struct gs_http_response {
    unsigned status;          /* 200 to 599 */
    const char *content_type; /* *borrowed* until the answer is sent: a string constant */
    struct gs_buf body;       /* the handler appends; its memory belongs to the server, which sends
                                 it without copying and uses it again for the connection's next
                                 answer. When it failed (ceiling, memory) the client gets 500 */
    bool wants_worker;        /* the handler sets it where it would have to sleep and may not: it is
                                 called again, on a worker's thread, and what it answered is dropped */
    uint16_t worker_group;    /* with it: whose request that is, below GS_WORKER_GROUPS. A group has
                                 half    of the workers at most, a quarter while those of others wait,
                                 and    half    of the queue; 0: nobody's, with all of it */
    /* The server's own, filled by the functions below. */
    struct gs_buf headers;
    struct gs_http_stream *stream;
};

/* Called from several threads at once; ctx is the server's (server.h). */
typedef void gs_http_handler(void *ctx, const struct gs_http_request *req,
                             struct gs_http_response *res);

struct gs_http_route {
    const char *method; /* NULL: every method, the handler looks at req->method */
    const char *path;
    gs_http_handler *handler;
    unsigned flags;
};

/* The first query argument of that name, percent-decoded ('+' is a space); "" when it came without
 * '=', NULL when it did not come. *Borrowed until* the handler returns. */
const char *gs_http_query(const struct gs_http_request *req, const char *name);

/* The first header of that name, any case; NULL when it did not come. *Borrowed until* the handler
 * returns. */
const char *gs_http_header(const struct gs_http_request *req, const char *name);

/* Makes the answer `status` with the body {"error":"…"} (RFC 8259 escapes); what was in the body is
 * dropped. Content-Type becomes application/json. */
void gs_http_error(struct gs_http_response *res, unsigned status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a header line; both *copied*. A name or value that is empty or has a control
 * character in it, or memory out, makes the answer 500 instead. */
void gs_http_add_header(struct gs_http_response *res, const char *name, const char *value);

/* The route for a method and a path, or NULL. On success *ret_rest points into path. Pure. */
const struct gs_http_route *gs_http_route_find(const struct gs_http_route *routes, size_t count,
                                               const char *method, const char *path,
                                               const char **ret_rest);

/* Appends the methods that path has, "GET, HEAD, POST": none where it is unknown. */
void gs_http_route_allow(const struct gs_http_route *routes, size_t count, const char *path,
                         struct gs_buf *out);
