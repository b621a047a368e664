/* SPDX-License-Identifier: Apache-2.0 */
#include "tombs.h"

#include <stdlib.h>
#include <string.h>

/*
 * Looked at once per event of a pod that would be charged anew, so a scan of 4,096 words would do;
 * a UID's place follows from its hash, with a few neighbours, which is cheaper still and forgets
 * the oldest of a neighbourhood instead of the oldest of all.
 */
enum { WAYS = 8, SETS = GS_TOMBS / WAYS };

static uint64_t hash_of(const char *uid)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *uid; uid++)
        hash = (hash ^ (unsigned char)*uid) * 0x100000001b3u;
    hash ^= hash >> 29;
    return hash ? hash : 1;
}

void gs_tombs_release(struct gs_tombs *tombs)
{
    free(tombs->ring);
    *tombs = (struct gs_tombs){0};
}

void gs_tombs_add(struct gs_tombs *tombs, const char *uid)
{
    if (gs_tombs_has(tombs, uid))
        return;
    if (!tombs->ring)
        tombs->ring = calloc(GS_TOMBS, sizeof(*tombs->ring));
    if (!tombs->ring)
        return; /* a protection against odd event orders, not a promise */
    uint64_t hash = hash_of(uid);
    tombs->ring[hash % SETS * WAYS + tombs->next++ % WAYS] = hash;
}

/* The place of a UID, or NULL. */
static uint64_t *find(const struct gs_tombs *tombs, const char *uid)
{
    if (!tombs->ring)
        return NULL;
    uint64_t hash = hash_of(uid);
    uint64_t *set = &tombs->ring[hash % SETS * WAYS];
    for (int i = 0; i < WAYS; i++) {
        if (set[i] == hash)
            return &set[i];
    }
    return NULL;
}

bool gs_tombs_has(const struct gs_tombs *tombs, const char *uid)
{
    return find(tombs, uid) != NULL;
}

void gs_tombs_remove(struct gs_tombs *tombs, const char *uid)
{
    uint64_t *at = find(tombs, uid);
    if (at)
        *at = 0;
}

void gs_tombs_clear(struct gs_tombs *tombs)
{
    if (tombs->ring)
        memset(tombs->ring, 0, GS_TOMBS * sizeof(*tombs->ring));
}
