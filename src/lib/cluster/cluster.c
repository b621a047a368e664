/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/cluster/cluster.h"

int gs_cluster_init(struct gs_cluster *cluster, const struct gs_cluster_owner *owner, void *ctx,
                    struct gs_error *err)
{
    *cluster = (struct gs_cluster){
        .ledger = gs_ledger_new(), .policies = gs_policies_new(), .owner = owner, .ctx = ctx};
    return cluster->ledger && cluster->policies ? 0 : gs_fail_nomem(err);
}

void gs_cluster_release(struct gs_cluster *cluster)
{
    if (cluster->ledger)
        gs_ledger_free(cluster->ledger);
    gs_policies_free(cluster->policies);
    gs_node_facts_release(&cluster->facts);
    gs_recent_release(&cluster->ended);
    gs_recent_release(&cluster->ended_before);
    gs_recent_release(&cluster->ended_by_phase);
    *cluster = (struct gs_cluster){0};
}

struct gs_place gs_cluster_place(const struct gs_cluster *cluster, enum gs_placement policy)
{
    return (struct gs_place){cluster->ledger, cluster->policies, &cluster->facts, policy, 0};
}

static void freed(struct gs_cluster *cluster, uint32_t slot)
{
    if (cluster->owner->freed)
        cluster->owner->freed(cluster->ctx, slot);
}

/* --- bound pods --- */

int gs_cluster_claim(struct gs_cluster *cluster, const struct gs_claim *claim, struct gs_error *err)
{
    struct gs_claim before;
    const bool is_new = !gs_ledger_find_claim(cluster->ledger, claim->uid, &before);
    const struct gs_hold *hold = gs_ledger_find_hold(cluster->ledger, claim->uid);
    const uint32_t held = hold ? hold->slot : GS_INDEX_NONE;
    const bool same = hold && hold->gpus == claim->gpus;
    if (gs_ledger_set_claim(cluster->ledger, claim, err) < 0)
        return -1;
    const struct gs_node_view *view = gs_ledger_view(cluster->ledger, claim->node);
    if (held != GS_INDEX_NONE && (!same || !view || view->slot != held))
        freed(cluster, held);
    if (is_new && view && view->nominated) /* who is nominated there may count on other GPUs now */
        freed(cluster, view->slot);
    return 0;
}

/* before: its claim until now, of which the texts may be gone; uid NULL: it had none. The first
 * event that shows a pod bound which the same watch showed unbound is the Binding's own
 * revision: node and annotations are of one transaction, and nobody edited them since. */
static int take_bound(struct gs_cluster *cluster, const struct gs_pod *pod, bool read,
                      const struct gs_claim *before, struct gs_error *err)
{
    const struct gs_cluster_owner *owner = cluster->owner;
    const bool known = before->uid != NULL;
    struct gs_claim claim, after = {0};
    gs_claim_of_pod(pod, &claim);
    const int waited = owner->bound(cluster->ctx, pod, known);
    gs_claim_follow(cluster->ledger, &claim, waited > 0 && !read && !cluster->lists_pods);
    if (gs_cluster_claim(cluster, &claim, err) < 0)
        return -1;
    /* on its node it never requests less (gs_claim_follow()) */
    gs_ledger_find_claim(cluster->ledger, pod->uid, &after);
    if (known && (after.slot != before->slot || after.charged != before->charged))
        freed(cluster, before->slot);
    if (!known && waited == 0) { /* the policies learn of each pod once */
        struct gs_ask ask;
        gs_ask_of_pod(&ask, pod);
        gs_policies_learn(cluster->policies, &ask);
    }
    return waited < 0 ? gs_fail_nomem(err) : 0;
}

/* --- pods that wait --- */

static int take_waiting(struct gs_cluster *cluster, const struct gs_pod *pod, struct gs_error *err)
{
    const struct gs_cluster_owner *owner = cluster->owner;
    struct gs_hold hold = {.node = pod->nominated_node};
    gs_ask_of_pod(&hold.ask, pod);
    if ((owner->holds ? owner->holds(cluster->ctx, pod, err)
                      : gs_ledger_hold(cluster->ledger, &hold, err)) < 0)
        return -1;
    const int is_new = owner->waits(cluster->ctx, pod, err);
    if (is_new > 0)
        gs_policies_learn(cluster->policies, &hold.ask);
    return is_new < 0 ? -1 : 0;
}

/* --- pods that end --- */

static void end_pod(struct gs_cluster *cluster, const struct gs_pod *pod)
{
    const struct gs_hold *hold = gs_ledger_find_hold(cluster->ledger, pod->uid);
    uint32_t slot = hold ? hold->slot : GS_INDEX_NONE;
    bool had_claim = gs_ledger_remove(cluster->ledger, pod->uid, &slot);
    if (had_claim)
        gs_policies_left(cluster->policies);
    if (had_claim || hold)
        freed(cluster, slot);
    gs_recent_add(&cluster->ended, pod->uid);
    cluster->owner->ended(cluster->ctx, pod);
}

