/* SPDX-License-Identifier: Apache-2.0 */
#include "newcomers.h"

#include <stdlib.h>
#include <string.h>

#include "gpushare/base/log.h"
#include "service_internal.h"

#define LIST_TIMEOUT_NS (5 * GS_NS_PER_S)
#define RETRY_NS        (5 * GS_NS_PER_S)

void gs_newcomers_release(struct gs_newcomers *newcomers)
{
    while (newcomers->count)
        free(newcomers->names[--newcomers->count]);
}

void gs_newcomers_add(struct gs_newcomers *newcomers, const char *node)
{
    for (uint32_t i = 0; i < newcomers->count; i++) {
        if (strcmp(newcomers->names[i], node) == 0)
            return;
    }
    char *name = newcomers->count < GS_NEWCOMERS_MAX ? strdup(node) : NULL;
    if (name)
        newcomers->names[newcomers->count++] = name;
}

static int take_in(void *ctx, const struct gs_pod *pod)
{
    struct gs_watch_sink sink = gs_service_sink(ctx);
    return sink.pod(sink.ctx, pod);
}

void gs_newcomers_tick(struct gs_service *service, int64_t now_ns)
{
    struct gs_newcomers *newcomers = &service->newcomers;
    const struct gs_kube *kube = &service->config.kube;
    struct gs_error err = {0};
    if (now_ns < newcomers->next_ns)
        return;
    gs_store_write(&service->store);
    _cleanup_free_ char *node = newcomers->count ? newcomers->names[--newcomers->count] : NULL;
    gs_store_unlock(&service->store);
    if (!node ||
        kube->ops->list_pods(kube->ctx, node, LIST_TIMEOUT_NS, take_in, service, &err) == 0)
        return;
    gs_log(GS_LOG_WARN, "pods of a new GPU node not read, trying again", GS_STR("node", node),
           GS_STR("why", err.msg));
    newcomers->next_ns = now_ns + RETRY_NS;
    gs_store_write(&service->store);
    gs_newcomers_add(newcomers, node);
    gs_store_unlock(&service->store);
}
