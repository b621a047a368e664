/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/utf8.h"
#include "gpushare/kube/client.h"
#include "inspect/lookup.h"

#define ASK_NS (5 * GS_NS_PER_S)
enum { EVENTS_MAX = 500, SHOWN_MAX = 10 };

struct event {
    const char *at, *type, *reason, *message;
};

static int order_newest(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    return strcmp(y->at, x->at);
}

/* Whoever knows no selector answers with all. */
static bool is_about(const json_t *item, const char *kind, const char *name)
{
    return strcmp(lookup_text(item, "involvedObject", "kind", NULL), kind) == 0 &&
           strcmp(lookup_text(item, "involvedObject", "name", NULL), name) == 0 &&
           strncmp(lookup_text(item, "reason", NULL), "Gpu", 3) == 0;
}

static void put_event(const struct event *event, char to[EVENTS_BYTES])
{
    const size_t len = strlen(to);
    char line[1536];
    int size = snprintf(line, sizeof(line), "%.20s  %.8s  %.64s  %.1024s", event->at, event->type,
                        event->reason, event->message);
    gs_utf8_calm(line);
    if (size > 0 && len + strlen(line) + 2 < EVENTS_BYTES)
        snprintf(to + len, EVENTS_BYTES - len, "%s\n", line);
}

static void tell(const json_t *list, const char *kind, const char *name, char to[EVENTS_BYTES])
{
    struct event found[EVENTS_MAX];
    size_t i, count = 0;
    json_t *item;
    json_array_foreach(json_object_get(list, "items"), i, item)
    {
        if (count < EVENTS_MAX && is_about(item, kind, name))
            found[count++] = (struct event){
                lookup_text(item, "lastTimestamp", NULL), lookup_text(item, "type", NULL),
                lookup_text(item, "reason", NULL), lookup_text(item, "message", NULL)};
    }
    qsort(found, count, sizeof(found[0]), order_newest);
    to[0] = 0;
    for (i = 0; i < count && i < SHOWN_MAX; i++)
        put_event(&found[i], to);
    if (!to[0])
        snprintf(to, EVENTS_BYTES, "none; the API server keeps Events for an hour, as a rule\n");
}

void events_ask(const struct source *source, const char *ns, const char *name,
                char to[EVENTS_BYTES])
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096), query = GS_BUF(4096);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    struct gs_error err = {0};
    gs_buf_puts(&path, "/api/v1/namespaces/");
    gs_url_escape(&path, ns ? ns : "default");
    gs_buf_puts(&path, "/events");
    gs_buf_printf(&query, "limit=%d&fieldSelector=involvedObject.name%%3D", EVENTS_MAX);
    gs_url_escape(&query, name);
    const struct gs_kube_request request = {
        .method = "GET", .path = path.data, .query = query.data, .timeout_ns = ASK_NS};
    if (gs_buf_failed(&path) || gs_buf_failed(&query) ||
        source_ask(source, &request, &body, &err) < 0) {
        gs_utf8_calm(err.msg); /* the API server's words */
        snprintf(to, EVENTS_BYTES, "cannot be read: %.500s\n", err.msg);
        return;
    }
    json_auto_t *list = lookup_parse(&body);
    tell(list, ns ? "Pod" : "Node", name, to);
}
