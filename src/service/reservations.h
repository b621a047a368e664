/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_RESERVATIONS_H
#define GPUSHARE_SERVICE_RESERVATIONS_H

#include "gpushare/base/error.h"
#include "gpushare/model/pod.h"

/*
 * The places of pods that are nominated and not bound, in the ledger; those of pods that are
 * members of a gang and have one are left as they are. Store locked for writing.
 */
struct gs_service;
struct gs_waiter;

/* Where memory was freed for it, or as the pod shows it, or at the node that it is nominated to and
 * does not show yet. */
int gs_reservations_follow(struct gs_service *service, const struct gs_pod *pod,
                           struct gs_error *err);

/* The same for a pod that held none meanwhile, if it is known. */
void gs_reservations_again(struct gs_service *service, const char *uid);

/* At this node, and with gpus of these (a gang reservation); NULL: at none any more. */
int gs_reservations_set(struct gs_service *service, const struct gs_pod *pod, const char *node,
                        gs_gpu_mask gpus, struct gs_error *err);

/* The nomination is over. What the pod shows holds its place until that is taken back.
 * The table is locked. */
void gs_reservations_end_nomination(struct gs_service *service, struct gs_waiter *waiter);

/* Of the pod of this UID (ctx: the service) a victim goes there, before its memory comes free.
 * False: the watch has not shown the pod. Store locked for writing. */
bool gs_reservations_freed(void *ctx, const char *uid, const char *node);

#endif
