/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "inspect/why.h"

/* `why POD -o json|yaml`. */

static void put_groups(struct doc *doc, const struct verdict *verdict)
{
    doc_list(doc, "reasons");
    for (int i = 0; i < GS_REASONS + GS_OBSTACLES; i++) {
        bool gpu = i < GS_REASONS;
        const struct verdict_group *group =
            gpu ? &verdict->gpu[i] : &verdict->other[i - GS_REASONS];
        if (!group->nodes)
            continue;
        doc_object(doc, NULL);
        doc_text(doc, "message",
                 gpu ? gs_reason_text((enum gs_reason)i)
                     : obstacle_text((enum gs_obstacle)(i - GS_REASONS)));
        doc_number(doc, "nodes", group->nodes);
        if (group->nearest) {
            doc_text(doc, "nearest", group->nearest);
            doc_number(doc, "id", group->nearest_gpu);
            doc_number(doc, "freeGPU", group->nearest_free_units);
        }
        doc_end(doc);
    }
    doc_end(doc);
}

static void put_waiting(struct doc *doc, const struct why *why)
{
    struct gs_ask ask;
    struct verdict verdict;
    const char *scheduler = snapshot_scheduler(&why->snapshot);
    gs_ask_of_pod(&ask, &why->pod);
    verdict_of(&why->snapshot, &ask, &verdict);
    doc_number(doc, "requestedGPU", ask.units);
    if (ask.cores_pct)
        doc_number(doc, "requestedCorePercentage", ask.cores_pct);
    doc_number(doc, "gpuCount", ask.gpu_count);
    doc_text(doc, "schedulerName", snapshot_scheduler_of(&why->pod));
    if (scheduler)
        doc_text(doc, "usualSchedulerName", scheduler);
    doc_bool(doc, "extenderAway", why_extender_is_away(why->said));
    doc_number(doc, "nodes", verdict.nodes);
    doc_number(doc, "fittingNodes", verdict.other[GS_OBSTACLE_NONE].nodes);
    verdict.other[GS_OBSTACLE_NONE].nodes = 0;
    put_groups(doc, &verdict);
}

static bool put_sharer(void *ctx, const struct gs_claim *claim)
{
    struct doc *doc = ctx;
    doc_object(doc, NULL);
    doc_text(doc, "name", claim->name);
    doc_text(doc, "namespace", claim->ns);
    doc_number(doc, "usedGPU", claim->units);
    if (claim->cores_pct)
        doc_number(doc, "corePercentage", claim->cores_pct);
    doc_list(doc, "gpus");
    for (uint32_t i = 0; i < GS_GPUS_MAX; i++) {
        if (claim->charged & GS_GPU_BIT(i))
            doc_number(doc, NULL, i);
    }
    doc_end(doc);
    doc_end(doc);
    return true;
}

static void put_use(struct doc *doc, const struct usage_pod *pod)
{
    if (!pod)
        return;
    doc_text(doc, "enforced", gs_enforced_name(pod->enforced));
    if (gs_enforced_lacks(pod->enforced) && pod->reason[0])
        doc_text(doc, "enforcedReason", pod->reason);
    doc_list(doc, "use");
    for (uint32_t i = 0; i < pod->gpu_count; i++) {
        const struct usage_gpu *gpu = &pod->gpus[i];
        if (!gpu->known)
            continue;
        doc_object(doc, NULL);
        doc_number(doc, "id", gpu->idx);
        doc_number(doc, "inUseBytes", gpu->used_bytes);
        doc_number(doc, "peakBytes", gpu->peak_bytes);
        doc_end(doc);
    }
    doc_end(doc);
}

static void put_bound(struct doc *doc, const struct why *why)
{
    struct gs_claim own;
    const struct gs_ledger *ledger = why->snapshot.cluster.ledger;
    doc_text(doc, "node", why->pod.node_name);
    if (!gs_ledger_find_claim(ledger, why->pod.uid, &own))
        return;
    doc_number(doc, "usedGPU", own.units);
    if (own.cores_pct)
        doc_number(doc, "corePercentage", own.cores_pct);
    doc_number(doc, "gpuCount", own.gpu_count);
    doc_bool(doc, "recorded", claim_recorded(&own));
    doc_list(doc, "gpus");
    for (uint32_t i = 0; i < GS_GPUS_MAX; i++) {
        if (own.gpus & GS_GPU_BIT(i))
            doc_number(doc, NULL, i);
    }
    doc_end(doc);
    put_use(doc, usage_pod_find(&why->usage, own.node, own.uid));
    const struct gs_node_view *view = gs_ledger_view(ledger, gs_slice_of(own.node));
    doc_list(doc, "podsOfNode"); /* itself included */
    if (view)
        gs_ledger_each_claim(ledger, view->slot, put_sharer, doc);
    doc_end(doc);
}

int why_document(const struct why *why)
{
    const struct gs_pod *pod = &why->pod;
    bool over = gs_pod_terminal(pod), wants = gs_pod_wants_gpu(pod);
    struct doc doc;
    doc_open(&doc, stdout, why->format == FORMAT_YAML);
    doc_text(&doc, "name", pod->name);
    doc_text(&doc, "namespace", pod->ns);
    doc_text(&doc, "state",
             !wants              ? "noGPU"
             : over              ? "ended"
             : pod->node_name[0] ? "bound"
                                 : "waiting");
    if (wants && !over) {
        doc_text(&doc, "unit", verdict_unit(&why->snapshot));
        if (pod->node_name[0])
            put_bound(&doc, why);
        else
            put_waiting(&doc, why);
    }
    if (why->said[0] && !pod->node_name[0])
        doc_text(&doc, "schedulerSaid", why->said);
    if (why->trouble[0])
        doc_text(&doc, "kubeletSaid", why->trouble);
    return doc_close(&doc);
}
