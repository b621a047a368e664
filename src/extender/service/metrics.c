/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/metric.h"
#include "service_internal.h"

/* Upper bounds: 50 µs doubling up to 6.6 s, since bind waits for the API server. */
enum { FIRST_BOUND_NS = 50000 };

static int64_t bound_ns(int bucket)
{
    return (int64_t)FIRST_BOUND_NS << bucket;
}

void gs_meter_add(struct gs_meter *meter, int64_t took_ns, bool error)
{
    int bucket = 0;
    while (bucket < GS_METER_BUCKETS && took_ns > bound_ns(bucket))
        bucket++;
    atomic_fetch_add(&meter->buckets[bucket], 1);
    atomic_fetch_add(&meter->sum_ns, (unsigned long long)took_ns);
    atomic_fetch_add(&meter->outcomes[error], 1);
}

static void print_durations(struct gs_meter *meter, const char *name, const char *verb,
                            struct gs_buf *out)
{
    unsigned long long count = 0;
    for (int i = 0; i < GS_METER_BUCKETS; i++) {
        count += atomic_load(&meter->buckets[i]);
        gs_buf_printf(out, "%s_bucket{verb=\"%s\",le=\"%g\"} %llu\n", name, verb,
                      (double)bound_ns(i) / 1e9, count);
    }
    count += atomic_load(&meter->buckets[GS_METER_BUCKETS]);
    gs_buf_printf(out, "%s_bucket{verb=\"%s\",le=\"+Inf\"} %llu\n", name, verb, count);
    gs_buf_printf(out, "%s_sum{verb=\"%s\"} %.9g\n", name, verb,
                  (double)atomic_load(&meter->sum_ns) / 1e9);
    gs_buf_printf(out, "%s_count{verb=\"%s\"} %llu\n", name, verb, count);
}

/* Also the end of its path. */
const char *gs_verb_name(enum gs_verb verb)
{
    static const char *const names[GS_VERBS] = {"filter", "prioritize", "bind", "preempt"};
    return names[verb];
}

static const char *const bind_results[GS_BIND_RESULTS] = {
    [GS_BIND_DONE] = "bound",    [GS_BIND_REFUSED] = "rejected",   [GS_BIND_CONFLICT] = "conflict",
    [GS_BIND_FAILED] = "failed", [GS_BIND_UNRESOLVED] = "unknown",
};

static void print_verbs(struct gs_service *service, struct gs_buf *out)
{
    const char *name = "gpushare_requests_total";
    gs_metric_family(out, name, "counter", "Scheduling requests, by verb and outcome.");
    for (enum gs_verb v = 0; v < GS_VERBS; v++) {
        for (int error = 0; error < 2; error++)
            gs_buf_printf(out, "%s{verb=\"%s\",outcome=\"%s\"} %llu\n", name, gs_verb_name(v),
                          error ? "error" : "success",
                          atomic_load(&service->meters[v].outcomes[error]));
    }
    name = "gpushare_request_duration_seconds";
    gs_metric_family(out, name, "histogram",
                     "Duration of scheduling requests, without the wait for a worker, by verb.");
    for (enum gs_verb v = 0; v < GS_VERBS; v++)
        print_durations(&service->meters[v], name, gs_verb_name(v), out);
    name = "gpushare_nodes_rejected_total";
    gs_metric_family(out, name, "counter", "Nodes rejected by filter, by reason.");
    for (int r = GS_FITS + 1; r < GS_REASONS; r++)
        gs_metric_sample(out, name, "reason", gs_reason_label((enum gs_reason)r),
                         atomic_load(&service->refusals[r]));
    name = "gpushare_bind_attempts_total";
    gs_metric_family(
        out, name, "counter",
        "Bind attempts, by outcome. bound; rejected: by the extender, without a request to the API "
        "server; conflict: the pod is bound to another node or deleted; failed: the API server "
        "returned an error; unknown: the API server did not answer.");
    for (int r = 0; r < GS_BIND_RESULTS; r++)
        gs_metric_sample(out, name, "outcome", bind_results[r], atomic_load(&service->binds[r]));
}

static void print_pending(struct gs_service *service, struct gs_buf *out)
{
    struct gs_pending_stats stats;
    gs_pending_stats(service->pending, gs_service_now(service), &stats);
    gs_metric_gauge(out, "gpushare_pending_pods", "Pods that request GPU memory and are not bound.",
                    stats.count);
    gs_metric_counter(
        out, "gpushare_dropped_pending_pods_total",
        "Pending pods that were not kept because the table is full and their namespace has most "
        "of it.",
        stats.dropped);
    const char *name = "gpushare_unschedulable_pods";
    gs_metric_family(out, name, "gauge",
                     "Pending pods that fitted no node when last evaluated, by the reason of the "
                     "closest candidate, the node that lacked least.");
    for (int r = GS_FITS + 1; r < GS_REASONS; r++)
        gs_metric_sample(out, name, "reason", gs_reason_label((enum gs_reason)r), stats.refused[r]);
    gs_metric_seconds(out, "gpushare_unschedulable_pod_oldest_seconds", "gauge",
                      "Time since first rejection of the oldest unschedulable pod; 0 if none.",
                      (double)stats.oldest_ns / 1e9);
    const struct gs_clock *clock = service->config.clock;
    int64_t wall_s = clock->wall_ns(clock->ctx) / GS_NS_PER_S;
    int64_t unevaluated_s = wall_s - stats.unevaluated_since_s;
    gs_metric_gauge(out, "gpushare_unevaluated_pods",
                    "Pending pods without scheduling gates for which this replica has received no "
                    "filter request since it started.",
                    stats.unevaluated);
    gs_metric_seconds(out, "gpushare_unevaluated_pod_oldest_seconds", "gauge",
                      "Age of the oldest unevaluated pod; 0 if none.",
                      unevaluated_s > 0 ? (double)unevaluated_s : 0);
    gs_metric_counter(out, "gpushare_requeues_total",
                      "Unschedulable pods requeued because GPU memory became free.",
                      atomic_load(&service->requeues));
    gs_metric_counter(
        out, "gpushare_nominations_total",
        "Unschedulable pods nominated to a node with enough free GPU memory (--nominate).",
        atomic_load(&service->nominations));
    gs_metric_counter(out, "gpushare_requeue_failures_total",
                      "Unschedulable pods that could not be requeued.",
                      atomic_load(&service->requeue_failures));
}

