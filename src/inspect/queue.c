/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/queue.h"

#include <stdlib.h>

#include "inspect/waits.h"

static int by_turn(const void *a, const void *b)
{
    const struct gs_pod *left = *(const struct gs_pod *const *)a;
    const struct gs_pod *right = *(const struct gs_pod *const *)b;
    if (left->priority != right->priority)
        return left->priority > right->priority ? -1 : 1;
    return waits_order(left, right);
}

int queue_find(const struct snapshot *snapshot, struct queue *ret, struct gs_error *err)
{
    *ret = (struct queue){.all = calloc(HASH_COUNT(snapshot->waiting) + 1u, sizeof(void *))};
    if (!ret->all)
        return gs_fail_nomem(err);
    EACH_POD (waiting, snapshot->waiting) {
        if (waiting->pod->deleting)
            continue;
        if (waiting->pod->gated)
            ret->gated++;
        else if (snapshot_is_elsewhere(snapshot, waiting->pod))
            ret->elsewhere++;
        else
            ret->all[ret->count++] = waiting->pod;
    }
    qsort(ret->all, ret->count, sizeof(void *), by_turn);
    return 0;
}

void queue_release(struct queue *queue)
{
    free(queue->all);
    *queue = (struct queue){0};
}
