/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>

#include "inspect/fetch.h"

/*
 * Two threads keep a snapshot as the API shows it. Whoever reads it holds the lock; a change of
 * anything that is printed or counted is a change.
 *
 *   struct watcher watcher;
 *   watcher_start(&watcher, &fetch, err);      signals are blocked from here on
 *   pthread_mutex_lock(&watcher.lock);
 *   if (watcher_listed(&watcher) && watcher.changed) ...
 *   pthread_mutex_unlock(&watcher.lock);
 *   watcher_stop(&watcher);
 */
struct watcher_thread {
    struct watcher *watcher;
    struct gs_watch_spec spec;
    pthread_t id;
};

enum { WATCHER_TEXT_BYTES = 256 };
struct watcher {
    const struct fetch *fetch;
    struct gs_watch_sink inner;
    struct gs_watch_sink sink;
    atomic_bool stop;
    struct watcher_thread threads[2];
    int started;
    pthread_mutex_t lock;
    /* guarded by lock */
    struct snapshot snapshot;
    bool listed[2];
    bool changed;
    char lost[2][WATCHER_TEXT_BYTES]; /* why a kind's watch is not live; "" when it is */
};

/* Asks once, because a watch tries for ever and what is wrong from the start would not be seen.
 * *fetch is borrowed until watcher_stop(), which is to be called also when this fails. */
int watcher_start(struct watcher *watcher, const struct fetch *fetch, struct gs_error *err);
void watcher_stop(struct watcher *watcher);

/* Sets a text that the lock guards, sanitized; another text is a change. */
void watcher_set_text(struct watcher *watcher, char to[WATCHER_TEXT_BYTES], const char *text);

/* Both lists were read: the snapshot is whole. */
static inline bool watcher_listed(const struct watcher *watcher)
{
    return watcher->listed[GS_KIND_NODE] && watcher->listed[GS_KIND_POD];
}
