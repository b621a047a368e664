/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_HTTP_INTERNAL_H
#define GPUSHARE_HTTP_INTERNAL_H

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

/* For the deadlines; guarded by loop.lock, changed by the loop's thread and the watcher. */
enum gs_conn_state {
    GS_CONN_IDLE,      /* no byte of a request seen */
    GS_CONN_RECEIVING, /* head or body is coming in */
    GS_CONN_HANDLING,  /* a handler runs or is waited for */
    GS_CONN_SENDING,   /* the answer goes out */
    GS_CONN_STREAMING, /* the answer is a stream */
};

/* Where the request stands; belongs to the loop's thread, and to a worker while suspended. */
enum gs_conn_phase {
    GS_PHASE_NEW,      /* nothing of it was handed to us */
    GS_PHASE_BODY,     /* accepted by its head */
    GS_PHASE_REFUSED,  /* the answer stands; what is left of the body is thrown away */
    GS_PHASE_HANDLED,  /* a worker has run the handler */
    GS_PHASE_ANSWERED, /* the answer is libmicrohttpd's */
};

/* Who goes when a newcomer needs room, in this order; inside a class the oldest. */
enum gs_conn_class {
    GS_CLASS_STALLED, /* sending, and the client took nothing from one sweep to the next */
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

/* What is known of a TLS connection. */
enum { GS_TLS_NAME_BYTES = 128 };
struct gs_tls_conn {
    struct gs_tls_creds *creds;
    bool complete;                /* the handshake */
    bool named;                   /* the client's certificate is verified */
    char name[GS_TLS_NAME_BYTES]; /* "": it has no usable one */
};

struct gs_http_conn {
    struct gs_http_loop *loop;
    struct MHD_Connection *mhd;
    int fd; /* open as long as this record is in loop->all */
    struct in6_addr addr;

    TAILQ_ENTRY(gs_http_conn) in_all; /* guarded by loop->lock, to `stream` */
    TAILQ_ENTRY(gs_http_conn) in_class;
    struct gs_conn_list *class_list; /* where in_class hangs, or NULL */
    enum gs_conn_state state;
    int64_t since_ns;
    uint64_t received_bytes; /* of the socket when it became idle; UINT64_MAX: not known */
    uint64_t acked_bytes;    /* taken by the client at the last sweep; UINT64_MAX: not known */
    bool used;               /* has completed a request */
    bool cut;
    struct gs_http_stream *stream; /* owns a reference while STREAMING */

    struct gs_tls_conn *tls; /* NULL: plain */

    enum gs_conn_phase phase;
    const struct gs_http_route *route;
    struct gs_http_request request;
    struct gs_http_response response;
    struct gs_buf body;
    uint64_t body_claimed_bytes; /* Content-Length; 0: none */
    size_t counted_bytes;        /* what of server->buffered_bytes is ours */
    size_t kept_bytes;           /* what of server->kept_bytes is ours */
    bool crowded;                /* the query's keys were thrown away, the answer is 414 */
    bool head;                   /* the method is HEAD */
    bool last;                   /* nothing that comes after the request is read */
    bool linger;                 /* the client may still be sending when we close */
    TAILQ_ENTRY(gs_http_conn) in_queue;
    uint16_t group; /* of gs_http_response.worker_group */
};

/* Threads with one queue; guarded by their lock. */
struct gs_workers {
    unsigned queue_max;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* a request has come, or another may be run by now */
    TAILQ_HEAD(, gs_http_conn) queue;
    atomic_uint queued; /* read without the lock for the metrics */
    unsigned busy;
    unsigned waiting[GS_WORKER_GROUPS], running[GS_WORKER_GROUPS]; /* of each group */
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
    struct gs_workers heavy;   /* one thread, for what takes long to compute: so the others never
                                  wait for more of it than the kernel's scheduler lets through */
    struct gs_linger linger;
    struct gs_http_stats stats;   /* counted here, atomically, but for what is looked up */
    uint64_t closed;              /* connections */
    atomic_size_t buffered_bytes; /* in all requests' bodies and their answers */
    atomic_size_t kept_bytes;     /* buffers that idle connections keep for their next request */

    int listen_fd, epoll_fd, wake_fd;
    int64_t tick_ns;
    pthread_t watcher;
    bool watcher_runs;
    unsigned next_loop;   /* the watcher's */
    bool accepting;       /* the watcher's: listen_fd is polled */
    atomic_bool stopping; /* no new connections, idle ones go */
    atomic_bool hard;     /* grace is over: streams do not wait any more */
    atomic_bool quit;     /* the watcher ends */
    bool stopped;

