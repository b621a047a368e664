/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "gpushare/codec/watch.h"
#include "watch_private.h"

/* Decodes the bytes of a list or a watch and calls the sink. */

/* The sink is out of memory: only a new list can restore what it missed. */
static int fail_sink(struct gs_watcher *watcher, struct gs_error *err)
{
    watcher->must_list = true;
    return gs_fail(err, GS_ENOMEM, "out of memory while handling an object");
}

int gs_watcher_list_begin(void *ctx, struct gs_error *err)
{
    struct gs_watcher *watcher = ctx;
    if (watcher->sink->list_begin(watcher->sink->ctx, watcher->spec->kind) < 0)
        return fail_sink(watcher, err);
    return 0;
}

/* 0: decoded into watcher->pod or ->node. -1: *why says why. */
static int decode(struct gs_watcher *watcher, struct gs_scan *scan, struct gs_error *why)
{
    const struct gs_names *names = watcher->client->options.names;
    if (watcher->spec->kind == GS_KIND_POD)
        return gs_codec_pod_take(names, scan, &watcher->pod, why);
    return gs_codec_node_take(names, scan, &watcher->node, why);
}

static int deliver(struct gs_watcher *watcher)
{
    const struct gs_watch_sink *sink = watcher->sink;
    if (watcher->spec->kind == GS_KIND_NODE)
        return sink->node(sink->ctx, &watcher->node);
    return sink->pod(sink->ctx, &watcher->pod);
}

/* Counts and skips an object that cannot be decoded, so that one invalid object does not block the
 * others. If the text around it is invalid, the caller fails. */
int gs_watcher_item(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    struct gs_watcher *watcher = ctx;
    struct gs_error why = {0};
    if (decode(watcher, scan, &why) < 0) {
        if (why.code == GS_ENOMEM)
            return fail_sink(watcher, err);
        if (!scan->failed)
            gs_client_broken(watcher->client, &why);
        return 0;
    }
    return deliver(watcher) < 0 ? fail_sink(watcher, err) : 0;
}

/* A deleted object that cannot be decoded would stay allocated forever: list again. */
static int gone(struct gs_watcher *watcher, struct gs_scan *scan, struct gs_error *err)
{
    struct gs_error why = {0};
    if (decode(watcher, scan, &why) < 0) {
        watcher->must_list = true;
        if (why.code != GS_ENOMEM)
            gs_client_broken(watcher->client, &why);
        return gs_fail(err, why.code, "%s", why.msg);
    }
    const struct gs_watch_sink *sink = watcher->sink;
    int result = watcher->spec->kind == GS_KIND_POD ? sink->pod_gone(sink->ctx, &watcher->pod)
                                                    : sink->node_gone(sink->ctx, &watcher->node);
    return result < 0 ? fail_sink(watcher, err) : 0;
}

/* Whether the version is older than the last. The API does not define an order of versions, but
 * servers use increasing numbers; a lower one means that the server was restored from a backup.
 * Versions that are not numbers are accepted. */
static int move_on(struct gs_watcher *watcher, const char *rv, struct gs_error *err)
{
    uint64_t before, after;
    if (gs_parse_u64(watcher->rv, strlen(watcher->rv), &before) &&
        gs_parse_u64(rv, strlen(rv), &after) && after < before) {
        watcher->must_list = true;
        return gs_fail(err, GS_EPROTO, "the watch returned an older resourceVersion: %s, then %s",
                       watcher->rv, rv);
    }
    memcpy(watcher->rv, rv, GS_RV_BYTES);
    return 0;
}

static int fail_event(const struct gs_api_status *status, struct gs_error *err)
{
    return gs_fail(err, status->code == 410 ? GS_EGONE : GS_EIO, "the watch ended: %s",
                   status->message[0] ? status->message : "no reason given");
}

static int handle(struct gs_watcher *watcher, const struct gs_watch_event *event,
                  struct gs_error *err)
{
    struct gs_kube_client *client = watcher->client;
    struct gs_scan scan;
    gs_scan_init(&scan, event->object);
    switch (event->type) {
    case GS_WATCH_ADDED:
        GS_COUNT(client, events_added, 1);
        return gs_watcher_item(watcher, &scan, err);
    case GS_WATCH_MODIFIED:
        GS_COUNT(client, events_modified, 1);
        return gs_watcher_item(watcher, &scan, err);
    case GS_WATCH_DELETED:
        GS_COUNT(client, events_deleted, 1);
        return gone(watcher, &scan, err);
    case GS_WATCH_BOOKMARK:
        GS_COUNT(client, events_bookmark, 1);
        return 0;
    case GS_WATCH_ERROR:
        return fail_event(&event->status, err);
    }
    return gs_fail(err, GS_EINTERNAL, "unknown type of watch event");
}

int gs_watcher_line(void *ctx, const char *line, size_t len, struct gs_error *err)
{
    struct gs_watcher *watcher = ctx;
    struct gs_watch_event event;
    struct gs_error why = {0};
    char rv[GS_RV_BYTES];
    if (gs_runner_stopped(&watcher->runner))
        return gs_fail(err, GS_ECANCELED, "stopped");
    if (gs_codec_watch_event((struct gs_slice){line, len}, &event, &why) < 0 ||
        (event.type != GS_WATCH_ERROR && gs_codec_object_rv(event.object, rv, &why) < 0)) {
        /* The object of the event is unknown. */
        watcher->must_list = true;
        gs_client_broken(watcher->client, &why);
        return gs_fail(err, why.code, "%s", why.msg);
    }
    if (event.type == GS_WATCH_ERROR)
        return handle(watcher, &event, err);
    if (move_on(watcher, rv, err) < 0)
        return -1;
    watcher->events++;
    return handle(watcher, &event, err);
}
