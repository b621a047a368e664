/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "client_private.h"

/* A watch, or a list, which has no runner. Used by the thread in gs_kube_ops. Private to this
 * folder. */
struct gs_watcher {
    struct gs_kube_client *client;
    const struct gs_watch_spec *spec;
    const struct gs_watch_sink *sink;
    struct gs_runner runner; /* zeroed for a list */
    const char *path;
    struct gs_buf query;  /* "fieldSelector=…", encoded; data NULL: none */
    char rv[GS_RV_BYTES]; /* the last resourceVersion; "": list first */
    bool listed;          /* at least once */
    bool live;            /* as reported to the sink */
    bool refused;         /* a 401 was retried */
    bool must_list;       /* this stream showed that the state is invalid: list again */
    uint32_t attempt;     /* failures in a row */
    uint32_t barren;      /* streams in a row that failed without an event */
    uint64_t events;      /* of this stream, bookmarks included */
    struct gs_lines lines;
    struct gs_buf body; /* of answers other than 200 */
    struct gs_pod pod;
    struct gs_node node;
};

#define GS_WATCHER(of_client, of_spec, of_sink)                                                    \
    {                                                                                              \
        .client = (of_client), .spec = (of_spec), .sink = (of_sink), .query = GS_BUF(4096),        \
        .lines = {.rest = GS_BUF((of_client)->options.object_max_bytes)},                          \
        .body = GS_BUF((of_client)->options.object_max_bytes),                                     \
    }

/* list.c: path and query. */
int gs_watcher_prepare(struct gs_watcher *watcher, struct gs_error *err);
void gs_watcher_release(struct gs_watcher *watcher);

/* Lists in pages, the first of options.page_limit objects; deadline_ns: for all pages. begin,
 * ret_rv and errors as those of gs_pages_read(); GS_ENOMEM: the sink is out of memory. */
int gs_watcher_list(struct gs_watcher *watcher, int (*begin)(void *ctx, struct gs_error *err),
                    int64_t page_timeout_ns, int64_t deadline_ns, char ret_rv[GS_RV_BYTES],
                    struct gs_error *err);

/* watch_events.c: callbacks of the list and of the stream; ctx is the watcher. */
int gs_watcher_list_begin(void *ctx, struct gs_error *err);
int gs_watcher_item(void *ctx, struct gs_scan *scan, struct gs_error *err);
int gs_watcher_line(void *ctx, const char *line, size_t len, struct gs_error *err);
