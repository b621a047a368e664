/* SPDX-License-Identifier: Apache-2.0 */
/* The pods of this node and what they hold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/invariant.h"
#include "internal.h"

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
    gs_calls_free(alloc);
    gs_writes_free(alloc);
    gs_arena_release(&alloc->earlier_texts);
    gs_recent_release(&alloc->ended);
    gs_recent_release(&alloc->stranger_ids);
    gs_ledger_free(alloc->ledger);
    free(alloc);
}

int gs_allocator_set_gpus(struct gs_allocator *alloc, const struct gs_gpu *gpus, uint32_t count,
                          gs_gpu_mask gone, struct gs_error *err)
{
    const struct gs_node node = {
        .name = alloc->config.node,
        .gpus = (struct gs_gpu *)gpus,
        .gpu_count = count,
        .inventory = true,
    };
    if (gs_ledger_set_node(alloc->ledger, &node, err) < 0)
        return -1;
    alloc->gone = gone;
    alloc->sick = gone;
    for (uint32_t i = 0; i < count; i++)
        alloc->sick |= gpus[i].healthy ? 0 : GS_GPU_BIT(gpus[i].idx);
    return 0;
}

const struct gs_node_view *gs_allocator_view(const struct gs_allocator *alloc)
{
    return gs_ledger_view(alloc->ledger, alloc->config.node);
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

gs_gpu_mask gs_claimant_record(const struct gs_allocator *alloc, const struct claimant *claimant)
{
    const struct gs_node_view *view = gs_allocator_view(alloc);
    gs_gpu_mask said = claimant->moved ? claimant->moved : claimant->bound;
    return view && !(said & ~gs_view_present(view)) ? said : 0;
}

void gs_claimant_give(struct claimant *claimant, gs_gpu_mask gpus)
{
    const gs_gpu_mask said = claimant->moved ? claimant->moved : claimant->bound;
    claimant->allocated = gpus;
    if (gpus || said)
        claimant->charge = gs_pod_charge_on(&claimant->pod, gpus ? gpus : said);
}

gs_gpu_mask gs_claimant_place(const struct gs_allocator *alloc, const struct claimant *claimant)
{
    return claimant->allocated ? claimant->allocated : gs_claimant_record(alloc, claimant);
}

bool gs_claimant_fits(const struct gs_allocator *alloc, const struct claimant *claimant,
                      gs_gpu_mask gpus)
{
    const struct gs_node_view *view = gs_allocator_view(alloc);
    uint64_t used[GS_GPUS_MAX] = {0};
    uint32_t idx;
    bool older = true, fits = true;
    for (const struct claimant *at = alloc->first; at; at = at->next) {
        older = older && at != claimant;
        if (at == claimant || !(at->allocated || older))
            continue;
        GS_FOR_EACH_GPU (idx, gs_claimant_place(alloc, at))
            used[idx] += at->charge.units;
    }
    for (const struct call *at = alloc->calls; at; at = at->next) {
        if (!at->uid[0] || at->owner == claimant)
            continue;
        GS_FOR_EACH_GPU (idx, at->gpus)
            used[idx] += gs_call_share(at);
    }
    for (uint32_t i = 0; view && gpus && i < view->gpu_count; i++) {
        idx = view->gpus[i].idx;
        if (gpus & GS_GPU_BIT(idx))
            fits &= used[idx] + gs_pod_charge_on(&claimant->pod, gpus).units <=
                    view->gpus[i].total_units;
    }
    return fits;
}

int gs_claimant_charge(struct gs_allocator *alloc, struct claimant *claimant, struct gs_error *err)
{
    gs_claimant_note_move(alloc, claimant, false);
    gs_gpu_mask place = gs_claimant_place(alloc, claimant);
    GS_INVARIANT(!place || gs_gpu_mask_count(place) == claimant->charge.gpu_count,
                 "a pod is charged for as many GPUs as it is allocated to");
    const bool torn = gs_claimant_is_torn(alloc, claimant);
    for (struct call *at = alloc->calls; at; at = at->next) {
        if (at->owner == claimant)
            gs_call_charge(alloc, at, torn);
    }
    /* it gets what fits when the kubelet asks, not before */
    if (torn || (!place && !claimant->done)) {
        gs_ledger_remove(alloc->ledger, claimant->pod.uid, NULL);
        return 0;
    }
    const struct gs_claim claim = {
        .uid = claimant->pod.uid,
        .ns = claimant->pod.ns,
        .name = claimant->pod.name,
        .node = alloc->config.node,
        .gpus = place,
        .units = claimant->charge.units,
        .gpu_count = claimant->charge.gpu_count,
        .cores_pct = claimant->charge.cores_pct,
        .priority = claimant->pod.priority,
    };
    return gs_ledger_set_claim(alloc->ledger, &claim, err);
}

