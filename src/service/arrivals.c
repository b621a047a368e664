/* SPDX-License-Identifier: Apache-2.0 */
#include "arrivals.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct gs_arrival {
    int64_t since_ns;
    UT_hash_handle hh; /* the oldest first */
    char uid[];
};

bool gs_arrivals_add(struct gs_arrivals *arrivals, const char *uid, int64_t now_ns)
{
    const size_t len = strlen(uid) + 1;
    gs_arrivals_take(arrivals, uid);
    struct gs_arrival *one = calloc(1, sizeof(*one) + len);
    if (!one)
        return false;
    one->since_ns = now_ns;
    memcpy(one->uid, uid, len);
    HASH_ADD_STR(arrivals->all, uid, one);
    if (one->hh.tbl)
        return true;
    free(one);
    return false;
}

bool gs_arrivals_take(struct gs_arrivals *arrivals, const char *uid)
{
    struct gs_arrival *one;
    HASH_FIND_STR(arrivals->all, uid, one);
    if (!one)
        return false;
    HASH_DEL(arrivals->all, one);
    free(one);
    return true;
}

const char *gs_arrivals_overdue(const struct gs_arrivals *arrivals, int64_t now_ns)
{
    const struct gs_arrival *one = arrivals->all;
    return one && now_ns - one->since_ns >= GS_ARRIVAL_NS ? one->uid : NULL;
}

void gs_arrivals_release(struct gs_arrivals *arrivals)
{
    while (arrivals->all)
        gs_arrivals_take(arrivals, arrivals->all->uid);
}
