/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "gpushare/base/clock.h"
#include "gpushare/http/server.h"
#include "gpushare/http/stream.h"

/*
 * How the server is put together.
 *
 *   acceptor.c one thread: accepts, hands connections to the loops in turn, cuts those past a
 *              deadline, makes room at the limit
 *   evict.c    who goes when there is no room
 *   conn.c     one record per connection, and what libmicrohttpd tells us about its life
 *   request.c  head, body, choice of the handler
 *   framing.c  where a request ends
 *   answer.c   what the handler left → libmicrohttpd's response
 *   workers.c  threads for blocking handlers
 *   stream.c   bodies that come later
 *   tls.c      certificates, and who may connect
 *   linger.c   closing a connection so that the client still reads the answer
 *   listen.c   the address and its socket
 *
 * A loop is one libmicrohttpd daemon with one thread and no listening socket. Several daemons
 * instead of its own thread pool, because there every thread accepts what it can get, and a burst
 * of connections may end up on one of them.
 *
 * Locks, outermost first: loop.lock, stream.lock, libmicrohttpd's own. workers.lock stands before
 * libmicrohttpd's own and is never held together with the others.
 */

struct gs_http_conn;
struct gs_tls;
struct gs_tls_creds;
TAILQ_HEAD(gs_conn_list, gs_http_conn);

/* States for the deadlines. Guarded by loop.lock; set by the loop's thread and the watcher. */
enum gs_conn_state {
    GS_CONN_IDLE,      /* no byte of a request received */
    GS_CONN_RECEIVING, /* receiving head or body */
    GS_CONN_HANDLING,  /* a handler runs, or the request is queued for a worker */
    GS_CONN_SENDING,   /* sending the answer */
    GS_CONN_STREAMING, /* the answer is a stream */
};

/* Progress of the request. Owned by the loop's thread; by a worker while suspended. */
enum gs_conn_phase {
    GS_PHASE_NEW,      /* libmicrohttpd has not called us yet */
    GS_PHASE_BODY,     /* the head was accepted, the body is read */
    GS_PHASE_REFUSED,  /* the answer is ready; the rest of the body is discarded */
    GS_PHASE_HANDLED,  /* a worker has run the handler */
    GS_PHASE_ANSWERED, /* the answer was handed to libmicrohttpd */
};

/* Classes of connections, in the order in which they are evicted; within a class the oldest first.
 */
enum gs_conn_class {
    GS_CLASS_STALLED, /* sending, and the client acknowledged nothing since the last sweep */
    GS_CLASS_FRESH,   /* idle, and never sent a request */
    GS_CLASS_IDLE,    /* idle between two requests */
    GS_CLASS_SLOW,    /* receiving */
    GS_CLASS_SENDING,
    GS_CLASS_COUNT,
};

struct gs_http_loop {
    struct gs_http_server *server;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock;
    struct gs_conn_list all;                     /* rotated by the watcher's sweep */
    struct gs_conn_list classes[GS_CLASS_COUNT]; /* oldest first */
    atomic_uint count;                           /* length of `all` */
};

/* A TLS connection's credentials and state. */
enum { GS_TLS_NAME_BYTES = 128 };
struct gs_tls_conn {
    struct gs_tls_creds *creds;
    bool complete;                /* the handshake is complete */
    bool named;                   /* the client's certificate is verified */
    char name[GS_TLS_NAME_BYTES]; /* "": the certificate has no usable name */
};

struct gs_http_conn {
    struct gs_http_loop *loop;
    struct MHD_Connection *mhd;
    int fd; /* open as long as this record is in loop->all */
    struct in6_addr addr;

    TAILQ_ENTRY(gs_http_conn) in_all; /* guarded by loop->lock, up to `stream` */
    TAILQ_ENTRY(gs_http_conn) in_class;
    struct gs_conn_list *class_list; /* the list that in_class is in, or NULL */
    enum gs_conn_state state;
    int64_t since_ns;
    uint64_t
        received_bytes;   /* TCP's counter when the connection became idle; UINT64_MAX: unknown */
    uint64_t acked_bytes; /* TCP's counter at the last sweep; UINT64_MAX: unknown */
    bool used;            /* has completed a request */
    bool cut;
    struct gs_http_stream *stream; /* owns a reference while STREAMING */

    struct gs_tls_conn *tls; /* NULL: plain */

