/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/node_object.h"

#include <stdio.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/inventory.h"
#include "gpushare/codec/moved.h"

enum { INVENTORY_BYTES_MAX = 64 << 10 };

/* schedulable is not compared: a cordon changes it while the node is read. That an earlier plugin
 * left the node unschedulable is why the first write looks at nothing. */
static bool inventory_matches(const struct gs_node *node, const struct node_object *desired)
{
    if (!desired->written || desired->leaving || desired->upgrading)
        return false;
    if (!node->inventory || !node->tells_moved || node->unit != desired->unit ||
        node->unit_doubted != desired->unit_doubted || node->inventory_rev != desired->rev ||
        node->gpu_count != desired->set->count)
        return false;
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        if (!gs_gpu_same(&node->gpus[i], &desired->set->gpus[i]))
            return false;
    }
    return true;
}

/* Absent is as good as empty. */
static bool moved_matches(const struct gs_node *node, const struct node_object *desired)
{
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(GS_MOVED_TEXT_MAX);
    gs_codec_moved_encode(&text, node->moved, node->moved_count);
    return !node->moved_error[0] && !gs_buf_failed(&text) && strcmp(text.data, desired->moved) == 0;
}

/* Pods choose nodes by this label: it is there only while limits hold on all GPUs, and new pods get
 * theirs. NULL: it is to be absent. */
static const char *label_of(const struct node_object *desired)
{
    const struct gs_gpu_set *set = desired->set;
    enum gs_enforced by = GS_ENFORCED_UNKNOWN;
    bool all = !desired->leaving && !desired->upgrading;
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->gone & GS_GPU_BIT(set->gpus[i].idx))
            continue;
        by = by == GS_ENFORCED_UNKNOWN ? set->gpus[i].enforced : by;
        all = all && set->gpus[i].enforced == by;
    }
    return all && gs_enforced_hard(by) ? gs_enforced_by(by) : NULL;
}

static bool label_matches(const struct gs_node *node, const struct node_object *desired)
{
    const char *label = label_of(desired);
    return strcmp(node->enforced, label ? label : "") == 0;
}

/* Both in one patch: who is told that the plugin says who moved is told who did. */
static int write_annotations(const struct gs_kube *kube, const struct gs_names *names,
                             const char *node, const struct node_object *desired,
                             struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(INVENTORY_BYTES_MAX);
    struct gs_gpu_set set = *desired->set;
    bool closed = desired->leaving || desired->upgrading || desired->unit_doubted;
    for (uint32_t i = 0; closed && i < set.count; i++)
        set.gpus[i].schedulable = false;
    const struct gs_inventory inventory = {.unit = desired->unit,
                                           .gpus = set.gpus,
                                           .gpu_count = set.count,
                                           .tells_moved = true,
                                           .unit_doubted = desired->unit_doubted,
                                           .rev = desired->rev};
    gs_codec_inventory_encode(&text, &inventory);
    if (gs_buf_failed(&text))
        return gs_fail_nomem(err);
    const struct gs_kv annotations[] = {{names->inventory, text.data},
                                        {names->moved, desired->moved}};
    const struct gs_meta_patch patch = {
        .name = node, .annotations = annotations, .annotation_count = 2};
    return kube->ops->patch_node(kube->ctx, &patch, err);
}

/* By itself: an admission policy that is older than the label refuses no more than this. */
static int write_label(const struct gs_kube *kube, const struct gs_names *names, const char *node,
                       const struct node_object *desired, struct gs_error *err)
{
    const struct gs_kv label = {names->enforced, label_of(desired)};
    const struct gs_meta_patch patch = {.name = node, .labels = &label, .label_count = 1};
    return kube->ops->patch_node(kube->ctx, &patch, err);
}

/* Of what pods have, or may get. Pods ask for compute, and a kubelet that starts anew admits them
 * once more, against this sum: so it does not go while a GPU is sick, nor while pods are on one
 * that is gone. The extender knows which GPUs take pods. */
static uint32_t cores_of(const struct node_object *desired)
{
    return desired->set->count * GS_CORES_PCT;
}

static int write_counts(const struct gs_kube *kube, const struct gs_names *names, const char *node,
                        uint32_t count, uint32_t cores_pct, struct gs_error *err)
{
    char gpus[16], cores[16];
    snprintf(gpus, sizeof(gpus), "%u", count);
    snprintf(cores, sizeof(cores), "%u", cores_pct);
    const struct gs_kv capacity[] = {{names->gpu_count, gpus}, {names->gpu_cores, cores}};
    const struct gs_node_status_patch patch = {
        .node = node, .capacity = capacity, .capacity_count = 2};
    return kube->ops->patch_node_status(kube->ctx, &patch, err);
}

int node_object_write(const struct gs_kube *kube, const struct gs_names *names, const char *node,
                      const struct node_object *desired, bool *ret_changed, struct gs_node *ret,
                      struct gs_error *err)
{
    if (kube->ops->get_node(kube->ctx, node, ret, err) < 0)
        return -1;
    uint32_t count = desired->set->count - gs_gpu_mask_count(desired->set->gone);
    bool counted = ret->capacity_count == count && ret->capacity_cores_pct == cores_of(desired);
    bool labelled = label_matches(ret, desired);
    bool up_to_date = inventory_matches(ret, desired) && moved_matches(ret, desired);
    /* The counts first: who reads both at the inventory's event sees both. */
    if (!counted && write_counts(kube, names, node, count, cores_of(desired), err) < 0)
        return -1;
    if (!up_to_date && write_annotations(kube, names, node, desired, err) < 0)
        return -1;
    if (!labelled && write_label(kube, names, node, desired, err) < 0)
        return -1;
    *ret_changed = !up_to_date || !counted || !labelled;
    return 0;
}
