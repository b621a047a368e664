/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "client_private.h"
#include "gpushare/base/backoff.h"
#include "watch_private.h"

/* A watch: lists, streams, resumes the stream after a disconnect, and lists again when it must. */

/* A stream that ends sooner than this, without an event, has failed. */
#define SHORT_STREAM_NS GS_NS_PER_S

/* The longest wait before the first attempt after a failure: most failures are cut connections, and
 * without a watch the state becomes stale. */
#define FIRST_RETRY_NS (100 * GS_NS_PER_MS)

/* After this many streams without an event, list again: the server may not have our
 * resourceVersion. */
enum { BARREN_STREAMS_MAX = 4 };

static void on_answered(void *ctx)
{
    struct gs_watcher *watcher = ctx;
    GS_COUNT(watcher->client, watch_starts, 1);
    watcher->refused = false;
    if (!watcher->live)
        watcher->sink->live(watcher->sink->ctx, watcher->spec->kind, true, "");
    watcher->live = true;
}

/* Waits before the next attempt: longer after each failure, at least Retry-After. Reports every
 * failure, because the reason may change. */
static void retry_later(struct gs_watcher *watcher, const char *why, int64_t at_least_ns)
{
    const struct gs_kube_options *options = &watcher->client->options;
    watcher->live = false;
    watcher->sink->live(watcher->sink->ctx, watcher->spec->kind, false, why);
    int64_t wait_ns =
        watcher->attempt == 0
            ? gs_backoff_ns(0, FIRST_RETRY_NS / 2, FIRST_RETRY_NS)
            : gs_backoff_ns(watcher->attempt - 1, options->backoff_min_ns, options->backoff_max_ns);
    if (at_least_ns > options->backoff_max_ns)
        at_least_ns = options->backoff_max_ns;
    if (wait_ns < at_least_ns)
        wait_ns = at_least_ns;
    if (watcher->attempt < UINT32_MAX)
        watcher->attempt++;
    gs_client_wait(watcher->client, &watcher->runner, wait_ns);
}

static void list(struct gs_watcher *watcher)
{
    struct gs_error why = {0};
    char rv[GS_RV_BYTES];
    int64_t begun_ns = gs_clock_now_ns(watcher->client->options.clock);
    watcher->rv[0] = '\0';
    if (watcher->spec->list_wanted)
        atomic_store(watcher->spec->list_wanted, false);
    int result = gs_watcher_list(watcher, gs_watcher_list_begin,
                                 watcher->client->options.list_timeout_ns, INT64_MAX, rv, &why);
    if (result == 0 && rv[0] == '\0')
        result = gs_fail(&why, GS_EPROTO, "the list has no resourceVersion");
    if (result == 0 && watcher->sink->list_end(watcher->sink->ctx, watcher->spec->kind) < 0)
        result = gs_fail_nomem(&why);
    if (result < 0) {
        if (gs_runner_stopped(&watcher->runner) || gs_runner_list_wanted(&watcher->runner))
            return;
        retry_later(watcher, why.msg, 0);
        return;
    }
    memcpy(watcher->rv, rv, sizeof(rv));
    watcher->barren = 0;
    GS_COUNT(watcher->client, lists, 1);
    GS_COUNT(watcher->client, list_ns,
             (uint64_t)(gs_clock_now_ns(watcher->client->options.clock) - begun_ns));
    if (watcher->listed)
        GS_COUNT(watcher->client, relists, 1);
    watcher->listed = true;
}

static void build_query(struct gs_watcher *watcher, struct gs_buf *query)
{
    int64_t min_ns = watcher->client->options.watch_timeout_ns;
    int64_t span_ns = gs_backoff_ns(0, min_ns, INT64_MAX);
    int64_t span_s = (span_ns + GS_NS_PER_S - 1) / GS_NS_PER_S;
    gs_buf_puts(query, "watch=true&allowWatchBookmarks=true&resourceVersion=");
    gs_url_escape(query, watcher->rv);
    gs_buf_printf(query, "&timeoutSeconds=%lld", (long long)span_s);
    if (watcher->query.data)
        gs_buf_printf(query, "&%s", watcher->query.data);
}

/* 0: the stream ended normally. -1: *why says why. */
static int stream(struct gs_watcher *watcher, struct gs_exchange *exchange, struct gs_error *why)
{
    _cleanup_(gs_buf_release) struct gs_buf query = GS_BUF(64 << 10);
    build_query(watcher, &query);
    if (gs_buf_failed(&query))
        return gs_fail_nomem(why);
    struct gs_kube_request request = {.method = "GET", .path = watcher->path, .query = query.data};
    exchange->request = &request;
    int result = gs_exchange_run(watcher->client, &watcher->runner, exchange, why);
    exchange->request = NULL;
    if (result < 0 || exchange->status == 200)
        return result;
    const struct gs_buf *body = exchange->body;
    return gs_kube_fail_status(exchange->status, body->data ? body->data : "", body->len, why);
}

