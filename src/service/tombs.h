/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_TOMBS_H
#define GPUSHARE_SERVICE_TOMBS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * UIDs of pods that ended lately. A UID never comes back, so a late or repeated event about one
 * must not charge it again. About the last GS_TOMBS are remembered; a full list forgets all,
 * because the list is the truth (also after a restored etcd backup). Not thread-safe: guarded by
 * the store.
 */
enum { GS_TOMBS = 4096 };

struct gs_tombs {
    uint64_t *ring; /* hashes of UIDs, oldest overwritten; 0: empty */
    uint32_t next;
};

void gs_tombs_release(struct gs_tombs *tombs);
void gs_tombs_add(struct gs_tombs *tombs, const char *uid);
void gs_tombs_remove(struct gs_tombs *tombs, const char *uid);
bool gs_tombs_has(const struct gs_tombs *tombs, const char *uid);
void gs_tombs_clear(struct gs_tombs *tombs);

#endif