    enum gs_conn_phase phase;
    const struct gs_http_route *route;
    struct gs_http_request request;
    struct gs_http_response response;
    struct gs_buf body;
    uint64_t body_claimed_bytes; /* Content-Length; 0: none */
    size_t counted_bytes;        /* this connection's part of server->buffered_bytes */
    size_t kept_bytes;           /* this connection's part of server->kept_bytes */
    bool crowded;                /* the query has too many keys: answer 414 */
    bool head;                   /* the method is HEAD */
    bool last;                   /* close after this answer */
    bool linger;                 /* the client may still send when the connection is closed */
    TAILQ_ENTRY(gs_http_conn) in_queue;
    uint16_t group; /* gs_http_response.worker_group */
};

/* A worker that waits, on its own stack. */
struct gs_idle {
    pthread_cond_t wake;
    bool woken;
    struct gs_idle *next;
};

/* Threads with one queue; guarded by their lock. */
struct gs_workers {
    unsigned queue_max;
    pthread_mutex_t lock;
    struct gs_idle *idle; /* who waited last is woken first: its caches are warm */
    TAILQ_HEAD(, gs_http_conn) queue;
    atomic_uint queued; /* read without the lock for the metrics */
    unsigned busy;
    unsigned waiting[GS_WORKER_GROUPS], running[GS_WORKER_GROUPS]; /* per group */
    bool stopping;
    pthread_t *threads;
    unsigned count;
};

enum { GS_LINGER_MAX = 64 };

struct gs_linger {
    pthread_mutex_t lock;
    struct {
        int fd;
        int64_t until_ns; /* 0: the slot is free */
        size_t budget_bytes;
    } slots[GS_LINGER_MAX];
};

struct gs_http_server {
    struct gs_http_config config;
    struct gs_http_loop *loops;
    unsigned loop_count;
    uint16_t port;

    struct gs_tls *tls;        /* NULL: plain HTTP */
    struct gs_workers workers; /* for GS_HTTP_BLOCKING */
    struct gs_workers heavy;   /* one thread for long computations, so that they cannot occupy the
                                  connection threads */
    struct gs_linger linger;
    struct gs_http_stats stats;   /* updated atomically; gs_http_server_stats() adds the rest */
    uint64_t closed;              /* connections */
    atomic_size_t buffered_bytes; /* in all requests' bodies and their answers */
    atomic_size_t kept_bytes;     /* buffers that idle connections keep for their next request */

    int listen_fd, epoll_fd, wake_fd;
    int64_t tick_ns;
    pthread_t watcher;
    bool watcher_runs;
    unsigned next_loop;   /* used by the watcher only */
    bool accepting;       /* used by the watcher only: listen_fd is polled */
    atomic_bool stopping; /* accept no connections, close idle ones */
    atomic_bool hard;     /* the grace period is over: cut everything */
    atomic_bool quit;     /* the watcher must end */
    bool stopped;

    pthread_mutex_t closed_lock; /* with closed_wake: stop() waits for all connections to close */
    pthread_cond_t closed_wake;
};

static inline void gs_count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static inline uint64_t gs_counted(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static inline int64_t gs_now_ns(void)
{
    return gs_clock_now_ns(gs_clock_system());
}

static inline uint64_t gs_open_count(const struct gs_http_server *server)
{
    return gs_counted(&server->stats.connections) - gs_counted(&server->closed);
}

/* The clock of the connections' deadlines. */
static inline int64_t gs_server_now_ns(const struct gs_http_server *server)
{
    return gs_clock_now_ns(server->config.clock);
}

/* listen.c: a listening, non-blocking socket for server.h's "ADDR:PORT". */
int gs_listen_open(const char *spec, int *ret_fd, uint16_t *ret_port, struct gs_error *err);

/* evict.c: closes the first connection in the order of eviction: of all, or, with a newcomer, of
 * its address. False: none can be closed. */
bool gs_evict_one(struct gs_http_server *server, const struct gs_http_conn *newcomer);
unsigned gs_count_address(struct gs_http_server *server, const struct in6_addr *addr);

/* acceptor.c */
int gs_acceptor_start(struct gs_http_server *server, struct gs_error *err);
void gs_acceptor_wake(struct gs_http_server *server);
void gs_acceptor_stop(struct gs_http_server *server);
/* It closed its end of the connection. */
bool gs_conn_client_left(const struct gs_http_conn *conn);

/* conn.c: callbacks for MHD_start_daemon(), cls is the loop. */
void gs_conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                    enum MHD_ConnectionNotificationCode code);
void gs_conn_completed(void *cls, struct MHD_Connection *mhd, void **request_context,
                       enum MHD_RequestTerminationCode why);
