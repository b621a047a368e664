/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/feed.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/api.h"
#include "extender/budget_watch.h"
#include "extender/nominating.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"

#define TICK_NS (100 * GS_NS_PER_MS)
#define LOOK_NS (10 * GS_NS_PER_MS)
#define ASK_NS  (10 * GS_NS_PER_S)

enum { THREADS = 5 };

struct feed {
    struct gs_service *service;
    struct gs_kube_client *client;
    struct gs_kube kube;
    bool asks;           /* whether pods may be nominated is to be asked still, … */
    int64_t next_ask_ns; /* … not before */
    struct gs_watch_sink sink;
    atomic_bool stop;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* stop */
    pthread_t threads[THREADS];
    int thread_count;
    struct budget_watch *budgets;
};

static void *watch_nodes(void *arg)
{
    struct feed *feed = arg;
    api_watch_until_stopped(feed->kube, &(struct gs_watch_spec){.kind = GS_KIND_NODE}, &feed->sink,
                            &feed->stop);
    return NULL;
}

/* Looks now and then: it is once in a process's life, and events need not pass through here. */
static void wait_for_nodes(struct feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    while (!gs_service_nodes_loaded(feed->service) && !atomic_load(&feed->stop)) {
        struct timespec due = gs_clock_wait_until(gs_clock_now_ns(gs_clock_system()) + LOOK_NS);
        pthread_cond_timedwait(&feed->changed, &feed->lock, &due);
    }
    pthread_mutex_unlock(&feed->lock);
}

static void *watch_pods(void *arg)
{
    struct feed *feed = arg;
    wait_for_nodes(feed);
    const struct gs_watch_spec spec = {.kind = GS_KIND_POD,
                                       .list_wanted = gs_service_list_wanted(feed->service)};
    api_watch_until_stopped(feed->kube, &spec, &feed->sink, &feed->stop);
    return NULL;
}

/* Calls it ten times a second until the end. */
static void repeat(struct feed *feed, void (*what)(struct feed *feed))
{
    const struct gs_clock *clock = gs_clock_system();
    int64_t due_ns = gs_clock_now_ns(clock);
    pthread_mutex_lock(&feed->lock);
    while (!atomic_load(&feed->stop)) {
        /* ticks that a stopped or suspended process missed are not made up for */
        int64_t now_ns = gs_clock_now_ns(clock);
        due_ns = due_ns + TICK_NS > now_ns ? due_ns + TICK_NS : now_ns;
        struct timespec due = gs_clock_wait_until(due_ns);
        while (!atomic_load(&feed->stop) &&
               pthread_cond_timedwait(&feed->changed, &feed->lock, &due) != ETIMEDOUT)
            ;
        pthread_mutex_unlock(&feed->lock);
        if (!atomic_load(&feed->stop))
            what(feed);
        pthread_mutex_lock(&feed->lock);
    }
    pthread_mutex_unlock(&feed->lock);
}

static void ask_whether_to_nominate(struct feed *feed)
{
    int64_t now_ns = gs_clock_now_ns(gs_clock_system());
    struct gs_error err = {0};
    const char *why;
    bool may;
    if (!gs_service_loaded(feed->service) || now_ns < feed->next_ask_ns)
        return;
    if (nominating_ask(feed->client, &may, &why, &err) < 0) {
        feed->next_ask_ns = now_ns + ASK_NS;
        gs_log(GS_LOG_WARN, "pods are not nominated yet", GS_STR("why", err.msg));
        return;
    }
    feed->asks = false;
    gs_service_nominate(feed->service, may);
    gs_log(GS_LOG_INFO, may ? "pods are nominated" : "pods are not nominated",
           GS_STR("why", may ? "kube-scheduler may look at a sample of the nodes" : why));
}

static void tick_service(struct feed *feed)
{
    if (feed->asks)
        ask_whether_to_nominate(feed);
    gs_service_tick(feed->service);
}

static void *tick(void *arg)
{
    repeat(arg, tick_service);
    return NULL;
}

static void tick_service_term(struct feed *feed)
{
    gs_service_term_tick(feed->service);
}

static void *tick_term(void *arg)
{
    repeat(arg, tick_service_term);
    return NULL;
}

static void tick_service_promises(struct feed *feed)
{
    gs_service_promises_tick(feed->service);
}

static void *tick_promises(void *arg)
{
    repeat(arg, tick_service_promises);
    return NULL;
}

static int start_threads(struct feed *feed)
{
    void *(*const bodies[THREADS])(void *) = {watch_nodes, watch_pods, tick, tick_term,
                                              tick_promises};
    for (int i = 0; i < THREADS; i++) {
        int error = pthread_create(&feed->threads[i], NULL, bodies[i], feed);
        if (error)
            return error;
        feed->thread_count++;
    }
    return 0;
}

int feed_start(struct gs_service *service, struct gs_kube_client *client, bool nominates,
               struct feed **ret_feed, struct gs_error *err)
{
    struct feed *feed = calloc(1, sizeof(*feed));
    if (!feed)
        return gs_fail_nomem(err);
    feed->service = service;
    feed->client = client;
    feed->kube = gs_kube_client_port(client);
    feed->asks = nominates;
    feed->sink = gs_service_sink(service);
    pthread_mutex_init(&feed->lock, NULL);
    gs_clock_cond_init(&feed->changed);
    int error = start_threads(feed);
    if (error || budget_watch_start(service, client, &feed->budgets, err) < 0) {
        feed_stop(feed);
        return error ? gs_fail_errno(err, GS_ENOMEM, error, "thread") : -1;
    }
    *ret_feed = feed;
    return 0;
}

void feed_stop(struct feed *feed)
{
    if (!feed)
        return;
    pthread_mutex_lock(&feed->lock);
    atomic_store(&feed->stop, true);
    pthread_cond_broadcast(&feed->changed);
    pthread_mutex_unlock(&feed->lock);
    feed->kube.ops->wake(feed->kube.ctx);
    for (int i = 0; i < feed->thread_count; i++)
        pthread_join(feed->threads[i], NULL);
    budget_watch_stop(feed->budgets);
    pthread_cond_destroy(&feed->changed);
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}
