/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of the extender (contract, section 3): bytes from http/ to service/ and back. */
#include "extender/routes.h"

#include "common/metrics.h"
#include "gpushare/base/metric.h"
#include "gpushare/codec/extender.h"

#define PREFIX "/gpushare-scheduler"

static unsigned status_of(enum gs_code code)
{
    switch (code) {
    case GS_EPROTO:
    case GS_EINVAL:
        return 400;
    case GS_ENOENT:
        return 404;
    case GS_ETOOBIG:
        return 413;
    case GS_ENOTREADY:
        return 503;
    default:
        return 500;
    }
}

static void answer(struct gs_http_response *res, int result, const struct gs_error *err)
{
    if (result < 0)
        gs_http_error(res, status_of(err->code), "%s", err->msg);
}

/* Where it would sleep it runs again on a thread for that, and a bind waits for such a thread
 * before: the others read connections. */
static void on_verb(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct routes_ctx *app = ctx;
    struct gs_error err = {0};
    struct gs_request request = {.body = {req->body, req->body_len},
                                 .client = req->client_name,
                                 .may_sleep = req->may_block};
    enum gs_verb verb = GS_VERB_FILTER;
    while (strcmp(req->path + sizeof(PREFIX), gs_verb_name(verb)) != 0)
        verb++;
    if (!gs_service_leads(app->service)) /* the next connection finds the leader */
        gs_http_add_header(res, "Connection", "close");
    const enum gs_answered result =
        gs_service_answer(app->service, verb, &request, &res->body, &err);
    res->wants_worker = result == GS_WOULD_SLEEP;
    if (verb == GS_VERB_BIND)
        res->worker_group = (uint16_t)(1 + request.ns % (GS_WORKER_GROUPS - 1));
    answer(res, (int)result, &err);
}

static void on_inspect(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct routes_ctx *app = ctx;
    struct gs_error err = {0};
    const char *node = req->rest[0] ? req->rest : NULL;
    answer(res, gs_service_inspect(app->service, node, &res->body, &err), &err);
}

static void on_reservations(void *ctx, const struct gs_http_request *req,
                            struct gs_http_response *res)
{
    struct routes_ctx *app = ctx;
    struct gs_error err = {0};
    answer(res, gs_service_reservations(app->service, &res->body, &err), &err);
}

static void answer_plainly(struct gs_http_response *res, const char *text)
{
    res->content_type = "text/plain; charset=utf-8";
    gs_buf_printf(&res->body, "%s\n", text);
}

static void on_version(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    answer_plainly(res, GS_VERSION);
}

static void on_healthz(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    answer_plainly(res, "ok");
}

static void on_readyz(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct routes_ctx *app = ctx;
    const char *why;
    if (!gs_service_ready(app->service, &why))
        res->status = 503;
    answer_plainly(res, why);
}

/* What the scheduling port's server counts. */
static void add_http_answers(const struct gs_http_stats *http, struct gs_buf *out)
{
    static const char *const classes[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
    const char *name = "gpushare_http_requests_total";
    gs_metric_family(out, name, "counter",
                     "HTTP requests at --listen, by class of the status code, such as 2xx.");
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        gs_metric_sample(out, name, "code", classes[i], http->requests[i]);
    name = "gpushare_http_requests_rejected_total";
    gs_metric_family(out, name, "counter", "HTTP requests rejected, by reason.");
    gs_metric_sample(out, name, "reason", "too_large", http->too_large);
    gs_metric_sample(out, name, "reason", "memory_full", http->memory_full);
    gs_metric_sample(out, name, "reason", "queue_full", http->queue_full);
    name = "gpushare_http_timeouts_total";
    gs_metric_family(
        out, name, "counter",
        "Connections closed because the client sent its request or read the response too slowly.");
    gs_metric_sample(out, name, "reason", "request", http->request_timeouts);
    gs_metric_sample(out, name, "reason", "response", http->response_timeouts);
}

static void add_http(struct gs_http_server *server, struct gs_buf *out)
{
    struct gs_http_stats http;
    gs_http_server_stats(server, &http);
    add_http_answers(&http, out);
    gs_metric_gauge(out, "gpushare_http_open_connections", "Open connections.",
                    http.connections_open);
    gs_metric_counter(out, "gpushare_http_connections_total", "Accepted connections.",
                      http.connections);
    gs_metric_gauge(out, "gpushare_http_queued_requests",
                    "Bind requests queued for a worker thread.", http.queued);
    gs_metric_counter(
        out, "gpushare_http_tls_rejected_total",
        "TLS connections rejected because the client's certificate is missing or invalid.",
        http.tls_refused);
    gs_metric_counter(out, "gpushare_http_tls_reload_failures_total",
                      "Changed certificate files that could not be loaded and are not used.",
                      http.tls_reload_failures);
    if (http.tls_expires_s) {
        gs_metric_gauge(
            out, "gpushare_http_tls_stale",
            "1 if the certificate files are unusable and a previous certificate is in use.",
            http.tls_stale);
        gs_metric_gauge(out, "gpushare_http_tls_expiry_timestamp_seconds",
                        "Expiry of the server certificate in use, in seconds since the Unix epoch.",
                        (uint64_t)http.tls_expires_s);
    }
}

static void on_metrics(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct routes_ctx *app = ctx;
    res->content_type = "text/plain; version=0.0.4; charset=utf-8";
    gs_service_metrics(app->service, &res->body);
    if (app->server)
        add_http(app->server, &res->body);
    metrics_kube(app->client, &res->body);
    metrics_process(&res->body);
}

#define AT_BOTH(path, handler, flags)                                                              \
    {"GET", path, handler, flags},                                                                 \
    {                                                                                              \
        "GET", PREFIX path, handler, flags                                                         \
    }
#define HEALTH_ROUTES                                                                              \
    {"GET", "/reservations", on_reservations, GS_HTTP_HEAVY | GS_HTTP_SMALL},                      \
        AT_BOTH("/version", on_version, GS_HTTP_SMALL),                                            \
        AT_BOTH("/healthz", on_healthz, GS_HTTP_SMALL),                                            \
        AT_BOTH("/readyz", on_readyz, GS_HTTP_SMALL),                                              \
        AT_BOTH("/metrics", on_metrics, GS_HTTP_HEAVY | GS_HTTP_SMALL)

const struct gs_http_route routes_all[] = {
    {"POST", PREFIX "/filter", on_verb, 0},
    {"POST", PREFIX "/prioritize", on_verb, 0},
    {"POST", PREFIX "/bind", on_verb, GS_HTTP_SMALL},
    {"POST", PREFIX "/preempt", on_verb, GS_HTTP_HEAVY},
    {"GET", PREFIX "/inspect", on_inspect, GS_HTTP_HEAVY | GS_HTTP_SMALL},
    {"GET", PREFIX "/inspect/", on_inspect, GS_HTTP_PREFIX | GS_HTTP_SMALL},
    HEALTH_ROUTES,
};
const size_t routes_all_count = sizeof(routes_all) / sizeof(routes_all[0]);

const struct gs_http_route routes_health[] = {HEALTH_ROUTES};
const size_t routes_health_count = sizeof(routes_health) / sizeof(routes_health[0]);
