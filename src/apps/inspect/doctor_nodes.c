/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/gpu_slices.h"
#include "inspect/amount.h"
#include "inspect/doctor.h"
#include "inspect/nodes.h"
#include "inspect/view.h"

/* Of all nodes. */
struct totals {
    uint32_t advertise, gpus;
    uint32_t units[GS_UNIT_GIB + 1]; /* nodes of a unit */
    uint32_t enforced[GS_ENFORCED_COUNT];
};

static int by_name(const struct snap_node *a, const struct snap_node *b)
{
    return strverscmp(a->name, b->name);
}

static bool is_ours(const struct snap_node *node)
{
    return node && (node->labelled || node->inventory);
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
}

/* The inventory is the device plugin's, the capacity the kubelet's, the label anybody's. */
static void check_view(struct doctor *doctor, const struct snap_node *node,
                       const struct gs_node_view *view, struct totals *totals)
{
    bool all = view->gpu_count > 0;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        totals->enforced[view->inventory[i].enforced]++;
        all = all && view->inventory[i].enforced == GS_ENFORCED_DMEM;
        check_gpu(doctor, node, &view->inventory[i], &view->gpus[i]);
    }
    totals->gpus += view->gpu_count;
    if (node->says_enforced && !all)
        doctor_say_of(doctor, FINDING_WARN, "limits", node->name,
                      "label %s is dmem, but the inventory is not: the device plugin did not set "
                      "it, or was removed; run kubectl label node NAME %s-",
                      doctor->common.names.enforced, doctor->common.names.enforced);
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
        bool again = i && strcmp(gpus[i].node, gpus[i - 1].node) == 0;
        if (!again && is_ours(snapshot_node(&doctor->snapshot, gpus[i].node)))
            doctor_say_of(doctor, FINDING_WARN, "other drivers", gpus[i].node,
                          "ResourceSlices of gpu.nvidia.com have GPUs of the node: the device "
                          "plugin does not share them, unless started with --allow-shared-devices");
    }
}

static void check_units(struct doctor *doctor, const uint32_t nodes[GS_UNIT_GIB + 1])
{
    uint32_t kinds = 0;
    char words[256] = "";
    for (int unit = GS_UNIT_MIB; unit <= GS_UNIT_GIB; unit++) {
        size_t len = strlen(words);
        if (nodes[unit])
            snprintf(words + len, sizeof(words) - len, "%s%s on %" PRIu32 " node%s",
                     kinds++ ? ", " : "", gs_unit_name((enum gs_unit)unit), nodes[unit],
                     nodes[unit] == 1 ? "" : "s");
    }
    if (kinds > 1)
        doctor_say(doctor, FINDING_FAIL, "unit",
                   "nodes use different units (%s), so a pod's request means another amount on "
                   "each; start every device plugin with the same --memory-unit",
                   words);
    else if (kinds == 1)
        doctor_say(doctor, FINDING_OK, "unit", "%s", words);
}

static void check_stranded(struct doctor *doctor)
{
    const struct view_options options = {0};
    const struct output by_stranded = {.sort = "stranded"};
    struct gs_error ignored = {0};
    struct view view;
    if (view_build(&doctor->snapshot, &options, &view, &ignored) == 0 && view.node_count &&
        nodes_sort(&view, &by_stranded) == 0) {
        const struct gs_fragmentation *sum = &view.sum.fragmentation;
        char stranded[AMOUNT_TEXT_BYTES], all[AMOUNT_TEXT_BYTES];
        const char *why = nodes_why_stranded(&view.nodes[0]);
        if (why)
            doctor_say(
                doctor, sum->stranded_units > sum->free_units / 2 ? FINDING_WARN : FINDING_OK,
                "stranded",
                "%s of %s free memory is stranded, most of it on %s: %s; see kubectl "
                "inspect gpushare -o wide --sort stranded",
                amount_text(sum->stranded_units, stranded),
                amount_of_memory(sum->free_units, view.unit, all), view.nodes[0].node->name, why);
    }
    view_release(&view);
}

/* A line for each way of limiting, and one for each reason why nothing does (docs/limits.md). */
static void check_limits(struct doctor *doctor, const uint32_t gpus[GS_ENFORCED_COUNT])
{
    for (enum gs_enforced i = 0; i < GS_ENFORCED_COUNT; i++) {
        if (gpus[i] && gs_enforced_holds(i))
            doctor_say(doctor, FINDING_OK, "limits", "%" PRIu32 " GPUs: %s", gpus[i],
                       view_limits(i));
        else if (gpus[i] && gs_enforced_lacks(i))
            doctor_say(doctor, FINDING_WARN, "limits",
                       "pods are not limited on %" PRIu32 " GPUs: %s", gpus[i],
                       gs_enforced_reason(i));
    }
}

void doctor_check_nodes(struct doctor *doctor)
{
    struct totals totals = {0};
    HASH_SORT(doctor->snapshot.nodes, by_name);
    if (doctor->broken)
        doctor_say(doctor, FINDING_WARN, "objects",
                   "%" PRIu64 " nodes or pods are invalid and ignored", doctor->broken);
    EACH_NODE (node, &doctor->snapshot) {
        const struct gs_node_view *view = snapshot_view(&doctor->snapshot, node);
        check_plugin(doctor, node);
        check_state(doctor, node);
        if (view)
            check_view(doctor, node, view, &totals);
        totals.advertise += node->allocatable_units > 0;
        totals.units[node->unit]++;
    }
    if (totals.advertise)
        doctor_say(doctor, FINDING_OK, "device plugin", "%" PRIu32 " %s %s", totals.advertise,
                   totals.advertise == 1 ? "node advertises" : "nodes advertise",
                   doctor->common.names.gpu_mem);
    else
        doctor_say(doctor, FINDING_FAIL, "device plugin",
                   "no node advertises %s; label GPU nodes " GS_NODE_LABEL
                   "=true and apply manifests/base/device-plugin",
                   doctor->common.names.gpu_mem);
    check_slices(doctor);
    check_units(doctor, totals.units);
    if (doctor_is_ok(doctor, "capacity"))
        doctor_say(doctor, FINDING_OK, "capacity", "inventories and capacities match");
    if (totals.gpus && doctor_is_ok(doctor, "gpus"))
        doctor_say(doctor, FINDING_OK, "gpus", "%" PRIu32 " GPU%s, none overcommitted, all healthy",
                   totals.gpus, totals.gpus == 1 ? "" : "s");
    check_stranded(doctor);
    check_limits(doctor, totals.enforced);
}
