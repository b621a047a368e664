/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/port/gpu_source.h"

/*
 * GPUs that somebody lists, for machines without any: tests, demonstrations, operators who try.
 */

/*
 * From a flag: "2x16384MiB,1x80GiB". Each part is COUNTxSIZE or SIZE, SIZE a number with MiB or
 * GiB; indices count up, UUIDs are "GPU-fake-<idx>". Never changes. GS_EINVAL names the part that
 * is wrong; GS_ENOMEM.
 */
int gs_gpus_from_spec(const char *spec, struct gs_gpu_source *ret, struct gs_error *err);

/*
 * From a file in the form of the inventory annotation (codec/inventory.h); memMiB counts, and mem
 * in the file's unit where it is missing; "vendor" names another than NVIDIA (model/vendor.h). Read
 * again when the file changes: a GPU with
 * "healthy":false takes no new pods. A file that cannot be read or understood is an error of
 * read(), and what was known before stays the caller's to keep.
 */
int gs_gpus_from_file(const char *path, struct gs_gpu_source *ret, struct gs_error *err);

/* What programs say of the GPUs; all may be NULL: those of the driver. */
struct gs_gpu_options {
    const char *fake_gpus, *gpu_file; /* not both */
    const char *nvml_library;
};

/* The source that these name; nothing is read yet. Borrowed for its life. Errors as above, and as
 * gs_gpus_from_driver(). */
int gs_gpus_open(const struct gs_gpu_options *options, struct gs_gpu_source *ret,
                 struct gs_error *err);
