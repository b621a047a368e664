/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shared object to be preloaded: the folder DMEM_SHIM_ROOT is a cgroup v2 file system to the
 * program, in which a line written to a dmem.max stands in place of that region's, as the kernel
 * has it (kernel/cgroup/dmem.c), and EINVAL is the answer to a region that the file has not.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

static const char file[] = "/dmem.max";

static int is_below(const char *path)
{
    const char *root = getenv("DMEM_SHIM_ROOT");
    return root && strncmp(path, root, strlen(root)) == 0;
}

int statfs(const char *path, struct statfs *ret)
{
    int (*real)(const char *, struct statfs *) = dlsym(RTLD_NEXT, "statfs");
    int result = real(path, ret);
    if (result == 0 && is_below(path))
        ret->f_type = CGROUP2_SUPER_MAGIC;
    return result;
}

int statfs64(const char *path, struct statfs64 *ret)
{
    int (*real)(const char *, struct statfs64 *) = dlsym(RTLD_NEXT, "statfs64");
    int result = real(path, ret);
    if (result == 0 && is_below(path))
        ret->f_type = CGROUP2_SUPER_MAGIC;
    return result;
}

static int replace(const char *path, const char *line, size_t len)
{
    char text[4096], name[4200];
    size_t key = strcspn(line, " ");
    FILE *old = fopen(path, "re");
    snprintf(name, sizeof(name), "%s.new", path);
    FILE *made = old ? fopen(name, "we") : NULL;
    int found = 0;
    while (made && fgets(text, sizeof(text), old)) {
        int same = strncmp(text, line, key) == 0 && text[key] == ' ';
        found |= same;
        if (same)
            fprintf(made, "%.*s\n", (int)len, line);
        else
            fputs(text, made);
    }
    if (old)
        fclose(old);
    if (!made || fclose(made) != 0 || !found) {
        unlink(name);
        errno = EINVAL;
        return -1;
    }
    return rename(name, path);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    char link[64], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t got = readlink(link, path, sizeof(path) - 1);
    path[got > 0 ? got : 0] = '\0';
    if (got < (ssize_t)strlen(file) || strcmp(path + got - strlen(file), file) != 0 ||
        !is_below(path))
        return real(fd, bytes, len);
    size_t line = len;
    while (line && ((const char *)bytes)[line - 1] == '\n')
        line--;
    return replace(path, bytes, line) < 0 ? -1 : (ssize_t)len;
}
