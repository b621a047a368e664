/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "gpushare/base/error.h"

/*
 * A listening unix socket with one owner: a socket is only removed when nobody answers on it. Of
 * two that begin in the same moment one may lose its socket to the other; who looks at its path
 * (path_watch.h) sees that and is refused from then on.
 */
struct gs_unix_listener {
    char *path;
    int fd;
    dev_t dev; /* identifies the socket */
    ino_t ino;
};

#define GS_UNIX_LISTENER_NONE ((struct gs_unix_listener){.fd = -1})

/* Opens PATH with mode 0600, non-blocking, listening. *listener holds nothing, or what was opened
 * before: the same path, still in place, is left alone; else the old one is closed after the new
 * one stands. Untouched on failure: GS_EEXIST, GS_EINVAL, GS_EIO, GS_ENOMEM. */
int gs_unix_listener_open(struct gs_unix_listener *listener, const char *path,
                          struct gs_error *err);

/* Removes the socket if it is still ours. Harmless when nothing is open. */
void gs_unix_listener_close(struct gs_unix_listener *listener);

/* A non-blocking connected socket in *ret_fd; returns 0, or an errno (EAGAIN: its queue is full;
 * ENAMETOOLONG). */
int gs_unix_connect(const char *path, int *ret_fd);