/* What was read while a list was taken in may be older than the list. */
bool gs_cluster_has_ended(const struct gs_cluster *cluster, const char *uid, bool read)
{
    return gs_recent_has(&cluster->ended, uid) ||
           (read && gs_recent_has(&cluster->ended_before, uid));
}

int gs_cluster_pod(struct gs_cluster *cluster, const struct gs_pod *pod, bool read,
                   struct gs_error *err)
{
    if (gs_pod_terminal(pod)) {
        end_pod(cluster, pod);
        if (!read)
            gs_recent_add(&cluster->ended_by_phase, pod->uid);
        return 0;
    }
    /* The phase went back. The watch's events come in order: this one is the newer. */
    if (!read && gs_recent_has(&cluster->ended_by_phase, pod->uid)) {
        gs_recent_remove(&cluster->ended_by_phase, pod->uid);
        gs_recent_remove(&cluster->ended, pod->uid);
        gs_recent_remove(&cluster->ended_before, pod->uid);
    }
    struct gs_claim before = {0};
    gs_ledger_find_claim(cluster->ledger, pod->uid, &before);
    const uint64_t revision = gs_pod_revision(pod);
    /* outside a list an event older than what the ledger knows is a repetition or came late */
    if (gs_cluster_has_ended(cluster, pod->uid, read) || (revision && revision < before.revision))
        return 0;
    const bool wants = gs_pod_wants_gpu(pod);
    if (pod->node_name[0])
        return wants ? take_bound(cluster, pod, read, &before, err)
                     : gs_ledger_set_other(cluster->ledger, pod->uid, pod->node_name,
                                           gs_pod_cpu_milli(pod), err);
    return wants ? take_waiting(cluster, pod, err) : 0;
}

void gs_cluster_pod_gone(struct gs_cluster *cluster, const struct gs_pod *last)
{
    end_pod(cluster, last);
    gs_recent_remove(&cluster->ended_by_phase, last->uid);
}

/* --- nodes --- */

/* A pod may fit now although neither the largest free GPU nor their sum grew: it asked for a model,
 * or for two GPUs. */
static bool same_gpus(const struct gs_node_view *view, const struct gs_node *node)
{
    if (!view || !view->inventory || view->gpu_count != node->gpu_count)
        return false;
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const struct gs_gpu *old = &view->inventory[i], *new = &node->gpus[i];
        if (!gs_gpu_same(old, new) || old->max_pods != new->max_pods ||
            old->schedulable != new->schedulable)
            return false;
    }
    return true;
}

int gs_cluster_node(struct gs_cluster *cluster, const struct gs_node *node, struct gs_error *err)
{
    bool same = same_gpus(gs_ledger_view(cluster->ledger, node->name), node), news = false;
    if (gs_ledger_set_node(cluster->ledger, node, err) < 0)
        return -1;
    const uint32_t slot = gs_ledger_view(cluster->ledger, node->name)->slot;
    int result = gs_node_facts_set(&cluster->facts, slot, node, &news);
    if (!same || news || node->moved_count) /* who is told to be elsewhere may have made room */
        freed(cluster, slot);
    return result < 0 ? gs_fail_nomem(err) : 0;
}

void gs_cluster_node_gone(struct gs_cluster *cluster, const char *name)
{
    const struct gs_node_view *view = gs_ledger_view(cluster->ledger, name);
    if (view)
        gs_node_facts_set(&cluster->facts, view->slot, NULL, NULL);
    gs_ledger_drop_node(cluster->ledger, name);
}

/* --- lists --- */

void gs_cluster_list_begin(struct gs_cluster *cluster, enum gs_kind kind)
{
    if (kind == GS_KIND_NODE) {
        gs_ledger_begin_nodes(cluster->ledger);
        return;
    }
    cluster->lists_pods = true;
    gs_ledger_begin_pods(cluster->ledger);
    gs_recent_release(&cluster->ended_before);
    cluster->ended_before = cluster->ended;
    cluster->ended = (struct gs_recent){0};
}

uint32_t gs_cluster_list_end(struct gs_cluster *cluster, enum gs_kind kind)
{
    if (kind == GS_KIND_POD) {
        cluster->lists_pods = false;
        return gs_ledger_sweep_pods(cluster->ledger);
    }
    gs_ledger_sweep_nodes(cluster->ledger);
    const uint32_t slots = gs_ledger_slots(cluster->ledger);
    for (uint32_t slot = 0; slot < slots && slot < cluster->facts.cap; slot++) {
        if (!gs_ledger_view_at(cluster->ledger, slot))
            gs_node_facts_set(&cluster->facts, slot, NULL, NULL);
    }
    return 0;
}
