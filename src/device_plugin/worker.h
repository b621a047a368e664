/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/grpc/loop.h"

/*
 * A thread that does one thing at a time which the loop must not wait for: work() runs there,
 * done() on the loop thread afterwards.
 */
struct worker;

struct worker_job {
    void (*work)(void *ctx);
    void (*done)(void *ctx);
    void *ctx;
};

/* loop is *borrowed* until worker_stop(). */
int worker_start(struct gs_loop *loop, struct worker **ret, struct gs_error *err);

/* Loop thread; the last job must be done. */
void worker_submit(struct worker *worker, const struct worker_job *job);

/* Waits for the job that runs; its done() may still be posted on the loop, and runs when that is
 * stepped or freed. NULL is fine. Frees nothing that done() needs: worker_free() does. */
void worker_stop(struct worker *worker);
void worker_free(struct worker *worker);
