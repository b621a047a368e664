/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/kube/client.h"
#include "extender/service/service.h"

/*
 * The threads that keep a service's ledger true: one watches nodes, one watches pods (it starts
 * when the nodes are there, so that CPU of pods on GPU nodes is not forgotten), one knows of
 * budgets (budget_watch.h), the others tick.
 */
struct feed;

/* *ret_feed: *caller frees* with feed_stop(). service and client are borrowed until then.
 * nominates: the service may nominate pods where the API server lets it (nominating.h). */
int feed_start(struct gs_service *service, struct gs_kube_client *client, bool nominates,
               struct feed **ret_feed, struct gs_error *err);

/* Stops the threads, waits for them, frees. NULL is fine. */
void feed_stop(struct feed *feed);
