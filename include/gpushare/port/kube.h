/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/error.h"
#include "gpushare/model/node.h"
#include "gpushare/model/pod.h"
#include "gpushare/model/request.h"

/*
 * What the service layer asks of a cluster, in model types: kube/ implements it with libcurl
 * against an API server, sim/ in memory. One contract test suite runs on both.
 *
 * Every function may be called from any thread, blocks until the answer is there or its time is
 * over, takes *borrowed* arguments and keeps none of them.
 *
 * Failures by code, the same on both implementations:
 *   GS_ENOENT     404                       GS_ECONFLICT  409, or a UID that differs
 *   GS_EAUTH      401                       GS_EDENIED    403
 *   GS_EINVAL     400, 422                  GS_EBUSY      429 after the retries it allows itself,
 *                                                         or its time was over before it was sent
 *   GS_ETIMEOUT   no answer in time         GS_EIO        no connection, cut answer, 5xx
 *   GS_EPROTO     answer not understood     GS_ECANCELED  stopped
 * After ETIMEOUT, EIO and EPROTO the outcome of a write is unknown: read back before undoing.
 */

enum gs_kind { GS_KIND_NODE, GS_KIND_POD };

/*
 * Where a watch delivers. One thread calls at a time per kind. A list is begin, one upsert per
 * object, end: what was not named between begin and end is gone. Between lists single upserts and
 * gone calls arrive. Objects are borrowed for the call. A return of -1 (memory) makes the watch
 * list again after a pause.
 */
struct gs_watch_sink {
    void *ctx;
    int (*list_begin)(void *ctx, enum gs_kind kind);
    int (*list_end)(void *ctx, enum gs_kind kind);
    int (*node)(void *ctx, const struct gs_node *node);
    int (*node_gone)(void *ctx, const struct gs_node *last);
    int (*pod)(void *ctx, const struct gs_pod *pod);
    int (*pod_gone)(void *ctx, const struct gs_pod *last);
    /* The watch stands (true), or was lost and is being taken up again (false, with why). */
    void (*live)(void *ctx, enum gs_kind kind, bool live, const char *why);
};

struct gs_watch_spec {
    enum gs_kind kind;
    const char *node; /* NULL: all; else pods of this node that have not ended (by a field
                         selector), or the one node of this name (metadata.name) */
    /* Set by anybody, then gs_kube_ops.wake: the watch gives up what it does, lists anew and goes
     * on from there, with a list that begins after it was set: false again from then on. NULL:
     * never. */
    atomic_bool *list_wanted;
};

struct gs_kube_ops {
    int (*bind)(void *ctx, const struct gs_binding *binding, struct gs_error *err);
    /* *ret must be reset or zeroed before; filled only on success. */
    int (*get_pod)(void *ctx, const char *ns, const char *name, struct gs_pod *ret,
                   struct gs_error *err);
    int (*get_node)(void *ctx, const char *name, struct gs_node *ret, struct gs_error *err);
    /* Calls each for every pod (when node is not NULL, those there that have not ended); stops when
     * it returns -1 (memory): GS_ENOMEM. */
    int (*list_pods)(void *ctx, const char *node, int64_t timeout_ns,
                     int (*each)(void *each_ctx, const struct gs_pod *pod), void *each_ctx,
                     struct gs_error *err);
    int (*patch_pod)(void *ctx, const struct gs_meta_patch *patch, struct gs_error *err);
    int (*patch_node)(void *ctx, const struct gs_meta_patch *patch, struct gs_error *err);
    int (*patch_node_status)(void *ctx, const struct gs_node_status_patch *patch,
                             struct gs_error *err);
    int (*create_event)(void *ctx, const struct gs_event *event, struct gs_error *err);
    /* Lists and watches until *stop is true or gs_kube_ops.wake is called with it true; retries by
     * itself for ever, telling sink->live. Returns 0 when stopped. */
    int (*watch)(void *ctx, const struct gs_watch_spec *spec, const struct gs_watch_sink *sink,
                 const atomic_bool *stop, struct gs_error *err);
    /* Makes every watch look at its flags at once. */
    void (*wake)(void *ctx);
    /* lease->ns and ->name say which; fills the rest. */
    int (*get_lease)(void *ctx, struct gs_lease *lease, struct gs_error *err);
    /* Creates it when resource_version is "", else replaces it under that precondition; on success
     * resource_version is the new one. */
    int (*put_lease)(void *ctx, struct gs_lease *lease, struct gs_error *err);
};

/* A port is its functions and their context; passed by value, both parts borrowed. */
struct gs_kube {
    const struct gs_kube_ops *ops;
    void *ctx;
};
