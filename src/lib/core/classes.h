/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/base/index.h"
#include "gpushare/core/placement.h"

/*
 * How many pods of which kind were seen. Bounded: when there is no room for one more kind, or the
 * pods have become GS_CLASSES_HALVE, all counts are halved and what falls to 0 is forgotten. Not
 * thread-safe.
 */
enum { GS_CLASSES_MAX = 4096, GS_CLASSES_HALVE = 131072 };

/* Texts are lists as the annotations have them, "" for none. */
struct gs_class {
    uint32_t count;
    uint32_t units; /* per GPU; 0: a pod without GPU memory, gpu_count 1 */
    uint32_t gpu_count;
    int32_t cpu_milli;
    const char *model; /* of a struct gs_classes: owned, and the next lies behind it */
    const char *model_deny;
    uint64_t hash;   /* of all but the count; what has the same is the same */
    uint64_t groups; /* in a table (table.h), bit g: may run on GPUs of model group g */
};

struct gs_classes {
    struct gs_class *all;
    uint32_t count, cap;
    uint64_t pods;     /* sum of counts */
    uint64_t gpu_pods; /* of those with units */
    struct gs_index by_hash;
};

void gs_classes_release(struct gs_classes *classes);

/* One pod more. Out of memory: the pod is not counted. */
void gs_classes_add(struct gs_classes *classes, const struct gs_ask *ask);

/* classes->count classes as they are now, in the arena with their texts. NULL: out of memory. */
struct gs_class *gs_classes_copy(const struct gs_classes *classes, struct gs_arena *arena);

/* CPU of an ask or a node as the tables keep it. */
static inline int32_t gs_class_cpu(int64_t milli)
{
    return milli < 0 ? 0 : milli > INT32_MAX ? INT32_MAX : (int32_t)milli;
}
