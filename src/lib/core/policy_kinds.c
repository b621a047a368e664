/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_kinds.h"

#include "gpushare/base/index.h"

/* A free one, else the oldest of the namespace that has most, the newcomer counted as had. */
static struct gs_ask_kind_row *make_room(struct gs_kinds *kinds, uint64_t owner)
{
    struct gs_ask_kind_row *victim = NULL;
    uint32_t most = 0;
    for (struct gs_ask_kind_row *at = kinds->rows; at < kinds->rows + GS_KINDS_MAX; at++) {
        uint32_t has = at->owner == owner;
        if (!at->number)
            return at;
        for (const struct gs_ask_kind_row *of = kinds->rows; of < kinds->rows + GS_KINDS_MAX; of++)
            has += of->number && of->owner == at->owner;
        if (has > most || (has == most && at->used < victim->used)) {
            victim = at;
            most = has;
        }
    }
    return victim;
}

static struct gs_ask_kind_row *find_row(struct gs_kinds *kinds, uint64_t hash)
{
    for (uint32_t i = 0; i < GS_KINDS_MAX; i++) {
        if (kinds->rows[i].hash == hash && kinds->rows[i].number)
            return &kinds->rows[i];
    }
    return NULL;
}

uint64_t gs_kinds_find(struct gs_kinds *kinds, bool leaving, const struct gs_ask *ask,
                       uint32_t *ret_row)
{
    const uint64_t hash = gs_ask_hash(ask) + leaving; /* a policy looks at nothing else */
    pthread_mutex_lock(&kinds->lock);
    struct gs_ask_kind_row *row = find_row(kinds, hash);
    if (!row) {
        const uint64_t owner = ask->ns ? gs_hash_text(ask->ns) : 0;
        row = make_room(kinds, owner);
        *row = (struct gs_ask_kind_row){hash, ++kinds->numbers, owner, 0};
    }
    row->used = ++kinds->looks;
    *ret_row = (uint32_t)(row - kinds->rows);
    const uint64_t number = row->number;
    pthread_mutex_unlock(&kinds->lock);
    return number;
}
