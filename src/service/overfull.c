/* SPDX-License-Identifier: Apache-2.0 */
#include "overfull.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/log.h"
#include "gpushare/codec/annotation.h"
#include "service_internal.h"

enum { TOLD_PER_ROUND = 5, NAME_BYTES = 256 };
#define ROUND_NS (10 * GS_NS_PER_S)

struct finding {
    char node[NAME_BYTES];
    gs_gpu_mask gpus;
};

void gs_overfull_release(struct gs_overfull *overfull)
{
    free(overfull->told);
    *overfull = (struct gs_overfull){0};
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

static bool make_room(struct gs_overfull *overfull, uint32_t slots)
{
    if (slots <= overfull->cap)
        return true;
    gs_gpu_mask *told = realloc(overfull->told, slots * sizeof(*told));
    if (!told)
        return false;
    memset(told + overfull->cap, 0, (slots - overfull->cap) * sizeof(*told));
    overfull->told = told;
    overfull->cap = slots;
    return true;
}

/* Store locked for reading. What is over is forgotten, so that it is told when it comes back. */
static uint32_t search(struct gs_overfull *overfull, const struct gs_ledger *ledger,
                       struct finding found[TOLD_PER_ROUND])
{
    uint32_t count = 0, slots = gs_ledger_slots(ledger);
    if (!make_room(overfull, slots))
        return 0;
    for (uint32_t slot = 0; slot < slots; slot++) {
        gs_gpu_mask now = overfull_now(gs_ledger_view_at(ledger, slot));
        gs_gpu_mask fresh = now & ~overfull->told[slot];
        overfull->told[slot] &= now;
        if (!fresh || count == TOLD_PER_ROUND)
            continue;
        overfull->told[slot] |= fresh;
        found[count].gpus = fresh;
        snprintf(found[count++].node, NAME_BYTES, "%s", gs_ledger_node_name(ledger, slot));
    }
    return count;
}

static void tell(struct gs_service *service, const struct finding *finding)
{
    char gpus[GS_IDX_TEXT_BYTES], message[512];
    snprintf(message, sizeof(message),
             "GPU %s is charged with more memory than it has: pods came past the extender, or it "
             "became smaller; nothing new is placed there",
             gs_codec_idx_format(finding->gpus, gpus));
    /* `kubectl describe node` looks for events whose UID is the node's name. */
    const struct gs_event event = {
        .kind = "Node",
        .name = finding->node,
        .uid = finding->node,
        .warning = true,
        .reason = "GpuOversubscribed",
        .message = message,
        .component = "gpushare-extender",
    };
    struct gs_error err = {0};
    const struct gs_kube *kube = &service->config.kube;
    gs_log(GS_LOG_WARN, "GPU oversubscribed", GS_STR("node", finding->node), GS_STR("gpu", gpus));
    if (kube->ops->create_event(kube->ctx, &event, &err) < 0)
        gs_log(GS_LOG_WARN, "event not written", GS_STR("why", err.msg));
}

void gs_overfull_tick(struct gs_service *service, int64_t now_ns)
{
    struct gs_overfull *overfull = &service->overfull;
    struct finding found[TOLD_PER_ROUND];
    if (now_ns < overfull->next_ns)
        return;
    overfull->next_ns = now_ns + ROUND_NS;
    gs_store_read(&service->store);
    uint32_t count = search(overfull, service->store.ledger, found);
    gs_store_unlock(&service->store);
    for (uint32_t i = 0; i < count; i++)
        tell(service, &found[i]);
}
