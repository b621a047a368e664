/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/snapshot.h"

/* The pods that wait and that the scheduler takes up by itself, in kube-scheduler's order: higher
 * priority, then older. Not among them is who is on its way out. */
struct queue {
    const struct gs_pod **all; /* the snapshot's */
    uint32_t count;
    uint32_t gated;     /* left out: behind scheduling gates */
    uint32_t elsewhere; /* left out: snapshot_is_elsewhere() */
};

/* GS_ENOMEM. Release it also then. */
int queue_find(const struct snapshot *snapshot, struct queue *ret, struct gs_error *err);
void queue_release(struct queue *queue);
