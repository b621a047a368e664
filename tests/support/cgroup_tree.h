/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "remove_tree.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpushare/limit/dmem.h"
#include "limit/host.h"

/*
 * A tree of plain files that looks like a mount of cgroup v2 with dmem, and a host whose writes to
 * it do what the kernel's do: one line changes, unknown regions are EINVAL, "+dmem" makes the files
 * of the folders below, and is EBUSY in one with processes. Writes can be made to fail, or to lie.
 */
#define REGION_0 "nvidia/0000:41:00/vidmem"
#define REGION_1 "nvidia/0000:c1:00/vidmem"
#define GIB      (1ULL << 30)

struct cgroup_tree {
    char mount[64];
    struct gs_limit_host host;
    int check_error;    /* what the mount is, 0: cgroup v2 */
    int may_put_error;  /* of the question whether writes to it are let through */
    int put_error;      /* of the next writes to dmem.max */
    int put_errors;     /* how many of them fail; -1: all */
    bool lies;          /* they succeed and change nothing */
    const char *locked; /* folders with this in their path are read-only */
    int writes;         /* to dmem.max, tried */
    int enablings;      /* to cgroup.subtree_control, tried */
};

static inline void tree_path(const struct cgroup_tree *tree, const char *folder, const char *file,
                             char *out, size_t size)
{
    snprintf(out, size, "%s%s%s%s", tree->mount, folder, file ? "/" : "", file ? file : "");
}

static inline void put_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static inline void get_text(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "re");
    out[0] = '\0';
    if (!file)
        return;
    out[fread(out, 1, size - 1, file)] = '\0';
    fclose(file);
}

static inline void tree_put(const struct cgroup_tree *tree, const char *folder, const char *file,
                            const char *text)
{
    char path[1024];
    tree_path(tree, folder, file, path, sizeof(path));
    put_text(path, text);
}

static inline const char *tree_get(const struct cgroup_tree *tree, const char *folder,
                                   const char *file)
{
    static char text[4096];
    char path[1024];
    tree_path(tree, folder, file, path, sizeof(path));
    get_text(path, text, sizeof(text));
    return text;
}

static inline bool tree_has(const struct cgroup_tree *tree, const char *folder, const char *file)
{
    char path[1024];
    tree_path(tree, folder, file, path, sizeof(path));
    return access(path, F_OK) == 0;
}

/* Where the folder above passes dmem on, the new one has its files. */
static inline void tree_mkdir(const struct cgroup_tree *tree, const char *folder)
{
    char path[1024], above[512];
    tree_path(tree, folder, NULL, path, sizeof(path));
    assert_int_equal(mkdir(path, 0755), 0);
    tree_put(tree, folder, "cgroup.controllers", "memory pids dmem\n");
    tree_put(tree, folder, "cgroup.subtree_control", "memory pids\n");
    snprintf(above, sizeof(above), "%.*s", (int)(strrchr(folder, '/') - folder), folder);
    if (!strstr(tree_get(tree, above, "cgroup.subtree_control"), "dmem"))
        return;
    tree_put(tree, folder, "dmem.max", REGION_0 " max\n" REGION_1 " max\n");
    tree_put(tree, folder, "dmem.current", REGION_0 " 0\n" REGION_1 " 0\n");
}

/* "/a/b/c": each level that is missing, dmem passed on where `enabled`. */
static inline void tree_mkdirs(const struct cgroup_tree *tree, const char *folder, bool enabled)
{
    char part[512];
    for (const char *at = folder; at; at = strchr(at + 1, '/')) {
        const char *end = strchr(at + 1, '/');
        snprintf(part, sizeof(part), "%.*s", (int)(end ? end - folder : (long)strlen(folder)),
                 folder);
        if (!tree_has(tree, part, NULL))
            tree_mkdir(tree, part);
        if (enabled && end)
            tree_put(tree, part, "cgroup.subtree_control", "memory pids dmem\n");
    }
}

static inline int change_line(const char *path, const char *text)
{
    char old[4096], name[160], new[4096] = "";
    get_text(path, old, sizeof(old));
    size_t len = strcspn(text, " ");
    snprintf(name, sizeof(name), "%.*s ", (int)len, text);
    char *line = strstr(old, name);
    if (!line)
        return EINVAL;
    const char *rest = strchr(line, '\n') + 1;
    snprintf(new, sizeof(new), "%.*s%s%s", (int)(line - old), old, text, rest);
    put_text(path, new);
    return 0;
}

static inline int host_check(void *ctx, const char *path)
{
    const struct cgroup_tree *tree = ctx;
    return tree->check_error;
}

static inline int enable_in(struct cgroup_tree *tree, const char *path)
{
    char folder[1024], command[3072];
    tree->enablings++;
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
    snprintf(command, sizeof(command), "test -s %s/cgroup.procs", folder);
    if (system(command) == 0)
        return EBUSY;
    put_text(path, "memory pids dmem\n");
    /* what the kernel does to every folder below */
    snprintf(command, sizeof(command),
             "for d in %s/*/; do printf '%s max\\n%s max\\n' >$d/dmem.max; done", folder, REGION_0,
             REGION_1);
    return system(command) == 0 ? 0 : EIO;
}

static inline int host_put(void *ctx, const char *path, const char *text, size_t len)
{
    struct cgroup_tree *tree = ctx;
    if (tree->locked && strstr(path, tree->locked))
        return EROFS;
    if (strstr(path, "/cgroup.subtree_control"))
        return tree->put_error && tree->put_errors ? tree->put_error : enable_in(tree, path);
    tree->writes++;
    if (tree->put_error && tree->put_errors) {
        tree->put_errors -= tree->put_errors > 0;
        return tree->put_error;
    }
    if (access(path, F_OK) != 0)
        return ENOENT;
    return tree->lies ? 0 : change_line(path, text);
}

static inline int host_may_put(void *ctx, const char *path)
{
    const struct cgroup_tree *tree = ctx;
    if (tree->locked && strstr(path, tree->locked))
        return EROFS;
    return access(path, F_OK) == 0 ? tree->may_put_error : ENOENT;
}

static inline void tree_make(struct cgroup_tree *tree)
{
    *tree = (struct cgroup_tree){.mount = "/tmp/gs-cgroup-XXXXXX"};
    assert_non_null(mkdtemp(tree->mount));
    tree->host = (struct gs_limit_host){tree, host_check, host_put, host_may_put};
    tree_put(tree, "", "cgroup.controllers", "cpu memory pids dmem\n");
    tree_put(tree, "", "cgroup.subtree_control", "memory pids dmem\n");
    tree_put(tree, "", "dmem.capacity", REGION_0 " 17179869184\n" REGION_1 " 17179869184\n");
}

static inline void tree_rmdir(const struct cgroup_tree *tree, const char *folder)
{
    char path[1024];
    tree_path(tree, folder, NULL, path, sizeof(path));
    remove_tree(path);
}
