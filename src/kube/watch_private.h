/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_KUBE_WATCH_PRIVATE_H
#define GPUSHARE_KUBE_WATCH_PRIVATE_H

#include "client_private.h"

/* One watch. Used by the thread that is in gs_kube_ops.watch. Private to this folder. */
struct gs_watcher {
    struct gs_kube_client *client;
    const struct gs_watch_spec *spec;
    const struct gs_watch_sink *sink;
    struct gs_runner runner;
    const char *path;
    struct gs_buf selector; /* field selector, data NULL: none */
    char rv[GS_RV_BYTES];   /* where we are in the history; "": list anew */
    bool listed;            /* at least once */
    bool live;              /* as the sink was told */
    bool refused;           /* a 401 was tried again already */
    bool must_list;         /* this stream showed that our picture is no longer to be trusted */
    uint32_t attempt;       /* failures in a row */
    uint32_t barren;        /* streams in a row that failed and told nothing */
    uint64_t events;        /* of this stream, bookmarks included */
    struct gs_lines lines;
    struct gs_buf body; /* of answers that are no 200 */
    struct gs_pod pod;
    struct gs_node node;
};

/* watch_events.c: callbacks of the list and of the stream; ctx is the watcher. */
int gs_watcher_list_begin(void *ctx, struct gs_error *err);
int gs_watcher_list_item(void *ctx, struct gs_scan *scan, struct gs_error *err);
int gs_watcher_line(void *ctx, const char *line, size_t len, struct gs_error *err);

#endif
