/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile.h"

#include <stdlib.h>
#include <string.h>

#include "gpushare/base/log.h"
#include "service_internal.h"

#define LIST_TIMEOUT_NS (60 * GS_NS_PER_S)

/* A pod whose claim differs from what the API said about it. */
struct gs_suspect {
    char *ns, *name, *uid;
    uint64_t revision; /* the API's at the first look; 0: it had no such pod */
};

static void forget_suspects(struct gs_reconcile *reconcile)
{
    for (uint32_t i = 0; i < reconcile->count; i++) {
        free(reconcile->suspects[i].ns);
        free(reconcile->suspects[i].name);
        free(reconcile->suspects[i].uid);
    }
    reconcile->count = 0;
}

void gs_reconcile_release(struct gs_reconcile *reconcile)
{
    forget_suspects(reconcile);
    free(reconcile->suspects);
    reconcile->suspects = NULL;
}

/* Best effort: what finds no room here is found by the next round. */
static void add_suspect(struct gs_reconcile *reconcile, const char *ns, const char *name,
                        const char *uid, uint64_t revision)
{
    if (!reconcile->suspects)
        reconcile->suspects = calloc(GS_SUSPECTS_MAX, sizeof(*reconcile->suspects));
    if (!reconcile->suspects || reconcile->count == GS_SUSPECTS_MAX)
        return;
    struct gs_suspect *suspect = &reconcile->suspects[reconcile->count];
    *suspect = (struct gs_suspect){strdup(ns), strdup(name), strdup(uid), revision};
    if (suspect->ns && suspect->name && suspect->uid) {
        reconcile->count++;
        return;
    }
    free(suspect->ns);
    free(suspect->name);
    free(suspect->uid);
}

/* ---- one pod ---- */

static bool holds(const struct gs_pod *pod)
{
    return pod->node_name[0] && !gs_pod_terminal(pod) && gs_pod_wants_gpu(pod);
}

/* Lock held. A reservation's bind is under way: it knows better than a list. */
static bool agrees(const struct gs_store *store, const struct gs_pod *pod)
{
    struct gs_claim claim, expected;
    bool known = gs_ledger_find_claim(store->cluster.ledger, pod->uid, &claim);
    if (!holds(pod))
        return !known || (claim.state == GS_CLAIM_RESERVED && !gs_pod_terminal(pod));
    if (!known || strcmp(claim.node, pod->node_name) != 0)
        return false;
    gs_claim_of_pod(pod, &expected);
    gs_claim_follow(store->cluster.ledger, &expected);
    return claim.units == expected.units && claim.gpus == expected.gpus &&
           claim.also == expected.also;
}

static bool pod_agrees(struct gs_service *service, const struct gs_pod *pod)
{
    gs_store_read(&service->store);
    bool same = agrees(&service->store, pod);
    gs_store_unlock(&service->store);
    return same;
}

/* ---- the list ---- */

struct round {
    struct gs_service *service;
    uint64_t *alive; /* hashes of the UIDs that hold memory */
    uint32_t count, cap;
};

static int remember(struct round *round, const char *uid)
{
    if (round->count == round->cap) {
        uint32_t cap = round->cap ? 2 * round->cap : 1024;
        uint64_t *grown = reallocarray(round->alive, cap, sizeof(*grown));
        if (!grown)
            return -1;
        round->alive = grown;
        round->cap = cap;
    }
    round->alive[round->count++] = gs_hash_text(uid);
    return 0;
}

static int on_listed(void *ctx, const struct gs_pod *pod)
{
    struct round *round = ctx;
    if (holds(pod) && remember(round, pod->uid) < 0)
        return -1;
    if (!pod_agrees(round->service, pod))
        add_suspect(&round->service->reconcile, pod->ns, pod->name, pod->uid, gs_pod_revision(pod));
    return 0;
}

