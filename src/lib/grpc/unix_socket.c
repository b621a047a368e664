/* SPDX-License-Identifier: Apache-2.0 */
#include "unix_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "gpushare/base/cleanup.h"

#define BACKLOG 64

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

/* Removes a stale socket at the path: one that nobody accepts on. */
static int clear_path(const char *path, struct gs_error *err)
{
    struct stat st;
    if (lstat(path, &st) < 0) {
        if (errno == ENOENT)
            return 0;
        return gs_fail_errno(err, GS_EIO, errno, "cannot stat %s", path);
    }
    if (!S_ISSOCK(st.st_mode))
        return gs_fail(err, GS_EEXIST, "%s exists and is not a socket", path);
    _cleanup_close_ int fd = -1;
    int errnum = gs_unix_connect(path, &fd);
    if (errnum == 0 || errnum == EAGAIN)
        return gs_fail(err, GS_EEXIST, "another process serves %s", path);
    if (errnum != ECONNREFUSED && errnum != ENOENT)
        return gs_fail_errno(err, GS_EEXIST, errnum, "cannot determine whether %s is in use", path);
    if (unlink(path) < 0 && errno != ENOENT)
        return gs_fail_errno(err, GS_EIO, errno, "cannot remove the stale socket %s", path);
    return 0;
}

static int bind_and_listen(struct gs_unix_listener *next, const struct sockaddr_un *address,
                           struct gs_error *err)
{
    next->fd = make_socket();
    if (next->fd < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot create a socket");
    /* On Linux bind(2) creates the file with the mode of the socket's inode, so there is no moment
     * in which others can connect, and the umask stays unchanged. */
    if (fchmod(next->fd, 0600) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot set the mode of %s", next->path);
    if (bind(next->fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        return gs_fail_errno(err, errno == EADDRINUSE ? GS_EEXIST : GS_EIO, errno, "%s %s",
                             errno == ENOENT
                                 ? "the kubelet has not created the folder of the socket"
                                 : "cannot create the socket",
                             next->path);
    struct stat st;
    if (lstat(next->path, &st) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot stat %s", next->path);
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
        return gs_fail(err, GS_EINVAL,
                       "\"%s\" is not valid as the path of a socket: 1 to %zu bytes", next->path,
                       sizeof(address.sun_path) - 1);
    if (clear_path(next->path, err) < 0)
        return -1;
    return bind_and_listen(next, &address, err);
}

int gs_unix_listener_open(struct gs_unix_listener *listener, const char *path, struct gs_error *err)
{
    struct gs_unix_listener next = GS_UNIX_LISTENER_NONE;
    if (listener->path && strcmp(listener->path, path) == 0 &&
        same_file(path, listener->dev, listener->ino))
        return 0;
    next.path = strdup(path);
    int result = next.path ? open_next(&next, err) : gs_fail_nomem(err);
    gs_unix_listener_close(result < 0 ? &next : listener);
    if (result == 0)
        *listener = next;
    return result;
}

void gs_unix_listener_close(struct gs_unix_listener *listener)
{
    /* While fd is open, no other file can have its inode number. */
    if (listener->fd >= 0) {
        if (same_file(listener->path, listener->dev, listener->ino))
            unlink(listener->path);
        close(listener->fd);
    }
    free(listener->path);
    *listener = GS_UNIX_LISTENER_NONE;
}
