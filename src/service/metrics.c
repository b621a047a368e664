/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/metric.h"
#include "service_internal.h"

static const char *const verbs[GS_VERBS] = {
    [GS_VERB_FILTER] = "filter",
    [GS_VERB_PRIORITIZE] = "prioritize",
    [GS_VERB_BIND] = "bind",
    [GS_VERB_PREEMPT] = "preempt",
};

static const char *const bind_results[GS_BIND_RESULTS] = {
    [GS_BIND_DONE] = "bound",    [GS_BIND_REFUSED] = "refused", [GS_BIND_CONFLICT] = "conflict",
    [GS_BIND_FAILED] = "failed", [GS_BIND_OPEN] = "unknown",
};

static void print_verbs(struct gs_service *service, struct gs_buf *out)
{
    const char *name = "gpushare_requests_total";
    gs_metric_family(out, name, "counter",
                     "Scheduling requests, by verb; error: answered with an error.");
    for (int v = 0; v < GS_VERBS; v++) {
        uint64_t errors, all = gs_meter_count(&service->meters[v], &errors);
        const uint64_t counts[] = {all - errors, errors};
        for (int i = 0; i < 2; i++)
            gs_buf_printf(out, "%s{verb=\"%s\",outcome=\"%s\"} %llu\n", name, verbs[v],
                          i ? "error" : "success", (unsigned long long)counts[i]);
    }
    name = "gpushare_request_duration_seconds";
    gs_metric_family(out, name, "histogram", "Time to answer a scheduling verb.");
    for (int v = 0; v < GS_VERBS; v++)
        gs_meter_print(&service->meters[v], name, "verb", verbs[v], out);
    name = "gpushare_node_refusals_total";
    gs_metric_family(out, name, "counter", "Nodes refused by filter, by reason.");
    for (int r = GS_FITS + 1; r < GS_REASONS; r++)
        gs_metric_sample(out, name, "reason", gs_reason_label((enum gs_reason)r),
                         atomic_load(&service->refusals[r]));
    name = "gpushare_bind_attempts_total";
    gs_metric_family(
        out, name, "counter",
        "Attempts to bind: bound; refused without asking the API server; conflict, the "
        "pod is elsewhere or gone; failed, the API server said no; unknown, no answer "
        "came.");
    for (int r = 0; r < GS_BIND_RESULTS; r++)
        gs_metric_sample(out, name, "outcome", bind_results[r], atomic_load(&service->binds[r]));
}

static void print_pending(struct gs_service *service, struct gs_buf *out)
{
    struct gs_pending_stats stats;
    gs_pending_stats(service->pending, gs_clock_now_ns(service->config.clock), &stats);
    gs_metric_gauge(out, "gpushare_pending_pods", "Pods that ask for GPU memory and are not bound.",
                    gs_pending_count(service->pending));
    const char *name = "gpushare_refused_pods";
    gs_metric_family(out, name, "gauge",
                     "Pending pods that fitted no node when last asked about, by the reason of the "
                     "node that comes nearest to taking them.");
    for (int r = GS_FITS + 1; r < GS_REASONS; r++)
        gs_metric_sample(out, name, "reason", gs_reason_label((enum gs_reason)r), stats.refused[r]);
    gs_metric_seconds(out, "gpushare_refused_pod_oldest_seconds", "gauge",
                      "Since the first refusal of the pending pod that waits longest; 0: none.",
                      (double)stats.oldest_ns / 1e9);
    const struct gs_clock *clock = service->config.clock;
    int64_t wall_s = clock->wall_ns(clock->ctx) / GS_NS_PER_S;
    int64_t unasked_s = stats.unasked_since_s ? wall_s - stats.unasked_since_s : 0;
    gs_metric_gauge(out, "gpushare_unasked_pods",
                    "Pending pods without scheduling gates about which no scheduler asked this "
                    "replica since it started.",
                    stats.unasked);
    gs_metric_seconds(out, "gpushare_unasked_pod_oldest_seconds", "gauge",
                      "Since the creation of the oldest of them; 0: none.",
                      unasked_s > 0 ? (double)unasked_s : 0);
    gs_metric_counter(out, "gpushare_wakes_total", "Refused pods woken because memory came free.",
                      atomic_load(&service->wakes));
    gs_metric_counter(out, "gpushare_nominations_total",
                      "Refused pods nominated to a node that has room (--nominate).",
                      atomic_load(&service->nominations));
    gs_metric_counter(out, "gpushare_wake_failures_total", "Refused pods that could not be woken.",
                      atomic_load(&service->wake_failures));
}

