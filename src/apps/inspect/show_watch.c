/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/signals.h"
#include "gpushare/base/clock.h"
#include "inspect/show.h"
#include "inspect/terminal.h"

/*
 * --watch: two threads keep the snapshot as the API shows it, this one prints it when it changed,
 * at most once a second. A change of anything that is printed or counted is a change.
 */
#define PAUSE_NS     GS_NS_PER_S
#define SELECT_NS    (10 * GS_NS_PER_S)
#define STOP_TICK_NS (100 * GS_NS_PER_MS)

struct watcher {
    const struct show *show;
    struct gs_watch_sink inner;
    struct gs_watch_sink sink;
    atomic_bool stop;
    pthread_mutex_t lock;
    /* guarded by lock */
    struct snapshot snapshot;
    bool listed[2];
    bool changed;
    bool nodes_changed;
    char lost[256]; /* why a watch is not live; "" when both are */
};

struct thread {
    struct watcher *watcher;
    struct gs_watch_spec spec;
    pthread_t id;
};

static int locked(struct watcher *watcher, bool node, int result)
{
    watcher->changed = true;
    watcher->nodes_changed |= node;
    pthread_mutex_unlock(&watcher->lock);
    return result;
}

#define FORWARD(name, type, is_node)                                                               \
    static int on_##name(void *ctx, type arg)                                                      \
    {                                                                                              \
        struct watcher *watcher = ctx;                                                             \
        pthread_mutex_lock(&watcher->lock);                                                        \
        return locked(watcher, is_node, watcher->inner.name(watcher->inner.ctx, arg));             \
    }
FORWARD(list_begin, enum gs_kind, false)
FORWARD(node, const struct gs_node *, true)
FORWARD(node_gone, const struct gs_node *, true)
FORWARD(pod, const struct gs_pod *, false)
FORWARD(pod_gone, const struct gs_pod *, false)

static int on_list_end(void *ctx, enum gs_kind kind)
{
    struct watcher *watcher = ctx;
    pthread_mutex_lock(&watcher->lock);
    watcher->listed[kind] = true;
    return locked(watcher, kind == GS_KIND_NODE, watcher->inner.list_end(watcher->inner.ctx, kind));
}

static void on_live(void *ctx, enum gs_kind kind, bool live, const char *why)
{
    struct watcher *watcher = ctx;
    const char *lost = live ? "" : why;
    pthread_mutex_lock(&watcher->lock);
    watcher->changed |= strncmp(watcher->lost, lost, sizeof(watcher->lost) - 1) != 0;
    snprintf(watcher->lost, sizeof(watcher->lost), "%s", lost);
    pthread_mutex_unlock(&watcher->lock);
}

static void *run(void *arg)
{
    struct thread *thread = arg;
    struct watcher *watcher = thread->watcher;
    const struct gs_kube *kube = &watcher->show->fetch.source->kube;
    kube->ops->watch(kube->ctx, &thread->spec, &watcher->sink, &watcher->stop, NULL);
    return NULL;
}

/* ---- printing ---- */

/* The screen is wiped; what scrolled out of it before stays where it is. */
static void begin_screen(const struct gs_clock *clock)
{
    char text[32];
    time_t now_s = (time_t)clock_unix_s(clock);
    struct tm now;
    strftime(text, sizeof(text), "%F %T", localtime_r(&now_s, &now));
    printf("\033[H\033[2J"
           "as of %s\n",
           text);
}

static int print(struct watcher *watcher, struct gs_error *err)
{
    const struct show *show = watcher->show;
    bool tables = show->format != SHOW_JSON && show->format != SHOW_YAML;
    if (tables && show->terminal.screen)
        begin_screen(show->clock);
    int result = show_once(show, &watcher->snapshot, err);
    if (tables && !show->terminal.screen)
        putchar('\n');
    if (result == 0 && watcher->lost[0])
        fprintf(stderr, PROGRAM ": not up to date: %s\n", watcher->lost);
    fflush(stdout);
    watcher->changed = false;
    return result;
}

