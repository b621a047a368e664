/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/error.h"

/*
 * One poll(2) loop: file descriptors, timers, work posted by other threads. Everything in this
 * folder runs on it, in the thread that calls gs_loop_step() ("the loop thread"). Only
 * gs_loop_post() may be called from another thread.
 *
 *   _cleanup_(gs_loop_freep) struct gs_loop *loop = NULL;
 *   if (gs_loop_new(gs_clock_system(), &loop, &err) < 0)
 *       ...
 *   struct gs_loop_timer tick = {.fn = on_tick, .ctx = me};
 *   gs_loop_timer_arm(loop, &tick, gs_loop_now_ns(loop) + 5 * GS_NS_PER_S);
 *   while (gs_loop_step(loop, INT64_MAX, &err) == 0) ...
 *
 * The little structs below live inside their owner's objects, so that arming a timer or posting a
 * task cannot fail. Fill fn and ctx, leave the rest zeroed, and do not move or free one that is
 * added, armed or posted.
 */
struct gs_loop;

/* The clock is *borrowed until gs_loop_free()*; GS_ENOMEM, GS_EIO. */
int gs_loop_new(const struct gs_clock *clock, struct gs_loop **ret, struct gs_error *err);

/* Runs what was posted and not yet run (so that it can free its memory), then frees the loop.
 * File descriptors and timers must be gone: free servers, calls and watches first. */
void gs_loop_free(struct gs_loop *loop);

/* One round: waits at most max_wait_ns for something to do, does all that is due, returns. GS_EIO
 * when poll(2) itself fails. */
int gs_loop_step(struct gs_loop *loop, int64_t max_wait_ns, struct gs_error *err);

/* The loop's clock, monotonic. */
int64_t gs_loop_now_ns(const struct gs_loop *loop);

/* ---- file descriptors ---- */

struct gs_loop_fd {
    void (*fn)(void *ctx, short revents); /* revents as poll(2) gives them */
    void *ctx;
    /* private */
    int fd;
    short events;
    bool added;
    LIST_ENTRY(gs_loop_fd) link;
};

/* Watches fd (not taken: the owner closes it, after removing the watch) for `events` (POLLIN |
 * POLLOUT; errors always). GS_ETOOBIG: there are GS_LOOP_FDS_MAX. */
enum { GS_LOOP_FDS_MAX = 128 };
int gs_loop_fd_add(struct gs_loop *loop, struct gs_loop_fd *watch, int fd, short events,
                   struct gs_error *err);
void gs_loop_fd_events(struct gs_loop_fd *watch, short events);

/* Also inside a callback, also its own; nothing is called afterwards. Harmless when not added. */
void gs_loop_fd_remove(struct gs_loop *loop, struct gs_loop_fd *watch);

/* ---- timers ---- */

struct gs_loop_timer {
    void (*fn)(void *ctx);
    void *ctx;
    /* private */
    bool armed;
    int64_t at_ns;
    uint64_t round;
    LIST_ENTRY(gs_loop_timer) link;
};

/* Fires once when the loop's clock reaches at_ns; arming an armed timer moves it. A time that is
 * past fires in the next round. INT64_MAX never fires. */
void gs_loop_timer_arm(struct gs_loop *loop, struct gs_loop_timer *timer, int64_t at_ns);

/* The same with a delay from now on; one too long never fires. */
void gs_loop_timer_arm_in(struct gs_loop *loop, struct gs_loop_timer *timer, int64_t delay_ns);

/* Harmless when not armed. */
void gs_loop_timer_disarm(struct gs_loop *loop, struct gs_loop_timer *timer);

/* ---- work from other threads ---- */

struct gs_loop_task {
    void (*fn)(void *ctx);
    void *ctx;
    /* private */
    struct gs_loop_task *next;
};

/*
 * Any thread: fn runs once on the loop thread, in posting order. The task may be posted again, or
 * freed, from its own fn on. Never fails.
 *
 *   struct job { struct gs_loop_task task; struct gs_dp_call *call; ... };
 *   worker thread:  job->task = (struct gs_loop_task){.fn = answer, .ctx = job};
 *                   gs_loop_post(loop, &job->task);
 *   loop thread:    answer() calls gs_dp_allocate_reply(job->call, ...) and frees the job
 */
void gs_loop_post(struct gs_loop *loop, struct gs_loop_task *task);

static inline void gs_loop_freep(struct gs_loop **loop)
{
    if (*loop)
        gs_loop_free(*loop);
}