/* The units of every container that asks, init containers first, as the kubelet calls. */
static int read_requests(struct claimant *claimant)
{
    const struct gs_pod *pod = &claimant->pod;
    claimant->requests = calloc(pod->container_count + 1, sizeof(*claimant->requests));
    if (!claimant->requests)
        return -1;
    for (uint32_t i = 0; i < pod->container_count; i++) {
        if (pod->containers[i].gpu_units)
            claimant->requests[claimant->request_count++] = pod->containers[i].gpu_units;
    }
    return 0;
}

/* At the end; but pods that are new in a full list, which is in no order, by their creation. */
static void insert(struct gs_allocator *alloc, struct claimant *claimant)
{
    struct claimant **at = &alloc->first;
    while (*at &&
           !(alloc->in_list && (*at)->fresh && (*at)->pod.created_s > claimant->pod.created_s))
        at = &(*at)->next;
    claimant->next = *at;
    *at = claimant;
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
    claimant->fresh = alloc->in_list;
    claimant->early = alloc->in_list && !alloc->had_list;
    claimant->bound = gs_pod_recorded(pod);
    gs_pod_charge(pod, &claimant->charge);
    insert(alloc, claimant);
    return claimant;
}

static void remove_claimant(struct gs_allocator *alloc, struct claimant *gone)
{
    struct claimant **at = &alloc->first;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    gs_ledger_remove(alloc->ledger, gone->pod.uid, NULL);
    alloc->moved_state += gone->moved != 0;
    gs_recent_add(&alloc->ended, gone->pod.uid);
    if (gone->pod.static_uid[0])
        gs_recent_add(&alloc->ended, gone->pod.static_uid);
    gs_calls_leave(alloc, gone);
    if (alloc->current == gone)
        alloc->current = NULL;
    free_claimant(gone);
}

/* The container's own variables come after ours and win in most runtimes. */
static void warn_of_override(struct gs_allocator *alloc, const struct claimant *claimant)
{
    const struct gs_pod *pod = &claimant->pod;
    char words[192];
    if (pod->overrides) {
        snprintf(words, sizeof(words),
                 "a container of this pod sets %s itself and may use GPUs that are not allocated "
                 "to the pod: remove the variable from env",
                 pod->overrides);
        gs_write_event(alloc, claimant, true, "GpuEnvironmentOverridden", words);
    }
    if (alloc->config.mps && pod->sets_mps)
        gs_write_event(alloc, claimant, true, "GpuEnvironmentOverridden",
                       "a container of this pod sets CUDA_MPS_ variables itself, and MPS may not "
                       "limit its memory: remove them from env");
}

/* What a pod's new state says about what was allocated. */
static void follow_state(struct gs_allocator *alloc, struct claimant *claimant, bool fresh)
{
    bool runs = gs_claimant_runs(claimant), ran = claimant->pod.assigned || runs;
    if (fresh && !runs && !(claimant->early && ran))
        warn_of_override(alloc, claimant);
    if (fresh ? ran : runs && !claimant->pod.assigned)
        gs_claimant_set_done(alloc, claimant, claimant->request_count);
    if (runs && claimant->held && gs_claimant_owns_calls(alloc, claimant))
        gs_claimant_follow_environment(alloc, claimant);
}

/* News that is older than what is known: a quick list may be. A full list is believed. */
static bool outdated(struct gs_allocator *alloc, const struct claimant *claimant,
                     const struct gs_pod *pod)
{
    if (alloc->in_list) {
        if (gs_recent_has(&alloc->ended, pod->uid))
            gs_recent_release(&alloc->ended); /* the cluster was set back to an earlier state */
        return false;
    }
    uint64_t revision = gs_pod_revision(pod);
    return gs_recent_has(&alloc->ended, pod->uid) ||
           (claimant && revision && revision < claimant->revision);
}