/* Labels are not part of the snapshot: which nodes are meant is asked again when nodes changed. */
static bool selection_due(const struct watcher *watcher, int64_t due_ns)
{
    return watcher->show->fetch.selector && watcher->nodes_changed &&
           gs_clock_now_ns(gs_clock_system()) >= due_ns;
}

static int refresh_selection(struct watcher *watcher, int64_t *due_ns, struct gs_error *err)
{
    if (!selection_due(watcher, *due_ns))
        return 0;
    *due_ns = gs_clock_now_ns(gs_clock_system()) + SELECT_NS;
    watcher->nodes_changed = false;
    return fetch_selected(&watcher->show->fetch, &watcher->snapshot, err);
}

/* Waits; true when SIGINT or SIGTERM came. */
static bool pause_or_stop(int64_t ns)
{
    const struct timespec time = {ns / GS_NS_PER_S, ns % GS_NS_PER_S};
    const sigset_t set = gs_signals_stop_set();
    int number;
    do
        number = sigtimedwait(&set, NULL, &time);
    while (number < 0 && errno == EINTR);
    return number > 0;
}

static int one_round(struct watcher *watcher, int64_t *select_due_ns, bool *ret_printed,
                     struct gs_error *err)
{
    int result = 0;
    pthread_mutex_lock(&watcher->lock);
    *ret_printed = watcher->listed[0] && watcher->listed[1] &&
                   (watcher->changed || selection_due(watcher, *select_due_ns));
    if (*ret_printed) {
        result = refresh_selection(watcher, select_due_ns, err);
        if (result == 0)
            result = print(watcher, err);
    }
    pthread_mutex_unlock(&watcher->lock);
    return result;
}

static int loop(struct watcher *watcher, struct gs_error *err)
{
    int64_t select_due_ns = 0;
    bool printed = false;
    do {
        if (one_round(watcher, &select_due_ns, &printed, err) < 0)
            return -1;
    } while (!pause_or_stop(printed ? PAUSE_NS : STOP_TICK_NS));
    return 0;
}

static void init(struct watcher *watcher, const struct show *show)
{
    *watcher = (struct watcher){.show = show, .lock = PTHREAD_MUTEX_INITIALIZER};
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

/* A watch tries for ever; what is wrong from the start is found by asking once. */
static int ask_once(const struct show *show, struct gs_error *err)
{
    static const char *const paths[] = {"/api/v1/nodes", "/api/v1/pods"};
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    for (int i = 0; i < 2; i++) {
        if (source_get(show->fetch.source, paths[i], "limit=1", &body, err) < 0)
            return -1;
    }
    return 0;
}

int show_watch(const struct show *show, struct gs_error *err)
{
    struct watcher watcher;
    struct thread threads[2] = {
        {.watcher = &watcher, .spec = {.kind = GS_KIND_NODE, .node = show->fetch.node}},
        {.watcher = &watcher, .spec = {.kind = GS_KIND_POD, .node = show->fetch.node}},
    };
    const struct gs_kube *kube = &show->fetch.source->kube;
    int started = 0, result = ask_once(show, err);
    gs_signals_block();
    init(&watcher, show);
    if (result == 0)
        result = snapshot_init(&watcher.snapshot, err);
    while (result == 0 && started < 2) {
        int failed = pthread_create(&threads[started].id, NULL, run, &threads[started]);
        if (failed)
            result = gs_fail_errno(err, GS_ENOMEM, failed, "thread");
        else
            started++;
    }
    if (result == 0)
        result = loop(&watcher, err);
    atomic_store(&watcher.stop, true);
    if (started)
        kube->ops->wake(kube->ctx);
    while (started > 0)
        pthread_join(threads[--started].id, NULL);
    snapshot_release(&watcher.snapshot);
    return result;
}
