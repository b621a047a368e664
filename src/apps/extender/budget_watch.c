/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/budget_watch.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/list_watch.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"
#include "gpushare/codec/budgets.h"

struct budget_watch {
    struct gs_service *service;
    struct list_watch list;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop; /* guarded by lock */
    bool told;
    uint32_t excess; /* of the last list */
};

/* A list in progress. */
struct reading {
    struct gs_arena arena;
    struct gs_budget *all;
    uint32_t count, excess; /* namespaces with too many */
    struct budget_watch *watch;
};

static int begin(void *ctx, struct gs_error *err)
{
    struct reading *reading = ctx;
    gs_arena_release(&reading->arena);
    *reading = (struct reading){.watch = reading->watch};
    return 0;
}

static int take_item(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    struct reading *reading = ctx;
    int result = gs_codec_budget_take(scan, &reading->arena, &reading->all, &reading->count, err);
    if (result == 1 && ++reading->excess > reading->watch->excess)
        gs_log(GS_LOG_WARN,
               "too many PodDisruptionBudgets: evicting any pod of the namespace counts as a "
               "violation",
               GS_STR("namespace", reading->all[reading->count - 1].ns));
    return result < 0 ? result : 0;
}

static int read_all(struct budget_watch *watch, struct gs_error *err)
{
    struct reading reading = {.watch = watch};
    watch->list.items_ctx = &reading;
    int result = list_watch_next(&watch->list, err);
    if (result == 0) {
        watch->excess = reading.excess;
        gs_service_budgets(watch->service, &reading.arena, reading.all, reading.count);
    }
    gs_arena_release(&reading.arena);
    return result;
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
static void tell(struct budget_watch *watch, int result, const struct gs_error *err)
{
    if (result == 0 && watch->told)
        gs_log(GS_LOG_INFO, "PodDisruptionBudgets are counted for added victims");
    else if (result < 0 && !watch->told && err->code != GS_ECANCELED) /* 404: older than 1.21 */
        gs_log(err->code == GS_ENOENT ? GS_LOG_INFO : GS_LOG_WARN,
               "PodDisruptionBudgets are not counted for added victims", GS_STR("error", err->msg));
    watch->told = result < 0;
}

static void *run(void *arg)
{
    struct budget_watch *watch = arg;
    for (int64_t ns = 0; !pause_for(watch, ns); ns = list_watch_pause_ns(&watch->list)) {
        struct gs_error err = {0};
        int result = read_all(watch, &err);
        tell(watch, result, &err);
    }
    return NULL;
}

int budget_watch_start(struct gs_service *service, struct gs_kube_client *client,
                       struct budget_watch **ret, struct gs_error *err)
{
    static const char *const paths[] = {"/apis/policy/v1/poddisruptionbudgets", NULL};
    struct budget_watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return gs_fail_nomem(err);
    watch->service = service;
    watch->list = (struct list_watch){
        .ask = list_watch_ask, .ctx = client, .paths = paths, .begin = begin, .item = take_item};
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
