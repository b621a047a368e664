/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <time.h>

#include "inspect/web.h"

/* One view for all who look, what others say of what they look at, and a thread that asks. */

static int build(struct web *web, struct gs_error *err)
{
    struct snapshot *snapshot = &web->watcher.snapshot;
    const struct view_options options = {
        .usage = &web->usage, .waits = true, .now_s = common_now_s(web->common)};
    view_release(&web->view);
    if (view_build(snapshot, &options, &web->view, err) < 0)
        return -1;
    web->watcher.changed = false;
    web->version++;
    web->sort[0] = '\0'; /* by name */
    return 0;
}

int web_refresh(struct web *web, struct gs_error *err)
{
    if (!watcher_listed(&web->watcher))
        return gs_fail(err, GS_EBUSY, "the cluster is still being read");
    return web->watcher.changed ? build(web, err) : 0;
}

/* ---- what others say of what somebody looks at ---- */

#define LIST_NS (5 * GS_NS_PER_S) /* somebody waits */

/* Only about what the view has: the page shows nothing else. Nobody waits for an API server that is
 * known not to answer. */
void web_ask(struct web *web, const struct web_query *query, struct web_words *ret)
{
    const bool of_pod = query->view == WEB_POD;
    ret->why.common = web->common;
    pthread_mutex_lock(&web->watcher.lock);
    if (web->silent[0])
        gs_fail(&ret->err, GS_EIO, "%s", web->silent);
    else if (web_refresh(web, &ret->err) == 0 && !web_has(&web->view, query))
        gs_fail(&ret->err, GS_ENOENT, "it has just appeared");
    pthread_mutex_unlock(&web->watcher.lock);
    if (!ret->err.code && of_pod)
        why_fetch(&ret->why, query->ns, query->name, LIST_NS, &ret->err);
    if (!ret->err.code)
        events_ask(&web->common->source, of_pod ? query->ns : NULL, query->name, ret->events);
}

void web_close(struct web *web)
{
    view_release(&web->view);
    usage_release(&web->usage);
}

/* ---- what pods use ---- */

static int64_t now_ns(void)
{
    return gs_clock_now_ns(gs_clock_system());
}

/* The plugins look every ten seconds, too. Where asking takes long, a tenth of the time is spent on
 * it. */
#define PAUSE_NS ((int64_t)10 * GS_NS_PER_S)
#define LOOKS_NS ((int64_t)60 * GS_NS_PER_S)
#define TICK_NS  (200 * GS_NS_PER_MS)

static bool somebody_looks(const struct web *web)
{
    return web->asked_ns && now_ns() - web->asked_ns < LOOKS_NS;
}

static void ask(struct web *web)
{
    struct usage usage, before;
    const struct usage_query query = common_usage(web->common, NULL);
    usage_fetch(&query, &usage);
    pthread_mutex_lock(&web->watcher.lock);
    web->watcher.changed |= usage.answered || web->usage.answered;
    before = web->usage;
    web->usage = usage;
    pthread_mutex_unlock(&web->watcher.lock);
    usage_release(&before);
}

/* ---- whether the API server answers ---- */

/* One that hangs ends no watch: it is asked for one node and one pod, from its store. */
#define PULSE_NS      (4 * GS_NS_PER_S)
#define PULSE_WAIT_NS (5 * GS_NS_PER_S)

static void take_pulse(struct web *web)
{
    const struct source *source = &web->common->source;
    char silent[WATCHER_TEXT_BYTES] = "";
    for (int kind = 0; kind < 2 && !silent[0]; kind++) {
        _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
        const struct gs_kube_request request = {.method = "GET",
                                                .path = kind ? "/api/v1/pods" : "/api/v1/nodes",
                                                .query = "limit=1",
                                                .timeout_ns = PULSE_WAIT_NS};
        struct gs_error err = {0};
        int status;
        if (source->ask(source->ctx, &request, &status, &body, &err) < 0)
            snprintf(silent, sizeof(silent), "the API server does not answer: %.200s", err.msg);
    }
    watcher_set_text(&web->watcher, web->silent, silent);
}

/* ---- the thread ---- */

void *web_follow(void *arg)
{
    const struct timespec tick = {0, TICK_NS};
    struct web *web = arg;
    int64_t pulse_ns = 0, usage_ns = 0; /* when they are due */
    for (; !web->stopping; nanosleep(&tick, NULL)) {
        const int64_t begun_ns = now_ns();
        if (begun_ns < pulse_ns || !somebody_looks(web))
            continue;
        take_pulse(web);
        pulse_ns = now_ns() + PULSE_NS;
        if (web->silent[0] || begun_ns < usage_ns)
            continue;
        ask(web);
        const int64_t rest_ns = (now_ns() - begun_ns) * 10;
        usage_ns = now_ns() + (rest_ns > PAUSE_NS ? rest_ns : PAUSE_NS);
    }
    return NULL;
}
