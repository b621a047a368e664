/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_HOLDS_H
#define GPUSHARE_SERVICE_HOLDS_H

#include "gpushare/base/error.h"
#include "gpushare/model/pod.h"

/*
 * The places of pods that are nominated and not bound, in the ledger; those of pods that are
 * promised one are left as they are. Store locked for writing.
 */
struct gs_service;

/* As the pod shows it, or at the node that it is offered and does not show yet. */
int gs_holds_follow(struct gs_service *service, const struct gs_pod *pod, struct gs_error *err);

/* The same for a pod that held none meanwhile, if it is known. */
void gs_holds_again(struct gs_service *service, const char *uid);

/* At this node; NULL: at none any more. */
int gs_holds_set(struct gs_service *service, const struct gs_pod *pod, const char *node,
                 struct gs_error *err);

#endif
