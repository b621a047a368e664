/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpushare/base/utf8.h"
#include "inspect/web.h"

/* One view for all who look, and what each of them has seen of it. */

enum { STREAM_BYTES_MAX = 32 << 20 };

static int build(struct web *web, struct gs_error *err)
{
    struct snapshot *snapshot = &web->watcher.snapshot;
    const struct view_options options = {
        .usage = &web->usage, .waits = true, .now_s = common_now_s(web->own.common)};
    view_release(&web->state.view);
    web->watcher.changed = view_build(snapshot, &options, &web->state.view, err) < 0;
    if (web->watcher.changed) {
        view_release(&web->state.view);
        return -1;
    }
    web->version++;
    return 0;
}

int web_refresh(struct web *web, struct gs_error *err)
{
    if (!watcher_listed(&web->watcher))
        return gs_fail(err, GS_EBUSY, "the cluster is still being read");
    return web->version && !web->watcher.changed ? 0 : build(web, err);
}

/* ---- pods that somebody looks at: what others said of them stands in no row ---- */

#define AGAIN_NS (3 * GS_NS_PER_S)

static int64_t now_ns(void)
{
    return gs_clock_now_ns(gs_clock_system());
}

static struct web_pod *oldest(struct web_pods *pods)
{
    struct web_pod *oldest = &pods->all[0];
    for (size_t i = 1; i < WEB_PODS_MAX; i++) {
        if (pods->all[i].asked_ns < oldest->asked_ns)
            oldest = &pods->all[i];
    }
    return oldest;
}

static bool says_other(const struct web_pod *a, const struct web_pod *b)
{
    return a->why.state != b->why.state || strcmp(a->why.said, b->why.said) != 0 ||
           strcmp(a->why.trouble, b->why.trouble) != 0 || strcmp(a->failed, b->failed) != 0 ||
           strcmp(a->events, b->events) != 0;
}

/* Pods with GPU memory alone are asked about: the page shows no others. */
static bool is_due(struct web *web, const struct web_query *query)
{
    struct gs_error ignored = {0};
    pthread_mutex_lock(&web->watcher.lock);
    const struct web_pod *known = web_pods_find(&web->pods, query);
    const bool recent = known && now_ns() - known->asked_ns < AGAIN_NS;
    const bool due = !recent && web_refresh(web, &ignored) == 0 && web_has(&web->state.view, query);
    pthread_mutex_unlock(&web->watcher.lock);
    return due;
}

void web_pod_ask(struct web *web, const struct web_query *query)
{
    struct web_pod pod = {.why.common = web->own.common};
    struct gs_error err = {0};
    if (!is_due(web, query))
        return;
    const bool of_pod = query->view == WEB_POD;
    snprintf(pod.ns, sizeof(pod.ns), "%s", of_pod ? query->ns : "");
    snprintf(pod.name, sizeof(pod.name), "%s", query->name);
    if (of_pod && why_list(&pod.why, pod.ns, pod.name, &err) < 0)
        snprintf(pod.failed, sizeof(pod.failed), "%s", err.msg);
    else if (of_pod && pod.why.state == WHY_WAITING)
        promised_fetch(web->own.common, pod.why.pod.uid, &pod.why.promised);
    gs_utf8_calm(pod.failed);
    if (!pod.failed[0])
        events_ask(&web->own.common->source, of_pod ? pod.ns : NULL, pod.name, pod.events);
    pod.asked_ns = now_ns();
    pthread_mutex_lock(&web->watcher.lock);
    struct web_pod *known = web_pods_find(&web->pods, query);
    struct web_pod *to = known ? known : oldest(&web->pods);
    web->watcher.changed |= known && says_other(known, &pod);
    why_release(&to->why);
    *to = pod;
    pthread_mutex_unlock(&web->watcher.lock);
}

/* ---- what is drawn ---- */

/* Why the page is not up to date; "" when it is. */
static const char *web_lost(const struct web *web)
{
    return web->watcher.lost[0] ? web->watcher.lost : web->silent;
}

void web_render(struct web *web, const struct web_query *query)
{
    web->state.server = web->own.common->source.server;
    web->state.lost = web_lost(web);
    web->state.pods = &web->pods;
    web_parts_render(&web->state, query, &web->parts);
}

/* ---- one client ---- */

/* Both the list and the server hold it; the server says when it has let go. */
static void on_close(void *ctx)
{
    struct web_client *client = ctx;
    client->gone = true;
}

static void free_client(struct web_client *client)
{
    gs_http_stream_unref(client->stream);
    free(client);
}

static void remember(struct web_client *client, const struct web_parts *parts)
{
    client->count = parts->count;
    for (uint32_t i = 0; i < parts->count; i++) {
        client->ids[i] = parts->part[i].id;
        client->contents[i] = parts->part[i].content;
    }
}

static bool same_ids(const struct web_client *client, const struct web_parts *parts)
{
    for (uint32_t i = 0; i < parts->count && i < client->count; i++) {
        if (client->ids[i] != parts->part[i].id)
            return false;
    }
    return client->count == parts->count;
}

static void add_event(struct gs_buf *out, const char *event, const char *html, size_t len)
{
    gs_buf_printf(out, "event: %s\ndata: ", event);
    gs_buf_json_string(out, html, len);
    gs_buf_puts(out, "\n\n");
}

