/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>

#include "gpushare/port/kube.h"

/*
 * Runs a watch in a thread and writes down what its sink is told, a line each:
 *   "begin", "end", "live", "lost: WHY", "pod NS/NAME", "pod gone NS/NAME"
 * Of nodes it watches empty lists.
 */
enum { RECORDER_LINES_MAX = 20000 };

struct watch_recorder {
    struct gs_kube kube;
    struct gs_watch_spec spec;
    atomic_bool stop;
    pthread_t thread;
    int result; /* of watch() */
    struct gs_error err;
    pthread_mutex_t lock;
    pthread_cond_t more;
    char *lines[RECORDER_LINES_MAX];
    size_t count;
    int refuse; /* so many calls of pod() answer -1 */
};

/* *ret: freed by recorder_stop(). */
struct watch_recorder *recorder_start(struct gs_kube kube, const struct gs_watch_spec *spec);

/* The same, and the first `refuse` objects are answered with -1. */
struct watch_recorder *recorder_start_refusing(struct gs_kube kube,
                                               const struct gs_watch_spec *spec, int refuse);

/* Waits (10 s) until a line at or after *from begins with `text`; *from moves behind it. False:
 * none came; what did come is printed. from NULL: anywhere. */
bool recorder_wait(struct watch_recorder *recorder, size_t *from, const char *text);

/* Lines so far that begin with text. */
size_t recorder_count(struct watch_recorder *recorder, const char *text);

/* Stops the watch, joins, frees. -1 when the watch failed. A watch that does not end when it is
 * told to runs into the test's own limit. */
int recorder_stop(struct watch_recorder *recorder);
