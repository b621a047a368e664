/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/error.h"
#include "gpushare/http/router.h"

/*
 * An HTTP/1.1 server that a hostile client cannot stop or fill: sockets, threads, limits, TLS.
 * What it serves is a table of routes (router.h); bodies that come later are streams (stream.h).
 * Knows nothing of what is served.
 *
 *   struct gs_http_config config = GS_HTTP_CONFIG_DEFAULTS;
 *   config.listen = "127.0.0.1:29999";
 *   config.routes = routes;
 *   config.route_count = sizeof(routes) / sizeof(routes[0]);
 *   config.ctx = &app;
 *   struct gs_http_server *server;
 *   if (gs_http_server_start(&config, &server, &err) < 0)
 *       ...
 *   wait for a signal
 *   gs_http_server_stop(server, 10 * GS_NS_PER_S);
 *   gs_http_server_free(server);
 *
 * Threads: `threads` poll connections and run plain handlers, `workers` run blocking handlers, one
 * runs what takes long to compute (GS_HTTP_HEAVY, large bodies), one accepts connections and
 * watches deadlines. All signals are blocked in them.
 *
 * Answers the server gives by itself, all with {"error":"…"}: 404, 405,
 * 413 (body over max_body_bytes), 414 (a query with more keys than max_head_bytes has room for,
 * about one for each 64 bytes of its half), 503 (queue of blocking or heavy requests full, too many
 * bytes in all bodies and answers together, stopping), 500 (a handler's body failed). Bytes that
 * are not HTTP, or a head over max_head_bytes, get libmicrohttpd's own 4xx. A request that is
 * refused by its head alone is answered at once when its body is long, and the connection closed
 * after it.
 *
 * Memory held for one connection: about 2 KiB and the pages its head touched, at most
 * max_head_bytes; its body while a request runs, whose memory grows with the bytes that came, not
 * with the length that was claimed.
 */
struct gs_http_server;

struct gs_http_config {
    const char *listen; /* "ADDR:PORT", "[V6ADDR]:PORT", ":PORT" (every address); numeric. Port 0:
                           the kernel picks, see gs_http_server_port() */
    const struct gs_http_route *routes; /* *borrowed until* gs_http_server_free() */
    size_t route_count;
    void *ctx; /* handed to every handler */

    unsigned threads;          /* at least 1 */
    unsigned workers;          /* for GS_HTTP_BLOCKING; 0 is allowed without such routes */
    unsigned queue_max;        /* blocking requests that wait for a worker; heavy ones as many */
    size_t max_body_bytes;     /* of one request */
    size_t max_buffered_bytes; /* of all requests' bodies and of the answers that their clients
                                  have not read yet together; the last quarter is kept for those
                                  that are small beside it */
    size_t max_response_bytes; /* ceiling of gs_http_response.body */
    size_t max_head_bytes;     /* request line and headers, roughly; 4 KiB to 1 MiB. It is also what
                                  one read takes at most */
    unsigned max_connections;  /* together; lowered to 3/4 of RLIMIT_NOFILE. At the limit one is
                                  closed for a newcomer: first one that does not read its answer,
                                  then  who is idle longest, then who is slow */
    unsigned max_connections_per_address; /* 0: no limit. At it one of the address's own is closed,
                                             or the newcomer while all of them are handled */

    /* From a request's first byte to its last; then the connection is cut without an answer. */
    int64_t request_timeout_ns;
    /* Without a byte of a request: after connecting, or between two requests. */
    int64_t idle_timeout_ns;
    /* From the answer's first byte to its last; for a stream, the longest time without progress
     * while bytes wait. */
    int64_t response_timeout_ns;
    const struct gs_clock *clock; /* of all that but streams; NULL: gs_clock_system() */

    /* PEM files; NULL: plain HTTP. They are read again when they change, for new connections, and
     * one that stands is closed after its next answer; while they cannot be used (half written, a
     * key of another certificate) the old ones stay. */
    const char *tls_cert;      /* chain, server's first */
    const char *tls_key;       /* together with tls_cert */
    const char *tls_client_ca; /* clients must show a certificate of these; NULL: none is asked */
    /* Comma list of names, one of which a client's certificate must bear as its common name or a
     * DNS name; NULL: any will do. */
    const char *tls_allowed_names;
    /* Told once per change of the files; why NULL: they are in use now. NULL: nobody is told. Any
     * thread of the server's; must not call the server. */
    void (*on_tls_files)(void *ctx, const char *why);
    /* Told of requests that are answered 413, the first, second, fourth and so on. NULL: nobody. A
     * thread of the server's; must not call the server. */
    void (*on_too_large)(void *ctx, uint64_t claimed_bytes);
};

