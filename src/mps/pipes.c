/* SPDX-License-Identifier: Apache-2.0 */
#include "mps/pipes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"

/* The first is the one that clients and the tool need; others a daemon may have. */
static const char *const names[PIPES_SOCKETS] = {"control", "control_privileged"};

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
    char log[MPS_PATH_BYTES];
    if (!mps_path(root, uuid, "pipe", pipes->folder) || !mps_path(root, uuid, "log", log) ||
        !mps_path(root, uuid, "kept", pipes->kept) || strlen(pipes->folder) > MPS_PIPE_MAX)
        return gs_fail(
            err, GS_EINVAL,
            "%.60s/%.60s is not valid as a folder of sockets: it is too long, or not a file name",
            root, uuid);
    if (!make_folders(pipes->folder, 0755) || !make_folders(pipes->kept, 0700) ||
        !make_folders(log, 0755))
        return gs_fail_errno(err, GS_EIO, errno, "cannot create %.100s", pipes->folder);
    return 0;
}

int pipes_mount_shm(const char *root, bool *ret_mounted, struct gs_error *err)
{
    char shm[MPS_PATH_BYTES];
    struct stat above, own;
    *ret_mounted = false;
    if (!mps_path(root, NULL, "shm", shm) || !make_folders(shm, 01777) || stat(root, &above) < 0 ||
        stat(shm, &own) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot create %.100s/shm", root);
    if (own.st_dev != above.st_dev)
        return 0;
    if (mount("gpushare-shm", shm, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, PIPES_SHM) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "cannot mount a file system of its own at %.100s",
                             shm);
    *ret_mounted = true;
    return 0;
}

void pipes_unmount_shm(const char *root)
{
    char shm[MPS_PATH_BYTES];
    if (mps_path(root, NULL, "shm", shm))
        umount2(shm, MNT_DETACH);
}

/* The folder itself stays: containers have it mounted. */
static void clear_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}

void pipes_clear(struct pipes *pipes)
{
    clear_folder(pipes->folder);
    clear_folder(pipes->kept);
    memset(pipes->known, 0, sizeof(pipes->known));
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
    if (!pipes->known[i])
        unlink(kept);
}

int pipes_find(struct pipes *pipes, pid_t daemon, struct gs_error *err)
{
    for (size_t i = 0; i < PIPES_SOCKETS; i++)
        if (!pipes->known[i])
            get_to_know(pipes, i, daemon);
    return pipes->known[0]
               ? 0
               : gs_fail(err, GS_EIO, "the socket that MPS clients find is not the MPS daemon's");
}
