/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_KUBE_WATCH_PRIVATE_H
#define GPUSHARE_KUBE_WATCH_PRIVATE_H

#include "client_private.h"

/* One watch, or one list: without runner. Used by the thread that is in gs_kube_ops. Private to
 * this folder. */
struct gs_watcher {
    struct gs_kube_client *client;
    const struct gs_watch_spec *spec;
    const struct gs_watch_sink *sink;
    struct gs_runner runner; /* of a list zeroed */
    const char *path;
    struct gs_buf query;  /* "fieldSelector=…", encoded; data NULL: none */
    char rv[GS_RV_BYTES]; /* where we are in the history; "": list first */
    bool listed;          /* at least once */
    bool live;            /* as the sink was told */
    bool refused;         /* a 401 was tried again already */
    bool must_list;       /* this stream showed that our picture is no longer to be trusted */
    uint32_t attempt;     /* failures in a row */
    uint32_t barren;      /* streams in a row that failed and told nothing */
    uint64_t events;      /* of this stream, bookmarks included */
    struct gs_lines lines;
    struct gs_buf body; /* of answers that are no 200 */
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

/* In pages, the first of options.page_limit objects; deadline_ns: of all together. begin, ret_rv
 * and errors as those of gs_pages_read(), or GS_ENOMEM: the sink has none. */
int gs_watcher_list(struct gs_watcher *watcher, int (*begin)(void *ctx, struct gs_error *err),
                    int64_t page_timeout_ns, int64_t deadline_ns, char ret_rv[GS_RV_BYTES],
                    struct gs_error *err);

/* watch_events.c: callbacks of the list and of the stream; ctx is the watcher. */
int gs_watcher_list_begin(void *ctx, struct gs_error *err);
int gs_watcher_item(void *ctx, struct gs_scan *scan, struct gs_error *err);
int gs_watcher_line(void *ctx, const char *line, size_t len, struct gs_error *err);

#endif
