/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that have gained GPUs since the first list of pods began. Of pods without GPU memory the
 * ledger keeps the CPU on GPU nodes only, so those that were there already are read once more.
 */
#include "service_internal.h"

#define LIST_TIMEOUT_NS (5 * GS_NS_PER_S)
#define RETRY_NS        (5 * GS_NS_PER_S)

void gs_new_nodes_add(struct gs_new_nodes *new_nodes, uint32_t slot)
{
    if (gs_array_reach(&new_nodes->unread, &new_nodes->cap, slot, sizeof(*new_nodes->unread)))
        new_nodes->unread[slot] = true;
}

static int take_in(void *ctx, const struct gs_pod *pod)
{
    return gs_sync_pod(ctx, pod);
}

void gs_new_nodes_tick(struct gs_service *service, int64_t now_ns)
{
    struct gs_new_nodes *new_nodes = &service->new_nodes;
    const struct gs_kube *kube = &service->config.kube;
    _cleanup_free_ char *node = NULL;
    struct gs_error err = {0};
    if (now_ns < new_nodes->next_ns)
        return;
    gs_service_write(service);
    bool *unread = new_nodes->cap ? memchr(new_nodes->unread, true, new_nodes->cap) : NULL;
    const uint32_t slot = unread ? (uint32_t)(unread - new_nodes->unread) : GS_INDEX_NONE;
    if (unread)
        *unread = false;
    if (unread && gs_ledger_view_at(service->ledger, slot))
        node = strdup(gs_ledger_node_name(service->ledger, slot));
    gs_service_unlock(service);
    if (!node ||
        kube->ops->list_pods(kube->ctx, node, LIST_TIMEOUT_NS, take_in, service, &err) == 0)
        return;
    gs_log(GS_LOG_WARN, "cannot list pods of new GPU node, retrying", GS_STR("node", node),
           GS_STR("error", err.msg));
    new_nodes->next_ns = now_ns + RETRY_NS;
    gs_service_write(service);
    gs_new_nodes_add(new_nodes, slot);
    gs_service_unlock(service);
}
