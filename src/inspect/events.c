/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/utf8.h"
#include "gpushare/codec/list.h"
#include "gpushare/kube/client.h"
#include "inspect/lookup.h"

#define ASK_NS (5 * GS_NS_PER_S)
/* Ours have about a kilobyte. */
enum { EVENTS_MAX = 500, EVENT_MAX = 64 << 10, BODY_MAX = 16 << 20, SHOWN_MAX = 10 };

struct search {
    const char *kind, *name, *component;
    size_t count;
    char lines[SHOWN_MAX + 1][1536]; /* the newest first, and one to spare */
};

static int order_newest(const void *a, const void *b)
{
    return strcmp(b, a);
}

/* Whoever knows no selector answers with all. */
static bool is_meant(const struct search *search, const json_t *item)
{
    return strcmp(lookup_text(item, "involvedObject", "kind", NULL), search->kind) == 0 &&
           strcmp(lookup_text(item, "involvedObject", "name", NULL), search->name) == 0 &&
           strcmp(lookup_text(item, "source", "component", NULL), search->component) == 0;
}

static int add_line(void *ctx, struct gs_scan *scan)
{
    struct search *search = ctx;
    char *line = search->lines[search->count];
    json_auto_t *item = lookup_item(scan, EVENT_MAX, NULL);
    if (!is_meant(search, item))
        return 0;
    snprintf(line, sizeof(search->lines[0]), "%.20s  %.8s  %.64s  %.1024s",
             lookup_text(item, "lastTimestamp", NULL), lookup_text(item, "type", NULL),
             lookup_text(item, "reason", NULL), lookup_text(item, "message", NULL));
    gs_utf8_calm(line);
    qsort(search->lines, search->count + 1, sizeof(search->lines[0]), order_newest);
    search->count += search->count < SHOWN_MAX;
    return 0;
}

static int ask(const struct source *source, const char *ns, struct search *search,
               struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096), query = GS_BUF(4096);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(BODY_MAX);
    struct gs_list_meta meta;
    gs_buf_puts(&path, "/api/v1/namespaces/");
    gs_url_escape(&path, ns);
    gs_buf_puts(&path, "/events");
    gs_buf_printf(&query, "limit=%d&fieldSelector=source%%3D%s%%2CinvolvedObject.name%%3D",
                  EVENTS_MAX, search->component);
    gs_url_escape(&query, search->name);
    const struct gs_kube_request request = {
        .method = "GET", .path = path.data, .query = query.data, .timeout_ns = ASK_NS};
    if (gs_buf_failed(&path) || gs_buf_failed(&query))
        return gs_fail(err, GS_EINVAL, "the name is too long");
    if (source_ask(source, &request, &body, err) < 0)
        return -1;
    return gs_codec_list_items((struct gs_slice){body.data, body.len}, add_line, search, &meta,
                               err);
}

void events_ask(const struct source *source, const char *ns, const char *name,
                char to[EVENTS_BYTES])
{
    struct search search = {.kind = ns ? "Pod" : "Node", .name = name};
    struct gs_error err = {0};
    size_t len = 0;
    ns = ns ? ns : "default";
    search.component = "gpushare-extender";
    int result = ask(source, ns, &search, &err);
    search.component = "gpushare-device-plugin";
    if (result < 0 || ask(source, ns, &search, &err) < 0) {
        gs_utf8_calm(err.msg); /* the API server's words */
        snprintf(to, EVENTS_BYTES, "cannot be read: %.500s\n", err.msg);
        return;
    }
    snprintf(to, EVENTS_BYTES, "none; by default the API server keeps Events for one hour\n");
    for (size_t i = 0; i < search.count && len + strlen(search.lines[i]) + 2 < EVENTS_BYTES; i++)
        len += (size_t)snprintf(to + len, EVENTS_BYTES - len, "%s\n", search.lines[i]);
}
