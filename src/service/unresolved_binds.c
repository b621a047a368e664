/* SPDX-License-Identifier: Apache-2.0 */
#include "unresolved_binds.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "gpushare/base/index.h"

#define LOOK_EVERY_NS (1 * GS_NS_PER_S)

struct gs_unresolved_bind {
    uint64_t ns;      /* hash of the namespace */
    int64_t until_ns; /* afterwards an unbound pod may be undone */
    int64_t next_look_ns;
    uint32_t repetitions; /* under way: they may succeed too */
    UT_hash_handle hh;
    char uid[];
};

static struct gs_unresolved_bind *find(const struct gs_unresolved_binds *binds, const char *uid)
{
    struct gs_unresolved_bind *one;
    HASH_FIND_STR(binds->all, uid, one);
    return one;
}

void gs_unresolved_binds_release(struct gs_unresolved_binds *binds)
{
    while (binds->all)
        gs_unresolved_binds_remove(binds, binds->all->uid);
}

static struct gs_unresolved_bind *need(struct gs_unresolved_binds *binds, const char *ns,
                                       const char *uid)
{
    struct gs_unresolved_bind *one = find(binds, uid);
    if (one)
        return one;
    one = calloc(1, sizeof(*one) + strlen(uid) + 1);
    if (!one)
        return NULL;
    one->ns = gs_hash_text(ns);
    memcpy(one->uid, uid, strlen(uid) + 1);
    HASH_ADD_STR(binds->all, uid, one);
    if (!one->hh.tbl) {
        free(one);
        return NULL;
    }
    atomic_fetch_add(&binds->count, 1);
    return one;
}

bool gs_unresolved_binds_add(struct gs_unresolved_binds *binds, const char *ns, const char *uid,
                             int64_t look_ns, int64_t until_ns)
{
    struct gs_unresolved_bind *one = need(binds, ns, uid);
    if (!one)
        return false;
    one->next_look_ns = look_ns;
    one->until_ns = one->until_ns > until_ns ? one->until_ns : until_ns;
    return true;
}

bool gs_unresolved_binds_has(const struct gs_unresolved_binds *binds, const char *uid)
{
    return find(binds, uid) != NULL;
}

bool gs_unresolved_binds_remove(struct gs_unresolved_binds *binds, const char *uid)
{
    struct gs_unresolved_bind *one = find(binds, uid);
    if (!one)
        return false;
    HASH_DEL(binds->all, one);
    free(one);
    atomic_fetch_sub(&binds->count, 1);
    return true;
}

bool gs_unresolved_binds_repeat_begin(struct gs_unresolved_binds *binds, const char *uid)
{
    struct gs_unresolved_bind *one = find(binds, uid);
    if (one)
        one->repetitions++;
    return one != NULL;
}

void gs_unresolved_binds_repeat_end(struct gs_unresolved_binds *binds, const char *uid)
{
    struct gs_unresolved_bind *one = find(binds, uid);
    if (one && one->repetitions) /* it may have been settled, and be another one by now */
        one->repetitions--;
}

bool gs_unresolved_binds_over(const struct gs_unresolved_binds *binds, const char *uid,
                              int64_t now_ns)
{
    const struct gs_unresolved_bind *one = find(binds, uid);
    return one && !one->repetitions && now_ns >= one->until_ns;
}

const char *gs_unresolved_binds_due(struct gs_unresolved_binds *binds, int64_t now_ns)
{
    struct gs_unresolved_bind *due = NULL;
    uint64_t least = 0;
    for (struct gs_unresolved_bind *one = binds->all; one; one = one->hh.next) {
        const uint64_t turns = one->ns - binds->turn;
        if (one->next_look_ns <= now_ns &&
            (!due || turns < least || (turns == least && one->next_look_ns < due->next_look_ns))) {
            due = one;
            least = turns;
        }
    }
    if (!due)
        return NULL;
    binds->turn = due->ns + 1;
    due->next_look_ns = now_ns + LOOK_EVERY_NS;
    return due->uid;
}
