/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/worker.h"

static void *run(void *arg)
{
    struct worker *worker = arg;
    worker->job.work(worker->job.ctx);
    gs_loop_post(worker->loop, &worker->task);
    return NULL;
}

void worker_stop(struct worker *worker)
{
    if (worker->running)
        pthread_join(worker->thread, NULL);
    worker->running = false;
}

static void finish(void *ctx)
{
    struct worker *worker = ctx;
    worker_stop(worker);
    worker->job.done(worker->job.ctx); /* which may submit the next */
}

void worker_submit(struct worker *worker, struct gs_loop *loop, const struct worker_job *job)
{
    worker->job = *job;
    worker->task = (struct gs_loop_task){.fn = finish, .ctx = worker};
    worker->loop = loop;
    worker->running = pthread_create(&worker->thread, NULL, run, worker) == 0;
    if (!worker->running)
        run(worker);
}
