/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpushare/base/utf8.h"
#include "inspect/web.h"

/* One view for all who look, what others say of what they look at, and threads that ask. */

static int build(struct web *web, struct gs_error *err)
{
    struct snapshot *snapshot = &web->watcher.snapshot;
    const struct view_options options = {
        .usage = &web->usage, .waits = true, .now_s = common_now_s(web->common)};
    view_release(&web->view);
    web->watcher.changed = view_build(snapshot, &options, &web->view, err) < 0;
    if (web->watcher.changed) {
        view_release(&web->view);
        return -1;
    }
    web->version++;
    memset(web->sort, 0, sizeof(web->sort)); /* by name */
    return 0;
}

int web_refresh(struct web *web, struct gs_error *err)
{
    if (!watcher_listed(&web->watcher))
        return gs_fail(err, GS_EBUSY, "the cluster is still being read");
    return web->watcher.changed ? build(web, err) : 0;
}

/* ---- pods that somebody looks at: what others said of them stands in no row ---- */

#define AGAIN_NS (3 * GS_NS_PER_S)
#define LIST_NS  (5 * GS_NS_PER_S) /* somebody waits */

static int64_t now_ns(void)
{
    return gs_clock_now_ns(gs_clock_system());
}

bool web_asks(const struct web_query *query)
{
    return query->view == WEB_POD || query->view == WEB_NODE;
}

static struct web_pod *oldest(struct web *web)
{
    struct web_pod *oldest = web->pods;
    GS_EACH_OF (pod, web->pods, WEB_PODS_MAX) {
        if (pod->asked_ns < oldest->asked_ns)
            oldest = pod;
    }
    return oldest;
}

static bool says_other(const struct web_pod *a, const struct web_pod *b)
{
    return a->why.state != b->why.state || strcmp(a->why.pod.said, b->why.pod.said) != 0 ||
           strcmp(a->why.trouble, b->why.trouble) != 0 || strcmp(a->failed, b->failed) != 0 ||
           strcmp(a->events, b->events) != 0;
}

/* Pods with GPU memory alone are asked about: the page shows no others. */
static bool is_due(struct web *web, const struct web_query *query)
{
    struct gs_error ignored = {0};
    pthread_mutex_lock(&web->watcher.lock);
    const struct web_pod *known = web_pod_find(web, query);
    const bool recent = known && now_ns() - known->asked_ns < AGAIN_NS;
    const bool due = !recent && web_refresh(web, &ignored) == 0 && web_has(&web->view, query);
    pthread_mutex_unlock(&web->watcher.lock);
    return due;
}

void web_pod_ask(struct web *web, const struct web_query *query)
{
    struct web_pod pod = {.why.common = web->common};
    struct gs_error err = {0};
    if (!is_due(web, query))
        return;
    gs_pod_reset(&pod.why.pod); /* of a node, or of one that cannot be read */
    const bool of_pod = query->view == WEB_POD;
    snprintf(pod.ns, sizeof(pod.ns), "%s", of_pod ? query->ns : "");
    snprintf(pod.name, sizeof(pod.name), "%s", query->name);
    if (of_pod && why_fetch(&pod.why, pod.ns, pod.name, LIST_NS, &err) < 0)
        snprintf(pod.failed, sizeof(pod.failed), "%s", err.msg);
    gs_utf8_calm(pod.failed);
    if (!pod.failed[0])
        events_ask(&web->common->source, of_pod ? pod.ns : NULL, pod.name, pod.events);
    pod.asked_ns = now_ns();
    pthread_mutex_lock(&web->watcher.lock);
    struct web_pod *known = web_pod_find(web, query);
    struct web_pod *to = known ? known : oldest(web);
    web->watcher.changed |= known && says_other(known, &pod);
    why_release(&to->why);
    *to = pod;
    pthread_mutex_unlock(&web->watcher.lock);
}

uint64_t web_version(const struct web *web)
{
    return web->version + web->watcher.changed;
}

void web_close(struct web *web)
{
    view_release(&web->view);
    usage_release(&web->usage);
    GS_EACH_OF (pod, web->pods, WEB_PODS_MAX)
        why_release(&pod->why);
}

/* ---- what pods use ---- */

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

/* One that hangs ends no watch: it is asked for one node, from its store. */
#define PULSE_NS      (4 * GS_NS_PER_S)
#define PULSE_WAIT_NS (5 * GS_NS_PER_S)

static void take_pulse(struct web *web)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    const struct source *source = &web->common->source;
    const struct gs_kube_request request = {
        .method = "GET", .path = "/api/v1/nodes", .query = "limit=1", .timeout_ns = PULSE_WAIT_NS};
    struct gs_error err = {0};
    char silent[sizeof(web->silent)] = "";
    int status;
    if (source->ask(source->ctx, &request, &status, &body, &err) < 0)
        snprintf(silent, sizeof(silent), "the API server does not answer: %.200s", err.msg);
    gs_utf8_calm(silent);
    pthread_mutex_lock(&web->watcher.lock);
    web->watcher.changed |= strcmp(web->silent, silent) != 0;
    memcpy(web->silent, silent, sizeof(silent));
    pthread_mutex_unlock(&web->watcher.lock);
}

/* ---- threads ---- */

/* pause_ns between, or so many times what it took. */
static void *run(struct web *web, void (*act)(struct web *), int64_t pause_ns, int share)
{
    const struct timespec tick = {0, TICK_NS};
    int64_t due_ns = 0;
    while (!web->stopping) {
        const int64_t begun_ns = now_ns();
        if (begun_ns >= due_ns && somebody_looks(web)) {
            act(web);
            const int64_t rest_ns = (now_ns() - begun_ns) * share;
            due_ns = now_ns() + (rest_ns > pause_ns ? rest_ns : pause_ns);
        }
        nanosleep(&tick, NULL);
    }
    return NULL;
}

void *web_follow(void *arg)
{
    return run(arg, ask, PAUSE_NS, 10);
}

void *web_pulse(void *arg)
{
    return run(arg, take_pulse, PULSE_NS, 0);
}
