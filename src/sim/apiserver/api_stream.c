/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api_internal.h"
#include "gpushare/base/clock.h"

/* A watch as lines of JSON: k8s.io/apiserver/pkg/endpoints/handlers/watch.go. Waits in real time,
 * whatever the cluster's clock says, because a client on a socket does. */

enum { CHUNK_BYTES = 256 * 1024 };

struct gs_sim_stream {
    const struct gs_sim_api *api;
    enum gs_sim_kind kind;
    struct gs_sim_watch *watch;
    int64_t end_ns;
    int64_t bookmark_ns; /* when the next is due; INT64_MAX: none are wanted */
    bool cut;
};

static int64_t now_ns(void)
{
    return gs_clock_now_ns(gs_clock_system());
}

int gs_sim_stream_open(const struct gs_sim_api *api, const struct gs_sim_stream_spec *spec,
                       struct gs_sim_stream **ret, struct gs_error *err)
{
    struct gs_sim_stream *stream = calloc(1, sizeof(*stream));
    if (!stream)
        return gs_fail_nomem(err);
    int64_t now = now_ns();
    *stream = (struct gs_sim_stream){
        .api = api,
        .kind = spec->query->kind,
        .end_ns = now + spec->timeout_ns,
        .bookmark_ns = spec->bookmarks ? now + api->bookmark_ns : INT64_MAX,
    };
    if (gs_sim_watch_open(api->cluster, spec->query, spec->from, &stream->watch, err) < 0) {
        free(stream);
        return -1;
    }
    *ret = stream;
    return 0;
}

void gs_sim_stream_free(struct gs_sim_stream *stream)
{
    if (!stream)
        return;
    gs_sim_watch_free(stream->watch);
    free(stream);
}

bool gs_sim_stream_cut(const struct gs_sim_stream *stream)
{
    return stream->cut;
}

static void put_event(const struct gs_sim_event *event, struct gs_buf *out)
{
    static const char *const types[] = {"ADDED", "MODIFIED", "DELETED"};
    gs_buf_printf(out, "{\"type\":\"%s\",\"object\":", types[event->change]);
    gs_sim_object_put(event->object, out);
    gs_buf_puts(out, "}\n");
}

static void put_bookmark(struct gs_sim_stream *stream, struct gs_buf *out)
{
    const struct gs_sim_resource *resource = gs_sim_resource(stream->kind);
    gs_buf_printf(out,
                  "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s\","
                  "\"metadata\":{\"resourceVersion\":\"%llu\",\"creationTimestamp\":null}}}\n",
                  resource->kind, resource->api,
                  (unsigned long long)gs_sim_watch_version(stream->watch));
    stream->bookmark_ns = now_ns() + stream->api->bookmark_ns;
}

static void put_error(const struct gs_error *err, struct gs_buf *out)
{
    gs_buf_puts(out, "{\"type\":\"ERROR\",\"object\":");
    gs_sim_status_put(err, out);
    gs_buf_puts(out, "}\n");
}

/* The time of the first thing that is due, at most wait_ns away. */
static int64_t wait_until_due(const struct gs_sim_stream *stream, int64_t wait_ns)
{
    int64_t due = stream->end_ns < stream->bookmark_ns ? stream->end_ns : stream->bookmark_ns;
    int64_t left = due - now_ns();
    left = left > 0 ? left : 0;
    return left < wait_ns ? left : wait_ns;
}

int gs_sim_stream_next(struct gs_sim_stream *stream, int64_t wait_ns, struct gs_buf *lines)
{
    struct gs_error err = {0};
    struct gs_sim_event event;
    int rc;
    gs_buf_reset(lines);
    wait_ns = wait_until_due(stream, wait_ns);
    while ((rc = gs_sim_watch_next(stream->watch, wait_ns, &event, &err)) > 0) {
        put_event(&event, lines);
        gs_sim_object_unref(event.object);
        wait_ns = 0;
        if (lines->len >= CHUNK_BYTES || gs_buf_failed(lines))
            break;
    }
    if (rc < 0 && err.code == GS_EIO)
        stream->cut = true;
    else if (rc < 0)
        put_error(&err, lines);
    if (rc < 0 || gs_buf_failed(lines))
        return -1;
    bool over = rc == 0 && now_ns() >= stream->end_ns;
    if (rc == 0 && stream->bookmark_ns != INT64_MAX && (over || now_ns() >= stream->bookmark_ns))
        put_bookmark(stream, lines);
    return over ? -1 : 0;
}
