/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/watcher.h"

#include <stdio.h>
#include <string.h>

#include "common/process.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/utf8.h"
#include "inspect/calm.h"

static int locked(struct watcher *watcher, int result)
{
    watcher->changed = true;
    pthread_mutex_unlock(&watcher->lock);
    return result;
}

#define FORWARD(name, kind)                                                                        \
    static int on_##name(void *ctx, const struct gs_##kind *from)                                  \
    {                                                                                              \
        struct watcher *watcher = ctx;                                                             \
        struct gs_##kind calm = *from;                                                             \
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};                                   \
        calm_##kind(&arena, &calm);                                                                \
        pthread_mutex_lock(&watcher->lock);                                                        \
        return locked(watcher, watcher->inner.name(watcher->inner.ctx, &calm));                    \
    }
FORWARD(node, node)
FORWARD(node_gone, node)
FORWARD(pod, pod)
FORWARD(pod_gone, pod)

static int on_list_begin(void *ctx, enum gs_kind kind)
{
    struct watcher *watcher = ctx;
    pthread_mutex_lock(&watcher->lock);
    return locked(watcher, watcher->inner.list_begin(watcher->inner.ctx, kind));
}

static int on_list_end(void *ctx, enum gs_kind kind)
{
    struct watcher *watcher = ctx;
    pthread_mutex_lock(&watcher->lock);
    watcher->listed[kind] = true;
    return locked(watcher, watcher->inner.list_end(watcher->inner.ctx, kind));
}

static void on_live(void *ctx, enum gs_kind kind, bool live, const char *why)
{
    struct watcher *watcher = ctx;
    char lost[sizeof(watcher->lost)];
    snprintf(lost, sizeof(lost), "%s", live ? "" : why);
    gs_utf8_calm(lost); /* the API server's words, and perhaps cut */
    pthread_mutex_lock(&watcher->lock);
    watcher->changed |= strcmp(watcher->lost, lost) != 0;
    memcpy(watcher->lost, lost, sizeof(lost));
    pthread_mutex_unlock(&watcher->lock);
}

static void *run(void *arg)
{
    struct watcher_thread *thread = arg;
    struct watcher *watcher = thread->watcher;
    const struct gs_kube *kube = &watcher->fetch->common->source.kube;
    kube->ops->watch(kube->ctx, &thread->spec, &watcher->sink, &watcher->stop, NULL);
    return NULL;
}

static void init(struct watcher *watcher, const struct fetch *fetch)
{
    *watcher = (struct watcher){.fetch = fetch, .changed = true, .lock = PTHREAD_MUTEX_INITIALIZER};
    watcher->inner = snapshot_sink(&watcher->snapshot);
    watcher->sink = (struct gs_watch_sink){.ctx = watcher,
                                           .list_begin = on_list_begin,
                                           .list_end = on_list_end,
                                           .node = on_node,
                                           .node_gone = on_node_gone,
                                           .pod = on_pod,
                                           .pod_gone = on_pod_gone,
                                           .live = on_live};
}

static int ask_once(const struct fetch *fetch, struct gs_error *err)
{
    static const char *const paths[] = {"/api/v1/nodes", "/api/v1/pods"};
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    for (int i = 0; i < 2; i++) {
        if (source_get(&fetch->common->source, paths[i], "limit=1", &body, err) < 0)
            return -1;
    }
    return 0;
}

int watcher_start(struct watcher *watcher, const struct fetch *fetch, struct gs_error *err)
{
    int result = ask_once(fetch, err);
    process_block_signals();
    init(watcher, fetch);
    if (result == 0 && !fetch->common->source.kube.ops) { /* nothing will change */
        watcher->listed[GS_KIND_NODE] = watcher->listed[GS_KIND_POD] = true;
        return fetch_cluster(fetch, &watcher->snapshot, NULL, err);
    }
    if (result == 0)
        result = snapshot_init(&watcher->snapshot, err);
    for (int i = 0; result == 0 && i < 2; i++) {
        struct watcher_thread *thread = &watcher->threads[i];
        *thread = (struct watcher_thread){
            .watcher = watcher,
            .spec = {.kind = i ? GS_KIND_POD : GS_KIND_NODE, .node = fetch->node}};
        int failed = pthread_create(&thread->id, NULL, run, thread);
        if (failed)
            result = gs_fail_errno(err, GS_ENOMEM, failed, "thread");
        else
            watcher->started++;
    }
    return result;
}

void watcher_stop(struct watcher *watcher)
{
    const struct gs_kube *kube = &watcher->fetch->common->source.kube;
    atomic_store(&watcher->stop, true);
    if (watcher->started)
        kube->ops->wake(kube->ctx);
    while (watcher->started > 0)
        pthread_join(watcher->threads[--watcher->started].id, NULL);
    snapshot_release(&watcher->snapshot);
}
