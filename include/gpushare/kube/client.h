/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/error.h"
#include "gpushare/kube/kubeconfig.h"
#include "gpushare/model/names.h"
#include "gpushare/port/kube.h"

/*
 * A client of the Kubernetes API over libcurl, and the kube_ops port on top of it.
 *
 *   curl_global_init is done by gs_kube_client_new (libcurl is thread-safe about it since 7.84).
 *   struct gs_kube_options options = {.program = "extender", .names = &names};
 *   struct gs_kube_client *client;
 *   if (gs_kube_client_new(&config, &options, &client, err) < 0) ...
 *   struct gs_kube kube = gs_kube_client_port(client);
 *   kube.ops->bind(kube.ctx, &binding, err);
 *   gs_kube_client_free(client);
 *
 * All functions but new and free may be called from any thread at the same time. Connections are
 * kept alive and used again, one per request in flight; TLS 1.2 or newer, verified unless the
 * kubeconfig says insecure-skip-tls-verify; redirects are never followed.
 * Credentials: token and CA files are looked at again at most once a second and on a 401, which is
 * tried once more with what was found. They never travel over plain HTTP except to loopback.
 * Retries inside the request's time: 429 waits for Retry-After; 502, 503, 504 and 500 for GET only,
 * and connections that never came about for any method, with jittered backoff. libcurl itself sends
 * any request once more when a kept connection turns out to be closed before one byte of an answer:
 * in the rare case that the server had done it already, the answer is a 409.
 */
struct gs_kube_client;

/* etcd takes 1.5 MiB of an object, which JSON writes in up to six times as many bytes (\u003c). */
#define GS_OBJECT_BYTES_MAX ((size_t)16 << 20)

/* 0 or NULL means the default in brackets. */
struct gs_kube_options {
    const char *program;          /* User-Agent gpushare-PROGRAM/VERSION; copied */
    const struct gs_names *names; /* borrowed for the client's life; needed for the port */
    const struct gs_clock *clock; /* borrowed; deadlines, and pauses between attempts of a request
                                     [the machine's] */
    int64_t connect_timeout_ns;   /* [5 s] */
    int64_t request_timeout_ns;   /* one call with all its retries [15 s] */
    int64_t list_timeout_ns;      /* one page of a list that a watch makes [60 s] */
    int64_t retry_after_max_ns;   /* longest wait for a 429 that is honoured in full [10 s] */
    size_t object_max_bytes;      /* one answer, one watch event [16 MiB] */
    size_t page_max_bytes;        /* a page of several objects [object_max_bytes] */
    /* An object is passed over; not again for the same reason. From any thread, ctx NULL [none] */
    void (*passed_over)(void *ctx, const struct gs_error *why);
    uint32_t page_limit;      /* objects of a list's first page, later ones weigh 2 MiB [500] */
    int64_t backoff_min_ns;   /* between attempts of a watch [800 ms] */
    int64_t backoff_max_ns;   /* [30 s] */
    int64_t watch_timeout_ns; /* a watch ends between this and its double [5 min] */
    int64_t stall_timeout_ns; /* a watch without a byte is restarted [150 s] */
    uint32_t qps;             /* requests a second [no limit] … */
    uint32_t burst;           /* … and how many may come at once [1]: not lists and watches that
                                 run, and not Leases, which must not wait behind others */
};

/* *ret_client: *caller frees* with gs_kube_client_free(). config is *taken*, also on failure;
 * options are copied. GS_EINVAL: unusable configuration; GS_EIO, GS_ENOENT: a credential file that
 * cannot be read; GS_EAUTH: a credential that cannot be used; GS_ENOMEM. Nothing is sent yet. */
int gs_kube_client_new(struct gs_kube_config *config, const struct gs_kube_options *options,
                       struct gs_kube_client **ret_client, struct gs_error *err);

/* Calls that are under way end with GS_ECANCELED within a second, and every later one at once: a
 * program that ends waits for no API server. Watches end by their own flag. Any thread. */
void gs_kube_client_cancel(struct gs_kube_client *client);

/* No other thread may be in the client any more: stop the watches first. NULL: nothing. */
void gs_kube_client_free(struct gs_kube_client *client);
GS_DEFINE_CLEANUP(struct gs_kube_client *, gs_kube_client_free)

/* The port of include/gpushare/port/kube.h; *borrowed* until the client is freed. */
struct gs_kube gs_kube_client_port(struct gs_kube_client *client);

/* One request, for what the port has no word for (version, SelfSubjectAccessReview, …). */
struct gs_kube_request {
    const char *method;       /* "GET", "POST", "PUT", "PATCH", "DELETE" */
    const char *path;         /* "/version": absolute, already percent-encoded */
    const char *query;        /* "limit=1", already encoded, or NULL */
    const char *content_type; /* of the body; NULL: application/json */
    const char *body;         /* NULL: none */
    size_t body_len;
    bool first_bytes;    /* of a 200's body are enough: a watch that is to say that there is news */
    int64_t timeout_ns;  /* 0: the client's request_timeout_ns */
    int64_t deadline_ns; /* by the client's clock: nothing is sent later, however long credentials,
                            connection and repetitions took; 0: only timeout_ns counts */
};

/*
 * 0 when an HTTP answer arrived, whatever its status: *ret_status, and its body in *body, which the
 * caller brings (GS_BUF(ceiling)) and which is emptied first. -1 when none arrived: GS_ETIMEOUT,
 * GS_EBUSY (its time was over before it was sent), GS_EIO (connection, TLS, cut), GS_ETOOBIG (body
 * above its ceiling), GS_EAUTH (no usable credentials), GS_ECANCELED,
 * GS_EINVAL, GS_ENOMEM.
 */
int gs_kube_request(struct gs_kube_client *client, const struct gs_kube_request *request,
                    int *ret_status, struct gs_buf *body, struct gs_error *err);

/* Appends a part of a path or a query, percent-encoded: all but RFC 3986's unreserved characters.
 */
void gs_url_escape(struct gs_buf *buf, const char *text);

/* Fills *err from an answer that is no 2xx: the code as port/kube.h lists them (410: GS_EGONE), the
 * words from the Status object in the body when there is one. Returns -1. */
int gs_kube_fail_status(int status, const char *body, size_t len, struct gs_error *err);

/* Counters since the client was made; for metrics. */
struct gs_kube_stats {
    uint64_t requests;      /* HTTP answers of any kind, watches included */
    uint64_t failed;        /* attempts without an answer */
    uint64_t retries;       /* attempts after the first */
    uint64_t throttled;     /* 429 */
    uint64_t unauthorized;  /* 401 */
    uint64_t lists;         /* full lists by watches, completed */
    uint64_t list_ns;       /* time that these took together */
    uint64_t relists;       /* of these, not the first of their watch */
    uint64_t watch_starts;  /* watch requests answered 200 */
    uint64_t watch_cuts;    /* ended by error, cut or stall: not at their time */
    uint64_t watch_expired; /* 410 */
    uint64_t events_added;
    uint64_t events_modified;
    uint64_t events_deleted;
    uint64_t events_bookmark;
    uint64_t broken_objects; /* passed over in lists and watches: invalid or too large */
    uint64_t oversized;      /* answers and events above their ceiling */
    uint64_t bytes_received; /* bodies */
    char last_broken[256];   /* which one and why; "" for none */
};

void gs_kube_client_stats(struct gs_kube_client *client, struct gs_kube_stats *ret);
