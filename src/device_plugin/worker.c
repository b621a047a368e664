/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/worker.h"

#include <pthread.h>
#include <stdlib.h>

struct worker {
    struct gs_loop *loop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct worker_job job; /* work NULL: none; guarded by lock */
    bool stop;             /* guarded by lock */
    struct gs_loop_task task;
};

static void *run(void *arg)
{
    struct worker *worker = arg;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (!worker->stop && !worker->job.work)
            pthread_cond_wait(&worker->changed, &worker->lock);
        if (!worker->job.work)
            break;
        struct worker_job job = worker->job;
        worker->job.work = NULL;
        pthread_mutex_unlock(&worker->lock);
        job.work(job.ctx);
        worker->task = (struct gs_loop_task){.fn = job.done, .ctx = job.ctx};
        gs_loop_post(worker->loop, &worker->task);
        pthread_mutex_lock(&worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

int worker_start(struct gs_loop *loop, struct worker **ret, struct gs_error *err)
{
    struct worker *worker = calloc(1, sizeof(*worker));
    if (!worker)
        return gs_fail_nomem(err);
    worker->loop = loop;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->changed, NULL);
    int error = pthread_create(&worker->thread, NULL, run, worker);
    if (error) {
        free(worker);
        return gs_fail_errno(err, GS_ENOMEM, error, "thread");
    }
    *ret = worker;
    return 0;
}

void worker_submit(struct worker *worker, const struct worker_job *job)
{
    pthread_mutex_lock(&worker->lock);
    worker->job = *job;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

void worker_stop(struct worker *worker)
{
    if (!worker)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->stop = true;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
}

void worker_free(struct worker *worker)
{
    if (!worker)
        return;
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}
