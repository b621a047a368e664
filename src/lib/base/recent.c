/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/recent.h"

#include <stdlib.h>

#include "gpushare/base/index.h"

/* A text's set follows from its hash, newest first: the oldest of these is forgotten, not the
 * oldest of all. */
enum { WAYS = 8, SETS = GS_RECENT_MAX / WAYS };

static uint64_t hash_of(const char *text)
{
    uint64_t hash = gs_hash_text(text);
    return hash ? hash : 1;
}

void gs_recent_release(struct gs_recent *recent)
{
    free(recent->ring);
    *recent = (struct gs_recent){0};
}

void gs_recent_add(struct gs_recent *recent, const char *text)
{
    if (gs_recent_has(recent, text))
        return;
    if (!recent->ring)
        recent->ring = calloc(GS_RECENT_MAX, sizeof(*recent->ring));
    if (!recent->ring)
        return; /* a protection against odd event orders, not a promise */
    uint64_t hash = hash_of(text);
    uint64_t *set = &recent->ring[hash % SETS * WAYS];
    int free_at = 0;
    while (free_at < WAYS - 1 && set[free_at])
        free_at++;
    memmove(set + 1, set, (size_t)free_at * sizeof(*set));
    set[0] = hash;
}

/* The place of a UID, or NULL. */
static uint64_t *find(const struct gs_recent *recent, const char *text)
{
    if (!recent->ring)
        return NULL;
    uint64_t hash = hash_of(text);
    uint64_t *set = &recent->ring[hash % SETS * WAYS];
    for (int i = 0; i < WAYS; i++) {
        if (set[i] == hash)
            return &set[i];
    }
    return NULL;
}

bool gs_recent_has(const struct gs_recent *recent, const char *text)
{
    return find(recent, text) != NULL;
}

void gs_recent_remove(struct gs_recent *recent, const char *text)
{
    uint64_t *at = find(recent, text);
    if (at)
        *at = 0;
}
