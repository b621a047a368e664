/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "inspect/gpus.h"
#include "inspect/show.h"

/*
 * The keys of the extender's inspect answer (name, totalGPU, usedGPU, devs, id, pods), and more.
 * docs/cli.md describes them.
 */

void document_node(struct doc *doc, const struct view *view, const struct view_node *node,
                   gs_gpu_mask gpus, const struct output *output)
{
    doc_object(doc, NULL);
    nodes_members(doc, view, node, output);
    if (!output || !output->columns) {
        gpus_document(doc, view, node, gpus);
        gpus_pods(doc, "invalidIndexPods", view, node, NULL);
    }
    doc_end(doc);
}

void document_cluster(struct doc *doc, const char *key, const struct view *view)
{
    const struct view_sum *sum = &view->sum;
    struct view_fit fit;
    doc_object(doc, key);
    doc_number(doc, "nodeCount", view->node_count);
    doc_number(doc, "gpuCount", sum->gpus);
    doc_number(doc, "unusableGPUCount", sum->unusable_gpus);
    doc_number(doc, "overcommittedGPUCount", sum->overfull_gpus);
    nodes_total(doc, view);
    doc_list(doc, "wouldFit");
    for (uint32_t nth = 0; view_fit(view, nth, &fit); nth++) {
        doc_object(doc, NULL);
        doc_number(doc, "requestedGPU", fit.units);
        doc_number(doc, "podCount", fit.pods);
        doc_end(doc);
    }
    doc_end(doc);
    doc_end(doc);
}

void document_namespaces(struct doc *doc, const char *key, const struct view *view, size_t most)
{
    doc_list(doc, key);
    for (size_t i = 0; i < view->ns_count && i < most; i++) {
        doc_object(doc, NULL);
        doc_text(doc, "name", view->namespaces[i].ns);
        doc_number(doc, "podCount", view->namespaces[i].pods);
        doc_number(doc, "usedGPU", view->namespaces[i].units);
        doc_end(doc);
    }
    doc_end(doc);
}

static void put_sums(struct doc *doc, const struct view *view)
{
    document_namespaces(doc, "namespaces", view, SIZE_MAX);
    waits_document(doc, &view->waits, NULL);
    document_cluster(doc, "cluster", view);
}

int print_document(const struct view *view, const struct output *output)
{
    struct doc doc;
    doc_open(&doc, stdout, output->format == OUTPUT_YAML);
    doc_text(&doc, "unit", view->unit);
    doc_list(&doc, "nodes");
    EACH_ROW (node, view)
        document_node(&doc, view, node, UINT64_MAX, output);
    doc_end(&doc);
    if (!output->columns)
        put_sums(&doc, view);
    return doc_close(&doc);
}