static int take(struct gs_allocator *alloc, struct claimant *claimant, const struct gs_pod *pod,
                struct gs_error *err)
{
    bool fresh = !claimant;
    if (fresh)
        claimant = add_claimant(alloc, pod);
    if (!claimant || (!fresh && gs_pod_copy(&claimant->pod, pod) < 0))
        return gs_fail_nomem(err);
    claimant->revision = gs_pod_revision(pod);
    if (fresh) {
        gs_claimant_take_entry(alloc, claimant);
        gs_claimant_inherit(alloc, claimant);
    }
    follow_state(alloc, claimant, fresh);
    gs_claimant_put_right(alloc, claimant);
    return gs_claimant_charge(alloc, claimant, err);
}

int gs_allocator_pod(struct gs_allocator *alloc, const struct gs_pod *pod, struct gs_error *err)
{
    struct claimant *claimant = gs_claimant_find(alloc, pod->uid);
    if (claimant && (alloc->in_list || alloc->in_quick))
        claimant->stale[alloc->in_list] = false;
    if (outdated(alloc, claimant, pod))
        return 0;
    if (!gs_pod_terminal(pod) && gs_pod_wants_gpu(pod) &&
        strcmp(pod->node_name, alloc->config.node) == 0)
        return take(alloc, claimant, pod, err);
    if (claimant)
        remove_claimant(alloc, claimant);
    return 0;
}

void gs_allocator_pod_gone(struct gs_allocator *alloc, const char *uid)
{
    struct claimant *claimant = gs_claimant_find(alloc, uid);
    if (claimant)
        remove_claimant(alloc, claimant);
    gs_recent_add(&alloc->ended, uid);
}

/* Of either kind: a full list may come while a quick one is under way, and is older. */
void gs_allocator_quick_begin(struct gs_allocator *alloc)
{
    for (struct claimant *at = alloc->first; at; at = at->next)
        at->stale[alloc->in_list] = true;
}

void gs_allocator_list_begin(struct gs_allocator *alloc)
{
    alloc->in_list = true;
    gs_allocator_quick_begin(alloc);
}

void gs_allocator_quick_pods(struct gs_allocator *alloc)
{
    alloc->in_quick = true;
}

void gs_allocator_list_end(struct gs_allocator *alloc)
{
    struct claimant *next;
    const bool full = alloc->in_list;
    alloc->had_list |= full;
    alloc->in_list = alloc->in_quick = false;
    for (struct claimant *at = alloc->first; at; at = next) {
        next = at->next;
        at->fresh = false;
        if (at->stale[full])
            remove_claimant(alloc, at);
    }
}

/* Its units are some GPU's: a change of the unit would change what it has. */
static bool is_placed(const struct claimant *claimant)
{
    return claimant->done || claimant->bound;
}

void gs_allocator_stats(const struct gs_allocator *alloc, struct gs_allocator_stats *ret)
{
    struct gs_allocator_stats stats = alloc->stats;
    for (const struct claimant *at = alloc->first; at; at = at->next) {
        stats.pods++;
        stats.waiting += at->done < at->request_count;
        stats.placed += is_placed(at);
    }
    for (const struct call *call = alloc->calls; call; call = call->next)
        stats.placed += gs_call_counts(call) && !call->owner; /* of a pod that is not known yet */
    gs_writes_count(alloc, &stats);
    const struct gs_node_view *view = gs_allocator_view(alloc);
    for (uint32_t i = 0; view && i < view->gpu_count; i++)
        stats.used_units[view->gpus[i].idx] = view->gpus[i].used_units;
    *ret = stats;
}

bool gs_allocator_may_live(const struct gs_allocator *alloc, const char *cgroup_uid)
{
    return !alloc->had_list || gs_claimant_of_cgroup(alloc, cgroup_uid);
}

enum { NAMED = 3 };

void gs_allocator_name_placed(const struct gs_allocator *alloc, gs_gpu_mask gpus,
                              struct gs_buf *out)
{
    uint32_t count = 0;
    for (const struct claimant *at = alloc->first; at; at = at->next) {
        if (!is_placed(at) || (gpus && !(gs_claimant_place(alloc, at) & gpus)))
            continue;
        if (count++ < NAMED)
            gs_buf_printf(out, "%s%s/%s", count > 1 ? ", " : "", at->pod.ns, at->pod.name);
    }
    if (count > NAMED)
        gs_buf_printf(out, " and %u more", count - NAMED);
}
