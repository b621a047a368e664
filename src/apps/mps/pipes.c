/* SPDX-License-Identifier: Apache-2.0 */
#include "mps/pipes.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/log.h"

/* The first is the one that clients and the tool need; others a daemon may have. */
static const char *const names[PIPES_SOCKETS] = {"control", "control_privileged"};

enum { FOLDER_MODE = 0755 };

/* ---- folders ---- */

/* All of a path's folders; those that are there stay as they are. */
static bool make_folders(char *path, mode_t mode)
{
    for (char *at = strchr(path + 1, '/');; at = strchr(at + 1, '/')) {
        if (at)
            *at = '\0';
        bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
        if (!at)
            return made && chmod(path, mode) == 0;
        *at = '/';
        if (!made)
            return false;
    }
}

int pipes_make(struct pipes *pipes, const char *root, const char *uuid, struct gs_error *err)
{
    char log[MPS_PATH_BYTES], shm[MPS_PATH_BYTES];
    if (!mps_path(root, uuid, "pipe", pipes->folder) || !mps_path(root, uuid, "log", log) ||
        !mps_path(root, uuid, "kept", pipes->kept) ||
        !mps_path(root, uuid, "trash", pipes->trash_path) || !mps_path(root, NULL, "shm", shm) ||
        strlen(pipes->folder) > MPS_PIPE_MAX)
        return gs_fail(err, GS_EINVAL, "%.60s/%.60s is too long a folder for a socket, or no name",
                       root, uuid);
    if (!make_folders(pipes->folder, FOLDER_MODE) || !make_folders(pipes->kept, 0700) ||
        !make_folders(pipes->trash_path, 0700) || !make_folders(log, 0755) ||
        !make_folders(shm, 01777))
        return gs_fail_errno(err, GS_EIO, errno, "%.100s cannot be made", pipes->folder);
    return 0;
}

static void throw_out(struct pipes *pipes, int folder, const char *name)
{
    if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
        trash_take(pipes->trash_path, folder, name);
}

/* The folder itself stays: containers have it mounted. */
static void clear_folder(struct pipes *pipes, const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            throw_out(pipes, dirfd(folder), entry->d_name);
    if (folder)
        closedir(folder);
}

void pipes_clear(struct pipes *pipes)
{
    clear_folder(pipes, pipes->folder);
    clear_folder(pipes, pipes->kept);
    memset(pipes->known, 0, sizeof(pipes->known));
}

void pipes_release(struct pipes *pipes)
{
    trash_release(&pipes->trash);
}

/* ---- sockets ---- */

static void path_of(const char *folder, const char *name, char ret[MPS_PATH_BYTES])
{
    snprintf(ret, MPS_PATH_BYTES, "%.200s/%s", folder, name);
}

/* Who listens there, though it says nothing: the kernel tells. Of which kind NVIDIA's socket is, it
 * does not say either. */
static bool is_of(pid_t daemon, const char *path)
{
    static const int kinds[] = {SOCK_STREAM, SOCK_SEQPACKET};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%.107s", path);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct ucred who;
        socklen_t len = sizeof(who);
        _cleanup_close_ int fd = socket(AF_UNIX, kinds[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 &&
            getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0)
            return who.pid > 0 && getpgid(who.pid) == daemon;
    }
    return false;
}

/* Linked first, and judged by that name, which nobody else can change. */
static void get_to_know(struct pipes *pipes, size_t i, pid_t daemon)
{
    char path[MPS_PATH_BYTES], kept[MPS_PATH_BYTES];
    struct stat st;
    path_of(pipes->folder, names[i], path);
    path_of(pipes->kept, names[i], kept);
    if (linkat(AT_FDCWD, path, AT_FDCWD, kept, 0) < 0)
        return;
    pipes->known[i] = lstat(kept, &st) == 0 && S_ISSOCK(st.st_mode) && is_of(daemon, kept);
    pipes->modes[i] = st.st_mode & 07777;
    if (!pipes->known[i])
        unlink(kept);
}

/* True: it has its name. */
static bool bring_back(struct pipes *pipes, size_t i)
{
    char path[MPS_PATH_BYTES], kept[MPS_PATH_BYTES];
    struct stat own, found;
    path_of(pipes->folder, names[i], path);
    path_of(pipes->kept, names[i], kept);
    assert(pipes->known[i]);
    if (lstat(kept, &own) < 0)
        return false;
    if ((own.st_mode & 07777) != pipes->modes[i])
        chmod(kept, pipes->modes[i]);
    bool there = lstat(path, &found) == 0;
    if (there && found.st_dev == own.st_dev && found.st_ino == own.st_ino)
        return true;
    if (there)
        throw_out(pipes, AT_FDCWD, path);
    bool back = linkat(AT_FDCWD, kept, AT_FDCWD, path, 0) == 0;
    gs_log(GS_LOG_WARN, "a client removed the daemon's socket", GS_STR("socket", path),
           GS_STR("it", back ? "is back" : strerror(errno)));
    return back;
}

/* A client may have locked the others out. */
static void open_folder(const struct pipes *pipes)
{
    struct stat st;
    if (lstat(pipes->folder, &st) == 0 && (st.st_mode & 07777) != FOLDER_MODE)
        chmod(pipes->folder, FOLDER_MODE);
}

int pipes_guard(struct pipes *pipes, pid_t daemon, struct gs_error *err)
{
    bool back = true;
    open_folder(pipes);
    for (size_t i = 0; i < PIPES_SOCKETS; i++) {
        if (!pipes->known[i])
            get_to_know(pipes, i, daemon);
        if (pipes->known[i])
            back = bring_back(pipes, i) && back;
    }
    trash_empty(&pipes->trash, pipes->trash_path);
    if (!pipes->known[0])
        return gs_fail(err, GS_EIO, "what its clients find is not its MPS daemon");
    return back ? 0 : gs_fail(err, GS_EIO, "its MPS daemon's socket was removed by a client");
}
