/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "extender/service/service.h"
#include "gpushare/base/error.h"
#include "gpushare/kube/client.h"

enum { FEED_TICKERS = GS_TICKS - 1 + GS_PATCH_THREADS };

/*
 * The threads that keep a service's ledger true: one watches nodes, one watches pods (it starts
 * when the nodes are there), one knows of budgets (budget_watch.h), the others tick.
 */
struct feed {
    struct gs_service *service; /* NULL: it was not started */
    struct gs_kube_client *client;
    struct gs_kube kube;
    bool asks;           /* whether pods may be nominated is to be asked while they are not, … */
    int64_t next_ask_ns; /* … not before */
    struct gs_watch_sink sink;
    atomic_bool stop;
    struct ticker {
        struct feed *feed;
        enum gs_tick part;
    } tickers[FEED_TICKERS];
    pthread_t threads[FEED_TICKERS + 3];
    int thread_count;
};

/* service and client are borrowed until feed_stop(). nominates: the service may nominate pods where
 * the API server lets it (nominating.h). Zeroed before. */
int feed_start(struct feed *feed, struct gs_service *service, struct gs_kube_client *client,
               bool nominates, struct gs_error *err);

/* Stops the threads, and waits for them. */
void feed_stop(struct feed *feed);
