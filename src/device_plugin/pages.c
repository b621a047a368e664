/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/pages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/metrics.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/metric.h"
#include "gpushare/http/server.h"

/* The loop beats every few seconds, whatever happens. */
#define DEAD_AFTER_NS (60 * GS_NS_PER_S)

void pages_init(struct pages *pages, struct gs_kube_client *client)
{
    pthread_mutex_init(&pages->lock, NULL);
    pages->client = client;
    pages->state.beat_ns = gs_clock_now_ns(gs_clock_system());
    pages_set_gpu_error(pages, "the GPUs have not been read yet");
}

void pages_release(struct pages *pages)
{
    usage_release(&pages->state.usage);
}

void pages_set_gpu_error(struct pages *pages, const char *why)
{
    pthread_mutex_lock(&pages->lock);
    snprintf(pages->state.gpu_error, sizeof(pages->state.gpu_error), "%s", why);
    pthread_mutex_unlock(&pages->lock);
}

void pages_set_node_error(struct pages *pages, const char *why)
{
    pthread_mutex_lock(&pages->lock);
    snprintf(pages->state.node_error, sizeof(pages->state.node_error), "%s", why);
    pthread_mutex_unlock(&pages->lock);
}

void pages_set_usage(struct pages *pages, const struct usage *usage)
{
    usage_release(&pages->state.usage);
    pages->state.usage = *usage;
}

static void copy_state(struct pages *pages, struct pages_state *ret)
{
    pthread_mutex_lock(&pages->lock);
    *ret = pages->state;
    pthread_mutex_unlock(&pages->lock);
}

unsigned pages_ready(const struct pages_state *state, const char **ret_why)
{
    *ret_why =
        state->set.deaf
            ? "ok, but the driver reports no health events (XIDs): unhealthy GPUs are not noticed"
            : "ok";
    if (state->node_error[0])
        *ret_why = state->node_error;
    else if (state->gpu_error[0])
        *ret_why = state->gpu_error;
    else if (!state->pods_listed)
        *ret_why = "this node's pods have not been listed yet";
    else if (!state->linked)
        *ret_why = "the kubelet does not read the device list";
    else
        return 200;
    return 503;
}

static void on_version(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    res->content_type = "text/plain; charset=utf-8";
    gs_buf_puts(&res->body, GS_VERSION "\n");
}

static void on_healthz(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct pages_state state;
    copy_state(ctx, &state);
    bool dead = gs_clock_now_ns(gs_clock_system()) - state.beat_ns > DEAD_AFTER_NS;
    res->content_type = "text/plain; charset=utf-8";
    res->status = dead ? 503 : 200;
    gs_buf_puts(&res->body, dead ? "the event loop is stuck\n" : "ok\n");
}

static void on_readyz(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct pages_state state;
    const char *why;
    copy_state(ctx, &state);
    res->content_type = "text/plain; charset=utf-8";
    res->status = pages_ready(&state, &why);
    gs_buf_printf(&res->body, "%s\n", why);
}

#define PREFIX "gpushare_device_plugin_"

/* Of one GPU: each a family of metrics, some in /usage, too. */
enum figure { TOTAL, ALLOCATED, HEALTHY, ENFORCED, USED, BY_PODS, BY_OTHERS, FIGURES };

static const struct {
    const char *name, *help;
    const char *json; /* NULL: it is not there */
} figures[FIGURES] = {
    [TOTAL] = {PREFIX "gpu_memory_bytes", "Memory of a GPU, as advertised to the kubelet."},
    [ALLOCATED] = {PREFIX "gpu_memory_allocated_bytes",
                   "Memory of a GPU that is allocated to pods."},
    [HEALTHY] = {PREFIX "gpu_healthy", "1 if the GPU is healthy and accepts new pods."},
    [ENFORCED] = {PREFIX "gpu_enforced",
                  "1 if the kernel or the driver limits each pod on the GPU to its request."},
    [USED] = {PREFIX "gpu_memory_used_bytes",
              "Memory of a GPU that is in use, as the driver reports it, including the driver's "
              "own.",
              "usedBytes"},
    [BY_PODS] = {PREFIX "gpu_memory_used_by_pods_bytes",
                 "Memory of a GPU that all its pods use, counted by the kernel (dmem) or the "
                 "driver (--pod-usage-from).",
                 "usedByPodsBytes"},
    [BY_OTHERS] = {PREFIX "gpu_memory_used_by_others_bytes",
                   "Memory of a GPU that the driver, and processes of no known pod, use.",
                   "usedByOthersBytes"},
};
#define UNKNOWN UINT64_MAX

