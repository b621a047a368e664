/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SIM_API_H
#define GPUSHARE_SIM_API_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/slice.h"
#include "gpushare/sim/cluster.h"
#include "gpushare/sim/faults.h"

/*
 * The Kubernetes REST API of an embedded cluster, without sockets: a request in, an answer or a
 * stream of watch lines out. src/apps/sim/api_server.c puts it on the HTTP layer.
 *
 * Served: /version, /healthz, /readyz, /livez; discovery (/api, /apis, /api/v1, …) and as much of
 * /openapi as kubectl needs to leave validation to the server; every verb of the kinds in object.h
 * with their status, pods/NAME/binding and POST bindings; JSON, and for GET the Table form that
 * `kubectl get` asks for. Errors are meta/v1 Status objects.
 * Not served: protobuf, server-side apply (415), JSON patch (415), logs, exec.
 *
 *   struct gs_sim_reply reply = GS_SIM_REPLY;
 *   gs_sim_api_handle(api, &request, &reply);
 *   if (reply.stream) ... gs_sim_stream_next() until it says -1
 *   gs_sim_reply_release(&reply);
 */
struct gs_sim_api;

/* 0 or NULL means the default in brackets; everything is borrowed for the api's life. */
struct gs_sim_api_options {
    const struct gs_names *names; /* for the columns about GPUs in tables; must be given */
    const char *token;            /* bearer token that every request must bring (401); [none] */
    int64_t bookmark_ns;          /* between bookmarks of a quiet watch [10 s] */
    struct gs_sim_faults *faults; /* what goes wrong, and GET and PUT /faults; [nothing] */
};

/* *ret_api: *caller frees*. cluster is *borrowed until* then. GS_ENOMEM. */
int gs_sim_api_new(struct gs_sim_cluster *cluster, const struct gs_sim_api_options *options,
                   struct gs_sim_api **ret_api, struct gs_error *err);
void gs_sim_api_free(struct gs_sim_api *api);
GS_DEFINE_CLEANUP(struct gs_sim_api *, gs_sim_api_free)

/* Everything borrowed for the call; the header fields are NULL when they did not come. */
struct gs_sim_request {
    const char *method;
    const char *path; /* percent-decoded */
    /* A query argument, decoded; NULL when it did not come. */
    const char *(*query)(void *query_ctx, const char *name);
    void *query_ctx;
    const char *accept;
    const char *content_type;
    const char *authorization;
    const char *agent; /* User-Agent: whom faults concern */
    struct gs_slice body;
};

struct gs_sim_stream;

struct gs_sim_reply {
    int status;
    const char *content_type; /* static */
    struct gs_buf body;
    struct gs_sim_stream *stream; /* a watch: body is empty */
    int retry_after_s;            /* for a header of that name; 0: none */
    bool cut;                     /* the connection breaks after these bytes of the body */
};

enum { GS_SIM_REPLY_BYTES_MAX = 1 << 30 };
#define GS_SIM_REPLY ((struct gs_sim_reply){.body = GS_BUF(GS_SIM_REPLY_BYTES_MAX)})

/* Always fills *ret. From any thread. With faults it may sleep. */
void gs_sim_api_handle(struct gs_sim_api *api, const struct gs_sim_request *request,
                       struct gs_sim_reply *ret);
void gs_sim_reply_release(struct gs_sim_reply *reply);

/*
 * Appends the lines that came since, waiting up to wait_ns of real time for the first; *lines is
 * emptied before. 0: go on (perhaps with nothing). -1: these were the last lines (timeoutSeconds
 * are over, or the watch ended: an ERROR line says so).
 */
int gs_sim_stream_next(struct gs_sim_stream *stream, int64_t wait_ns, struct gs_buf *lines);

/* True when the watch was cut: the connection should break, not end properly. */
bool gs_sim_stream_cut(const struct gs_sim_stream *stream);
void gs_sim_stream_free(struct gs_sim_stream *stream);
GS_DEFINE_CLEANUP(struct gs_sim_stream *, gs_sim_stream_free)

#endif
