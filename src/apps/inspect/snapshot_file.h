/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_SNAPSHOT_FILE_H
#define GPUSHARE_APPS_INSPECT_SNAPSHOT_FILE_H

#include "inspect/common.h"

/* Tells what changed from one file of `snapshot` to another, or, with new_path NULL, to the cluster
 * as it is. GS_EINVAL: it is no snapshot. */
int snapshot_compare(const struct common *common, const char *old_path, const char *new_path,
                     enum format format, struct gs_error *err);

#endif