void gs_conn_set_state(struct gs_http_conn *conn, enum gs_conn_state state);
void gs_conn_set_state_locked(struct gs_http_conn *conn, enum gs_conn_state state, int64_t now_ns);
/* Records whether the client of a sending connection is stalled. Under loop->lock. */
void gs_conn_stalls_locked(struct gs_http_conn *conn, bool stalls);
/* Shuts the socket, so that the loop closes it; counts it once in *counter. Under loop->lock. */
void gs_conn_cut_locked(struct gs_http_conn *conn, uint64_t *counter);
/* Makes the stream the connection's answer. */
void gs_conn_attach_stream(struct gs_http_conn *conn, struct gs_http_stream *stream);
/* Counts more_bytes of a body or an answer of whole_bytes. False: over the limit of buffered bytes.
 * They stay counted until gs_conn_drop_body(). */
bool gs_conn_claim(struct gs_http_conn *conn, size_t more_bytes, size_t whole_bytes);
/* Empties the body; frees its memory if it is large. */
void gs_conn_drop_body(struct gs_http_conn *conn);

/* framing.c: 0, or the status that refuses a request whose end is ambiguous, with static text in
 * *ret_why. *ret_length: the body's length, 0 for none. */
unsigned gs_framing_read(struct MHD_Connection *mhd, const char *method, const char *version,
                         uint64_t *ret_length, const char **ret_why);

/* request.c: of MHD_OPTION_URI_LOG_CALLBACK, MHD_AccessHandlerCallback and the percent-decoder. */
void *gs_request_line(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result gs_request_access(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_len, void **request_context);
size_t gs_request_unescape(void *cls, struct MHD_Connection *mhd, char *text);

/* answer.c */
void gs_answer_prepare(struct gs_http_conn *conn);
enum MHD_Result gs_answer_send(struct gs_http_conn *conn);
void gs_answer_drop_stream(struct gs_http_response *res);

/* workers.c: submit queues the request, suspends its connection unless it is suspended, and resumes
 * it after the handler. False: the queue is full or stopping. Stop answers 503 to queued requests.
 */
void gs_workers_init(struct gs_workers *workers, unsigned queue_max);
int gs_workers_start(struct gs_workers *workers, unsigned count, struct gs_error *err);
bool gs_workers_submit(struct gs_workers *workers, struct gs_http_conn *conn, bool suspended);
/* Whether the handler asked for a worker's thread. If so, resets the answer. */
bool gs_wants_worker(struct gs_http_conn *conn);
void gs_workers_stop(struct gs_workers *workers);
void gs_workers_destroy(struct gs_workers *workers);

/* stream.c: calls of the connection. */
void gs_stream_attach(struct gs_http_stream *stream, struct MHD_Connection *mhd, int fd);
/* Runs on_close; no lock held. */
void gs_stream_detach(struct gs_http_stream *stream);
ssize_t gs_stream_read(void *stream, uint64_t pos, char *to, size_t max);
/* Whether bytes have been waiting without progress since before_ns. */
bool gs_stream_stalled(struct gs_http_stream *stream, int64_t before_ns);

/* tls.c. *ret stays NULL without TLS in the configuration. */
int gs_tls_new(const struct gs_http_config *config, struct gs_tls **ret, struct gs_error *err);
void gs_tls_free(struct gs_tls *tls);
/* Reloads the files if they have changed, or could not be used the last time. */
void gs_tls_poll(struct gs_http_server *server);
void gs_tls_status(struct gs_tls *tls, bool *ret_stale, int64_t *ret_expires_s);
/* libmicrohttpd requires a source of certificates. This one has none, so that a session without our
 * credentials fails. */
int gs_tls_no_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                          gnutls_pcert_st **certs, unsigned *count, gnutls_ocsp_data_st **ocsp,
                          unsigned *ocsp_count, gnutls_privkey_t *key, unsigned *flags);
/* Call before the handshake. NULL: out of memory. */
struct gs_tls_conn *gs_tls_conn_new(struct gs_http_server *server, struct MHD_Connection *mhd);
/* Call after the session's end. Returns whether the handshake was complete. */
bool gs_tls_conn_free(struct gs_tls_conn *conn);
/* Whether the files have changed since the handshake. */
bool gs_tls_conn_outdated(const struct gs_http_server *server, const struct gs_tls_conn *conn);

/* linger.c */
/* Keeps a copy of fd open for a moment and discards what arrives. */
void gs_linger_add(struct gs_http_server *server, int fd);
void gs_linger_event(struct gs_linger *linger, unsigned slot);
void gs_linger_sweep(struct gs_linger *linger, int64_t now_ns);

/* Values of epoll events in the watcher; below GS_EVENT_LISTEN: a slot of gs_linger. */
enum { GS_EVENT_LISTEN = GS_LINGER_MAX, GS_EVENT_WAKE };
