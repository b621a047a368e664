/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/list_watch.h"
#include "extender/service/service.h"
#include "gpushare/kube/client.h"

/*
 * Keeps a service's PodDisruptionBudgets (policy/v1, from 1.21 on) as the API has them: lists all,
 * waits by a watch until one has changed, and lists again, once a second at most. Where the right
 * or the API is missing it says so once, and asks again once a minute. One thread.
 */
struct budget_watch {
    struct gs_service *service;
    struct list_watch list;
    bool told;       /* that they are not counted */
    uint32_t excess; /* of the last list */
};

/* service and client are borrowed. */
void budget_watch_init(struct budget_watch *watch, struct gs_service *service,
                       struct gs_kube_client *client);

/* Waits for a change, and lists; returns how long to pause before the next call. */
int64_t budget_watch_next(struct budget_watch *watch);
