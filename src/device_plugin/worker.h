/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>

#include "gpushare/grpc/loop.h"

/*
 * One thing at a time which the loop must not wait for: work() runs in a thread of its own, done()
 * on the loop thread afterwards. Zeroed: nothing runs. Loop thread.
 */
struct worker_job {
    void (*work)(void *ctx);
    void (*done)(void *ctx);
    void *ctx;
};

struct worker {
    struct worker_job job;
    struct gs_loop_task task;
    struct gs_loop *loop;
    pthread_t thread;
    bool running; /* the thread is to be joined */
};

/* The last job must be done. Without memory for a thread the loop waits. */
void worker_submit(struct worker *worker, struct gs_loop *loop, const struct worker_job *job);

/* Waits for the job that runs; its done() may still be posted on the loop, and runs when that is
 * stepped or freed. */
void worker_stop(struct worker *worker);
