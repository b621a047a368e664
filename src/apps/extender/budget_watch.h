/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_EXTENDER_BUDGET_WATCH_H
#define GPUSHARE_APPS_EXTENDER_BUDGET_WATCH_H

#include "gpushare/kube/client.h"
#include "gpushare/service/service.h"

/*
 * A thread that keeps a service's PodDisruptionBudgets (policy/v1, from 1.21 on) as the API has
 * them: lists all, waits by a watch until one has changed, and lists again, once a second at most.
 * Where the right or the API is missing it says so once, and asks again once a minute.
 */
struct budget_watch;

/* *ret: *caller frees* with budget_watch_stop(). All is borrowed until then. GS_ENOMEM. */
int budget_watch_start(struct gs_service *service, struct gs_kube_client *client,
                       struct budget_watch **ret, struct gs_error *err);

/* The client was cancelled before. NULL is fine. */
void budget_watch_stop(struct budget_watch *watch);

#endif
