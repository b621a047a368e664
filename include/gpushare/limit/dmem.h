/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"

/*
 * The text of the files of the kernel's dmem controller: dmem.capacity, dmem.current (root and
 * below), dmem.max, and since 7.3 dmem.peak (below the root). One line per region, all registered
 * regions always listed:
 *
 *   nvidia/0000:41:00/vidmem 8589934592
 *   drm/0000:79:00.0/vram max
 *
 * Source: Documentation/admin-guide/cgroup-v2.rst, "DMEM"; kernel/cgroup/dmem.c. Pure, fuzzed.
 */

/* "max": no limit. The kernel reads back "max" for everything from 2^63 on. */
#define GS_DMEM_NO_LIMIT UINT64_MAX

enum {
    GS_DMEM_LINES_MAX = 256,   /* regions of a host; a GPU has one, or one per tile */
    GS_DMEM_REGION_BYTES = 128 /* of a region's name, its NUL included */
};

struct gs_dmem_line {
    struct gs_slice region; /* *borrowed* from the text */
    uint64_t bytes;         /* or GS_DMEM_NO_LIMIT */
};

/* The lines of a whole file, in its order; an empty one has none. lines has room for
 * GS_DMEM_LINES_MAX. GS_EPROTO: not such a text; GS_ETOOBIG: more lines than that. */
int gs_dmem_parse(struct gs_slice text, struct gs_dmem_line *lines, size_t *ret_count,
                  struct gs_error *err);

/* The line of that region; NULL without one. *Borrowed* from lines. */
const struct gs_dmem_line *gs_dmem_find(const struct gs_dmem_line *lines, size_t count,
                                        const char *region);

/* What one write(2) to dmem.max is: "<region> <decimal>\n", or "max". One region per write: the
 * kernel promises no more. */
enum { GS_DMEM_WRITE_BYTES = GS_DMEM_REGION_BYTES + 24 };
void gs_dmem_format(const char *region, uint64_t bytes, char out[GS_DMEM_WRITE_BYTES]);
