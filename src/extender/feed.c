/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/feed.h"

#include "common/api.h"
#include "common/process.h"
#include "extender/budget_watch.h"
#include "extender/nominating.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"

#define TICK_NS (100 * GS_NS_PER_MS)
#define LOOK_NS (10 * GS_NS_PER_MS)
#define ASK_NS  (10 * GS_NS_PER_S)
#define MAY_NS  (300 * GS_NS_PER_S) /* an API server that starts forbids what it allows later */

static void *watch_nodes(void *arg)
{
    struct feed *feed = arg;
    api_watch_until_stopped(feed->kube, &(struct gs_watch_spec){.kind = GS_KIND_NODE}, &feed->sink,
                            &feed->stop);
    return NULL;
}

static void *watch_pods(void *arg)
{
    struct feed *feed = arg;
    /* once in a process's life: events need not pass through here */
    while (!gs_service_nodes_loaded(feed->service) &&
           process_sleep_until(gs_clock_now_ns(gs_clock_system()) + LOOK_NS, &feed->stop))
        ;
    const struct gs_watch_spec spec = {.kind = GS_KIND_POD,
                                       .list_wanted = gs_service_list_wanted(feed->service)};
    api_watch_until_stopped(feed->kube, &spec, &feed->sink, &feed->stop);
    return NULL;
}

static void ask_whether_to_nominate(struct feed *feed)
{
    int64_t now_ns = gs_clock_now_ns(gs_clock_system());
    struct gs_error err = {0};
    bool may;
    if (!gs_service_loaded(feed->service) || gs_service_nominates(feed->service) ||
        now_ns < feed->next_ask_ns)
        return;
    feed->next_ask_ns = now_ns + MAY_NS;
    if (nominating_ask(feed->client, &may, &err) < 0) {
        feed->next_ask_ns = now_ns + ASK_NS;
        gs_log(GS_LOG_WARN, "cannot check whether pods may be nominated, retrying",
               GS_STR("error", err.msg));
        return;
    }
    feed->asks = may;
    gs_service_nominate(feed->service, may);
    gs_log(GS_LOG_INFO, may ? "nomination enabled" : "nomination disabled",
           GS_STR("reason", may ? "percentageOfNodesToScore may be below 100"
                                : "the API server is older than 1.23: keep "
                                  "percentageOfNodesToScore at 100"));
}

static void *watch_budgets(void *arg)
{
    struct feed *feed = arg;
    budget_watch_run(feed->service, feed->client, &feed->stop);
    return NULL;
}

/* Ten times a second until the end, not all at once: what one queues another finds soon. */
static void *tick(void *arg)
{
    const struct ticker *ticker = arg;
    struct feed *feed = ticker->feed;
    const struct gs_clock *clock = gs_clock_system();
    int64_t due_ns =
        gs_clock_now_ns(clock) - (ticker - feed->tickers) * TICK_NS / FEED_TICKERS + TICK_NS;
    while (process_sleep_until(due_ns, &feed->stop)) {
        if (ticker->part == GS_TICK_COMPARE && feed->asks)
            ask_whether_to_nominate(feed);
        gs_service_tick_part(feed->service, ticker->part);
        /* ticks that a stopped or suspended process missed are not made up for */
        int64_t now_ns = gs_clock_now_ns(clock);
        due_ns = due_ns + TICK_NS > now_ns ? due_ns + TICK_NS : now_ns;
    }
    return NULL;
}

static int start_thread(struct feed *feed, void *(*body)(void *arg), void *arg)
{
    int error = pthread_create(&feed->threads[feed->thread_count], NULL, body, arg);
    feed->thread_count += error == 0;
    return error;
}

static int start_threads(struct feed *feed)
{
    int error = start_thread(feed, watch_nodes, feed);
    if (error == 0)
        error = start_thread(feed, watch_pods, feed);
    for (int i = 0; error == 0 && i < FEED_TICKERS; i++) {
        feed->tickers[i] = (struct ticker){feed, i < GS_TICKS ? (enum gs_tick)i : GS_TICK_PATCH};
        error = start_thread(feed, tick, &feed->tickers[i]);
    }
    /* the last: only a cancelled client ends its request */
    return error ? error : start_thread(feed, watch_budgets, feed);
}

int feed_start(struct feed *feed, struct gs_service *service, struct gs_kube_client *client,
               bool nominates, struct gs_error *err)
{
    feed->service = service;
    feed->client = client;
    feed->kube = gs_kube_client_port(client);
    feed->asks = nominates;
    feed->sink = gs_service_sink(service);
    const int error = start_threads(feed);
    return error ? gs_fail_errno(err, GS_ENOMEM, error, "thread") : 0;
}

void feed_stop(struct feed *feed)
{
    if (!feed->service)
        return;
    atomic_store(&feed->stop, true);
    feed->kube.ops->wake(feed->kube.ctx);
    for (int i = 0; i < feed->thread_count; i++)
        pthread_join(feed->threads[i], NULL);
}
