/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile.h"

#include <stdlib.h>
#include <string.h>

#include "gpushare/base/array.h"
#include "gpushare/base/log.h"
#include "service_internal.h"

#define LIST_TIMEOUT_NS (60 * GS_NS_PER_S)

struct round {
    struct gs_service *service;
    uint64_t version;  /* the watch had shown all up to here before the list */
    int64_t listed_ns; /* of the watch: what ended before its list is forgotten with the next */
    uint64_t *alive;   /* hashes of the UIDs that hold memory */
    uint32_t count, cap;
    struct gs_recent missing;
    uint32_t drift;
    bool stale; /* the end of a pod was not shown for so long */
};

/* Lock held. What the ledger knows of it may be newer than the list. */
static bool differs(const struct gs_cluster *cluster, const struct gs_pod *pod)
{
    struct gs_claim claim, expected;
    if (!gs_ledger_find_claim(cluster->ledger, pod->uid, &claim))
        return !gs_cluster_has_ended(cluster, pod->uid, true);
    gs_claim_of_pod(pod, &expected);
    gs_claim_follow(cluster->ledger, &expected, false);
    return claim.revision == expected.revision &&
           (strcmp(claim.node, pod->node_name) != 0 || claim.units != expected.units ||
            claim.gpus != expected.gpus || claim.also != expected.also);
}

static int on_listed(void *ctx, const struct gs_pod *pod)
{
    struct round *round = ctx;
    const struct gs_store *store = &round->service->store;
    if (!pod->node_name[0] || gs_pod_terminal(pod) || !gs_pod_wants_gpu(pod))
        return 0;
    if (!gs_array_reach(&round->alive, &round->cap, round->count, sizeof(*round->alive)))
        return -1;
    round->alive[round->count++] = gs_hash_text(pod->uid);
    gs_store_read(store);
    const bool drift = gs_pod_revision(pod) <= round->version &&
                       atomic_load(&round->service->term.listed_ns) == round->listed_ns &&
                       differs(&store->cluster, pod);
    gs_store_unlock(store);
    round->drift += drift;
    if (drift)
        gs_log(GS_LOG_ERROR, "ledger differs from API server", GS_POD_FIELDS(pod),
               GS_STR("uid", pod->uid));
    return 0;
}

/* A claim that the list did not mention: its pod's end is under way, once. */
static bool check_claim(void *ctx, const struct gs_claim *claim)
{
    struct round *round = ctx;
    const uint64_t hash = gs_hash_text(claim->uid);
    if (claim->state != GS_CLAIM_CONFIRMED || claim->revision > round->version ||
        (round->count &&
         bsearch(&hash, round->alive, round->count, sizeof(*round->alive), gs_hash_order)))
        return true;
    gs_recent_add(&round->missing, claim->uid);
    round->stale |= gs_recent_has(&round->service->reconcile.missing, claim->uid);
    return true;
}

static void compare(struct gs_service *service, int64_t now_ns)
{
    struct round round = {.service = service,
                          .version = atomic_load(&service->term.version),
                          .listed_ns = atomic_load(&service->term.listed_ns)};
    struct gs_error err = {0};
    const struct gs_kube *kube = &service->config.kube;
    if (kube->ops->list_pods(kube->ctx, NULL, LIST_TIMEOUT_NS, on_listed, &round, &err) < 0) {
        gs_log(GS_LOG_WARN, "cannot compare ledger with API server", GS_STR("error", err.msg));
    } else {
        if (round.count)
            qsort(round.alive, round.count, sizeof(*round.alive), gs_hash_order);
        gs_store_read(&service->store);
        gs_ledger_each(service->store.cluster.ledger, check_claim, &round);
        gs_store_unlock(&service->store);
        atomic_fetch_add(&service->drifted_pods, round.drift);
        if (round.drift || round.stale)
            gs_term_want_list(service, now_ns, "the ledger differs");
    }
    gs_recent_release(&service->reconcile.missing);
    service->reconcile.missing = round.missing;
    free(round.alive);
}

void gs_reconcile_tick(struct gs_service *service, int64_t now_ns)
{
    struct gs_reconcile *reconcile = &service->reconcile;
    const int64_t set_ns = service->config.reconcile_ns;
    const bool begun = reconcile->next_ns != 0;
    if (now_ns < reconcile->next_ns || !gs_service_ready(service, NULL))
        return;
    reconcile->next_ns = now_ns + (set_ns ? set_ns : GS_RECONCILE_NS);
    if (begun)
        compare(service, now_ns);
}