static void print_state(struct gs_service *service, struct gs_buf *out)
{
    const struct gs_election *election = service->config.election;
    gs_metric_gauge(out, "gpushare_ready",
                    "1 if nodes and pods are listed and both watches are connected.",
                    gs_service_ready(service, NULL));
    gs_metric_gauge(
        out, "gpushare_leader",
        "1 if this replica answers scheduling requests: always, without leader election.",
        gs_service_leads(service));
    gs_metric_counter(out, "gpushare_leader_transitions_total",
                      "Times that this replica became the leader; 0 without leader election.",
                      election ? gs_election_terms(election) : 0);
    gs_metric_gauge(out, "gpushare_unresolved_binds", "Binds whose outcome is not known yet.",
                    atomic_load(&service->bind_reservations.unresolved));
    const char *name = "gpushare_watch_connected";
    gs_metric_family(
        out, name, "gauge",
        "1 if the watch is connected. At 0 the ledger, the record of allocations, becomes stale.");
    gs_metric_sample(out, name, "kind", "nodes", atomic_load(&service->live[GS_KIND_NODE]));
    gs_metric_sample(out, name, "kind", "pods", atomic_load(&service->live[GS_KIND_POD]));
    gs_metric_gauge(
        out, "gpushare_ledger_drift",
        "GPUs whose total differs from the sum of their allocations. Any value above 0 is a bug.",
        atomic_load(&service->drift));
    gs_metric_counter(
        out, "gpushare_ledger_repairs_total",
        "Allocations in the ledger that differed from the API server's and were repaired.",
        atomic_load(&service->drifted_pods));
    gs_metric_counter(
        out, "gpushare_stale_allocations_removed_total",
        "Allocations of pods whose deletion the watch missed, removed after a full list.",
        atomic_load(&service->swept_claims));
    gs_metric_counter(out, "gpushare_invalid_gpu_index_events_total",
                      "Events written about pods with an invalid GPU index.",
                      atomic_load(&service->warnings.unplaced_written));
}

static void print_ledger(const struct gs_ledger_stats *stats, struct gs_buf *out)
{
    gs_metric_gauge(out, "gpushare_nodes", "Nodes in the cluster, with or without GPUs.",
                    stats->nodes);
    gs_metric_gauge(out, "gpushare_gpu_nodes", "Nodes with GPUs.", stats->gpu_nodes);
    gs_metric_gauge(out, "gpushare_gpus", "GPUs. A MIG instance counts as one.", stats->gpus);
    gs_metric_gauge(out, "gpushare_allocated_pods",
                    "Pods with allocated GPU memory, including those whose bind is in progress.",
                    stats->claims);
    gs_metric_gauge(out, "gpushare_binding_pods",
                    "Pods with allocated GPU memory whose bind is in progress.", stats->reserved);
    gs_metric_gauge(out, "gpushare_invalid_gpu_index_pods",
                    "Bound pods without a valid GPU index. Their memory is allocated on every GPU "
                    "of the node that could hold it.",
                    stats->unplaced_claims);
    gs_metric_gauge(out, "gpushare_overcommitted_gpus",
                    "GPUs with more allocated memory than they have.", stats->overfull_gpus);
    gs_metric_gauge(out, "gpushare_non_gpu_pods", "Bound pods that request no GPU memory.",
                    stats->others);
    gs_metric_gauge(out, "gpushare_nominated_pods", "Nominated pods with reserved GPU memory.",
                    stats->held);
    gs_metric_gauge(
        out, "gpushare_reserved_pods",
        "Members of pod groups (gangs) with reserved GPU memory, from filter until their bind.",
        stats->promised);
}

void gs_service_metrics(struct gs_service *service, struct gs_buf *out)
{
    struct gs_ledger_stats stats;
    print_verbs(service, out);
    print_pending(service, out);
    print_state(service, out);
    gs_service_read(service);
    gs_ledger_stats(service->ledger, &stats);
    const uint32_t budgets = service->budgets.count;
    gs_service_unlock(service);
    gs_service_metrics_memory(service, out);
    print_ledger(&stats, out);
    gs_metric_gauge(out, "gpushare_disruption_budgets",
                    "PodDisruptionBudgets that count where preemption needs more victims than "
                    "kube-scheduler chose; 0 if they cannot be read.",
                    budgets);
}
