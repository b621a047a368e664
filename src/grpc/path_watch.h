/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_GRPC_PATH_WATCH_H
#define GPUSHARE_GRPC_PATH_WATCH_H

#include "gpushare/base/error.h"
#include "gpushare/grpc/loop.h"

/*
 * Tells when one path comes and goes: kubelet.sock, or our own socket, which a starting kubelet
 * deletes. inotify(7) on the folder; where the folder is missing, or vanishes, it is looked for
 * once a second. Loop thread only.
 */
struct gs_path_watch;

enum gs_path_event {
    GS_PATH_CREATED, /* it is there, newly made or moved here; also once at the start if it exists.
                        May come twice for one file: act idempotently */
    GS_PATH_REMOVED, /* it is gone */
};

typedef void gs_path_watch_fn(void *ctx, enum gs_path_event event);

/* path is *copied*. fn is called from the loop only, never from within this function. GS_EINVAL: no
 * file name in path; GS_EIO: no inotify instance left (fs.inotify.max_user_instances). */
int gs_path_watch_new(struct gs_loop *loop, const char *path, gs_path_watch_fn *fn, void *ctx,
                      struct gs_path_watch **ret, struct gs_error *err);

/* Also from within fn. */
void gs_path_watch_free(struct gs_path_watch *watch);

#endif
