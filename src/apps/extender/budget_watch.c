/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/budget_watch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"
#include "gpushare/codec/budgets.h"
#include "gpushare/codec/watch.h"

enum { ANSWER_BYTES_MAX = 32 << 20, WATCH_S = 290 };
#define PATH "/apis/policy/v1/poddisruptionbudgets"

/* A little longer than the API server lets a watch be. */
#define WATCH_NS  ((WATCH_S + 10) * GS_NS_PER_S)
#define NEXT_NS   (1 * GS_NS_PER_S) /* changes come in bursts */
#define FAILED_NS (10 * GS_NS_PER_S)
#define NOBODY_NS (60 * GS_NS_PER_S)

struct budget_watch {
    struct gs_service *service;
    struct gs_kube_client *client;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop; /* guarded by lock */
    bool told;
    char rv[GS_RV_BYTES]; /* of the last list */
};

/* 0 with a 200's body. */
static int ask(struct budget_watch *watch, const struct gs_kube_request *request,
               struct gs_buf *answer, struct gs_error *err)
{
    int status = 0;
    if (gs_kube_request(watch->client, request, &status, answer, err) < 0)
        return -1;
    return status == 200
               ? 0
               : gs_kube_fail_status(status, answer->data ? answer->data : "", answer->len, err);
}

static int list(struct budget_watch *watch, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(ANSWER_BYTES_MAX);
    const struct gs_kube_request request = {.method = "GET", .path = PATH};
    struct gs_arena arena = {0};
    struct gs_budget *all;
    uint32_t count;
    if (ask(watch, &request, &answer, err) < 0)
        return -1;
    const struct gs_slice body = {answer.data ? answer.data : "", answer.len};
    if (gs_codec_object_rv(body, watch->rv, err) < 0 ||
        gs_codec_budgets(body, &arena, &all, &count, err) < 0) {
        gs_arena_release(&arena);
        return -1;
    }
    gs_service_budgets(watch->service, &arena, all, count);
    return 0;
}

/* What has changed the next list says: the first bytes are enough. */
static int await_change(struct budget_watch *watch, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(ANSWER_BYTES_MAX);
    char query[GS_RV_BYTES + 64];
    snprintf(query, sizeof(query), "watch=true&resourceVersion=%s&timeoutSeconds=%d", watch->rv,
             WATCH_S);
    const struct gs_kube_request request = {
        .method = "GET", .path = PATH, .query = query, .first_bytes = true, .timeout_ns = WATCH_NS};
    return ask(watch, &request, &answer, err);
}

/* Returns whether it shall end. */
static bool pause_for(struct budget_watch *watch, int64_t ns)
{
    const struct timespec until = gs_clock_wait_until(gs_clock_now_ns(gs_clock_system()) + ns);
    pthread_mutex_lock(&watch->lock);
    while (!watch->stop && pthread_cond_timedwait(&watch->changed, &watch->lock, &until) == 0)
        ;
    bool stop = watch->stop;
    pthread_mutex_unlock(&watch->lock);
    return stop;
}

/* What was listed last still counts. */
static int64_t failed(struct budget_watch *watch, const struct gs_error *err)
{
    if (!watch->told && err->code != GS_ECANCELED) /* 404: older than 1.21 */
        gs_log(err->code == GS_ENOENT ? GS_LOG_INFO : GS_LOG_WARN,
               "PodDisruptionBudgets are not counted for added victims", GS_STR("why", err->msg));
    watch->told = true;
    return err->code == GS_EDENIED || err->code == GS_ENOENT ? NOBODY_NS : FAILED_NS;
}

static void *run(void *arg)
{
    struct budget_watch *watch = arg;
    for (int64_t ns = 0; !pause_for(watch, ns);) {
        struct gs_error err = {0};
        if (list(watch, &err) < 0) {
            ns = failed(watch, &err);
            continue;
        }
        if (watch->told)
            gs_log(GS_LOG_INFO, "PodDisruptionBudgets are counted");
        watch->told = false;
        ns = await_change(watch, &err) < 0 && err.code != GS_EGONE ? FAILED_NS : NEXT_NS;
    }
    return NULL;
}

int budget_watch_start(struct gs_service *service, struct gs_kube_client *client,
                       struct budget_watch **ret, struct gs_error *err)
{
    struct budget_watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return gs_fail_nomem(err);
    watch->service = service;
    watch->client = client;
    pthread_mutex_init(&watch->lock, NULL);
    gs_clock_cond_init(&watch->changed);
    int error = pthread_create(&watch->thread, NULL, run, watch);
    if (error) {
        pthread_cond_destroy(&watch->changed);
        pthread_mutex_destroy(&watch->lock);
        free(watch);
        return gs_fail_errno(err, GS_ENOMEM, error, "thread");
    }
    *ret = watch;
    return 0;
}

void budget_watch_stop(struct budget_watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->stop = true;
    pthread_cond_broadcast(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}
