/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A bounded set of texts that were seen lately, e.g. UIDs of pods that ended. About the last
 * GS_RECENT_MAX are remembered, as hashes; the oldest make room. Not thread-safe.
 */
enum { GS_RECENT_MAX = 4096 };

struct gs_recent {
    uint64_t *ring; /* hashes of texts in small sets, newest first; 0: empty */
};

/* It is empty again, and may be used. */
void gs_recent_release(struct gs_recent *recent);
void gs_recent_add(struct gs_recent *recent, const char *text);
void gs_recent_remove(struct gs_recent *recent, const char *text);
bool gs_recent_has(const struct gs_recent *recent, const char *text);
