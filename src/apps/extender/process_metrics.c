/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/process_metrics.h"

#include <stdio.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"

static void one(struct gs_buf *out, const char *name, const char *type, const char *help,
                unsigned long long value)
{
    gs_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, type, name,
                  value);
}

static void print_http(const struct gs_http_stats *http, struct gs_buf *out)
{
    one(out, "gpushare_http_connections_open", "gauge", "Connections now.", http->connections_open);
    one(out, "gpushare_http_connections_total", "counter", "Connections accepted.",
        http->connections);
    one(out, "gpushare_http_timeouts_total", "counter", "Requests that came too slowly.",
        http->request_timeouts);
    one(out, "gpushare_http_refused_total", "counter",
        "Requests refused because they or all together were too large, or the queue was full.",
        http->too_large + http->memory_full + http->queue_full);
    one(out, "gpushare_http_tls_refused_total", "counter",
        "Connections without an acceptable client certificate.", http->tls_refused);
}

static void print_kube(const struct gs_kube_stats *kube, struct gs_buf *out)
{
    one(out, "gpushare_api_requests_total", "counter", "Answers from the API server.",
        kube->requests);
    one(out, "gpushare_api_failures_total", "counter", "Requests without an answer.", kube->failed);
    one(out, "gpushare_api_throttled_total", "counter", "Answers that asked to come back later.",
        kube->throttled);
    one(out, "gpushare_watch_lists_total", "counter", "Full lists loaded.", kube->lists);
    one(out, "gpushare_watch_cuts_total", "counter", "Watches that broke off.", kube->watch_cuts);
    one(out, "gpushare_watch_events_total", "counter", "Watch events, bookmarks included.",
        kube->events_added + kube->events_modified + kube->events_deleted + kube->events_bookmark);
    one(out, "gpushare_watch_broken_objects_total", "counter",
        "Objects from the API server that could not be understood.", kube->broken_objects);
}

/* Second word of /proc/self/statm: resident pages (proc(5)). */
static unsigned long long resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char text[64] = "";
    uint64_t pages = 0;
    if (file) {
        size_t len = fread(text, 1, sizeof(text) - 1, file);
        text[len] = '\0';
        fclose(file);
    }
    const char *start = strchr(text, ' ');
    const char *end = start ? strchr(start + 1, ' ') : NULL;
    if (end)
        gs_parse_u64(start + 1, (size_t)(end - start - 1), &pages);
    return pages * (unsigned long long)sysconf(_SC_PAGESIZE);
}

void process_metrics(const struct routes_ctx *app, struct gs_buf *out)
{
    struct gs_http_server *server = app->server;
    if (server) {
        struct gs_http_stats http;
        gs_http_server_stats(server, &http);
        print_http(&http, out);
    }
    struct gs_kube_stats kube;
    gs_kube_client_stats(app->client, &kube);
    print_kube(&kube, out);
    one(out, "process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes());
}
