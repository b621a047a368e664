/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "inspect/doc.h"
#include "inspect/show.h"

/*
 * The keys of the extender's inspect answer (name, totalGPU, usedGPU, devs, id, pods), and more.
 * docs/cli.md describes them.
 */

/* gpu: NULL of a pod whose GPU is not known. */
static void put_use(struct doc *doc, const struct usage_pod *pod, const struct view_gpu *gpu)
{
    const struct usage_gpu *use = gpu ? usage_gpu_find(pod, gpu->idx) : NULL;
    if (use) {
        doc_number(doc, "inUseBytes", use->used_bytes);
        doc_number(doc, "peakBytes", use->peak_bytes);
    }
    if (!pod)
        return;
    doc_text(doc, "owner", pod->owner);
    doc_enforced(doc, pod->enforced, pod->reason);
}

/* gpu: NULL of a pod that names none. */
static void put_pod(struct doc *doc, const struct view *view, const struct view_node *node,
                    const struct gs_claim *claim, const struct view_gpu *gpu)
{
    char text[LIMITS_TEXT_BYTES];
    const char *held = limits_hold(node, claim, view->usage, text);
    doc_object(doc, NULL);
    doc_text(doc, "name", claim->name);
    doc_text(doc, "namespace", claim->ns);
    doc_text(doc, "uid", claim->uid);
    doc_number(doc, "usedGPU", claim->units);
    if (claim->cores_pct)
        doc_number(doc, "corePercentage", claim->cores_pct);
    if (!gpu || claim->gpu_count > 1)
        doc_number(doc, "gpuCount", claim->gpu_count);
    put_use(doc, usage_pod_find(view->usage, claim->node, claim->uid), gpu);
    if (held)
        doc_text(doc, "heldByRequired", held);
    doc_end(doc);
}

static void put_gpu(struct doc *doc, const struct view *view, const struct view_node *node,
                    const struct view_gpu *gpu)
{
    doc_object(doc, NULL);
    doc_number(doc, "id", gpu->idx);
    doc_number(doc, "totalGPU", gpu->total_units);
    doc_number(doc, "usedGPU", gpu->used_units);
    doc_number(doc, "freeGPU", gpu->free_units);
    if (gpu->used_cores_pct) {
        doc_number(doc, "usedCorePercentage", gpu->used_cores_pct);
        doc_text(doc, "coreEnforced", view_cores(gpu->gpu->enforced)->word);
    }
    if (node->usage && (node->usage->known & GS_GPU_BIT(gpu->idx)))
        doc_number(doc, "inUseBytes", node->usage->used_bytes[gpu->idx]);
    if (gpu->gpu->uuid[0])
        doc_text(doc, "uuid", gpu->gpu->uuid);
    if (gpu->gpu->model[0])
        doc_text(doc, "model", gpu->gpu->model);
    doc_bool(doc, "healthy", gpu->gpu->healthy);
    doc_bool(doc, "schedulable", gpu->gpu->schedulable);
    doc_bool(doc, "overfull", gpu->overfull);
    if (gpu->gpu->enforced != GS_ENFORCED_UNKNOWN)
        doc_enforced(doc, gpu->gpu->enforced, gs_enforced_reason(gpu->gpu->enforced));
    if (gpu->gpu->max_pods)
        doc_number(doc, "maxPods", gpu->gpu->max_pods);
    doc_list(doc, "pods");
    for (uint32_t i = 0; i < node->claim_count; i++) {
        if (claim_on(&node->claims[i], gpu->idx))
            put_pod(doc, view, node, &node->claims[i], gpu);
    }
    doc_end(doc);
    doc_end(doc);
}

static void put_fragmentation(struct doc *doc, const struct gs_fragmentation *part)
{
    doc_number(doc, "freeGPU", part->free_units);
    doc_number(doc, "largestGPU", part->largest_units);
    if (part->known)
        doc_number(doc, "strandedGPU", part->stranded_units);
}

static void put_node(struct doc *doc, const struct view *view, const struct view_node *node)
{
    doc_object(doc, NULL);
    doc_text(doc, "name", node->node->name);
    doc_text(doc, "address", node->node->address);
    doc_text(doc, "unit", gs_unit_name(node->node->unit));
    doc_bool(doc, "ready", node->node->ready);
    doc_bool(doc, "unschedulable", node->node->unschedulable);
    doc_bool(doc, "inventory", node->node->inventory);
    doc_number(doc, "totalGPU", node->total_units);
    doc_number(doc, "usedGPU", node->used_units);
    doc_number(doc, "pendingGPU", node->pending_units);
    put_fragmentation(doc, &node->fragmentation);
    doc_number(doc, "unusableGPU", node->unusable_units);
    doc_number(doc, "overGPU", node->over_units);
    if (node->usage && node->usage->mode)
        doc_text(doc, "enforceMode", node->usage->mode);
    doc_number(doc, "limitedGpus", node->limits.limited_gpus);
    doc_number(doc, "heldByRequired", node->limits.held_pods);
    doc_list(doc, "devs");
    for (uint32_t i = 0; i < node->gpu_count; i++)
        put_gpu(doc, view, node, &node->gpus[i]);
    doc_end(doc);
    doc_list(doc, "pending");
    for (uint32_t i = 0; i < node->claim_count; i++) {
        if (!claim_recorded(&node->claims[i]))
            put_pod(doc, view, node, &node->claims[i], NULL);
    }
    doc_end(doc);
    doc_end(doc);
}

static void put_sums(struct doc *doc, const struct view *view)
{
    struct view_figure figures[VIEW_FIGURES];
    const uint32_t count = view_figures(view, figures);
    struct view_fit fit;
    doc_list(doc, "namespaces");
    for (size_t i = 0; i < view->ns_count; i++) {
        doc_object(doc, NULL);
        doc_text(doc, "name", view->namespaces[i].name);
        doc_number(doc, "pods", view->namespaces[i].pods);
        doc_number(doc, "usedGPU", view->namespaces[i].used_units);
        doc_end(doc);
    }
    doc_end(doc);
    waits_document(doc, &view->waits);
    doc_object(doc, "cluster");
    for (uint32_t i = 0; i < count; i++)
        doc_number(doc, figures[i].key, figures[i].number);
    if (view->says_used)
        doc_number(doc, "inUseBytes", view->sum.used_bytes);
    doc_list(doc, "wouldFit");
    for (uint32_t nth = 0; view_fit(view, nth, &fit); nth++) {
        doc_object(doc, NULL);
        doc_number(doc, "requestedGPU", fit.units);
        doc_number(doc, "pods", fit.pods);
        doc_end(doc);
    }
    doc_end(doc);
    doc_end(doc);
}

int print_document(const struct view *view, bool yaml)
{
    struct doc doc;
    doc_open(&doc, stdout, yaml);
    doc_text(&doc, "unit", view->unit);
    doc_list(&doc, "nodes");
    for (size_t i = 0; i < view->node_count; i++)
        put_node(&doc, view, &view->nodes[i]);
    doc_end(&doc);
    put_sums(&doc, view);
    return doc_close(&doc);
}
