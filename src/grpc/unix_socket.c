/* SPDX-License-Identifier: Apache-2.0 */
#include "unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "gpushare/base/cleanup.h"

#define BACKLOG       64
#define LOCK_ATTEMPTS 16

static bool make_address(const char *path, struct sockaddr_un *ret)
{
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof(ret->sun_path))
        return false;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path, path, len);
    return true;
}

static int make_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int gs_unix_connect(const char *path, int *ret_fd)
{
    struct sockaddr_un address;
    if (!make_address(path, &address))
        return ENAMETOOLONG;
    int fd = make_socket();
    if (fd < 0)
        return errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        int errnum = errno;
        close(fd);
        return errnum;
    }
    *ret_fd = fd;
    return 0;
}

static bool same_file(const char *path, dev_t dev, ino_t ino)
{
    struct stat st;
    return lstat(path, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

static bool fd_is_at(int fd, const char *path)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && same_file(path, st.st_dev, st.st_ino);
}

/* ---- the lock ---- */

/* 1: locked; 0: the folder was replaced meanwhile, try again; -1: failed. */
static int try_lock(struct gs_unix_listener *next, struct gs_error *err)
{
    if (mkdir(next->lock_path, 0700) < 0 && errno != EEXIST)
        return gs_fail_errno(err, GS_EIO, errno, "cannot make %s", next->lock_path);
    _cleanup_close_ int fd = open(next->lock_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ENOENT)
            return 0;
        return gs_fail_errno(err, GS_EIO, errno, "cannot open %s", next->lock_path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            return gs_fail(err, GS_EEXIST, "another process serves %s", next->path);
        return gs_fail_errno(err, GS_EIO, errno, "cannot lock %s", next->lock_path);
    }
    /* The former owner removes the folder when it leaves: a lock on a removed one is none. */
    if (!fd_is_at(fd, next->lock_path))
        return 0;
    next->lock_fd = fd;
    fd = -1;
    return 1;
}

static int take_lock(struct gs_unix_listener *next, struct gs_error *err)
{
    for (int attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
        int locked = try_lock(next, err);
        if (locked != 0)
            return locked < 0 ? -1 : 0;
    }
    return gs_fail(err, GS_EIO, "%s comes and goes", next->lock_path);
}

/* ---- the socket ---- */

/* Makes way at the path: removes a socket that nobody answers on. */
static int clear_path(const char *path, struct gs_error *err)
{
    struct stat st;
    if (lstat(path, &st) < 0) {
        if (errno == ENOENT)
            return 0;
        return gs_fail_errno(err, GS_EIO, errno, "cannot look at %s", path);
    }
    if (!S_ISSOCK(st.st_mode))
        return gs_fail(err, GS_EEXIST, "%s exists and is not a socket", path);
    _cleanup_close_ int fd = -1;
    int errnum = gs_unix_connect(path, &fd);
    if (errnum == 0 || errnum == EAGAIN)
        return gs_fail(err, GS_EEXIST, "another process serves %s", path);
    if (errnum != ECONNREFUSED && errnum != ENOENT)
        return gs_fail_errno(err, GS_EEXIST, errnum, "cannot tell whether %s is in use", path);
    if (unlink(path) < 0 && errno != ENOENT)
        return gs_fail_errno(err, GS_EIO, errno, "cannot remove the stale %s", path);
    return 0;
}

static int bind_and_listen(struct gs_unix_listener *next, const struct sockaddr_un *address,
                           struct gs_error *err)
{
    next->fd = make_socket();
    if (next->fd < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot make a socket");
    /* On Linux bind(2) gives the file the mode of the socket's own inode, less the umask: nobody
     * can connect in between, and the process's umask stays as it is. */
    if (fchmod(next->fd, 0600) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot restrict %s", next->path);
    if (bind(next->fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        return gs_fail_errno(err, errno == EADDRINUSE ? GS_EEXIST : GS_EIO, errno,
                             "cannot make the socket %s", next->path);
    struct stat st;
    if (lstat(next->path, &st) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot look at %s", next->path);
    next->dev = st.st_dev;
    next->ino = st.st_ino;
    if (listen(next->fd, BACKLOG) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot listen on %s", next->path);
    return 0;
}

static int open_next(struct gs_unix_listener *next, struct gs_error *err)
{
    struct sockaddr_un address;
    if (!make_address(next->path, &address))
        return gs_fail(err, GS_EINVAL, "\"%s\" cannot be a socket's path: 1 to %zu bytes",
                       next->path, sizeof(address.sun_path) - 1);
    if (next->lock_fd < 0 && take_lock(next, err) < 0)
        return -1;
    if (clear_path(next->path, err) < 0)
        return -1;
    return bind_and_listen(next, &address, err);
}

/* Somebody removed the lock folder of a listener that is in place: lock a new one. */
static int renew_lock(struct gs_unix_listener *listener, struct gs_error *err)
{
    int old_fd = listener->lock_fd;
    listener->lock_fd = -1;
    if (take_lock(listener, err) < 0) {
        listener->lock_fd = old_fd;
        return -1;
    }
    gs_closep(&old_fd);
    return 0;
}

/* A new listener for the path; a lock that is held already moves over. */
static int replace(struct gs_unix_listener *listener, const char *path, bool lock_holds,
                   struct gs_error *err)
{
    struct gs_unix_listener next = GS_UNIX_LISTENER_NONE;
    next.path = strdup(path);
    if (asprintf(&next.lock_path, "%s.lock", path) < 0)
        next.lock_path = NULL;
    if (lock_holds) {
        next.lock_fd = listener->lock_fd;
        listener->lock_fd = -1;
    }
    int result = next.path && next.lock_path ? open_next(&next, err) : gs_fail_nomem(err);
    struct gs_unix_listener *loser = result < 0 ? &next : listener;
    if (result < 0 && lock_holds) {
        listener->lock_fd = next.lock_fd;
        next.lock_fd = -1;
    }
    gs_unix_listener_close(loser);
    if (result == 0)
        *listener = next;
    return result;
}

int gs_unix_listener_open(struct gs_unix_listener *listener, const char *path, struct gs_error *err)
{
    bool same_path = listener->path && strcmp(listener->path, path) == 0;
    bool lock_holds = same_path && fd_is_at(listener->lock_fd, listener->lock_path);
    bool in_place = same_path && same_file(path, listener->dev, listener->ino);
    if (!in_place)
        return replace(listener, path, lock_holds, err);
    return lock_holds ? 0 : renew_lock(listener, err);
}

void gs_unix_listener_close(struct gs_unix_listener *listener)
{
    /* While fd is open nobody else's file can have its inode number. */
    if (listener->fd >= 0) {
        if (same_file(listener->path, listener->dev, listener->ino))
            unlink(listener->path);
        close(listener->fd);
    }
    if (listener->lock_fd >= 0) {
        if (fd_is_at(listener->lock_fd, listener->lock_path))
            rmdir(listener->lock_path);
        close(listener->lock_fd);
    }
    free(listener->path);
    free(listener->lock_path);
    *listener = GS_UNIX_LISTENER_NONE;
}
