/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cluster.h"
#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/slice.h"

/*
 * The Kubernetes REST API of an embedded cluster, without sockets: a request in, an answer or a
 * stream of watch lines out. src/sim/api_server.c puts it on the HTTP layer.
 *
 * Served: /version, /healthz, /readyz, /livez; discovery (/api, /apis, /api/v1, …) and as much of
 * /openapi as kubectl needs to leave validation to the server; every verb of the kinds in object.h
 * but the deletion of a collection, with their status, and pods/NAME/binding; JSON. Errors are
 * meta/v1 Status objects. Not served: protobuf, server-side apply (415), JSON patch (415), logs,
 * exec.
 *
 *   struct gs_sim_reply reply = GS_SIM_REPLY;
 *   gs_sim_api_handle(&api, &request, &reply);
 *   if (reply.stream) ... gs_sim_stream_next() until it says -1
 *   gs_sim_reply_release(&reply);
 */

/* Everything is borrowed for as long as requests come. */
struct gs_sim_api {
    struct gs_sim_cluster *cluster;
    const char *token;   /* bearer token that every request must bring (401); NULL: none */
    int64_t bookmark_ns; /* between bookmarks of a quiet watch */
};

/* Everything borrowed for the call; the header fields are NULL when they did not come. */
struct gs_sim_request {
    const char *method;
    const char *path; /* percent-decoded */
    /* A query argument, decoded; NULL when it did not come. */
    const char *(*query)(void *query_ctx, const char *name);
    void *query_ctx;
    const char *content_type;
    const char *authorization;
    const char *agent; /* User-Agent */
    struct gs_slice body;
};

struct gs_sim_stream;

struct gs_sim_reply {
    int status;
    const char *content_type; /* static */
    struct gs_buf body;
    struct gs_sim_stream *stream; /* a watch: body is empty */
};

enum { GS_SIM_REPLY_BYTES_MAX = 1 << 30 };
#define GS_SIM_REPLY ((struct gs_sim_reply){.body = GS_BUF(GS_SIM_REPLY_BYTES_MAX)})

/* Always fills *ret. From any thread. */
void gs_sim_api_handle(const struct gs_sim_api *api, const struct gs_sim_request *request,
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
