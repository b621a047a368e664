/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/nodes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "inspect/limits.h"

/* ---- stranded ---- */

/* Why its free memory is stranded; NULL: none is, or that is not known. */
static const char *find_stranding(const struct view_node *node)
{
    if (!node->fragmentation.known || !node->fragmentation.stranded_units)
        return NULL;
    if (node->state->cpu_milli && gs_view_cpu_left_milli(node->state) < node->least_cpu_milli)
        return "free CPU is less than any pod there requests";
    return "free memory per GPU is smaller than most requests";
}

/* ---- rows ---- */

enum { TEXT_BYTES = 1280 };

static const char *state_of(struct sheet *to, const struct view_node *node)
{
    char text[TEXT_BYTES], words[VIEW_WORDS_BYTES], before[16];
    size_t len =
        (size_t)snprintf(text, sizeof(text), "%s", view_node_words(node->node, ",", words));
    EACH_GPU (gpu, node) {
        snprintf(before, sizeof(before), ",GPU%u:", gpu->idx);
        if (len + sizeof(words) < sizeof(text))
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s",
                                    view_gpu_words(gpu, before, words));
    }
    return len ? gs_arena_strdup(&to->texts, text + 1) : "ok";
}

static const char *gpus_of(struct sheet *to, const struct view_node *node)
{
    char text[TEXT_BYTES] = "";
    size_t len = 0;
    for (uint32_t i = 0; i < node->columns && len < sizeof(text) - 48; i++) {
        const struct view_gpu *gpu = view_gpu_at(node, i);
        len +=
            (size_t)snprintf(text + len, sizeof(text) - len, "%s%" PRIu64 "/%" PRIu64, i ? " " : "",
                             gpu ? gpu->used_units : 0, gpu ? gpu->total_units : 0);
    }
    return gs_arena_strdup(&to->texts, text);
}

/* Of all nodes together node->node is NULL. */
static void write_row(struct sheet *to, const struct view_node *node, uint64_t place)
{
    const struct snap_node *what = node->node;
    const struct gs_fragmentation *part = &node->fragmentation;
    const uint64_t unknown = COLUMN_UNKNOWN;
    sheet_row(to);
    column_text(to, COLUMN_TEXT, "NAME", "name", COLUMN_ALWAYS, what ? what->name : NULL);
    column_text(to, COLUMN_TEXT, "IPADDRESS", "address", COLUMN_WIDE, what ? what->address : NULL);
    column_text(to, COLUMN_PROSE, "GPUS(Allocated/Total)", NULL, COLUMN_ALWAYS,
                what ? gpus_of(to, node) : NULL);
    column_text(to, COLUMN_TEXT, "UNIT", "unit", COLUMN_DOCUMENT,
                what ? gs_unit_name(what->unit) : NULL);
    column_number(to, COLUMN_BOOL, "READY", "ready", COLUMN_DOCUMENT, what ? what->ready : unknown);
    column_number(to, COLUMN_BOOL, "UNSCHEDULABLE", "unschedulable", COLUMN_DOCUMENT,
                  what ? what->unschedulable : unknown);
    column_number(to, COLUMN_BOOL, "INVENTORY", "inventory", COLUMN_DOCUMENT,
                  what ? what->inventory : unknown);
    column_number(to, COLUMN_NUMBER, "ALLOCATED()", "usedGPU", COLUMN_ALWAYS, node->used_units);
    column_number(to, COLUMN_NUMBER, "TOTAL", "totalGPU", COLUMN_ALWAYS, node->total_units);
    column_number(to, COLUMN_NUMBER, "PENDING", "invalidIndexGPU", COLUMN_WIDE_IF_SET,
                  node->pending_units);
    column_number(to, COLUMN_NUMBER, "FREE", "freeGPU", COLUMN_WIDE, part->free_units);
    column_number(to, COLUMN_NUMBER, "LARGEST", "largestFreeGPU", COLUMN_WIDE, part->largest_units);
    column_number(to, COLUMN_NUMBER, "STRANDED", "strandedGPU", COLUMN_WIDE,
                  part->known ? part->stranded_units : unknown);
    column_number(to, COLUMN_NUMBER, "UNUSABLE", "unusableGPU", COLUMN_WIDE_IF_SET,
                  node->unusable_units);
    column_number(to, COLUMN_NUMBER, "OVERCOMMITTED", "overcommittedGPU", COLUMN_WIDE_IF_SET,
                  node->over_units);
    column_number(to, COLUMN_NUMBER, "PODS", "podCount", COLUMN_WIDE, node->claim_count);
    column_number(to, COLUMN_NUMBER, "CPU-FREE(m)", "freeMilliCPU", COLUMN_WIDE_IF_SET,
                  what && node->state->cpu_milli ? (uint64_t)gs_view_cpu_left_milli(node->state)
                                                 : unknown);
    column_number(to, COLUMN_NUMBER, "COMPUTE", "usedCorePercentage", COLUMN_WIDE_IF_SET,
                  node->used_cores_pct ? node->used_cores_pct : unknown);
    column_number(to, COLUMN_BYTES, "USED(GiB)", "usedBytes", COLUMN_WIDE_IF_SET,
                  node->usage && node->usage->known ? node->used_bytes : unknown);
    column_text(to, COLUMN_TEXT, "LIMITED", "enforced", COLUMN_WIDE_IF_SET, limits_enforced(node));
    column_text(to, COLUMN_TEXT, "MODE", "enforceMode", COLUMN_DOCUMENT,
                node->usage ? node->usage->mode : NULL);
    column_number(to, COLUMN_NUMBER, "LIMITED-GPUS", "limitedGPUCount", COLUMN_DOCUMENT,
                  node->limited_gpus);
    column_number(to, COLUMN_NUMBER, "WOULD-BLOCK", "wouldBlockPodCount", COLUMN_DOCUMENT,
                  node->blocked_pods);
    column_text(to, COLUMN_TEXT, "MODEL", "model", COLUMN_WIDE,
                what ? view_node_model(node) : NULL);
    column_text(to, COLUMN_TEXT, "STATE", NULL, COLUMN_WIDE, what ? state_of(to, node) : NULL);
    column_text(to, COLUMN_PROSE, "STRANDED-BY", "strandedMessage", COLUMN_WIDE_IF_SET,
                what ? find_stranding(node) : NULL);
    column_number(to, COLUMN_NUMBER, "PLACE", NULL, COLUMN_DOCUMENT, place);
}

