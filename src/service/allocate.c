/* SPDX-License-Identifier: Apache-2.0 */
/* The pods of this node and what they hold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocate_internal.h"
#include "gpushare/base/index.h"

enum { ORPHANS_MAX = 1024 };

struct gs_allocator *gs_allocator_new(const struct gs_allocator_config *config)
{
    struct gs_allocator *alloc = calloc(1, sizeof(*alloc));
    if (!alloc)
        return NULL;
    alloc->config = *config;
    alloc->ledger = gs_ledger_new();
    if (!alloc->ledger) {
        free(alloc);
        return NULL;
    }
    return alloc;
}

static void free_claimant(struct claimant *claimant)
{
    gs_pod_release(&claimant->pod);
    free(claimant->requests);
    free(claimant->calls);
    free(claimant);
}

void gs_allocator_free(struct gs_allocator *alloc)
{
    if (!alloc)
        return;
    while (alloc->first) {
        struct claimant *next = alloc->first->next;
        free_claimant(alloc->first);
        alloc->first = next;
    }
    while (alloc->orphans)
        gs_orphan_drop(alloc, alloc->orphans);
    gs_writes_free(alloc);
    gs_ledger_free(alloc->ledger);
    free(alloc);
}

int gs_allocator_set_gpus(struct gs_allocator *alloc, const struct gs_gpu *gpus, uint32_t count,
                          struct gs_error *err)
{
    const struct gs_node node = {
        .name = alloc->config.node,
        .gpus = (struct gs_gpu *)gpus,
        .gpu_count = count,
        .inventory = true,
    };
    return gs_ledger_set_node(alloc->ledger, &node, err);
}

const struct gs_node_view *gs_allocator_view(const struct gs_allocator *alloc)
{
    return gs_ledger_view(alloc->ledger, gs_slice_of(alloc->config.node));
}

bool gs_allocator_overfull(const struct gs_allocator *alloc, gs_gpu_mask gpus)
{
    const struct gs_node_view *view = gs_allocator_view(alloc);
    for (uint32_t i = 0; view && i < view->gpu_count; i++) {
        if ((gpus & GS_GPU_BIT(view->gpus[i].idx)) &&
            view->gpus[i].used_units > view->gpus[i].total_units)
            return true;
    }
    return false;
}

uint32_t gs_allocator_gpu_size(const struct gs_allocator *alloc, gs_gpu_mask gpus)
{
    const struct gs_node_view *view = gs_allocator_view(alloc);
    for (uint32_t i = 0; view && i < view->gpu_count; i++) {
        if (gpus & GS_GPU_BIT(view->gpus[i].idx))
            return view->gpus[i].total_units;
    }
    return 0;
}

struct claimant *gs_claimant_find(struct gs_allocator *alloc, const char *uid)
{
    struct claimant *at = alloc->first;
    while (at && strcmp(at->pod.uid, uid) != 0)
        at = at->next;
    return at;
}

struct claimant *gs_claimant_named(struct gs_allocator *alloc, const char *ns, const char *name)
{
    struct claimant *at = alloc->first;
    while (at && (strcmp(at->pod.name, name) != 0 || strcmp(at->pod.ns, ns) != 0))
        at = at->next;
    return at;
}

gs_gpu_mask gs_claimant_record(const struct gs_allocator *alloc, const struct claimant *claimant)
{
    const struct gs_node_view *view = gs_allocator_view(alloc);
    if (claimant->pod.recorded != GS_RECORDED_VALID || !view ||
        gs_gpu_mask_count(claimant->pod.recorded_gpus) != claimant->charge.gpu_count ||
        (claimant->pod.recorded_gpus & ~gs_view_present(view)))
        return 0;
    return claimant->pod.recorded_gpus;
}

int gs_claimant_charge(struct gs_allocator *alloc, const struct claimant *claimant,
                       struct gs_error *err)
{
    gs_gpu_mask recorded =
        claimant->pod.recorded == GS_RECORDED_VALID ? claimant->pod.recorded_gpus : 0;
    const struct gs_claim claim = {
        .uid = claimant->pod.uid,
        .ns = claimant->pod.ns,
        .name = claimant->pod.name,
        .node = alloc->config.node,
        .gpus = claimant->truth ? claimant->truth : recorded,
        .units = claimant->charge.units,
        .gpu_count = claimant->charge.gpu_count,
        .priority = claimant->pod.priority,
    };
    return gs_ledger_set_claim(alloc->ledger, &claim, err);
}

/* The units of every container that asks, init containers first, as the kubelet calls. */
static int read_requests(struct claimant *claimant)
{
    const struct gs_pod *pod = &claimant->pod;
    claimant->requests = calloc(pod->container_count + 1, sizeof(*claimant->requests));
    claimant->calls = calloc(pod->container_count + 1, sizeof(*claimant->calls));
    if (!claimant->requests || !claimant->calls)
        return -1;
    for (uint32_t i = 0; i < pod->container_count; i++) {
        if (pod->containers[i].gpu_units)
            claimant->requests[claimant->request_count++] = pod->containers[i].gpu_units;
    }
    return 0;
}

static struct claimant *add_claimant(struct gs_allocator *alloc, const struct gs_pod *pod)
{
    struct claimant *claimant = calloc(1, sizeof(*claimant));
    if (!claimant)
        return NULL;
    if (gs_pod_copy(&claimant->pod, pod) < 0 || read_requests(claimant) < 0) {
        free_claimant(claimant);
        return NULL;
    }
    struct claimant **at = &alloc->first;
    while (*at)
        at = &(*at)->next;
    *at = claimant;
    return claimant;
}