static void print_watches(const struct gs_service *service, struct gs_buf *out)
{
    const char *name = "gpushare_watch_live";
    gs_metric_family(out, name, "gauge", "1 while the watch stands; 0: the ledger grows stale.");
    gs_metric_sample(out, name, "kind", "nodes", atomic_load(&service->live[GS_KIND_NODE]));
    gs_metric_sample(out, name, "kind", "pods", atomic_load(&service->live[GS_KIND_POD]));
}

static void print_state(struct gs_service *service, struct gs_buf *out)
{
    const struct gs_election *election = service->config.election;
    gs_metric_gauge(out, "gpushare_ready", "1 when both lists are loaded and both watches stand.",
                    gs_service_ready(service, NULL));
    gs_metric_gauge(out, "gpushare_leader", "1 when this replica answers scheduling verbs.",
                    gs_service_leads(service));
    gs_metric_counter(out, "gpushare_leader_transitions_total",
                      "How often this replica began to lead; 0 where there is no election.",
                      election ? gs_election_terms(election) : 0);
    gs_metric_gauge(out, "gpushare_unresolved_binds", "Binds whose outcome is not known yet.",
                    gs_open_binds_count(service->open_binds));
    gs_metric_counter(out, "gpushare_binds_to_other_uid_total",
                      "Pods bound under the name of a pod that was deleted during its bind.",
                      atomic_load(&service->wrong_uid_binds));
    print_watches(service, out);
    gs_metric_gauge(out, "gpushare_ledger_drift",
                    "GPUs whose account differs from the sum of its claims, and pods whose claim "
                    "differed from the API at the last comparison; anything but 0 is a bug.",
                    atomic_load(&service->drift) + atomic_load(&service->drifted_pods));
    gs_metric_counter(out, "gpushare_ledger_comparisons_total",
                      "Full comparisons of ledger and API.", atomic_load(&service->comparisons));
    gs_metric_counter(out, "gpushare_ledger_mended_total",
                      "Claims that differed from the API and were made equal.",
                      atomic_load(&service->mended_pods));
    gs_metric_counter(out, "gpushare_claims_swept_total",
                      "Claims whose pod was missing from a full list: their end was not seen.",
                      atomic_load(&service->swept_claims));
    gs_metric_counter(out, "gpushare_unplaced_events_total",
                      "Events about pods whose GPU index is not believed.",
                      atomic_load(&service->warnings.unplaced_written));
}

static void print_ledger(const struct gs_ledger_stats *stats, struct gs_buf *out)
{
    gs_metric_gauge(out, "gpushare_nodes", "Nodes known.", stats->nodes);
    gs_metric_gauge(out, "gpushare_gpu_nodes", "Nodes with GPUs.", stats->gpu_nodes);
    gs_metric_gauge(out, "gpushare_gpus", "Physical GPUs.", stats->gpus);
    gs_metric_gauge(out, "gpushare_claims", "Pods charged.", stats->claims);
    gs_metric_gauge(out, "gpushare_reserved_claims", "Pods charged whose bind is under way.",
                    stats->reserved);
    gs_metric_gauge(out, "gpushare_unplaced_claims",
                    "Bound pods without a valid GPU index, charged to every GPU that could hold "
                    "them.",
                    stats->unplaced_claims);
    gs_metric_gauge(out, "gpushare_overfull_gpus", "GPUs charged with more than they have.",
                    stats->overfull_gpus);
    gs_metric_gauge(out, "gpushare_other_pods", "Pods without GPU memory on GPU nodes.",
                    stats->others);
    gs_metric_gauge(out, "gpushare_nominated_pods", "Nominated pods that hold a place.",
                    stats->held);
    gs_metric_gauge(out, "gpushare_promised_pods",
                    "Members of pod groups that filter keeps a place for until their bind.",
                    stats->promised);
}

void gs_service_metrics(struct gs_service *service, struct gs_buf *out)
{
    struct gs_ledger_stats stats;
    print_verbs(service, out);
    print_pending(service, out);
    print_state(service, out);
    gs_store_read(&service->store);
    gs_ledger_stats(service->store.cluster.ledger, &stats);
    const uint32_t budgets = service->budgets.count;
    gs_store_unlock(&service->store);
    gs_service_metrics_memory(service, out);
    print_ledger(&stats, out);
    gs_metric_gauge(out, "gpushare_disruption_budgets",
                    "PodDisruptionBudgets that count for the victims that preempt adds; 0 where "
                    "they may not be read.",
                    budgets);
}
