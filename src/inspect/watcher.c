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

void watcher_set_text(struct watcher *watcher, char to[WATCHER_TEXT_BYTES], const char *text)
{
    char calm[WATCHER_TEXT_BYTES];
    snprintf(calm, sizeof(calm), "%s", text);
    gs_utf8_calm(calm); /* the API server's words, and perhaps cut */
    pthread_mutex_lock(&watcher->lock);
    watcher->changed |= strcmp(to, calm) != 0;
    memcpy(to, calm, sizeof(calm));
    pthread_mutex_unlock(&watcher->lock);
}

static void on_live(void *ctx, enum gs_kind kind, bool live, const char *why)
{
    struct watcher *watcher = ctx;
    watcher_set_text(watcher, watcher->lost[kind], live ? "" : why);
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

static int ask_once(const struct source *source, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    int result = source_get(source, "/api/v1/nodes", "limit=1", &body, err);
    return result < 0 ? result : source_get(source, "/api/v1/pods", "limit=1", &body, err);
}

int watcher_start(struct watcher *watcher, const struct fetch *fetch, struct gs_error *err)
{
    int result = ask_once(&fetch->common->source, err);
    process_block_signals();
    init(watcher, fetch);
    if (result < 0)
        return -1;
    if (!fetch->common->source.kube.ops) { /* nothing will change */
        watcher->listed[GS_KIND_NODE] = watcher->listed[GS_KIND_POD] = true;
        return fetch_cluster(fetch, &watcher->snapshot, NULL, err);
    }
    if (snapshot_init(&watcher->snapshot, err) < 0)
        return -1;
    for (; watcher->started < 2; watcher->started++) {
        struct watcher_thread *thread = &watcher->threads[watcher->started];
        *thread = (struct watcher_thread){watcher,
                                          {.kind = watcher->started ? GS_KIND_POD : GS_KIND_NODE}};
        int failed = pthread_create(&thread->id, NULL, run, thread);
        if (failed)
            return gs_fail_errno(err, GS_ENOMEM, failed, "thread");
    }
    return 0;
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
