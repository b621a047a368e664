/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

#define LIST_TIMEOUT_NS (5 * GS_NS_PER_S)
#define RETRY_NS        (5 * GS_NS_PER_S)

void gs_new_nodes_release(struct gs_new_nodes *new_nodes)
{
    while (new_nodes->count)
        free(new_nodes->names[--new_nodes->count]);
}

void gs_new_nodes_add(struct gs_new_nodes *new_nodes, const char *node)
{
    for (uint32_t i = 0; i < new_nodes->count; i++) {
        if (strcmp(new_nodes->names[i], node) == 0)
            return;
    }
    char *name = new_nodes->count < GS_NEW_NODES_MAX ? strdup(node) : NULL;
    if (name)
        new_nodes->names[new_nodes->count++] = name;
}

static int take_in(void *ctx, const struct gs_pod *pod)
{
    return gs_sync_pod(ctx, pod);
}

void gs_new_nodes_tick(struct gs_service *service, int64_t now_ns)
{
    struct gs_new_nodes *new_nodes = &service->new_nodes;
    const struct gs_kube *kube = &service->config.kube;
    struct gs_error err = {0};
    if (now_ns < new_nodes->next_ns)
        return;
    gs_store_read(&service->store); /* ten times a second: filters go on meanwhile */
    bool any = new_nodes->count > 0;
    gs_store_unlock(&service->store);
    if (!any)
        return;
    gs_store_write(&service->store);
    _cleanup_free_ char *node = new_nodes->count ? new_nodes->names[--new_nodes->count] : NULL;
    gs_store_unlock(&service->store);
    if (!node ||
        kube->ops->list_pods(kube->ctx, node, LIST_TIMEOUT_NS, take_in, service, &err) == 0)
        return;
    gs_log(GS_LOG_WARN, "cannot list pods of new GPU node, retrying", GS_STR("node", node),
           GS_STR("error", err.msg));
    new_nodes->next_ns = now_ns + RETRY_NS;
    gs_store_write(&service->store);
    gs_new_nodes_add(new_nodes, node);
    gs_store_unlock(&service->store);
}
