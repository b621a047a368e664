/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_kinds.h"

#include <string.h>

#include "gpushare/base/index.h"

static size_t lists_of(const struct gs_ask *ask, struct gs_slice lists[4])
{
    size_t bytes = 0;
    lists[0] = ask->model;
    lists[1] = ask->model_deny;
    lists[2] = ask->uuid;
    lists[3] = ask->uuid_deny;
    for (int i = 0; i < 4; i++)
        bytes += lists[i].len;
    return bytes;
}

static struct gs_ask_kind kind_of(bool leaving, const struct gs_ask *ask,
                                  const struct gs_slice lists[4])
{
    struct gs_ask_kind kind;
    memset(&kind, 0, sizeof(kind)); /* it is compared as bytes */
    kind.cpu_milli = ask->cpu_milli;
    kind.units = ask->units;
    kind.gpu_count = ask->gpu_count;
    kind.cores_pct = ask->cores_pct;
    kind.leaving = leaving;
    for (int i = 0; i < 4; i++)
        kind.list_bytes[i] = (uint32_t)lists[i].len;
    return kind;
}

static uint64_t hash_of(const struct gs_ask_kind *kind, const struct gs_slice lists[4])
{
    uint64_t hash = gs_hash_bytes(kind, sizeof(*kind));
    for (int i = 0; i < 4; i++) {
        if (lists[i].len)
            hash = hash * 31 + gs_hash_bytes(lists[i].at, lists[i].len);
    }
    return hash;
}

static bool same_lists(const char *text, const struct gs_slice lists[4])
{
    for (int i = 0; i < 4; i++) {
        if (lists[i].len && memcmp(text, lists[i].at, lists[i].len) != 0)
            return false;
        text += lists[i].len;
    }
    return true;
}

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

static struct gs_ask_kind_row *find(struct gs_kinds *kinds, const struct gs_ask_kind *kind,
                                    uint64_t hash, const struct gs_slice lists[4])
{
    for (uint32_t i = 0; i < GS_KINDS_MAX; i++) {
        struct gs_ask_kind_row *at = &kinds->rows[i];
        if (kinds->hashes[i] == hash && at->number && memcmp(&at->kind, kind, sizeof(*kind)) == 0 &&
            same_lists(at->text, lists))
            return at;
    }
    return NULL;
}

static struct gs_ask_kind_row *add(struct gs_kinds *kinds, const struct gs_ask_kind *kind,
                                   uint64_t hash, const struct gs_slice lists[4], uint64_t owner)
{
    struct gs_ask_kind_row *row = make_room(kinds, owner);
    char *text = row->text;
    kinds->hashes[row - kinds->rows] = hash;
    row->kind = *kind;
    row->owner = owner;
    row->number = ++kinds->numbers;
    for (int i = 0; i < 4; i++) {
        if (lists[i].len)
            memcpy(text, lists[i].at, lists[i].len);
        text += lists[i].len;
    }
    return row;
}

uint64_t gs_kinds_find(struct gs_kinds *kinds, bool leaving, const struct gs_ask *ask,
                       uint32_t *ret_row)
{
    struct gs_slice lists[4];
    if (lists_of(ask, lists) > GS_KIND_TEXT_MAX)
        return 0;
    const struct gs_ask_kind kind = kind_of(leaving, ask, lists);
    const uint64_t hash = hash_of(&kind, lists);
    pthread_mutex_lock(&kinds->lock);
    struct gs_ask_kind_row *row = find(kinds, &kind, hash, lists);
    if (!row)
        row = add(kinds, &kind, hash, lists, ask->ns ? gs_hash_text(ask->ns) : 0);
    row->used = ++kinds->looks;
    *ret_row = (uint32_t)(row - kinds->rows);
    const uint64_t number = row->number;
    pthread_mutex_unlock(&kinds->lock);
    return number;
}
