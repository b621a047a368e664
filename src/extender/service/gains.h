/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/index.h"

/*
 * Where memory came free. `frees` counts these moments: a pod that was rejected at count N can only
 * fit now on nodes whose last gain is above N. What a pod or its group gave up is no gain to
 * itself. Guarded by the service's lock.
 */
struct gs_gains {
    uint64_t frees;
    struct gs_gain {
        uint64_t at;           /* the count when that node last gained, ... */
        uint64_t owner;        /* ... the hash of the UID, or group, that gave it up; 0: none */
        uint64_t before;       /* the last gain that was not that owner's */
        uint32_t older, newer; /* slots of nodes that gained, by `at`; GS_INDEX_NONE */
    } * nodes;                 /* by slot */
    uint32_t cap;
    uint32_t newest; /* GS_INDEX_NONE: none gained */
};

/* GS_INDEX_NONE is fine. */
void gs_gains_note(struct gs_gains *gains, uint32_t slot, uint64_t owner);

/* The node whose last gain is the first after epoch; GS_INDEX_NONE. *work: less those after it. */
uint32_t gs_gains_after(const struct gs_gains *gains, uint64_t epoch, int64_t *work);

/* Zeros where there was none. */
static inline struct gs_gain gs_gains_at(const struct gs_gains *gains, uint32_t slot)
{
    return slot < gains->cap ? gains->nodes[slot] : (struct gs_gain){0};
}
