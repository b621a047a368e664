/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <curl/curl.h>
#include <pthread.h>

#include "auth.h"
#include "gpushare/base/backoff.h"
#include "gpushare/codec/list.h"
#include "gpushare/kube/client.h"
#include "lines.h"
#include "rate.h"
#include "url.h"

/* The client's internals. Private to this folder. */

/* A curl handle and the credentials set on it. Used by one thread at a time. */
struct gs_connection {
    struct gs_connection *next; /* in the pool */
    CURL *easy;
    uint64_t shown; /* for gs_auth_show() */
    char error[CURL_ERROR_SIZE];
};

/* A watch in progress; wake() wakes its multi handle. */
struct gs_runner {
    struct gs_runner *next; /* entry in the client's list of runners */
    CURLM *multi;
    const atomic_bool *stop;
    const atomic_bool *list_wanted; /* NULL: never */
    struct gs_connection *connection;
};

struct gs_kube_client {
    struct gs_kube_options options; /* defaults filled in */
    struct gs_kube_config config;
    struct gs_url url;
    char *base;                    /* prefix of request paths */
    struct curl_slist *connect_to; /* with tls-server-name: the server's real address */
    char *host_header;             /* with tls-server-name: "Host: …" */
    char user_agent[128];
    struct gs_auth *auth;
    atomic_bool canceled;
    pthread_mutex_t lock; /* guards all below */
    struct gs_connection *idle;
    uint32_t idle_count;
    struct gs_runner *runners;
    struct gs_rate rate;
    struct gs_kube_stats stats;
};

/* Adds to one counter of the statistics. */
#define GS_COUNT(client, field, n)                                                                 \
    do {                                                                                           \
        pthread_mutex_lock(&(client)->lock);                                                       \
        (client)->stats.field += (n);                                                              \
        pthread_mutex_unlock(&(client)->lock);                                                     \
    } while (0)

/* Counts an object that could not be decoded and keeps the reason. */
void gs_client_broken(struct gs_kube_client *client, const struct gs_error *why);

/* connection.c: a handle from the pool, or a new one; NULL when out of memory. */
struct gs_connection *gs_connection_take(struct gs_kube_client *client);
struct gs_connection *gs_connection_new(struct gs_kube_client *client);
void gs_connection_put(struct gs_kube_client *client, struct gs_connection *connection);
void gs_connection_free(struct gs_connection *connection);

/* client.c: registers with the client, so that wake() finds it. */
int gs_runner_open(struct gs_kube_client *client, const atomic_bool *stop, struct gs_runner *runner,
                   struct gs_error *err);
void gs_runner_close(struct gs_kube_client *client, struct gs_runner *runner);

/* Waits; cancel and the runner's flags end it early. runner: NULL for none. */
void gs_client_wait(struct gs_kube_client *client, const struct gs_runner *runner, int64_t ns);

static inline bool gs_runner_stopped(const struct gs_runner *runner)
{
    return runner && atomic_load_explicit(runner->stop, memory_order_acquire);
}

/* runner: NULL for none. */
static inline bool gs_client_stopped(const struct gs_kube_client *client,
                                     const struct gs_runner *runner)
{
    return atomic_load_explicit(&client->canceled, memory_order_relaxed) ||
           gs_runner_stopped(runner);
}

/* Ends its request or wait: the watch must list again. */
static inline bool gs_runner_list_wanted(const struct gs_runner *runner)
{
    return runner && runner->list_wanted &&
           atomic_load_explicit(runner->list_wanted, memory_order_acquire);
}

/* A request and its response. */
struct gs_exchange {
    const struct gs_kube_request *request;
    int64_t deadline_ns;    /* deadline; 0: none, only the stall timer applies */
    int64_t head_ns;        /* with a runner: time without a byte before the head is complete … */
    int64_t stall_ns;       /* … and after it, that ends the request; 0: no limit */
    struct gs_buf *body;    /* receives the body, up to its ceiling … */
    struct gs_lines *lines; /* … except that of a 200, if this is set */
    gs_line_fn *line;
    void (*answered)(void *ctx); /* called when a 200's head is complete; may be NULL */
    void *ctx;                   /* for line and answered */
    /* Filled in: */
    int status;             /* 0: no answer */
    int64_t retry_after_ns; /* -1: absent */
    bool unsent;            /* no connection: a retry is safe */
    bool sent;              /* the request may have been sent */
    bool headed;            /* the answer's head is complete */
    uint64_t shown;         /* for gs_auth_show() */
    /* While it runs: */
    struct gs_kube_client *client;
    CURL *easy;
    int64_t heard_ns;      /* when the last byte arrived */
    uint64_t bytes;        /* of the body */
    bool enough;           /* of the body */
    struct gs_error error; /* the reason if a callback ended it */
};

/*
 * Runs it once, without retries: on the runner's connection and wakeable when it has a runner, else
 * on one of the pool. 0: an HTTP answer arrived whole. -1: GS_EIO, GS_ETIMEOUT (also stalled),
 * GS_ETOOBIG, GS_ECANCELED (stopped), GS_EAUTH (no credentials), GS_EPROTO, GS_ENOMEM, or what
 * `line` said.
 */
int gs_exchange_run(struct gs_kube_client *client, struct gs_runner *runner,
                    struct gs_exchange *exchange, struct gs_error *err);

/* Runs it with the retries of client.h, within its deadline. */
int gs_call(struct gs_kube_client *client, struct gs_runner *runner,
            const struct gs_kube_request *request, int *ret_status, struct gs_buf *body,
            struct gs_error *err);

/* list.c */
int gs_op_list_pods(void *ctx, const char *node, int64_t timeout_ns,
                    int (*each)(void *each_ctx, const struct gs_pod *pod), void *each_ctx,
                    struct gs_error *err);

/* watch.c */
int gs_op_watch(void *ctx, const struct gs_watch_spec *spec, const struct gs_watch_sink *sink,
                const atomic_bool *stop, struct gs_error *err);
void gs_op_wake(void *ctx);