    pthread_mutex_t closed_lock; /* with closed_wake: stop() waits until all are closed */
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

/* Of the connections' deadlines. */
static inline int64_t gs_server_now_ns(const struct gs_http_server *server)
{
    return gs_clock_now_ns(server->config.clock);
}

/* listen.c: a listening, non-blocking socket for server.h's "ADDR:PORT". */
int gs_listen_open(const char *spec, int *ret_fd, uint16_t *ret_port, struct gs_error *err);

/* evict.c: closes the connection that can best be spared, of all or, when the newcomer is open
 * already, of others from its address. False: there is none. */
bool gs_evict_one(struct gs_http_server *server, const struct gs_http_conn *newcomer);
unsigned gs_count_address(struct gs_http_server *server, const struct in6_addr *addr);

/* acceptor.c */
int gs_acceptor_start(struct gs_http_server *server, struct gs_error *err);
void gs_acceptor_wake(struct gs_http_server *server);
void gs_acceptor_stop(struct gs_http_server *server);

/* conn.c: callbacks for MHD_start_daemon(), cls is the loop. */
void gs_conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                    enum MHD_ConnectionNotificationCode code);
void gs_conn_completed(void *cls, struct MHD_Connection *mhd, void **request_context,
                       enum MHD_RequestTerminationCode why);
void gs_conn_set_state(struct gs_http_conn *conn, enum gs_conn_state state);
void gs_conn_set_state_locked(struct gs_http_conn *conn, enum gs_conn_state state, int64_t now_ns);
/* Whether the client of one that sends takes nothing. Under loop->lock. */
void gs_conn_stalls_locked(struct gs_http_conn *conn, bool stalls);
/* Shuts the socket, so that the loop closes it; counts it once in *counter. Under loop->lock. */
void gs_conn_cut_locked(struct gs_http_conn *conn, uint64_t *counter);
/* Makes the stream this connection's answer. */
void gs_conn_attach_stream(struct gs_http_conn *conn, struct gs_http_stream *stream);
/* Counts so many bytes more for the request, of a body or an answer that has whole_bytes now.
 * False: they are too many beside all others; they stay counted until the request drops its body.
 */
bool gs_conn_claim(struct gs_http_conn *conn, size_t more_bytes, size_t whole_bytes);
/* Gives the body's memory back, all of it or what is too much to keep. */
void gs_conn_drop_body(struct gs_http_conn *conn);

/* framing.c: 0, or the status with which the request with this head is refused, since nobody can
 * say where it ends; *ret_why: static text. *ret_length: of the body, 0 when there is none. */
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

/* workers.c: submit suspends the connection unless it is, and resumes it when the handler has run;
 * false: the queue is full or stopping, nothing happened. Stop answers 503 to what waits. */
void gs_workers_init(struct gs_workers *workers, unsigned queue_max);
int gs_workers_start(struct gs_workers *workers, unsigned count, struct gs_error *err);
bool gs_workers_submit(struct gs_workers *workers, struct gs_http_conn *conn, bool suspended);
/* The handler has run where it may not sleep, and wants to: the answer is prepared anew. */
bool gs_wants_worker(struct gs_http_conn *conn);
void gs_workers_stop(struct gs_workers *workers);
void gs_workers_destroy(struct gs_workers *workers);

/* stream.c: what the connection does with it. */
void gs_stream_attach(struct gs_http_stream *stream, struct MHD_Connection *mhd, int fd);
/* Runs on_close; no lock held. */
void gs_stream_detach(struct gs_http_stream *stream);
ssize_t gs_stream_read(void *stream, uint64_t pos, char *to, size_t max);
/* Has bytes that were not taken since before_ns. */
bool gs_stream_stalled(struct gs_http_stream *stream, int64_t before_ns);

/* tls.c. new: *ret stays NULL when the configuration asks for none. */
int gs_tls_new(const struct gs_http_config *config, struct gs_tls **ret, struct gs_error *err);
void gs_tls_free(struct gs_tls *tls);
/* Looks whether the files have changed, or can be used by now. */
void gs_tls_poll(struct gs_http_server *server);
void gs_tls_status(struct gs_tls *tls, bool *ret_stale, int64_t *ret_expires_s);
/* libmicrohttpd wants certificates of its own: this callback has none, so that a session without
 * ours fails. */
int gs_tls_no_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                          gnutls_pcert_st **certs, unsigned *count, gnutls_ocsp_data_st **ocsp,
                          unsigned *ocsp_count, gnutls_privkey_t *key, unsigned *flags);
/* Before the handshake. NULL: out of memory. */
struct gs_tls_conn *gs_tls_conn_new(struct gs_http_server *server, struct MHD_Connection *mhd);
/* After the session is gone. Returns whether its handshake was complete. */
bool gs_tls_conn_free(struct gs_tls_conn *conn);
/* The files have changed since its handshake. */
bool gs_tls_conn_outdated(const struct gs_http_server *server, const struct gs_tls_conn *conn);

/* linger.c */
/* Keeps a copy of fd open for a while and reads it empty. */
void gs_linger_add(struct gs_http_server *server, int fd);
void gs_linger_event(struct gs_linger *linger, unsigned slot);
void gs_linger_sweep(struct gs_linger *linger, int64_t now_ns);

/* The watcher's epoll: which of its descriptors an event is about. */
enum { GS_EVENT_LISTEN = GS_LINGER_MAX, GS_EVENT_WAKE };

#endif
