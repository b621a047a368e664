/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"

/*
 * Files of Kubernetes objects as `kubectl apply -f` takes them: YAML documents separated by "---",
 * or JSON; a List, or a PodList, counts as its items.
 */

enum {
    GS_MANIFEST_BYTES_MAX = 256 << 20,
    GS_MANIFEST_DEPTH_MAX = 64,
};

/* Takes one object: its apiVersion and kind, "" when absent, and all of it as compact JSON, all
 * *borrowed*; -1 and *err end the reading, and its place is put before the words. */
typedef int gs_manifest_take(void *ctx, const char *version, const char *kind, struct gs_slice json,
                             struct gs_error *err);

/* Calls each for every object; stops and returns -1 when each does. name stands for the file in
 * messages. GS_EINVAL: "NAME:LINE: what"; GS_ETOOBIG. */
int gs_manifest_parse(struct gs_slice text, const char *name, gs_manifest_take *each, void *ctx,
                      struct gs_error *err);

/* The same for a file; "-" is standard input. GS_ENOENT, GS_EIO. */
int gs_manifest_read(const char *path, gs_manifest_take *each, void *ctx, struct gs_error *err);
