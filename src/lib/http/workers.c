/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "internal.h"

/* A request was queued, or another became eligible. If none waits, whoever is done first sees it.
 */
static void wake_one(struct gs_workers *workers)
{
    struct gs_idle *idle = workers->idle;
    if (!idle)
        return;
    workers->idle = idle->next;
    idle->woken = true;
    pthread_cond_signal(&idle->wake);
}

static void wait_for_request(struct gs_workers *workers)
{
    struct gs_idle self = {.wake = PTHREAD_COND_INITIALIZER, .next = workers->idle};
    workers->idle = &self;
    while (!self.woken)
        pthread_cond_wait(&self.wake, &workers->lock);
}

bool gs_workers_submit(struct gs_workers *workers, struct gs_http_conn *conn, bool suspended)
{
    pthread_mutex_lock(&workers->lock);
    const unsigned waiting = workers->waiting[conn->group];
    const unsigned part = waiting == workers->queued
                              ? 2
                              : GS_GROUP_SHARE; /* half of the queue if no other group waits */
    bool room = !workers->stopping && workers->queued < workers->queue_max &&
                (!conn->group || waiting < workers->queue_max / part);
    if (room) {
        /* Suspend before queueing: a worker might resume it first. */
        if (!suspended)
            MHD_suspend_connection(conn->mhd);
        TAILQ_INSERT_TAIL(&workers->queue, conn, in_queue);
        workers->queued++;
        workers->waiting[conn->group]++;
        wake_one(workers);
    }
    pthread_mutex_unlock(&workers->lock);
    return room;
}

bool gs_wants_worker(struct gs_http_conn *conn)
{
    if (!conn->response.wants_worker || conn->request.may_block ||
        !conn->loop->server->config.workers)
        return false;
    conn->group = conn->response.worker_group;
    gs_answer_prepare(conn);
    conn->request.may_block = true;
    return true;
}

static void run(struct gs_http_conn *conn)
{
    const struct gs_http_server *server = conn->loop->server;
    /* The client could not receive the result: what it has given up is not done. */
    if (atomic_load(&server->hard) || gs_conn_client_left(conn))
        gs_http_error(&conn->response, 503, "the server is stopping");
    else
        conn->route->handler(server->config.ctx, &conn->request, &conn->response);
    if (gs_wants_worker(conn)) {
        if (gs_workers_submit(&conn->loop->server->workers, conn, true))
            return;
        gs_http_error(&conn->response, 503, "too many concurrent requests");
    }
    conn->phase = GS_PHASE_HANDLED;
    /* From here on the connection belongs to its loop again. */
    MHD_resume_connection(conn->mhd);
}

/* The first request whose group has fewer busy workers than are free. So with n busy groups each
 * has at most 1/(n+1) of the workers, and another group finds one free. NULL: none. */
static struct gs_http_conn *next_conn(const struct gs_workers *workers)
{
    struct gs_http_conn *conn;
    TAILQ_FOREACH(conn, &workers->queue, in_queue)
    {
        if ((conn->group ? workers->running[conn->group] : 0) + workers->busy < workers->count)
            return conn;
    }
    return NULL;
}

static void *worker_main(void *arg)
{
    struct gs_workers *workers = arg;
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        struct gs_http_conn *conn = NULL;
        while (!workers->stopping && !(conn = next_conn(workers)))
            wait_for_request(workers);
        if (!conn)
            break;
        const uint16_t group = conn->group;
        TAILQ_REMOVE(&workers->queue, conn, in_queue);
        workers->queued--;
        workers->waiting[group]--;
        workers->running[group]++;
        workers->busy++;
        if (workers->queued)
            wake_one(workers); /* another request may be eligible by now */
        pthread_mutex_unlock(&workers->lock);
        run(conn);
        pthread_mutex_lock(&workers->lock);
        workers->running[group]--;
        workers->busy--;
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

void gs_workers_init(struct gs_workers *workers, unsigned queue_max)
{
    workers->queue_max = queue_max;
    pthread_mutex_init(&workers->lock, NULL);
    TAILQ_INIT(&workers->queue);
}

void gs_workers_destroy(struct gs_workers *workers)
{
    pthread_mutex_destroy(&workers->lock);
}

int gs_workers_start(struct gs_workers *workers, unsigned count, struct gs_error *err)
{
    workers->threads = calloc(count + 1, sizeof(*workers->threads));
    if (!workers->threads)
        return gs_fail_nomem(err);
    for (; workers->count < count; workers->count++) {
        int why = pthread_create(&workers->threads[workers->count], NULL, worker_main, workers);
        if (why != 0)
            return gs_fail_errno(err, GS_EIO, why, "cannot start a worker thread");
    }
    return 0;
}

void gs_workers_stop(struct gs_workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    workers->stopping = true;
    while (workers->idle)
        wake_one(workers);
    while (!TAILQ_EMPTY(&workers->queue)) {
        struct gs_http_conn *conn = TAILQ_FIRST(&workers->queue);
        TAILQ_REMOVE(&workers->queue, conn, in_queue);
        gs_http_error(&conn->response, 503, "the server is stopping");
        conn->phase = GS_PHASE_HANDLED;
        MHD_resume_connection(conn->mhd);
    }
    workers->queued = 0;
    pthread_mutex_unlock(&workers->lock);
    for (unsigned i = 0; i < workers->count; i++)
        pthread_join(workers->threads[i], NULL);
    workers->count = 0;
    free(workers->threads);
    workers->threads = NULL;
}
