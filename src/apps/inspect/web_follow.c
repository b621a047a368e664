/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "inspect/web.h"

/* The plugins look every ten seconds, too. Where asking takes long, a tenth of the time is spent on
 * it. */
#define PAUSE_NS ((int64_t)10 * GS_NS_PER_S)
#define LOOKS_NS ((int64_t)60 * GS_NS_PER_S)
#define TICK_NS  (200 * GS_NS_PER_MS)
enum { SHARE = 10 };

static int64_t now_ns(void)
{
    return gs_clock_now_ns(gs_clock_system());
}

/* A page was asked for a short time ago, or a stream is open. */
static bool somebody_looks(struct web *web)
{
    bool looks = web->asked_ns && now_ns() - web->asked_ns < LOOKS_NS;
    pthread_mutex_lock(&web->lock);
    for (int i = 0; i < WEB_CLIENTS_MAX && !looks; i++)
        looks = web->clients[i] && !web->clients[i]->gone;
    pthread_mutex_unlock(&web->lock);
    return looks;
}

static void ask(struct web *web)
{
    struct usage usage, before;
    const struct usage_query query = {.source = web->own.source,
                                      .clock = web->clock,
                                      .system_ns = web->system_ns,
                                      .timeout_ns = USAGE_TIME_NS};
    usage_fetch(&query, &usage);
    pthread_mutex_lock(&web->watcher.lock);
    web->watcher.changed |= usage.answered || web->usage.answered;
    before = web->usage;
    web->usage = usage;
    pthread_mutex_unlock(&web->watcher.lock);
    usage_release(&before);
}

void *web_follow(void *arg)
{
    struct web *web = arg;
    const struct timespec tick = {0, TICK_NS};
    int64_t due_ns = 0;
    while (!web->stopping) {
        int64_t begun_ns = now_ns();
        if (begun_ns >= due_ns && somebody_looks(web)) {
            ask(web);
            int64_t pause_ns = (now_ns() - begun_ns) * SHARE;
            due_ns = now_ns() + (pause_ns > PAUSE_NS ? pause_ns : PAUSE_NS);
        }
        nanosleep(&tick, NULL);
    }
    return NULL;
}
