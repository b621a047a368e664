/* SPDX-License-Identifier: Apache-2.0 */
#include "watch_recorder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpushare/base/clock.h"

enum { WAIT_S = 10 };

static void record(struct watch_recorder *recorder, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void record(struct watch_recorder *recorder, const char *fmt, ...)
{
    char *line;
    va_list ap;
    va_start(ap, fmt);
    int len = vasprintf(&line, fmt, ap);
    va_end(ap);
    if (len < 0)
        abort();
    pthread_mutex_lock(&recorder->lock);
    if (recorder->count == RECORDER_LINES_MAX)
        abort();
    recorder->lines[recorder->count++] = line;
    pthread_cond_broadcast(&recorder->more);
    pthread_mutex_unlock(&recorder->lock);
}

static int answer(struct watch_recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    int result = recorder->refuse > 0 ? -1 : 0;
    recorder->refuse += result;
    pthread_mutex_unlock(&recorder->lock);
    return result;
}

static int on_begin(void *ctx, enum gs_kind kind)
{
    record(ctx, "begin");
    return 0;
}

static int on_end(void *ctx, enum gs_kind kind)
{
    record(ctx, "end");
    return 0;
}

static int on_pod(void *ctx, const struct gs_pod *pod)
{
    record(ctx, "pod %s/%s", pod->ns, pod->name);
    return answer(ctx);
}

static int on_pod_gone(void *ctx, const struct gs_pod *last)
{
    record(ctx, "pod gone %s/%s", last->ns, last->name);
    return 0;
}

static void on_live(void *ctx, enum gs_kind kind, bool live, const char *why)
{
    if (live)
        record(ctx, "live");
    else
        record(ctx, "lost: %s", why);
}

static void *run(void *arg)
{
    struct watch_recorder *recorder = arg;
    struct gs_watch_sink sink = {
        .ctx = recorder,
        .list_begin = on_begin,
        .list_end = on_end,
        .pod = on_pod,
        .pod_gone = on_pod_gone,
        .live = on_live,
    };
    recorder->result = recorder->kube.ops->watch(recorder->kube.ctx, &recorder->spec, &sink,
                                                 &recorder->stop, &recorder->err);
    return NULL;
}

struct watch_recorder *recorder_start_refusing(struct gs_kube kube,
                                               const struct gs_watch_spec *spec, int refuse)
{
    struct watch_recorder *recorder = calloc(1, sizeof(*recorder));
    if (!recorder)
        abort();
    recorder->kube = kube;
    recorder->spec = *spec;
    recorder->refuse = refuse;
    pthread_mutex_init(&recorder->lock, NULL);
    pthread_cond_init(&recorder->more, NULL);
    if (pthread_create(&recorder->thread, NULL, run, recorder) != 0)
        abort();
    return recorder;
}

struct watch_recorder *recorder_start(struct gs_kube kube, const struct gs_watch_spec *spec)
{
    return recorder_start_refusing(kube, spec, 0);
}

static void print_lines(const struct watch_recorder *recorder, const char *text)
{
    fprintf(stderr, "no line \"%s\" among these:\n", text);
    for (size_t i = 0; i < recorder->count; i++)
        fprintf(stderr, "  %s\n", recorder->lines[i]);
}

bool recorder_wait(struct watch_recorder *recorder, size_t *from, const char *text)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    bool found = false;
    pthread_mutex_lock(&recorder->lock);
    size_t at = from ? *from : 0;
    for (int waited = 0; !found && waited != ETIMEDOUT;) {
        for (; at < recorder->count && !found; at++)
            found = strncmp(recorder->lines[at], text, strlen(text)) == 0;
        if (!found)
            waited = pthread_cond_timedwait(&recorder->more, &recorder->lock, &until);
    }
    if (!found)
        print_lines(recorder, text);
    pthread_mutex_unlock(&recorder->lock);
    if (from)
        *from = at;
    return found;
}

size_t recorder_count(struct watch_recorder *recorder, const char *text)
{
    size_t count = 0;
    pthread_mutex_lock(&recorder->lock);
    for (size_t i = 0; i < recorder->count; i++)
        count += strncmp(recorder->lines[i], text, strlen(text)) == 0;
    pthread_mutex_unlock(&recorder->lock);
    return count;
}

int recorder_stop(struct watch_recorder *recorder)
{
    atomic_store(&recorder->stop, true);
    recorder->kube.ops->wake(recorder->kube.ctx);
    pthread_join(recorder->thread, NULL);
    int result = recorder->result;
    if (result != 0)
        fprintf(stderr, "the watch failed: %s\n", recorder->err.msg);
    for (size_t i = 0; i < recorder->count; i++)
        free(recorder->lines[i]);
    pthread_cond_destroy(&recorder->more);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
    return result == 0 ? 0 : -1;
}
