/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SIM_MANIFEST_H
#define GPUSHARE_SIM_MANIFEST_H

#include <stddef.h>

#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "gpushare/sim/cluster.h"

/* Manifests (codec/manifest.h) of what the simulator's cluster knows. */

/* Takes one object, as compact JSON *borrowed for the call*; -1 and *err end the reading. */
typedef int gs_sim_take(void *ctx, enum gs_sim_kind kind, struct gs_slice json,
                        struct gs_error *err);

/*
 * Calls each for every object; stops and returns -1 when each does. The errors of
 * gs_manifest_parse(); GS_EINVAL: a kind that the cluster does not know.
 */
int gs_sim_manifest_parse(struct gs_slice text, const char *name, gs_sim_take *each, void *ctx,
                          struct gs_error *err);

/* The same for a file; "-" is standard input. GS_ENOENT, GS_EIO. */
int gs_sim_manifest_read(const char *path, gs_sim_take *each, void *ctx, struct gs_error *err);

/* The same for the files that an option names, apart by commas; none for NULL. GS_EINVAL: one of
 * the names is too long, and the message says of which option. */
int gs_sim_manifest_read_listed(const char *option, const char *paths, gs_sim_take *each, void *ctx,
                                struct gs_error *err);

#endif
