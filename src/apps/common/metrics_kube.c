/* SPDX-License-Identifier: Apache-2.0 */
#include "common/metrics.h"
#include "gpushare/base/metric.h"

/* The API client's counters as metrics, for both programs that have a client. */

static void print_watches(const struct gs_kube_stats *kube, struct gs_buf *out)
{
    gs_metric_summary(out, "gpushare_watch_list_duration_seconds",
                      "Full lists loaded by watches, and the time that took.", kube->lists,
                      kube->list_ns);
    gs_metric_counter(out, "gpushare_watch_relists_total",
                      "Full lists that were not the first of their watch.", kube->relists);
    gs_metric_counter(out, "gpushare_watch_starts_total", "Watch requests that were answered.",
                      kube->watch_starts);
    gs_metric_counter(out, "gpushare_watch_cuts_total",
                      "Watches that broke off: errors, cuts and stalls.", kube->watch_cuts);
    gs_metric_counter(out, "gpushare_watch_expired_total",
                      "Watches whose place in the history was gone (410).", kube->watch_expired);
    const char *name = "gpushare_watch_events_total";
    gs_metric_family(out, name, "counter", "Watch events, by type.");
    gs_metric_sample(out, name, "type", "added", kube->events_added);
    gs_metric_sample(out, name, "type", "modified", kube->events_modified);
    gs_metric_sample(out, name, "type", "deleted", kube->events_deleted);
    gs_metric_sample(out, name, "type", "bookmark", kube->events_bookmark);
    gs_metric_counter(out, "gpushare_watch_broken_objects_total",
                      "Objects from the API server that could not be understood.",
                      kube->broken_objects);
}

void metrics_kube(struct gs_kube_client *client, struct gs_buf *out)
{
    struct gs_kube_stats kube;
    gs_kube_client_stats(client, &kube);
    gs_metric_counter(out, "gpushare_api_requests_total",
                      "Answers from the API server, watches included.", kube.requests);
    gs_metric_counter(out, "gpushare_api_failures_total", "Requests without an answer.",
                      kube.failed);
    gs_metric_counter(out, "gpushare_api_retries_total", "Attempts after the first.", kube.retries);
    gs_metric_counter(out, "gpushare_api_throttled_total",
                      "Answers that asked to come back later (429).", kube.throttled);
    gs_metric_counter(out, "gpushare_api_unauthorized_total",
                      "Answers that refused our credentials (401).", kube.unauthorized);
    gs_metric_counter(out, "gpushare_api_oversized_total",
                      "Answers and events above their ceiling.", kube.oversized);
    gs_metric_counter(out, "gpushare_api_received_bytes_total", "Bodies of answers.",
                      kube.bytes_received);
    print_watches(&kube, out);
}
