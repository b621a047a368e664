/* SPDX-License-Identifier: Apache-2.0 */
#include "path_watch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "gpushare/base/cleanup.h"

#define RETRY_NS GS_NS_PER_S
#define MASK                                                                                       \
    (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF |         \
     IN_ONLYDIR)

struct gs_path_watch {
    struct gs_loop *loop;
    gs_path_watch_fn *fn;
    void *ctx;
    char *path;
    char *dir;
    const char *name; /* within path */
    int inotify;
    int wd;       /* -1: the folder is not watched, `retry` is armed */
    bool present; /* the state last reported */
    struct gs_loop_fd readable;
    struct gs_loop_timer retry;
};

/* Call last in a callback: fn may free the watch. */
static void tell(struct gs_path_watch *watch, bool present)
{
    bool removed = watch->present && !present;
    watch->present = present;
    if (present)
        watch->fn(watch->ctx, GS_PATH_CREATED);
    else if (removed)
        watch->fn(watch->ctx, GS_PATH_REMOVED);
}

static bool exists(const struct gs_path_watch *watch)
{
    struct stat st;
    return lstat(watch->path, &st) == 0;
}

static void attach(void *ctx)
{
    struct gs_path_watch *watch = ctx;
    watch->wd = inotify_add_watch(watch->inotify, watch->dir, MASK);
    if (watch->wd < 0)
        gs_loop_timer_arm_in(watch->loop, &watch->retry, RETRY_NS);
    /* Check after the watch is set up, so that no creation is missed. */
    tell(watch, watch->wd >= 0 && exists(watch));
}

static void on_readable(void *ctx, short revents)
{
    struct gs_path_watch *watch = ctx;
    _Alignas(struct inotify_event) char buf[4096];
    bool changed = false; /* our name changed, or events were dropped */
    bool lost = false;    /* the folder was deleted or moved */
    ssize_t got = read(watch->inotify, buf, sizeof(buf));
    for (ssize_t at = 0; at < got;) {
        const struct inotify_event *event = (const void *)(buf + at);
        at += (ssize_t)(sizeof(*event) + event->len);
        changed |= (event->mask & IN_Q_OVERFLOW) != 0;
        if (event->wd != watch->wd)
            continue;
        lost |= (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)) != 0;
        changed |= event->len > 0 && strcmp(event->name, watch->name) == 0;
    }
    if (lost) {
        /* The watch would follow a moved folder. Fails harmlessly if the kernel has removed it. */
        inotify_rm_watch(watch->inotify, watch->wd);
        watch->wd = -1;
        gs_loop_timer_arm_in(watch->loop, &watch->retry, 0);
        tell(watch, false);
    } else if (changed) {
        tell(watch, exists(watch));
    }
}

static int start(struct gs_path_watch *watch, const char *path, struct gs_error *err)
{
    const char *slash = strrchr(path, '/');
    if (!slash || !slash[1])
        return gs_fail(err, GS_EINVAL, "\"%s\" is not the path of a file", path);
    watch->path = strdup(path);
    watch->dir = strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (!watch->path || !watch->dir)
        return gs_fail_nomem(err);
    watch->name = watch->path + (slash + 1 - path);
    watch->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch->inotify < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot watch %s", path);
    return gs_loop_fd_add(watch->loop, &watch->readable, watch->inotify, POLLIN, err);
}

int gs_path_watch_new(struct gs_loop *loop, const char *path, gs_path_watch_fn *fn, void *ctx,
                      struct gs_path_watch **ret, struct gs_error *err)
{
    struct gs_path_watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return gs_fail_nomem(err);
    watch->loop = loop;
    watch->fn = fn;
    watch->ctx = ctx;
    watch->inotify = -1;
    watch->wd = -1;
    watch->readable = (struct gs_loop_fd){.fn = on_readable, .ctx = watch};
    watch->retry = (struct gs_loop_timer){.fn = attach, .ctx = watch};
    if (start(watch, path, err) < 0) {
        gs_path_watch_free(watch);
        return -1;
    }
    gs_loop_timer_arm_in(loop, &watch->retry, 0);
    *ret = watch;
    return 0;
}

void gs_path_watch_free(struct gs_path_watch *watch)
{
    gs_loop_timer_disarm(watch->loop, &watch->retry);
    gs_loop_fd_remove(watch->loop, &watch->readable);
    gs_closep(&watch->inotify);
    free(watch->path);
    free(watch->dir);
    free(watch);
}
