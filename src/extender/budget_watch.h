/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "extender/service/service.h"
#include "gpushare/kube/client.h"

/*
 * Keeps a service's PodDisruptionBudgets (policy/v1, from 1.21 on) as the API has them, until stop:
 * lists all, waits by a watch until one has changed, and lists again, once a second at most. Where
 * the right or the API is missing it says so once, and asks again once a minute.
 */
void budget_watch_run(struct gs_service *service, struct gs_kube_client *client, atomic_bool *stop);
