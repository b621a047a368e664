/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/grpc/loop.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct gs_loop {
    const struct gs_clock *clock;
    LIST_HEAD(, gs_loop_fd) fds;
    size_t fd_count;
    LIST_HEAD(, gs_loop_timer) timers;
    uint64_t round;

    /* One slot per fd, the first for `wake`. `active` says whose revents a slot holds; removal
     * empties the slot, so that a callback may remove (and free) any watch. */
    struct pollfd polls[1 + GS_LOOP_FDS_MAX];
    struct gs_loop_fd *active[1 + GS_LOOP_FDS_MAX];
    size_t active_count;

    int wake;
    _Atomic(struct gs_loop_task *) posted; /* newest first */
};

int gs_loop_new(const struct gs_clock *clock, struct gs_loop **ret, struct gs_error *err)
{
    struct gs_loop *loop = calloc(1, sizeof(*loop));
    if (!loop)
        return gs_fail_nomem(err);
    loop->clock = clock;
    loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake < 0) {
        gs_fail_errno(err, GS_EIO, errno, "cannot create an eventfd");
        free(loop);
        return -1;
    }
    *ret = loop;
    return 0;
}

int64_t gs_loop_now_ns(const struct gs_loop *loop)
{
    return gs_clock_now_ns(loop->clock);
}

/* ---- other threads ---- */

static void wake_up(struct gs_loop *loop)
{
    /* Only a counter at its limit makes this fail, and then the loop is awake anyway. */
    const uint64_t one = 1;
    ssize_t written = write(loop->wake, &one, sizeof(one));
    (void)written;
}

void gs_loop_post(struct gs_loop *loop, struct gs_loop_task *task)
{
    struct gs_loop_task *head = atomic_load(&loop->posted);
    do {
        task->next = head;
    } while (!atomic_compare_exchange_weak(&loop->posted, &head, task));
    wake_up(loop);
}

static void run_posted(struct gs_loop *loop)
{
    struct gs_loop_task *newest = atomic_exchange(&loop->posted, NULL);
    struct gs_loop_task *oldest = NULL;
    while (newest) {
        struct gs_loop_task *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        struct gs_loop_task *task = oldest;
        oldest = task->next; /* read first: fn may free the task or post it again */
        task->fn(task->ctx);
    }
}

void gs_loop_free(struct gs_loop *loop)
{
    while (atomic_load(&loop->posted))
        run_posted(loop);
    close(loop->wake);
    free(loop);
}

/* ---- file descriptors ---- */

int gs_loop_fd_add(struct gs_loop *loop, struct gs_loop_fd *watch, int fd, short events,
                   struct gs_error *err)
{
    if (loop->fd_count == GS_LOOP_FDS_MAX)
        return gs_fail(err, GS_ETOOBIG, "more than %d file descriptors", GS_LOOP_FDS_MAX);
    watch->fd = fd;
    watch->events = events;
    watch->added = true;
    LIST_INSERT_HEAD(&loop->fds, watch, link);
    loop->fd_count++;
    return 0;
}

void gs_loop_fd_events(struct gs_loop_fd *watch, short events)
{
    watch->events = events;
}

void gs_loop_fd_remove(struct gs_loop *loop, struct gs_loop_fd *watch)
{
    if (!watch->added)
        return;
    watch->added = false;
    LIST_REMOVE(watch, link);
    loop->fd_count--;
    for (size_t i = 1; i < loop->active_count; i++) {
        if (loop->active[i] == watch)
            loop->active[i] = NULL;
    }
}

/* ---- timers ---- */

void gs_loop_timer_disarm(struct gs_loop *loop, struct gs_loop_timer *timer)
{
    if (!timer->armed)
        return;
    timer->armed = false;
    LIST_REMOVE(timer, link);
}

