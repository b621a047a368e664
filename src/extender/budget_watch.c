/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/budget_watch.h"

#include "common/list_watch.h"
#include "common/process.h"
#include "gpushare/base/log.h"
#include "gpushare/codec/budgets.h"

struct budget_watch {
    struct gs_service *service;
    struct list_watch list;
    bool told;       /* that they are not counted */
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

/* What was listed last still counts. */
static void log_change(struct budget_watch *watch, int result, const struct gs_error *err)
{
    if (result == 0 && watch->told)
        gs_log(GS_LOG_INFO, "PodDisruptionBudgets are counted for added victims");
    else if (result < 0 && !watch->told && err->code != GS_ECANCELED) /* 404: older than 1.21 */
        gs_log(err->code == GS_ENOENT ? GS_LOG_INFO : GS_LOG_WARN,
               "PodDisruptionBudgets are not counted for added victims", GS_STR("error", err->msg));
    watch->told = result < 0;
}

void budget_watch_run(struct gs_service *service, struct gs_kube_client *client, atomic_bool *stop)
{
    static const char *const paths[] = {"/apis/policy/v1/poddisruptionbudgets", NULL};
    struct budget_watch watch = {.service = service,
                                 .list = {.ask = list_watch_ask,
                                          .ctx = client,
                                          .paths = paths,
                                          .begin = begin,
                                          .item = take_item}};
    int64_t pause_ns = 0;
    while (process_sleep_until(gs_clock_now_ns(gs_clock_system()) + pause_ns, stop)) {
        struct gs_error err = {0};
        int result = read_all(&watch, &err);
        log_change(&watch, result, &err);
        pause_ns = list_watch_pause_ns(&watch.list);
    }
}