/* An earlier run of this program allocated it: ASSIGNED says so, or it runs. */
static void recall(struct gs_allocator *alloc, struct claimant *claimant)
{
    if (claimant->done || !(claimant->pod.assigned || claimant->pod.phase == GS_PHASE_RUNNING))
        return;
    claimant->done = claimant->request_count;
    claimant->truth = gs_claimant_record(alloc, claimant);
    if (alloc->current == claimant)
        alloc->current = NULL;
}

static void remove_claimant(struct gs_allocator *alloc, struct claimant *gone)
{
    struct claimant **at = &alloc->first;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    gs_ledger_remove(alloc->ledger, gone->pod.uid, NULL);
    /* a call whose owner the kubelet never confirmed may be another pod's */
    for (uint32_t i = 0; i < gone->done; i++) {
        if (gone->calls[i].gpus && !gone->calls[i].started)
            gs_orphan_add(alloc, gone->calls[i], gone->charge.units, false, NULL);
    }
    if (alloc->current == gone)
        alloc->current = NULL;
    free_claimant(gone);
}

int gs_allocator_pod(struct gs_allocator *alloc, const struct gs_pod *pod, struct gs_error *err)
{
    struct claimant *claimant = gs_claimant_find(alloc, pod->uid);
    if (gs_pod_terminal(pod) || !gs_pod_wants_gpu(pod) ||
        strcmp(pod->node_name, alloc->config.node) != 0) {
        if (claimant)
            remove_claimant(alloc, claimant);
        return 0;
    }
    bool fresh = !claimant;
    if (fresh)
        claimant = add_claimant(alloc, pod);
    if (!claimant || (!fresh && gs_pod_copy(&claimant->pod, pod) < 0))
        return gs_fail_nomem(err);
    claimant->seen = true;
    gs_pod_charge(pod, &claimant->charge);
    if (fresh)
        recall(alloc, claimant);
    return gs_claimant_charge(alloc, claimant, err);
}

void gs_allocator_pod_gone(struct gs_allocator *alloc, const char *uid)
{
    struct claimant *claimant = gs_claimant_find(alloc, uid);
    if (claimant)
        remove_claimant(alloc, claimant);
}

void gs_allocator_list_begin(struct gs_allocator *alloc)
{
    for (struct claimant *at = alloc->first; at; at = at->next)
        at->seen = false;
}

void gs_allocator_list_end(struct gs_allocator *alloc)
{
    struct claimant *next;
    for (struct claimant *at = alloc->first; at; at = next) {
        next = at->next;
        if (!at->seen)
            remove_claimant(alloc, at);
    }
}

uint64_t gs_call_key(const char *const *ids, size_t count)
{
    const char *least = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!least || strcmp(ids[i], least) < 0)
            least = ids[i];
    }
    return least ? gs_hash_bytes(least, strlen(least)) : 0;
}

struct orphan *gs_orphan_add(struct gs_allocator *alloc, struct call call, uint32_t units,
                             bool charged, struct gs_error *err)
{
    if (alloc->orphan_count >= ORPHANS_MAX) {
        struct orphan *oldest = alloc->orphans;
        while (oldest->next)
            oldest = oldest->next;
        gs_orphan_drop(alloc, oldest);
    }
    struct orphan *orphan = calloc(1, sizeof(*orphan));
    if (!orphan) {
        gs_fail_nomem(err);
        return NULL;
    }
    orphan->call = call;
    orphan->units = units;
    if (charged) {
        snprintf(orphan->uid, sizeof(orphan->uid), "unclaimed-%llu",
                 (unsigned long long)++alloc->orphan_number);
        const struct gs_claim claim = {.uid = orphan->uid,
                                       .node = alloc->config.node,
                                       .gpus = call.gpus,
                                       .units = units,
                                       .gpu_count = gs_gpu_mask_count(call.gpus)};
        if (gs_ledger_set_claim(alloc->ledger, &claim, err) < 0) {
            free(orphan);
            return NULL;
        }
    }
    orphan->next = alloc->orphans;
    alloc->orphans = orphan;
    alloc->orphan_count++;
    return orphan;
}

void gs_orphan_drop(struct gs_allocator *alloc, struct orphan *orphan)
{
    struct orphan **at = &alloc->orphans;
    while (*at != orphan)
        at = &(*at)->next;
    *at = orphan->next;
    alloc->orphan_count--;
    if (orphan->uid[0])
        gs_ledger_remove(alloc->ledger, orphan->uid, NULL);
    free(orphan);
}

void gs_allocator_stats(const struct gs_allocator *alloc, struct gs_allocator_stats *ret)
{
    struct gs_allocator_stats stats = alloc->stats;
    for (const struct claimant *at = alloc->first; at; at = at->next) {
        stats.pods++;
        stats.waiting += at->done < at->request_count;
    }
    stats.writes_queued = gs_writes_count(alloc);
    const struct gs_node_view *view = gs_allocator_view(alloc);
    for (uint32_t i = 0; view && i < view->gpu_count; i++)
        stats.used_units[view->gpus[i].idx] = view->gpus[i].used_units;
    *ret = stats;
}