/* In use is measured by the source's indices, and not at the moment at which pods are counted. */
static void read_figures(const struct pages_state *state, const struct gs_gpu *gpu,
                         uint64_t ret[FIGURES])
{
    const uint64_t unit_bytes = (uint64_t)gs_unit_mib(state->unit) << 20;
    const uint64_t by_pods = state->usage.used_on[gpu->idx];
    const uint32_t source_idx = state->set.source_idx[gpu->idx];
    const bool counted = state->usage.counted & GS_GPU_BIT(gpu->idx);
    const bool measured =
        source_idx < GS_GPUS_MAX && (state->set.measured & GS_GPU_BIT(source_idx));
    const uint64_t used = measured ? state->set.used_bytes[source_idx] : UNKNOWN;
    ret[TOTAL] = gpu->mem_units * unit_bytes;
    ret[ALLOCATED] = state->stats.used_units[gpu->idx] * unit_bytes;
    ret[HEALTHY] = gpu->healthy;
    ret[ENFORCED] = gs_enforced_hard(gpu->enforced);
    ret[USED] = used;
    ret[BY_PODS] = counted ? by_pods : UNKNOWN;
    ret[BY_OTHERS] = !counted || !measured ? UNKNOWN : used > by_pods ? used - by_pods : 0;
}

static void print_gpus(const struct pages_state *state, struct gs_buf *out)
{
    for (int what = 0; what < FIGURES; what++) {
        gs_metric_family(out, figures[what].name, "gauge", figures[what].help);
        for (uint32_t i = 0; i < state->set.count; i++) {
            uint64_t values[FIGURES];
            char idx[16];
            read_figures(state, &state->set.gpus[i], values);
            snprintf(idx, sizeof(idx), "%u", state->set.gpus[i].idx);
            if (values[what] != UNKNOWN)
                gs_metric_sample(out, figures[what].name, "gpu", idx, values[what]);
        }
    }
}

static void print_allocations(const struct pages_state *state, struct gs_buf *out)
{
    const struct gs_allocator_stats *stats = &state->stats;
    const char *name = PREFIX "allocations_total";
    gs_metric_family(out, name, "counter",
                     "Containers that the kubelet requested GPU memory for. matched: an extender "
                     "bound their pod; unmatched: none did, or the pod is not known, and a GPU "
                     "with enough free memory was chosen; insufficient_memory, failed: Allocate "
                     "returned an error.");
    gs_metric_sample(out, name, "outcome", "matched", stats->allocated - stats->unclaimed);
    gs_metric_sample(out, name, "outcome", "unmatched", stats->unclaimed);
    gs_metric_sample(out, name, "outcome", "insufficient_memory", stats->no_room);
    gs_metric_sample(out, name, "outcome", "failed", state->calls.failed);
    gs_metric_summary(
        out, PREFIX "allocate_duration_seconds",
        "Duration of Allocate calls. Each delays the admission of other pods of the node.",
        state->calls.answered, state->calls.answered_ns);
    gs_metric_counter(out, PREFIX "allocation_swaps_total",
                      "Pairs of equal pods whose GPUs, and annotations, were exchanged.",
                      stats->swaps);
    gs_metric_counter(
        out, PREFIX "blocked_starts_total",
        "Container starts blocked because other pods have since been allocated the GPU's memory.",
        stats->held);
}

static void print_limits(const struct pages_state *state, struct gs_buf *out)
{
    const char *name = PREFIX "pods_by_limit";
    gs_metric_family(out, PREFIX "enforce_mode", "gauge",
                     "Constant 1 for the value of --enforce in use.");
    gs_metric_sample(out, PREFIX "enforce_mode", "mode", gs_enforce_name(state->enforce), 1);
    gs_metric_family(
        out, name, "gauge",
        "Pods that request GPU memory, by state. limited: by the kernel; not_limited: a limit is "
        "expected but not set; over_request: using more than requested, whether limited or not.");
    gs_metric_sample(out, name, "state", "limited", state->kept.held);
    gs_metric_sample(out, name, "state", "not_limited", state->kept.unheld);
    gs_metric_sample(out, name, "state", "over_request", state->kept.over + state->usage.over);
    gs_metric_counter(out, PREFIX "limits_written_total",
                      "Limits written for the first time, per pod and GPU.", state->kept.writes);
    gs_metric_counter(
        out, PREFIX "limit_repairs_total",
        "Limits that were no longer in the pod's cgroup and were written again, per pod and GPU.",
        state->kept.repairs);
}

