/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The two things about the cgroup file system that a tree of plain files cannot show: what kind of
 * file system it is, and that one write changes one line of a file. Tests plug in their own, also
 * to let writes fail, or lie.
 */
struct gs_limit_host {
    void *ctx;
    /* 0: path lies on cgroup v2 (statfs(2)); else an errno, EMEDIUMTYPE for another file system. */
    int (*check)(void *ctx, const char *path);
    /* One open(2) and one write(2) of the whole text; 0 or an errno. */
    int (*put)(void *ctx, const char *path, const char *text, size_t len);
    /* 0: a write to that file would be let through (access(2)); else an errno. Nothing is written.
     */
    int (*may_put)(void *ctx, const char *path);
};

/* The kernel's. */
extern const struct gs_limit_host gs_limit_host_kernel;
