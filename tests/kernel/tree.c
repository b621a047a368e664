/* SPDX-License-Identifier: Apache-2.0 */
#include "checks.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT MOUNT "/kubepods.slice"

int file_put(const char *folder, const char *file, const char *text)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = write(fd, text, strlen(text)) < 0 ? errno : 0;
    close(fd);
    return error;
}

bool file_has(const char *folder, const char *file, const char *text)
{
    char path[1024], all[16384];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, all, sizeof(all) - 1);
    if (fd >= 0)
        close(fd);
    all[got > 0 ? got : 0] = '\0';
    return strstr(all, text) != NULL;
}

static char *next_path(void)
{
    static char paths[16][GS_CGROUP_PATH_BYTES];
    static unsigned turn;
    return paths[turn++ % 16];
}

static void folder_make(const char *path)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        check(false, "mkdir %s: %s", path, strerror(errno));
}

static void pass_on(const char *folder)
{
    if (!file_has(MOUNT, "cgroup.controllers", "dmem"))
        return;
    int error = file_put(folder, "cgroup.subtree_control", "+dmem");
    if (error)
        check(false, "+dmem in %s: %s", folder, strerror(error));
}

const char *pod_make(const char *uid, enum gs_qos qos)
{
    char folder[GS_CGROUP_PATH_BYTES], *path = next_path();
    pass_on(MOUNT);
    folder_make(ROOT);
    pass_on(ROOT);
    gs_pod_tree_folder(ROOT, qos, folder);
    folder_make(folder);
    pass_on(folder);
    gs_pod_tree_path(ROOT, uid, qos, path, NULL);
    folder_make(path);
    return path;
}

const char *container_make(const char *pod, const char *name, bool runc)
{
    char *path = next_path();
    if (runc)
        pass_on(pod);
    snprintf(path, GS_CGROUP_PATH_BYTES, "%s/cri-containerd-%s.scope", pod, name);
    folder_make(path);
    return path;
}

static int remove_folder(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    return kind == FTW_DP && rmdir(path) < 0 ? -1 : 0;
}

void folder_remove(const char *path)
{
    if (nftw(path, remove_folder, 8, FTW_DEPTH | FTW_PHYS) < 0)
        check(false, "rmdir %s: %s", path, strerror(errno));
}