void pages_metrics(const struct pages_state *state, struct gs_buf *out)
{
    const char *why;
    print_gpus(state, out);
    print_allocations(state, out);
    print_limits(state, out);
    gs_metric_gauge(out, PREFIX "pods", "Pods on this node that request GPU memory.",
                    state->stats.pods);
    gs_metric_gauge(
        out, PREFIX "unallocated_pods",
        "Pods on this node that request GPU memory and have a container without a GPU yet.",
        state->stats.waiting);
    gs_metric_gauge(out, PREFIX "pending_api_writes",
                    "Patches and Events that are not yet written to the API server.",
                    state->stats.writes_queued);
    gs_metric_gauge(
        out, PREFIX "ready",
        "1 if the GPUs are discovered, the pods are listed and the plugin is registered.",
        pages_ready(state, &why) == 200);
    gs_metric_gauge(out, PREFIX "gpu_health_events_supported",
                    "1 if the driver reports GPU health events (XIDs).", !state->set.deaf);
    gs_metric_gauge(out, PREFIX "registered", "1 while the kubelet has a ListAndWatch stream open.",
                    state->linked);
    gs_metric_gauge(out, PREFIX "checkpoint_readable",
                    "1 if the kubelet's checkpoint could be read. At 0, it is unknown which pod an "
                    "allocation is for.",
                    state->checkpoint_read);
    gs_metric_counter(out, PREFIX "registrations_total", "Registrations that the kubelet accepted.",
                      state->registrations);
    gs_metric_gauge(out, PREFIX "foreign_device_ids",
                    "Device IDs in use that are another plugin's or of an earlier --memory-unit.",
                    state->foreign_ids);
    gs_metric_gauge(
        out, PREFIX "unit_change_pending",
        "1 if a change of --memory-unit is pending because pods use devices of the old unit.",
        state->unit_waits);
    gs_metric_gauge(out, PREFIX "hook_leftover_folders",
                    "Directories below --hook-root of ended containers that are not removed yet.",
                    state->hook_trash);
}

static void on_metrics(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct pages *pages = ctx;
    res->content_type = "text/plain; version=0.0.4; charset=utf-8";
    pthread_mutex_lock(&pages->lock); /* GPUs and what pods use there are of one moment */
    pages_metrics(&pages->state, &res->body);
    usage_print(&pages->state.usage, &res->body);
    pthread_mutex_unlock(&pages->lock);
    metrics_kube(pages->client, &res->body);
    metrics_process(&res->body);
}

/* For people and the CLI; docs/operate.md describes it. */
void pages_usage(const struct pages_state *state, struct gs_buf *out)
{
    gs_buf_printf(out,
                  "{\"v\":1,\"enforceMode\":\"%s\",\"overRequestPodCount\":%" PRIu32 ",\"gpus\":[",
                  gs_enforce_name(state->enforce), state->kept.over + state->usage.over);
    for (uint32_t i = 0; i < state->set.count; i++) {
        uint64_t values[FIGURES];
        read_figures(state, &state->set.gpus[i], values);
        gs_buf_printf(out, "%s{\"id\":%" PRIu32, i ? "," : "", state->set.gpus[i].idx);
        for (int what = 0; what < FIGURES; what++) {
            if (figures[what].json && values[what] != UNKNOWN)
                gs_buf_printf(out, ",\"%s\":%" PRIu64, figures[what].json, values[what]);
        }
        gs_buf_putc(out, '}');
    }
    gs_buf_putc(out, ']');
    if (state->usage.names_pods) {
        gs_buf_puts(out, ",\"pods\":[");
        usage_append(&state->usage, USAGE_JSON, out);
        out->len -= out->len && out->data[out->len - 1] == ',';
        gs_buf_putc(out, ']');
    }
    gs_buf_puts(out, "}\n");
}

static void on_usage(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct pages *pages = ctx;
    pthread_mutex_lock(&pages->lock);
    pages_usage(&pages->state, &res->body);
    pthread_mutex_unlock(&pages->lock);
}

static const struct gs_http_route routes[] = {
    {"GET", "/version", on_version, 0}, {"GET", "/usage", on_usage, 0},
    {"GET", "/healthz", on_healthz, 0}, {"GET", "/readyz", on_readyz, 0},
    {"GET", "/metrics", on_metrics, 0},
};

int pages_serve(struct pages *pages, const char *listen, struct gs_http_server **ret_server,
                struct gs_error *err)
{
    struct gs_http_config config = gs_http_health_config(64);
    config.listen = listen;
    config.routes = routes;
    config.route_count = sizeof(routes) / sizeof(routes[0]);
    config.ctx = pages;
    config.max_response_bytes = (size_t)4 << 20; /* five families of 256 pods with long names */
    if (gs_http_server_start(&config, ret_server, err) < 0)
        return gs_error_prefix(err, "--health-listen %s", listen);
    return 0;
}
