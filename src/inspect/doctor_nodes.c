/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/gpu_slices.h"
#include "inspect/doctor.h"
#include "inspect/view.h"

static int by_name(const struct snap_node *a, const struct snap_node *b)
{
    return strverscmp(a->name, b->name);
}

static bool is_ours(const struct snap_node *node)
{
    return node->labelled || node->inventory;
}

/* ---- nodes ---- */

static void check_plugin(struct doctor *doctor, const struct snap_node *node)
{
    const bool advertises = node->allocatable_units > 0;
    if (!advertises && (node->inventory || node->capacity_count || node->capacity_units))
        doctor_say_of(doctor, FINDING_FAIL, "device plugin", node->name,
                      "had a device plugin, but advertises no GPU memory now; see the device "
                      "plugin's log there");
    else if (!advertises && node->labelled)
        doctor_say_of(doctor, FINDING_FAIL, "device plugin", node->name,
                      "labelled for the device plugin, but advertises no GPU memory; check that "
                      "the device plugin's pod runs there (kubectl get pods -o wide) and that the "
                      "NVIDIA driver is loaded");
    if (advertises && !node->labelled)
        doctor_say_of(doctor, FINDING_WARN, "device plugin", node->name,
                      "advertises GPU memory, but is not labelled as the DaemonSet selects, so it "
                      "does not run the device plugin there; see kubectl get daemonsets -n %s -o "
                      "wide, and run kubectl label node NAME",
                      doctor->common.system_ns);
    if (node->inventory_error[0])
        doctor_say_of(doctor, FINDING_FAIL, "inventory", node->name,
                      "the inventory annotation is invalid; restart the device plugin there");
    if (node->moved_unread)
        doctor_say_of(doctor, FINDING_FAIL, "inventory", node->name,
                      "the annotation gpu-reassigned is invalid, so pods count on the GPUs that "
                      "they were bound to; restart the device plugin there");
    if (advertises && !node->inventory)
        doctor_say_of(doctor, FINDING_WARN, "inventory", node->name,
                      "no inventory (the original's device plugin): all GPUs count as equally "
                      "large, and their health is unknown");
}

static void check_state(struct doctor *doctor, const struct snap_node *node)
{
    if (is_ours(node) && node->whole_gpus)
        doctor_say_of(doctor, FINDING_FAIL, "other drivers", node->name,
                      "nvidia.com/gpu, mig- or vgpu is in the node's capacity: NVIDIA's device "
                      "plugin allocates the same GPUs; run only one of the two there (gpushare's "
                      "shares none meanwhile, unless started with --allow-shared-devices)");
    if (is_ours(node) && !node->ready)
        doctor_say_of(doctor, FINDING_WARN, "nodes", node->name,
                      "has GPUs and is not ready; see kubectl describe node NAME");
}

static void check_gpu(struct doctor *doctor, const struct snap_node *node, const struct gs_gpu *gpu,
                      const struct gs_gpu_state *state)
{
    char name[256];
    snprintf(name, sizeof(name), "%.200s GPU%u", node->name, gpu->idx);
    if (gpu_overfull(state))
        doctor_say_of(doctor, FINDING_FAIL, "gpus", name,
                      "overcommitted; delete a pod there (a pod without a GPU index counts on "
                      "every GPU that fits it, see below)");
    if (!gpu->healthy)
        doctor_say_of(doctor, FINDING_WARN, "gpus", name,
                      "unhealthy, so it accepts no new pods; see dmesg for Xid messages");
    else if (!gpu->schedulable)
        doctor_say_of(doctor, FINDING_WARN, "gpus", name,
                      "cordoned; to uncordon it, remove it from the node's annotation gpu-cordon");
    if (gs_enforced_holds(gpu->enforced))
        doctor_say_of(doctor, FINDING_OK, "limits", name, "%s", view_limits(gpu->enforced));
    else if (gs_enforced_lacks(gpu->enforced)) /* docs/limits.md */
        doctor_say_of(doctor, FINDING_WARN, "limits", name, "pods are not limited: %s",
                      gs_enforced_reason(gpu->enforced));
}