void gs_loop_timer_arm(struct gs_loop *loop, struct gs_loop_timer *timer, int64_t at_ns)
{
    gs_loop_timer_disarm(loop, timer);
    timer->armed = true;
    timer->at_ns = at_ns;
    timer->round = loop->round;
    LIST_INSERT_HEAD(&loop->timers, timer, link);
}

void gs_loop_timer_arm_in(struct gs_loop *loop, struct gs_loop_timer *timer, int64_t delay_ns)
{
    int64_t at_ns;
    if (__builtin_add_overflow(gs_loop_now_ns(loop), delay_ns, &at_ns))
        at_ns = INT64_MAX;
    gs_loop_timer_arm(loop, timer, at_ns);
}

/* The earliest timer that is due and was not armed in this round: a timer that re-arms itself for
 * the past must not starve the others. */
static struct gs_loop_timer *due_timer(struct gs_loop *loop, int64_t now_ns)
{
    struct gs_loop_timer *due = NULL, *t;
    LIST_FOREACH(t, &loop->timers, link)
    {
        if (t->at_ns <= now_ns && t->round != loop->round && (!due || t->at_ns < due->at_ns))
            due = t;
    }
    return due;
}

static void run_timers(struct gs_loop *loop)
{
    int64_t now_ns = gs_loop_now_ns(loop);
    struct gs_loop_timer *timer;
    while ((timer = due_timer(loop, now_ns)) != NULL) {
        gs_loop_timer_disarm(loop, timer);
        timer->fn(timer->ctx);
    }
}

/* Milliseconds to sleep, rounded up so that a timer is due when poll(2) returns. */
static int poll_timeout_ms(const struct gs_loop *loop, int64_t max_wait_ns)
{
    int64_t wait_ns = max_wait_ns;
    int64_t now_ns = gs_loop_now_ns(loop);
    const struct gs_loop_timer *t;
    LIST_FOREACH(t, &loop->timers, link)
    {
        int64_t left_ns;
        if (__builtin_sub_overflow(t->at_ns, now_ns, &left_ns))
            left_ns = t->at_ns > now_ns ? INT64_MAX : 0;
        if (left_ns < wait_ns)
            wait_ns = left_ns;
    }
    if (wait_ns <= 0)
        return 0;
    int64_t wait_ms = (wait_ns - 1) / GS_NS_PER_MS + 1;
    return wait_ms > INT_MAX ? INT_MAX : (int)wait_ms;
}

/* ---- rounds ---- */

static void fill_polls(struct gs_loop *loop)
{
    loop->polls[0] = (struct pollfd){.fd = loop->wake, .events = POLLIN};
    loop->active[0] = NULL;
    loop->active_count = 1;
    struct gs_loop_fd *w;
    LIST_FOREACH(w, &loop->fds, link)
    {
        loop->polls[loop->active_count] = (struct pollfd){.fd = w->fd, .events = w->events};
        loop->active[loop->active_count++] = w;
    }
}

static void run_fds(struct gs_loop *loop)
{
    uint64_t count;
    if (loop->polls[0].revents & POLLIN) {
        ssize_t got = read(loop->wake, &count, sizeof(count));
        (void)got; /* a spurious wake-up costs one round */
    }
    for (size_t i = 1; i < loop->active_count; i++) {
        struct gs_loop_fd *watch = loop->active[i];
        short revents = loop->polls[i].revents;
        if (watch && revents)
            watch->fn(watch->ctx, revents);
    }
    loop->active_count = 0;
}

int gs_loop_step(struct gs_loop *loop, int64_t max_wait_ns, struct gs_error *err)
{
    fill_polls(loop);
    int timeout_ms = poll_timeout_ms(loop, max_wait_ns);
    loop->round++;
    if (poll(loop->polls, loop->active_count, timeout_ms) < 0) {
        int errnum = errno;
        loop->active_count = 0;
        if (errnum == EINTR)
            return 0;
        return gs_fail_errno(err, GS_EIO, errnum, "cannot wait for events");
    }
    run_fds(loop);
    run_posted(loop);
    run_timers(loop);
    return 0;
}