/* What is new to him: the parts that differ, or all when there are others than before. */
static void add_news(const struct web_client *client, const struct web_parts *parts,
                     struct gs_buf *out)
{
    if (!same_ids(client, parts)) {
        add_event(out, "page", parts->html.data, parts->html.len);
        return;
    }
    for (uint32_t i = 0; i < parts->count; i++) {
        if (client->contents[i] != parts->part[i].content)
            add_event(out, "part", parts->html.data + parts->part[i].from,
                      parts->part[i].to - parts->part[i].from);
    }
}

static void tell(struct web *web, struct web_client *client, bool tick)
{
    _cleanup_(gs_buf_release) struct gs_buf out = GS_BUF(STREAM_BYTES_MAX);
    if (client->version != web->version) {
        web_render(web, &client->query);
        if (gs_buf_failed(&web->parts.html))
            return;
        add_news(client, &web->parts, &out);
        remember(client, &web->parts);
        client->version = web->version;
    }
    if (tick || out.len)
        gs_buf_printf(&out, "event: alive\ndata: %s\n\n", web_lost(web)[0] ? "false" : "true");
    if (!gs_buf_failed(&out) && out.len)
        gs_http_stream_write(client->stream, out.data, out.len, NULL);
}

/* ---- all of them ---- */

static bool add_client(struct web *web, struct web_client *client)
{
    bool added = false;
    pthread_mutex_lock(&web->lock);
    for (int i = 0; i < WEB_CLIENTS_MAX && !added; i++) {
        if (web->clients[i])
            continue;
        web->clients[i] = client;
        added = true;
    }
    pthread_mutex_unlock(&web->lock);
    return added;
}

struct gs_http_stream *web_open(struct web *web, const struct web_query *query, const char *seen)
{
    struct web_client *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->query = *query;
    client->stream = gs_http_stream_new(STREAM_BYTES_MAX, on_close, client);
    if (!client->stream) {
        free(client);
        return NULL;
    }
    char sum[WEB_SUM_BYTES];
    web_render(web, query);
    web_parts_sum(&web->parts, sum);
    if (!gs_buf_failed(&web->parts.html) && strcmp(sum, seen) == 0) {
        remember(client, &web->parts);
        client->version = web->version;
    }
    if (!add_client(web, client)) {
        free_client(client);
        return NULL;
    }
    return client->stream;
}

void web_push(struct web *web, bool tick)
{
    struct gs_error ignored = {0};
    pthread_mutex_lock(&web->watcher.lock);
    if (web_refresh(web, &ignored) == 0) {
        pthread_mutex_lock(&web->lock);
        for (int i = 0; i < WEB_CLIENTS_MAX; i++) {
            struct web_client *client = web->clients[i];
            if (client && client->gone) {
                free_client(client);
                web->clients[i] = NULL;
            } else if (client) {
                tell(web, client, tick);
            }
        }
        pthread_mutex_unlock(&web->lock);
    }
    pthread_mutex_unlock(&web->watcher.lock);
}

void web_close(struct web *web)
{
    for (int i = 0; i < WEB_CLIENTS_MAX; i++) {
        if (web->clients[i])
            free_client(web->clients[i]);
        web->clients[i] = NULL;
    }
    view_release(&web->state.view);
    usage_release(&web->usage);
    web_pods_release(&web->pods);
    gs_buf_release(&web->parts.html);
}

/* ---- what pods truly use ---- */

/* The plugins look every ten seconds, too. Where asking takes long, a tenth of the time is spent on
 * it. */
#define PAUSE_NS ((int64_t)10 * GS_NS_PER_S)
#define LOOKS_NS ((int64_t)60 * GS_NS_PER_S)
#define TICK_NS  (200 * GS_NS_PER_MS)
enum { SHARE = 10 };

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
    const struct usage_query query = common_usage(web->own.common, NULL);
    usage_fetch(&query, &usage);
    pthread_mutex_lock(&web->watcher.lock);
    web->watcher.changed |= usage.answered || web->usage.answered;
    before = web->usage;
    web->usage = usage;
    pthread_mutex_unlock(&web->watcher.lock);
    usage_release(&before);
}

/* About each pod that somebody looks at. */
static void ask_about_pods(struct web *web)
{
    for (int i = 0; i < WEB_CLIENTS_MAX && !web->stopping; i++) {
        struct web_query query = {0};
        pthread_mutex_lock(&web->lock);
        if (web->clients[i] && !web->clients[i]->gone)
            query = web->clients[i]->query;
        pthread_mutex_unlock(&web->lock);
        if (web_asks(&query))
            web_pod_ask(web, &query);
    }
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
        ask_about_pods(web);
        nanosleep(&tick, NULL);
    }
    return NULL;
}

/* ---- whether the API server answers ---- */

/* One that hangs ends no watch: it is asked for one node, from its store. */
#define PULSE_NS      (4 * GS_NS_PER_S)
#define PULSE_WAIT_NS (5 * GS_NS_PER_S)

static void take_pulse(struct web *web)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    const struct source *source = &web->own.common->source;
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

void *web_pulse(void *arg)
{
    struct web *web = arg;
    const struct timespec tick = {0, TICK_NS};
    int64_t due_ns = 0;
    while (!web->stopping) {
        if (now_ns() >= due_ns && somebody_looks(web)) {
            take_pulse(web);
            due_ns = now_ns() + PULSE_NS;
        }
        nanosleep(&tick, NULL);
    }
    return NULL;
}
