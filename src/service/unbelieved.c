/* SPDX-License-Identifier: Apache-2.0 */
#include "unbelieved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/log.h"
#include "service_internal.h"

enum { TOLD_PER_ROUND = 5 };
#define ROUND_NS (10 * GS_NS_PER_S)

struct unbelieved {
    char *ns, *name, *uid, *node;
    uint32_t units;
};

struct search {
    const struct gs_service *service;
    struct unbelieved found[TOLD_PER_ROUND];
    uint32_t count;
};

static void release(struct unbelieved *pod)
{
    free(pod->ns);
    free(pod->name);
    free(pod->uid);
    free(pod->node);
}

static bool consider(void *ctx, const struct gs_claim *claim)
{
    struct search *search = ctx;
    const struct gs_ledger *ledger = search->service->store.ledger;
    const struct gs_node_view *view = gs_ledger_view(ledger, gs_slice_of(claim->node));
    if (claim->state != GS_CLAIM_CONFIRMED || !claim->unplaced || !view || !view->gpu_count ||
        gs_recent_has(&search->service->warned, claim->uid))
        return true;
    struct unbelieved *pod = &search->found[search->count];
    *pod = (struct unbelieved){strdup(claim->ns), strdup(claim->name), strdup(claim->uid),
                               strdup(claim->node), claim->units};
    if (pod->ns && pod->name && pod->uid && pod->node)
        search->count++;
    else
        release(pod);
    return search->count < TOLD_PER_ROUND;
}

static void tell(struct gs_service *service, const struct unbelieved *pod)
{
    char message[512];
    snprintf(message, sizeof(message),
             "the pod is bound to node %s without a GPU index that can be believed: its %u units "
             "are charged to every GPU of the node where it may be, until the device plugin tells "
             "where it is",
             pod->node, pod->units);
    const struct gs_event event = {
        .kind = "Pod",
        .ns = pod->ns,
        .name = pod->name,
        .uid = pod->uid,
        .warning = true,
        .reason = "GpuIndexNotBelieved",
        .message = message,
        .component = "gpushare-extender",
    };
    struct gs_error err = {0};
    const struct gs_kube *kube = &service->config.kube;
    gs_log(GS_LOG_WARN, "GPU index not believed", GS_STR("pod", pod->name),
           GS_STR("namespace", pod->ns), GS_STR("node", pod->node));
    if (kube->ops->create_event(kube->ctx, &event, &err) == 0)
        atomic_fetch_add(&service->unbelieved_told, 1);
    else
        gs_log(GS_LOG_WARN, "event not written", GS_STR("why", err.msg));
    /* Tried once: pods whose Event cannot be written must not keep others from theirs. */
    gs_recent_add(&service->warned, pod->uid);
}

void gs_unbelieved_tick(struct gs_service *service, int64_t now_ns)
{
    struct search search = {.service = service};
    struct gs_ledger_stats stats;
    if (now_ns < service->next_telling_ns)
        return;
    service->next_telling_ns = now_ns + ROUND_NS;
    gs_store_read(&service->store);
    gs_ledger_stats(service->store.ledger, &stats);
    if (stats.unplaced_claims)
        gs_ledger_each(service->store.ledger, consider, &search);
    gs_store_unlock(&service->store);
    for (uint32_t i = 0; i < search.count; i++) {
        tell(service, &search.found[i]);
        release(&search.found[i]);
    }
}
