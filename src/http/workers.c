/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "internal.h"

static void run(struct gs_http_conn *conn)
{
    const struct gs_http_server *server = conn->loop->server;
    /* Cut off before its turn: nobody would learn what became of it. */
    if (atomic_load(&server->hard))
        gs_http_error(&conn->response, 503, "stopping");
    else
        conn->route->handler(server->config.ctx, &conn->request, &conn->response);
    conn->phase = GS_PHASE_HANDLED;
    /* From here on the connection is its loop's again. */
    MHD_resume_connection(conn->mhd);
}

static void *worker_main(void *arg)
{
    struct gs_workers *workers = arg;
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        while (!workers->stopping && STAILQ_EMPTY(&workers->queue))
            pthread_cond_wait(&workers->wake, &workers->lock);
        if (workers->stopping)
            break;
        struct gs_http_conn *conn = STAILQ_FIRST(&workers->queue);
        STAILQ_REMOVE_HEAD(&workers->queue, in_queue);
        workers->queued--;
        pthread_mutex_unlock(&workers->lock);
        run(conn);
        pthread_mutex_lock(&workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

void gs_workers_init(struct gs_workers *workers, unsigned queue_max)
{
    workers->queue_max = queue_max;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->wake, NULL);
    STAILQ_INIT(&workers->queue);
}

void gs_workers_destroy(struct gs_workers *workers)
{
    pthread_mutex_destroy(&workers->lock);
    pthread_cond_destroy(&workers->wake);
}

int gs_workers_start(struct gs_workers *workers, unsigned count, struct gs_error *err)
{
    workers->threads = calloc(count ? count : 1, sizeof(*workers->threads));
    if (!workers->threads)
        return gs_fail_nomem(err);
    while (workers->thread_count < count) {
        int why =
            pthread_create(&workers->threads[workers->thread_count], NULL, worker_main, workers);
        if (why != 0)
            return gs_fail_errno(err, GS_EIO, why, "cannot start a worker thread");
        workers->thread_count++;
    }
    return 0;
}

bool gs_workers_submit(struct gs_workers *workers, struct gs_http_conn *conn)
{
    pthread_mutex_lock(&workers->lock);
    bool room = !workers->stopping && workers->queued < workers->queue_max;
    if (room) {
        /* First, or a fast worker would resume what does not sleep yet. */
        MHD_suspend_connection(conn->mhd);
        STAILQ_INSERT_TAIL(&workers->queue, conn, in_queue);
        workers->queued++;
        pthread_cond_signal(&workers->wake);
    }
    pthread_mutex_unlock(&workers->lock);
    return room;
}

unsigned gs_workers_queued(struct gs_workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    unsigned queued = workers->queued;
    pthread_mutex_unlock(&workers->lock);
    return queued;
}

void gs_workers_stop(struct gs_workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    workers->stopping = true;
    pthread_cond_broadcast(&workers->wake);
    while (!STAILQ_EMPTY(&workers->queue)) {
        struct gs_http_conn *conn = STAILQ_FIRST(&workers->queue);
        STAILQ_REMOVE_HEAD(&workers->queue, in_queue);
        gs_http_error(&conn->response, 503, "stopping");
        conn->phase = GS_PHASE_HANDLED;
        MHD_resume_connection(conn->mhd);
    }
    workers->queued = 0;
    pthread_mutex_unlock(&workers->lock);
    for (unsigned i = 0; i < workers->thread_count; i++)
        pthread_join(workers->threads[i], NULL);
    workers->thread_count = 0;
    free(workers->threads);
    workers->threads = NULL;
}
