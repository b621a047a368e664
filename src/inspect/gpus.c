/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/gpus.h"

#include "inspect/pods.h"

/* Keys of the extender's inspect answer (id, totalGPU, usedGPU, pods, name), and more: docs/cli.md
 * describes them. */

static uint64_t unless_zero(uint64_t number)
{
    return number ? number : COLUMN_UNKNOWN;
}

static void write_gpu(struct sheet *to, const struct view_node *node, const struct view_gpu *gpu)
{
    const struct gs_gpu *what = gpu->gpu;
    const enum gs_enforced enforced = what->enforced;
    const bool measured = node->usage && (node->usage->known & GS_GPU_BIT(gpu->idx));
    const uint32_t pods = node->state->gpus[gpu - node->gpus].pods;
    char words[VIEW_WORDS_BYTES];
    view_gpu_words(gpu, ",", words);
    sheet_row(to);
    column_number(to, COLUMN_NUMBER, "GPU", "id", COLUMN_ALWAYS, gpu->idx);
    column_number(to, COLUMN_NUMBER, "ALLOCATED()", "usedGPU", COLUMN_ALWAYS, gpu->used_units);
    column_number(to, COLUMN_NUMBER, "TOTAL", "totalGPU", COLUMN_ALWAYS, gpu->total_units);
    column_number(to, COLUMN_NUMBER, "FREE", "freeGPU", COLUMN_DOCUMENT, gpu->free_units);
    column_number(to, COLUMN_NUMBER, "COMPUTE", "usedCorePercentage", COLUMN_IF_SET,
                  unless_zero(gpu->used_cores_pct));
    column_text(to, COLUMN_TEXT, "COMPUTE-LIMITED", "coreEnforced", COLUMN_IF_SET,
                !gpu->used_cores_pct          ? NULL
                : enforced == GS_ENFORCED_MPS ? "mps"
                                              : "none");
    column_number(to, COLUMN_BYTES, "USED(GiB)", "usedBytes", COLUMN_IF_SET,
                  measured ? node->usage->used_bytes[gpu->idx] : COLUMN_UNKNOWN);
    column_number(to, COLUMN_NUMBER, "PODS", NULL, COLUMN_IF_SET,
                  what->max_pods ? pods : COLUMN_UNKNOWN);
    column_number(to, COLUMN_NUMBER, "MAX-PODS", "maxPods", COLUMN_IF_SET,
                  unless_zero(what->max_pods));
    column_text(to, COLUMN_TEXT, "STATE", NULL, COLUMN_IF_SET,
                gs_arena_strdup(&to->texts, words + (words[0] == ',')));
    column_text(to, COLUMN_TEXT, "LIMITED", "enforced", COLUMN_IF_SET,
                enforced != GS_ENFORCED_UNKNOWN ? gs_enforced_by(enforced) : NULL);
    column_text(to, COLUMN_TEXT, "MODEL", "model", COLUMN_IF_SET, what->model);
    column_text(to, COLUMN_TEXT, "UUID", "uuid", COLUMN_IF_SET, what->uuid);
    column_number(to, COLUMN_BOOL, "HEALTHY", "healthy", COLUMN_DOCUMENT, what->healthy);
    column_number(to, COLUMN_BOOL, "SCHEDULABLE", "schedulable", COLUMN_DOCUMENT,
                  what->schedulable);
    column_number(to, COLUMN_BOOL, "USABLE", "usable", COLUMN_DOCUMENT, gpu->usable);
    column_number(to, COLUMN_BOOL, "OVERCOMMITTED", "overcommitted", COLUMN_DOCUMENT,
                  gpu->overfull);
    column_text(to, COLUMN_PROSE, "WHY-NOT-LIMITED", "enforcedMessage", COLUMN_IF_SET,
                gs_enforced_lacks(enforced) ? gs_enforced_reason(enforced) : NULL);
}

void gpus_pods(struct doc *doc, const char *key, const struct view *view,
               const struct view_node *node, const struct view_gpu *gpu)
{
    struct sheet sheet = {0};
    EACH_CLAIM (claim, node) {
        if (gpu ? claim_on(claim, gpu->idx) : !claim_recorded(claim))
            pods_row(&sheet, PODS_ON_GPU, view, node, claim, gpu);
    }
    sheet_list(doc, key, &sheet);
}

void gpus_document(struct doc *doc, const struct view *view, const struct view_node *node,
                   gs_gpu_mask gpus)
{
    doc_list(doc, "devs");
    EACH_GPU (gpu, node) {
        struct sheet sheet = {0};
        if (!(gpus & GS_GPU_BIT(gpu->idx)))
            continue;
        doc_object(doc, NULL);
        write_gpu(&sheet, node, gpu);
        sheet_members(doc, &sheet, NULL);
        gpus_pods(doc, "pods", view, node, gpu);
        doc_end(doc);
    }
    doc_end(doc);
}

/* A pod is a row on each of these GPUs; one that names none, and may be there, is one. */
static void write_pods(struct sheet *to, const struct view *view, const struct view_node *node,
                       gs_gpu_mask gpus)
{
    EACH_CLAIM (claim, node) {
        if (!claim_recorded(claim) && (claim->charged & gpus))
            pods_row(to, PODS_ON_GPU, view, node, claim, NULL);
        EACH_GPU (gpu, node) {
            if (claim_on(claim, gpu->idx) && (gpus & GS_GPU_BIT(gpu->idx)))
                pods_row(to, PODS_ON_GPU, view, node, claim, gpu);
        }
    }
}

static void write_both(const struct view *view, const struct view_node *node, gs_gpu_mask gpus,
                       struct sheet *some, struct sheet *pods)
{
    some->unit = pods->unit = gs_unit_name(view_unit_of(view, node));
    EACH_GPU (gpu, node) {
        if (gpus & GS_GPU_BIT(gpu->idx))
            write_gpu(some, node, gpu);
    }
    write_pods(pods, view, node, gpus);
}

void gpus_tables(struct doc *doc, const struct view *view, const struct view_node *node,
                 gs_gpu_mask gpus)
{
    struct sheet some = {0}, pods = {0};
    write_both(view, node, gpus, &some, &pods);
    sheet_table(doc, &(struct table){"gpus", "GPUs", .most = GS_GPUS_MAX}, &some, 0);
    sheet_table(doc, &(struct table){"pods", "Scheduled pods", .most = SIZE_MAX}, &pods, 0);
}

int gpus_write(FILE *out, const struct view *view, const struct view_node *node, gs_gpu_mask gpus,
               const struct terminal *terminal)
{
    struct sheet some = {0}, pods = {0};
    write_both(view, node, gpus, &some, &pods);
    int result = sheet_print(out, &some, NULL, terminal);
    return sheet_print(out, &pods, NULL, terminal) < 0 ? -1 : result;
}
