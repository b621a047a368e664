/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpushare/base/utf8.h"
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

/* ---- pods that somebody looks at: what others said of them stands in no row ---- */

#define AGAIN_NS (3 * GS_NS_PER_S)
#define LIST_NS  (5 * GS_NS_PER_S) /* somebody waits */

static int64_t now_ns(void)
{
    return gs_clock_now_ns(gs_clock_system());
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

/* `why`, word for word, where the query is of a pod. *Caller frees*; NULL: no memory. */
static char *word_why(struct web *web, const struct web_query *query, struct why *why,
                      struct gs_error *err)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    gs_utf8_calm(err->msg);
    if (err->code || web_refresh(web, err) < 0) {
        fprintf(out, "The API server could not be asked about it: %s\n", err->msg);
    } else if (query->view == WEB_POD) {
        why_find(why, &web->view);
        why_tell(why, out);
    }
    fclose(out);
    return text;
}

static void keep_pod(struct web *web, const struct web_query *query, struct web_pod pod)
{
    struct web_pod *known = web_pod_find(web, query);
    if (known)
        web->version += strcmp(known->why, pod.why) != 0 || strcmp(known->events, pod.events) != 0;
    else
        known = &web->pods[web->pod_count++ % WEB_PODS_MAX];
    free(known->why);
    *known = pod;
}

void web_pod_ask(struct web *web, const struct web_query *query)
{
    const bool of_pod = query->view == WEB_POD;
    struct why why = {.common = web->common};
    struct web_pod pod = {.query = *query};
    struct gs_error err = {0};
    if (!is_due(web, query))
        return;
    if (of_pod)
        why_fetch(&why, query->ns, query->name, LIST_NS, &err);
    if (!err.code)
        events_ask(&web->common->source, of_pod ? query->ns : NULL, query->name, pod.events);
    pod.asked_ns = now_ns();
    pthread_mutex_lock(&web->watcher.lock);
    pod.why = word_why(web, query, &why, &err);
    if (pod.why)
        keep_pod(web, query, pod);
    pthread_mutex_unlock(&web->watcher.lock);
    why_release(&why);
}

void web_close(struct web *web)
{
    view_release(&web->view);
    usage_release(&web->usage);
    GS_EACH_OF (pod, web->pods, WEB_PODS_MAX)
        free(pod->why);
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
    char silent[WATCHER_TEXT_BYTES] = "";
    int status;
    if (source->ask(source->ctx, &request, &status, &body, &err) < 0)
        snprintf(silent, sizeof(silent), "the API server does not answer: %.200s", err.msg);
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