/* The inventory is the device plugin's, the capacity the kubelet's, the label anybody's. */
static void check_view(struct doctor *doctor, const struct snap_node *node,
                       const struct gs_node_view *view)
{
    bool all = view->gpu_count > 0;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        all = all && view->inventory[i].enforced == node->says_enforced;
        check_gpu(doctor, node, &view->inventory[i], &view->gpus[i]);
    }
    if (gs_enforced_hard(node->says_enforced) && !all)
        doctor_say_of(doctor, FINDING_WARN, "limits", node->name,
                      "label %s is %s, but the inventory is not: the device plugin did not set "
                      "it, or was removed; run kubectl label node NAME %s-",
                      doctor->common.names.enforced, gs_enforced_by(node->says_enforced),
                      doctor->common.names.enforced);
    if (node->cordon_unknown && view->gpu_count)
        doctor_say_of(doctor, FINDING_WARN, "gpus", node->name,
                      "the annotation gpu-cordon has values that are not the index or UUID of a "
                      "GPU of the node, and are ignored; correct them");
    if (node->inventory && node->capacity_units &&
        (view->sum_total_units != node->capacity_units ||
         node->capacity_count > view->gpu_count)) /* less: some are gone */
        doctor_say_of(doctor, FINDING_FAIL, "capacity", node->name,
                      "the inventory annotation and the capacity differ; restart the device "
                      "plugin there");
}

/* ---- totals ---- */

/* Two owners of one GPU do not know of each other's pods. */
static void check_slices(struct doctor *doctor)
{
    struct list_watch slices = {.ask = doctor->common.source.ask, .ctx = doctor->common.source.ctx};
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    struct gs_sliced_gpu *gpus = NULL;
    struct gs_error err = {0};
    uint32_t count = 0;
    if (gpu_slices_next(&slices, NULL, &arena, &gpus, &count, &err) < 0)
        doctor_say(doctor, FINDING_SKIP, "other drivers", "cannot list ResourceSlices: %s",
                   err.msg);
    for (uint32_t i = 0; i < count; i++) {
        struct snap_node *node = snapshot_node(&doctor->snapshot, gpus[i].node);
        if (node)
            node->sliced = true;
    }
    EACH_NODE (node, &doctor->snapshot) {
        if (node->sliced && is_ours(node))
            doctor_say_of(doctor, FINDING_WARN, "other drivers", node->name,
                          "ResourceSlices of gpu.nvidia.com have GPUs of the node: the device "
                          "plugin does not share them, unless started with --allow-shared-devices");
    }
}

static void check_stranded(struct doctor *doctor)
{
    const struct view_options options = {0};
    struct gs_error ignored = {0};
    struct view view;
    const int result = view_build(&doctor->snapshot, &options, &view, &ignored);
    const struct gs_fragmentation *sum = &view.sum.all.fragmentation;
    if (result == 0 && sum->known && sum->stranded_units)
        doctor_say(doctor, sum->stranded_units > sum->free_units / 2 ? FINDING_WARN : FINDING_OK,
                   "stranded",
                   "%" PRIu64 " of %" PRIu64 " %s free memory is stranded; see kubectl inspect "
                   "gpushare -o wide --sort stranded",
                   sum->stranded_units, sum->free_units, view.unit);
    view_release(&view);
}

void doctor_check_nodes(struct doctor *doctor)
{
    uint32_t advertise = 0, gpus = 0, units = 0;
    HASH_SORT(doctor->snapshot.nodes, by_name);
    if (doctor->broken)
        doctor_say(doctor, FINDING_WARN, "objects",
                   "%" PRIu64 " nodes or pods are invalid and ignored", doctor->broken);
    EACH_NODE (node, &doctor->snapshot) {
        const struct gs_node_view *view = snapshot_view(&doctor->snapshot, node);
        check_plugin(doctor, node);
        check_state(doctor, node);
        if (view)
            check_view(doctor, node, view);
        gpus += view ? view->gpu_count : 0;
        advertise += node->allocatable_units > 0;
        units |= node->unit ? 1u << node->unit : 0;
        if (node->unit)
            doctor_say_of(doctor, FINDING_OK, "unit", node->name, "%s", gs_unit_name(node->unit));
    }
    if (advertise)
        doctor_say(doctor, FINDING_OK, "device plugin", "%" PRIu32 " %s %s", advertise,
                   advertise == 1 ? "node advertises" : "nodes advertise",
                   doctor->common.names.gpu_mem);
    else
        doctor_say(doctor, FINDING_FAIL, "device plugin",
                   "no node advertises %s; label GPU nodes " GS_NODE_LABEL
                   "=true and apply manifests/base/device-plugin",
                   doctor->common.names.gpu_mem);
    check_slices(doctor);
    if (units & (units - 1))
        doctor_say(doctor, FINDING_FAIL, "unit",
                   "nodes use different units, so a pod's request means another amount on each; "
                   "start every device plugin with the same --memory-unit");
    if (doctor_is_ok(doctor, "capacity"))
        doctor_say(doctor, FINDING_OK, "capacity", "inventories and capacities match");
    if (gpus && doctor_is_ok(doctor, "gpus"))
        doctor_say(doctor, FINDING_OK, "gpus", "%" PRIu32 " GPU%s, none overcommitted, all healthy",
                   gpus, gpus == 1 ? "" : "s");
    check_stranded(doctor);
}
