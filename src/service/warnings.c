/* SPDX-License-Identifier: Apache-2.0 */
#include "warnings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/log.h"
#include "gpushare/codec/annotation.h"
#include "service_internal.h"

enum { PER_ROUND = 5, NAME_BYTES = 256 };
#define ROUND_NS (10 * GS_NS_PER_S)

struct unplaced_pod {
    char *ns, *name, *uid, *node;
    uint32_t units;
};

struct overfull_node {
    char name[NAME_BYTES];
    gs_gpu_mask gpus;
};

struct search {
    const struct gs_service *service;
    struct unplaced_pod pods[PER_ROUND];
    uint32_t pod_count;
    struct overfull_node nodes[PER_ROUND];
    uint32_t node_count;
};

void gs_warnings_release(struct gs_warnings *warnings)
{
    gs_recent_release(&warnings->unplaced);
    free(warnings->overfull);
    *warnings = (struct gs_warnings){0};
}

static void release_pod(struct unplaced_pod *pod)
{
    free(pod->ns);
    free(pod->name);
    free(pod->uid);
    free(pod->node);
}

static bool consider_claim(void *ctx, const struct gs_claim *claim)
{
    struct search *search = ctx;
    const struct gs_service *service = search->service;
    const struct gs_node_view *view = gs_store_view(&service->store, claim->node);
    if (claim->state != GS_CLAIM_CONFIRMED || !claim->unplaced || !view || !view->gpu_count ||
        gs_recent_has(&service->warnings.unplaced, claim->uid))
        return true;
    struct unplaced_pod *pod = &search->pods[search->pod_count];
    *pod = (struct unplaced_pod){strdup(claim->ns), strdup(claim->name), strdup(claim->uid),
                                 strdup(claim->node), claim->units};
    if (pod->ns && pod->name && pod->uid && pod->node)
        search->pod_count++;
    else
        release_pod(pod);
    return search->pod_count < PER_ROUND;
}

static gs_gpu_mask overfull_now(const struct gs_node_view *view)
{
    gs_gpu_mask mask = 0;
    for (uint32_t i = 0; view && i < view->gpu_count; i++) {
        if (view->gpus[i].used_units > view->gpus[i].total_units)
            mask |= GS_GPU_BIT(view->gpus[i].idx);
    }
    return mask;
}

static bool make_room(struct gs_warnings *warnings, uint32_t slots)
{
    if (slots <= warnings->overfull_cap)
        return true;
    gs_gpu_mask *wider = realloc(warnings->overfull, slots * sizeof(*wider));
    if (!wider)
        return false;
    memset(wider + warnings->overfull_cap, 0, (slots - warnings->overfull_cap) * sizeof(*wider));
    warnings->overfull = wider;
    warnings->overfull_cap = slots;
    return true;
}

/* What is over is forgotten, so that it is written about when it comes back. */
static void find_overfull(struct gs_warnings *warnings, const struct gs_ledger *ledger,
                          struct search *search)
{
    uint32_t slots = gs_ledger_slots(ledger);
    if (!make_room(warnings, slots))
        return;
    for (uint32_t slot = 0; slot < slots; slot++) {
        gs_gpu_mask now = overfull_now(gs_ledger_view_at(ledger, slot));
        gs_gpu_mask fresh = now & ~warnings->overfull[slot];
        warnings->overfull[slot] &= now;
        if (!fresh || search->node_count == PER_ROUND)
            continue;
        warnings->overfull[slot] |= fresh;
        struct overfull_node *node = &search->nodes[search->node_count++];
        node->gpus = fresh;
        snprintf(node->name, sizeof(node->name), "%s", gs_ledger_node_name(ledger, slot));
    }
}

static bool write_event(struct gs_service *service, struct gs_event *event)
{
    struct gs_error err = {0};
    const struct gs_kube *kube = &service->config.kube;
    event->warning = true;
    event->component = "gpushare-extender";
    if (kube->ops->create_event(kube->ctx, event, &err) == 0)
        return true;
    gs_log(GS_LOG_WARN, "event not written", GS_STR("why", err.msg));
    return false;
}

static void warn_pod(struct gs_service *service, const struct unplaced_pod *pod)
{
    char message[512];
    snprintf(message, sizeof(message),
             "the pod is bound to node %s without a GPU index that can be believed: its %u units "
             "are charged to every GPU of the node where it may be, until the device plugin tells "
             "where it is",
             pod->node, pod->units);
    struct gs_event event = {.kind = "Pod",
                             .ns = pod->ns,
                             .name = pod->name,
                             .uid = pod->uid,
                             .reason = "GpuIndexNotBelieved",
                             .message = message};
    gs_log(GS_LOG_WARN, "GPU index not believed", GS_STR("pod", pod->name),
           GS_STR("namespace", pod->ns), GS_STR("node", pod->node));
    if (write_event(service, &event))
        atomic_fetch_add(&service->warnings.unplaced_written, 1);
    /* Tried once: pods whose Event cannot be written must not keep others from theirs. */
    gs_recent_add(&service->warnings.unplaced, pod->uid);
}

static void warn_node(struct gs_service *service, const struct overfull_node *node)
{
    char gpus[GS_IDX_TEXT_BYTES], message[512];
    snprintf(message, sizeof(message),
             "GPU %s is charged with more memory than it has: pods came past the extender, or it "
             "became smaller; nothing new is placed there",
             gs_codec_idx_format(node->gpus, gpus));
    /* `kubectl describe node` looks for events whose UID is the node's name. */
    struct gs_event event = {.kind = "Node",
                             .name = node->name,
                             .uid = node->name,
                             .reason = "GpuOversubscribed",
                             .message = message};
    gs_log(GS_LOG_WARN, "GPU oversubscribed", GS_STR("node", node->name), GS_STR("gpu", gpus));
    (void)write_event(service, &event);
}

void gs_warnings_tick(struct gs_service *service, int64_t now_ns)
{
    struct gs_warnings *warnings = &service->warnings;
    struct search search = {.service = service};
    struct gs_ledger_stats stats;
    if (now_ns < warnings->next_ns)
        return;
    warnings->next_ns = now_ns + ROUND_NS;
    gs_store_read(&service->store);
    gs_ledger_stats(service->store.cluster.ledger, &stats);
    if (stats.unplaced_claims)
        gs_ledger_each(service->store.cluster.ledger, consider_claim, &search);
    find_overfull(warnings, service->store.cluster.ledger, &search);
    gs_store_unlock(&service->store);
    for (uint32_t i = 0; i < search.pod_count; i++) {
        warn_pod(service, &search.pods[i]);
        release_pod(&search.pods[i]);
    }
    for (uint32_t i = 0; i < search.node_count; i++)
        warn_node(service, &search.nodes[i]);
}