/* Decides after a failed stream whether to list again, and updates the statistics. */
static void judge_failure(struct gs_watcher *watcher, const struct gs_exchange *exchange,
                          const struct gs_error *why)
{
    struct gs_kube_client *client = watcher->client;
    if (why->code == GS_EGONE) {
        GS_COUNT(client, watch_expired, 1);
        watcher->rv[0] = '\0';
    } else {
        GS_COUNT(client, watch_cuts, 1);
    }
    if (watcher->must_list || why->code == GS_ETOOBIG)
        watcher->rv[0] = '\0';
    /* Our resourceVersion is newer than this server's (apiserver, storage/errors.go): it lags
     * behind another server, or was restored from a backup, and then the version is invalid. */
    if (strstr(why->msg, "Too large resource version") && watcher->barren > 0)
        watcher->rv[0] = '\0';
    /* An unreachable server does not make our resourceVersion invalid. */
    if (!exchange->unsent && ++watcher->barren >= BARREN_STREAMS_MAX)
        watcher->rv[0] = '\0';
}

/* A 401 is retried once, with re-read files. */
static bool is_renewed(struct gs_watcher *watcher, const struct gs_exchange *exchange)
{
    if (exchange->status != 401 || watcher->refused)
        return false;
    watcher->refused = true;
    return gs_auth_refused(watcher->client->auth, exchange->shown);
}

static void watch_once(struct gs_watcher *watcher)
{
    struct gs_error why = {0};
    const struct gs_kube_options *options = &watcher->client->options;
    struct gs_exchange exchange = {
        .head_ns = options->request_timeout_ns,
        .stall_ns = options->stall_timeout_ns,
        .body = &watcher->body,
        .lines = &watcher->lines,
        .line = gs_watcher_line,
        .answered = on_answered,
        .ctx = watcher,
    };
    watcher->events = 0;
    watcher->must_list = false;
    int64_t begun_ns = gs_clock_now_ns(watcher->client->options.clock);
    int result = stream(watcher, &exchange, &why);
    int64_t lasted_ns = gs_clock_now_ns(watcher->client->options.clock) - begun_ns;
    /* A stream that lasted longer than any wait resets the count of failures: otherwise a proxy
     * that cuts idle connections would lengthen each wait. */
    const bool useful = watcher->events > 0 || (result == 0 && lasted_ns >= SHORT_STREAM_NS);
    if (useful)
        watcher->barren = 0;
    if (useful || (exchange.headed && lasted_ns >= options->backoff_max_ns))
        watcher->attempt = 0;
    if ((result < 0 || !useful) && !gs_runner_stopped(&watcher->runner) &&
        !gs_runner_list_wanted(&watcher->runner)) {
        if (result == 0)
            gs_fail(&why, GS_EIO, "the watch ended immediately");
        judge_failure(watcher, &exchange, &why);
        if (!is_renewed(watcher, &exchange))
            retry_later(watcher, why.msg, exchange.retry_after_ns);
    }
}

int gs_op_watch(void *ctx, const struct gs_watch_spec *spec, const struct gs_watch_sink *sink,
                const atomic_bool *stop, struct gs_error *err)
{
    struct gs_kube_client *client = ctx;
    struct gs_watcher watcher = GS_WATCHER(client, spec, sink);
    int result = gs_watcher_prepare(&watcher, err);
    if (result == 0)
        result = gs_runner_open(client, stop, &watcher.runner, err);
    if (result == 0) {
        watcher.runner.list_wanted = spec->list_wanted;
        while (!gs_runner_stopped(&watcher.runner)) {
            if (watcher.rv[0] == '\0' || gs_runner_list_wanted(&watcher.runner))
                list(&watcher);
            else
                watch_once(&watcher);
        }
        gs_runner_close(client, &watcher.runner);
    }
    gs_watcher_release(&watcher);
    return result;
}

void gs_op_wake(void *ctx)
{
    struct gs_kube_client *client = ctx;
    pthread_mutex_lock(&client->lock);
    for (struct gs_runner *runner = client->runners; runner; runner = runner->next)
        curl_multi_wakeup(runner->multi);
    pthread_mutex_unlock(&client->lock);
}