static void write_rows(struct sheet *to, const struct view *view)
{
    to->unit = view->unit;
    for (size_t i = 0; i < view->node_count; i++)
        write_row(to, &view->nodes[i], i);
}

void nodes_check(const char *command, const struct output *output)
{
    const struct view_node none = {.claim_count = 0};
    struct sheet sheet = {0};
    write_row(&sheet, &none, 0);
    sheet_check(&sheet, command, output);
}

/* The place of a row in the view is its last column. */
int nodes_sort(struct view *view, const struct output *output)
{
    struct sheet sheet = {0};
    struct view_node *nodes = calloc(view->node_count + 1, sizeof(*nodes));
    write_rows(&sheet, view);
    int result = nodes && !sheet.failed ? 0 : -1;
    if (result == 0) {
        sheet_sort(&sheet, output, "name");
        for (size_t i = 0; i < view->node_count; i++)
            nodes[i] = view->nodes[sheet_number(&sheet, i, sheet.column_count - 1)];
        free(view->nodes);
        view->nodes = nodes;
    } else {
        free(nodes);
    }
    sheet_release(&sheet);
    return result;
}

int nodes_print(const struct view *view, const struct output *output,
                const struct terminal *terminal)
{
    struct sheet sheet = {0};
    write_rows(&sheet, view);
    write_row(&sheet, &view->sum.all, COLUMN_UNKNOWN);
    sheet_total(&sheet, false);
    return sheet_print(stdout, &sheet, output, terminal);
}

void nodes_members(struct doc *doc, const struct view *view, const struct view_node *node,
                   const struct output *output)
{
    struct sheet sheet = {.unit = view->unit};
    write_row(&sheet, node, COLUMN_UNKNOWN);
    sheet_members(doc, &sheet, output);
}

void nodes_total(struct doc *doc, const struct view *view)
{
    struct sheet sheet = {.unit = view->unit};
    write_row(&sheet, &view->sum.all, COLUMN_UNKNOWN);
    sheet_members(doc, &sheet, NULL);
}
