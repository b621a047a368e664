/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus text format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats). */
#include "service_internal.h"

static const char *const verb_labels[GS_VERBS] = {
    [GS_VERB_FILTER] = "verb=\"filter\"",
    [GS_VERB_PRIORITIZE] = "verb=\"prioritize\"",
    [GS_VERB_BIND] = "verb=\"bind\"",
    [GS_VERB_PREEMPT] = "verb=\"preempt\"",
};

static void head(struct gs_buf *out, const char *name, const char *type, const char *help)
{
    gs_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(struct gs_buf *out, const char *name, const char *type, const char *help,
                unsigned long long value)
{
    head(out, name, type, help);
    gs_buf_printf(out, "%s %llu\n", name, value);
}

static void print_verbs(struct gs_service *service, struct gs_buf *out)
{
    const char *name = "gpushare_request_duration_seconds";
    head(out, name, "histogram", "Time to answer a scheduling verb.");
    for (int v = 0; v < GS_VERBS; v++)
        gs_meter_print(&service->meters[v], name, verb_labels[v], out);
    head(out, "gpushare_request_errors_total", "counter",
         "Scheduling requests that were answered with an error.");
    for (int v = 0; v < GS_VERBS; v++)
        gs_buf_printf(out, "gpushare_request_errors_total{%s} %llu\n", verb_labels[v],
                      atomic_load(&service->meters[v].errors));
    head(out, "gpushare_node_refusals_total", "counter", "Nodes refused by filter, by reason.");
    for (int r = GS_FITS + 1; r < GS_REASONS; r++)
        gs_buf_printf(out, "gpushare_node_refusals_total{reason=\"%s\"} %llu\n",
                      gs_reason_label((enum gs_reason)r), atomic_load(&service->refusals[r]));
}

static void print_ledger(const struct gs_ledger_stats *stats, struct gs_buf *out)
{
    one(out, "gpushare_nodes", "gauge", "Nodes known.", stats->nodes);
    one(out, "gpushare_gpu_nodes", "gauge", "Nodes with GPUs.", stats->gpu_nodes);
    one(out, "gpushare_gpus", "gauge", "Physical GPUs.", stats->gpus);
    one(out, "gpushare_claims", "gauge", "Pods charged.", stats->claims);
    one(out, "gpushare_reserved_claims", "gauge", "Pods charged whose bind is under way.",
        stats->reserved);
    one(out, "gpushare_unplaced_claims", "gauge",
        "Bound pods without a valid GPU index, charged to every GPU that could hold them.",
        stats->unplaced_claims);
    one(out, "gpushare_overfull_gpus", "gauge", "GPUs charged with more than they have.",
        stats->overfull_gpus);
    one(out, "gpushare_other_pods", "gauge", "Pods without GPU memory on GPU nodes.",
        stats->others);
    one(out, "gpushare_nominated_pods", "gauge", "Nominated pods that hold a place.", stats->held);
}

static void print_service(struct gs_service *service, struct gs_buf *out)
{
    one(out, "gpushare_ready", "gauge", "1 when both lists are loaded and both watches stand.",
        gs_service_ready(service, NULL));
    one(out, "gpushare_leader", "gauge", "1 when this replica answers scheduling verbs.",
        gs_service_leads(service));
    one(out, "gpushare_pending_pods", "gauge", "Pods that ask for GPU memory and are not bound.",
        gs_pending_count(service->pending));
    one(out, "gpushare_binds_unresolved", "gauge", "Binds whose outcome is not known yet.",
        gs_limbo_count(service->limbo));
    one(out, "gpushare_binds_unresolved_total", "counter",
        "Binds whose outcome was not known at first.", atomic_load(&service->unknown_outcomes));
    one(out, "gpushare_binds_to_other_uid_total", "counter",
        "Pods bound under the name of a pod that was deleted during its bind.",
        atomic_load(&service->wrong_uid_binds));
    one(out, "gpushare_wakes_total", "counter", "Refused pods woken because memory came free.",
        atomic_load(&service->wakes));
    one(out, "gpushare_wake_failures_total", "counter", "Refused pods that could not be woken.",
        atomic_load(&service->wake_failures));
    one(out, "gpushare_claims_swept_total", "counter",
        "Claims whose pod was missing from a full list: their end was not seen.",
        atomic_load(&service->swept_claims));
    one(out, "gpushare_ledger_drift", "gauge",
        "GPUs whose account differs from the sum of its claims, and pods whose claim differed from "
        "the API at the last comparison; anything but 0 is a bug.",
        atomic_load(&service->drift) + atomic_load(&service->drifted_pods));
    one(out, "gpushare_ledger_comparisons_total", "counter", "Full comparisons of ledger and API.",
        atomic_load(&service->comparisons));
    one(out, "gpushare_ledger_mended_total", "counter",
        "Claims that differed from the API and were made equal.",
        atomic_load(&service->mended_pods));
    one(out, "gpushare_unplaced_events_total", "counter",
        "Events about pods whose GPU index is not believed.",
        atomic_load(&service->unbelieved_told));
}

static void print_gpus(const struct gs_ledger *ledger, bool used, struct gs_buf *out)
{
    const char *name = used ? "gpushare_gpu_allocated_units" : "gpushare_gpu_size_units";
    head(out, name, "gauge",
         used ? "GPU memory charged to pods, in the node's unit."
              : "GPU memory, in the node's unit.");
    for (uint32_t slot = 0; slot < gs_ledger_slots(ledger); slot++) {
        const struct gs_node_view *view = gs_ledger_view_at(ledger, slot);
        for (uint32_t i = 0; view && i < view->gpu_count; i++) {
            const struct gs_gpu_state *gpu = &view->gpus[i];
            gs_buf_printf(out, "%s{node=\"%s\",gpu=\"%u\",unit=\"%s\"} %llu\n", name,
                          gs_ledger_node_name(ledger, slot), gpu->idx,
                          gs_unit_name(gs_ledger_node_unit(ledger, slot)),
                          used ? (unsigned long long)gpu->used_units : gpu->total_units);
        }
    }
}

void gs_service_metrics(struct gs_service *service, struct gs_buf *out)
{
    struct gs_ledger_stats stats;
    print_verbs(service, out);
    print_service(service, out);
    gs_store_read(&service->store);
    gs_ledger_stats(service->store.ledger, &stats);
    print_gpus(service->store.ledger, false, out);
    print_gpus(service->store.ledger, true, out);
    gs_service_metrics_fragmentation(&service->store, out);
    gs_store_unlock(&service->store);
    print_ledger(&stats, out);
}
