/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "inspect/why.h"

/* `why POD -o json|yaml`. */

static void put_waiting(struct doc *doc, const struct why *why)
{
    verdict_ask_document(doc, &why->ask);
    doc_text(doc, "schedulerName", snapshot_scheduler_of(&why->pod));
    if (why->scheduler)
        doc_text(doc, "usualSchedulerName", why->scheduler);
    doc_bool(doc, "extenderAway", why_extender_is_away(why->said));
    doc_number(doc, "nodes", why->verdict.nodes);
    doc_number(doc, "fittingNodes", why->verdict.other[GS_OBSTACLE_NONE].nodes);
    verdict_document(doc, &why->verdict, true);
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
    doc_gpus(doc, "gpus", claim->charged);
    doc_end(doc);
    return true;
}

static void put_use(struct doc *doc, const struct usage_pod *pod)
{
    if (!pod)
        return;
    doc_enforced(doc, pod->enforced, pod->reason);
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
    const struct gs_claim *own = &why->own;
    doc_text(doc, "node", why->pod.node_name);
    if (!why->charged)
        return;
    doc_number(doc, "usedGPU", own->units);
    if (own->cores_pct)
        doc_number(doc, "corePercentage", own->cores_pct);
    doc_number(doc, "gpuCount", own->gpu_count);
    doc_bool(doc, "recorded", claim_recorded(own));
    doc_gpus(doc, "gpus", own->gpus);
    put_use(doc, why->use);
    doc_list(doc, "podsOfNode"); /* itself included */
    if (why->view)
        gs_ledger_each_claim(why->snapshot.cluster.ledger, why->view->slot, put_sharer, doc);
    doc_end(doc);
}

int why_document(const struct why *why)
{
    static const char *const states[] = {"noGPU", "ended", "bound", "waiting"};
    const struct gs_pod *pod = &why->pod;
    struct doc doc;
    doc_open(&doc, stdout, why->format == FORMAT_YAML);
    doc_text(&doc, "name", pod->name);
    doc_text(&doc, "namespace", pod->ns);
    doc_text(&doc, "state", states[why->state]);
    if (why->unit)
        doc_text(&doc, "unit", why->unit);
    if (why->state == WHY_BOUND)
        put_bound(&doc, why);
    else if (why->state == WHY_WAITING)
        put_waiting(&doc, why);
    if (why->said[0] && !pod->node_name[0])
        doc_text(&doc, "schedulerSaid", why->said);
    if (why->trouble[0])
        doc_text(&doc, "kubeletSaid", why->trouble);
    return doc_close(&doc);
}