#define GS_HTTP_CONFIG_DEFAULTS                                                                    \
    ((struct gs_http_config){.listen = "127.0.0.1:0",                                              \
                             .threads = 2,                                                         \
                             .workers = 16,                                                        \
                             .queue_max = 512,                                                     \
                             .max_body_bytes = (size_t)64 << 20,                                   \
                             .max_buffered_bytes = (size_t)256 << 20,                              \
                             .max_response_bytes = (size_t)64 << 20,                               \
                             .max_head_bytes = (size_t)32 << 10,                                   \
                             .max_connections = 10000,                                             \
                             .request_timeout_ns = 15 * GS_NS_PER_S,                               \
                             .idle_timeout_ns = 120 * GS_NS_PER_S,                                 \
                             .response_timeout_ns = 60 * GS_NS_PER_S})

/*
 * What a port for probes and scrapers changes of them: anybody in the cluster may reach it, and
 * whoever holds it must not hold off a kubelet, whose probes have a second. Few requests are in
 * work at a time, so that most connections can be closed for a newcomer.
 */
static inline struct gs_http_config gs_http_health_config(unsigned max_connections)
{
    struct gs_http_config config = GS_HTTP_CONFIG_DEFAULTS;
    config.threads = 1;
    config.workers = 0;
    config.queue_max = 16;
    config.max_body_bytes = 4096;
    config.max_head_bytes = 8192;
    config.max_buffered_bytes = (size_t)32 << 20;
    config.max_connections = max_connections;
    config.max_connections_per_address = max_connections / 4;
    config.request_timeout_ns = config.response_timeout_ns = 5 * GS_NS_PER_S;
    return config;
}

/* GS_EINVAL with words when gs_http_config.listen cannot be this; nothing is opened. */
int gs_http_check_address(const char *listen, struct gs_error *err);

/* Such an address that nobody but this host reaches. */
bool gs_http_is_loopback(const char *listen);

/* Listens and serves until stopped. *config is *copied*; what it points to is *borrowed until*
 * gs_http_server_free().
 * Errors: GS_EINVAL (no such address, the certificate does not fit its key), GS_EEXIST
 * (address in use), GS_EDENIED, GS_EIO, GS_ENOENT (a file), GS_ENOMEM. */
int gs_http_server_start(const struct gs_http_config *config, struct gs_http_server **ret_server,
                         struct gs_error *err);

/* The port it listens on. */
uint16_t gs_http_server_port(const struct gs_http_server *server);

/*
 * Takes no more connections, closes idle ones, ends streams, and lets requests that have begun
 * finish for up to grace_ns; then cuts what is left. Blocking handlers that run are waited for in
 * any case: they have time limits of their own. Call from one thread, not from a handler. A second
 * call does nothing.
 */
void gs_http_server_stop(struct gs_http_server *server, int64_t grace_ns);

/* Stops without grace if it still runs, and frees. NULL is fine. */
void gs_http_server_free(struct gs_http_server *server);
GS_DEFINE_CLEANUP(struct gs_http_server *, gs_http_server_free)

/* Counters since the start, except where it says "now". */
struct gs_http_stats {
    uint64_t connections;         /* accepted */
    uint64_t connections_open;    /* now */
    uint64_t connections_refused; /* over the limit per address */
    uint64_t connections_evicted; /* closed to make room */
    uint64_t requests[6];         /* answers by class: [2] is 2xx; [0] requests without an answer */
    uint64_t request_timeouts;    /* cut at the deadline of head and body */
    uint64_t idle_timeouts;
    uint64_t response_timeouts;
    uint64_t too_large;           /* 413 */
    uint64_t queued;              /* now: blocking requests that wait for a worker */
    uint64_t queue_full;          /* 503 */
    uint64_t memory_full;         /* 503: max_buffered_bytes */
    uint64_t streams_open;        /* now */
    uint64_t tls_refused;         /* ended before the handshake was complete: bad or no client
                                     certificate, no common version, not TLS at all */
    uint64_t tls_reload_failures; /* changed files that could not be used; the old ones stay */
    uint64_t buffered_bytes;      /* now, in all requests' bodies and their answers */
    uint64_t sweeps;              /* over all connections, for their deadlines */
    /* All above are 64 bits wide: the server counts in such a struct. */
    bool tls_stale;        /* changed files that cannot be used are there now */
    int64_t tls_expires_s; /* Unix time: end of the certificate in use; 0: plain HTTP */
};

/* Thread-safe; the numbers are not one instant's. */
void gs_http_server_stats(struct gs_http_server *server, struct gs_http_stats *ret_stats);
