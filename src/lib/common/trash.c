/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WORK_MAX = 1000, /* entries looked at by one call */
    TRASH_PATH_BYTES = 512,
};

/* A folder's rename replaces one that is empty: the name is nobody else's. */
bool trash_take(const char *path, int from, const char *name)
{
    char own[TRASH_PATH_BYTES];
    snprintf(own, sizeof(own), "%.400s/XXXXXX", path);
    if (!mkdtemp(own))
        return false;
    if (renameat(from, name, AT_FDCWD, own) == 0)
        return true;
    int why = errno;
    rmdir(own);
    errno = why;
    return false;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Folders in it come to lie beside it, so that depth costs no descriptors. */
static bool remove_entry(const char *path, int folder, const char *name)
{
    return unlinkat(folder, name, 0) == 0 || unlinkat(folder, name, AT_REMOVEDIR) == 0 ||
           trash_take(path, folder, name);
}

/* True: it is gone. */
static bool remove_folder(struct trash *trash, const char *path, const char *name, int *work)
{
    const struct dirent *entry;
    int at = dirfd(trash->pass);
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !dir)
        close(fd);
    while (dir && *work > 0 && (entry = readdir(dir)))
        if (!is_dots(entry->d_name)) {
            --*work;
            trash->moved |= remove_entry(path, fd, entry->d_name);
        }
    if (dir)
        closedir(dir);
    return unlinkat(at, name, AT_REMOVEDIR) == 0;
}

/* True: over, there is nothing more to see in this one. */
static bool pass(struct trash *trash, const char *path, int *work)
{
    const struct dirent *entry = NULL;
    if (!trash->pass)
        *trash = (struct trash){.pass = opendir(path), .left = trash->left};
    while (trash->pass && *work > 0 && (entry = readdir(trash->pass)))
        if (!is_dots(entry->d_name)) {
            --*work;
            if (remove_folder(trash, path, entry->d_name, work))
                trash->moved = true;
            else
                trash->seen++;
        }
    bool over = !trash->pass || !entry;
    if (over || trash->seen > trash->left)
        trash->left = trash->seen;
    if (over)
        trash_release(trash);
    return over;
}

/* What a pass moves out of a folder is for the next one. */
bool trash_empty(struct trash *trash, const char *path)
{
    int work = WORK_MAX;
    while (pass(trash, path, &work) && trash->moved && work > 0)
        ;
    return trash->pass || trash->moved;
}

void trash_release(struct trash *trash)
{
    if (trash->pass)
        closedir(trash->pass);
    trash->pass = NULL;
}
