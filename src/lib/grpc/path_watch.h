/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/grpc/loop.h"

/* Reports when a path is created or removed: kubelet.sock, or our own socket, which a starting
 * kubelet deletes. Uses inotify(7) on the folder; a missing folder is polled once a second. Loop
 * thread only. */
struct gs_path_watch;

enum gs_path_event {
    GS_PATH_CREATED, /* created or moved here, or exists at the start. May be reported twice for one
                        file */
    GS_PATH_REMOVED, /* removed */
};

typedef void gs_path_watch_fn(void *ctx, enum gs_path_event event);

/* path is *copied*. fn is called from the loop only, never from within this function. GS_EINVAL: no
 * file name in path; GS_EIO: no inotify instance left (fs.inotify.max_user_instances). */
int gs_path_watch_new(struct gs_loop *loop, const char *path, gs_path_watch_fn *fn, void *ctx,
                      struct gs_path_watch **ret, struct gs_error *err);

/* Also from within fn. */
void gs_path_watch_free(struct gs_path_watch *watch);
