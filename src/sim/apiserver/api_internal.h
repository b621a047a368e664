/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "api.h"

/* Inside sim only: what the files of the REST API share. */

/* One request on its way; the target's strings are NUL-terminated copies. */
struct gs_sim_call {
    const struct gs_sim_api *api;
    const struct gs_sim_request *req;
    struct gs_sim_reply *ret;
    enum gs_sim_kind kind;
    char ns[256];
    char name[256];
    char sub[32];
    struct gs_error err;
};

/* A query argument; "" when it did not come. Borrowed for a moment. */
const char *gs_sim_call_query(const struct gs_sim_call *call, const char *name);

/* The verbs; -1: call->err says why. */
int gs_sim_do_get(struct gs_sim_call *call);
int gs_sim_do_post(struct gs_sim_call *call);
int gs_sim_do_put(struct gs_sim_call *call);
int gs_sim_do_patch(struct gs_sim_call *call);
int gs_sim_do_delete(struct gs_sim_call *call);

/* Makes *ret the Status of a failure; returns nothing because that is always the answer. */
void gs_sim_reply_error(struct gs_sim_reply *ret, const struct gs_error *err);

/* The same for what has no code of its own. Returns 0: that is the answer. */
int gs_sim_reply_refused(struct gs_sim_reply *ret, int http, const char *reason,
                         const char *message);

/* HTTP status and reason of a failure, appended as a Status object; returns the HTTP status. */
int gs_sim_status_put(const struct gs_error *err, struct gs_buf *out);

/* GET of what is always the same: health, version, discovery; false: not that. */
bool gs_sim_discovery(const char *path, struct gs_sim_reply *ret);

struct gs_sim_stream_spec {
    const struct gs_sim_query *query;
    uint64_t from;
    int64_t timeout_ns; /* real time until it ends by itself */
    bool bookmarks;
};

int gs_sim_stream_open(const struct gs_sim_api *api, const struct gs_sim_stream_spec *spec,
                       struct gs_sim_stream **ret, struct gs_error *err);
