/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/http_metrics.h"

#include "gpushare/base/metric.h"

static void print_answers(const struct gs_http_stats *http, struct gs_buf *out)
{
    static const char *const classes[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
    const char *name = "gpushare_http_requests_total";
    gs_metric_family(out, name, "counter",
                     "Requests on the scheduling port, by class of the answer's status.");
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        gs_metric_sample(out, name, "code", classes[i], http->requests[i]);
    name = "gpushare_http_refused_total";
    gs_metric_family(out, name, "counter",
                     "Requests refused for their size, for the memory of all, for a full queue.");
    gs_metric_sample(out, name, "reason", "too_large", http->too_large);
    gs_metric_sample(out, name, "reason", "memory_full", http->memory_full);
    gs_metric_sample(out, name, "reason", "queue_full", http->queue_full);
    name = "gpushare_http_timeouts_total";
    gs_metric_family(out, name, "counter",
                     "Connections cut: the request came too slowly, or the answer was read so.");
    gs_metric_sample(out, name, "reason", "request", http->request_timeouts);
    gs_metric_sample(out, name, "reason", "response", http->response_timeouts);
}

void http_metrics(struct gs_http_server *server, struct gs_buf *out)
{
    struct gs_http_stats http;
    gs_http_server_stats(server, &http);
    print_answers(&http, out);
    gs_metric_gauge(out, "gpushare_http_open_connections", "Connections now.",
                    http.connections_open);
    gs_metric_counter(out, "gpushare_http_connections_total", "Connections accepted.",
                      http.connections);
    gs_metric_gauge(out, "gpushare_http_queued_requests", "Binds that wait for a worker.",
                    http.queued);
    gs_metric_counter(out, "gpushare_http_tls_refused_total",
                      "Connections without an acceptable client certificate.", http.tls_refused);
    gs_metric_counter(out, "gpushare_http_tls_reload_failures_total",
                      "Changed certificates that could not be used; the old ones stay.",
                      http.tls_reload_failures);
    if (http.tls_expires_s) {
        gs_metric_gauge(out, "gpushare_http_tls_stale",
                        "1: the files hold no usable certificate, an older one is in use.",
                        http.tls_stale);
        gs_metric_gauge(out, "gpushare_http_tls_expiry_timestamp_seconds",
                        "Unix time when the server's certificate in use ends.",
                        (uint64_t)http.tls_expires_s);
    }
}
