/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_PATCHES_H
#define GPUSHARE_SERVICE_PATCHES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/error.h"
#include "pending.h"

/*
 * The PATCHes of pods. The thread that requeues queues them, GS_PATCH_THREADS write them, each with
 * 2 s. A namespace has one of each kind under way, and is queued no more of while some are left.
 */
enum gs_patch { GS_PATCH_REQUEUE, GS_PATCH_TAKE_BACK, GS_PATCHES };

struct gs_service;

struct gs_patches {
    pthread_mutex_t lock; /* the last one */
    struct gs_patch_job *queue;
    uint32_t slow; /* under way, of lanes that are slow */
    struct gs_patch_lane {
        atomic_uint jobs;     /* queued or under way */
        bool under_way, slow; /* slow: its last one took long */
    } lanes[GS_PATCHES][GS_SHARES];
};

void gs_patches_release(struct gs_patches *patches);

/* Of the pod of this UID and namespace (hash); write decides again in its turn. No memory:
 * the next pass tries again. */
typedef void gs_patch_fn(struct gs_service *service, const char *uid);
void gs_patches_add(struct gs_patches *patches, enum gs_patch kind, uint64_t ns, const char *uid,
                    gs_patch_fn *write);
/* Writes what is queued, for about a tick; from GS_PATCH_THREADS threads. */
void gs_patches_tick(struct gs_service *service);

/* The pod of this UID, at this resourceVersion where it is not NULL. Nothing is sent when the lease
 * is over, nor answered for long after. nominated NULL: it stays as it is. */
int gs_patch_pod(struct gs_service *service, const struct gs_pod *pod, const char *version,
                 const struct gs_kv *annotations, size_t count, const char *nominated,
                 struct gs_error *err);

#endif