static int by_value(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* A claim that the list did not mention. */
static bool check_claim(void *ctx, const struct gs_claim *claim)
{
    struct round *round = ctx;
    uint64_t hash = gs_hash_text(claim->uid);
    if (claim->state == GS_CLAIM_CONFIRMED &&
        (!round->count ||
         !bsearch(&hash, round->alive, round->count, sizeof(*round->alive), by_value)))
        add_suspect(&round->service->reconcile, claim->ns, claim->name, claim->uid, 0);
    return true;
}

static void compare(struct gs_service *service, int64_t now_ns, int64_t grace_ns)
{
    struct round round = {.service = service};
    struct gs_error err = {0};
    const struct gs_kube *kube = &service->config.kube;
    forget_suspects(&service->reconcile);
    if (kube->ops->list_pods(kube->ctx, NULL, LIST_TIMEOUT_NS, on_listed, &round, &err) < 0) {
        forget_suspects(&service->reconcile);
        gs_log(GS_LOG_WARN, "ledger and API not compared", GS_STR("why", err.msg));
    } else {
        if (round.count)
            qsort(round.alive, round.count, sizeof(*round.alive), by_value);
        gs_store_read(&service->store);
        gs_ledger_each(service->store.cluster.ledger, check_claim, &round);
        gs_store_unlock(&service->store);
        atomic_fetch_add(&service->comparisons, 1);
    }
    free(round.alive);
    service->reconcile.next_look_ns = now_ns + grace_ns;
}

/* ---- the second look ---- */

/* True when the claim still differs and the object is the one of the first look: *pod is what the
 * API says now, or a pod that is gone. */
static bool is_drift(struct gs_service *service, const struct gs_suspect *suspect,
                     struct gs_pod *pod, bool *ret_gone)
{
    struct gs_error err = {0};
    const struct gs_kube *kube = &service->config.kube;
    int result = kube->ops->get_pod(kube->ctx, suspect->ns, suspect->name, pod, &err);
    if (result < 0 && err.code != GS_ENOENT)
        return false; /* not known now: the next round */
    *ret_gone = result < 0 || strcmp(pod->uid, suspect->uid) != 0;
    if (!*ret_gone)
        return suspect->revision && gs_pod_revision(pod) == suspect->revision &&
               !pod_agrees(service, pod);
    struct gs_claim claim;
    gs_store_read(&service->store);
    bool charged = gs_ledger_find_claim(service->store.cluster.ledger, suspect->uid, &claim) &&
                   claim.state == GS_CLAIM_CONFIRMED;
    gs_store_unlock(&service->store);
    return charged;
}

static void mend(struct gs_service *service, const struct gs_suspect *suspect,
                 const struct gs_pod *pod, bool gone)
{
    gs_log(GS_LOG_WARN, "ledger and API differed", GS_STR("pod", suspect->name),
           GS_STR("namespace", suspect->ns), GS_STR("uid", suspect->uid),
           GS_STR("node", gone ? "" : pod->node_name), GS_STR("api", gone ? "gone" : "alive"));
    if (!gone) {
        gs_store_write(&service->store);
        gs_cluster_lives(&service->store.cluster, pod->uid);
        gs_store_unlock(&service->store);
        gs_sync_pod(service, pod);
        return;
    }
    struct gs_pod last = {0};
    gs_pod_reset(&last);
    last.ns = suspect->ns;
    last.name = suspect->name;
    last.uid = suspect->uid;
    gs_sync_pod_gone(service, &last);
}

static void look_again(struct gs_service *service)
{
    struct gs_reconcile *reconcile = &service->reconcile;
    uint32_t drift = 0;
    for (uint32_t i = 0; i < reconcile->count; i++) {
        struct gs_pod pod = {0};
        bool gone;
        if (is_drift(service, &reconcile->suspects[i], &pod, &gone)) {
            drift++;
            mend(service, &reconcile->suspects[i], &pod, gone);
        }
        gs_pod_release(&pod);
    }
    forget_suspects(reconcile);
    atomic_store(&service->drifted_pods, drift);
    atomic_fetch_add(&service->mended_pods, drift);
    if (drift)
        gs_log(GS_LOG_ERROR, "the ledger was mended", GS_INT("pods", drift));
}

void gs_reconcile_tick(struct gs_service *service, int64_t now_ns)
{
    struct gs_reconcile *reconcile = &service->reconcile;
    int64_t every_ns = service->config.reconcile_ns;
    every_ns = every_ns ? every_ns : GS_RECONCILE_NS;
    if (!reconcile->next_list_ns) {
        reconcile->next_list_ns = now_ns + every_ns;
        return;
    }
    if (!gs_service_ready(service, NULL)) { /* the watch tells what differs when it stands again */
        forget_suspects(reconcile);
        reconcile->next_look_ns = 0;
        return;
    }
    if (reconcile->next_look_ns) {
        if (now_ns < reconcile->next_look_ns)
            return;
        reconcile->next_look_ns = 0;
        look_again(service);
    } else if (now_ns >= reconcile->next_list_ns) {
        reconcile->next_list_ns = now_ns + every_ns;
        compare(service, now_ns,
                every_ns < GS_RECONCILE_GRACE_NS ? every_ns : GS_RECONCILE_GRACE_NS);
    }
}
