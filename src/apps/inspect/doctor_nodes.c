/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/gpu_slices.h"
#include "inspect/amount.h"
#include "inspect/doctor.h"
#include "inspect/limits.h"
#include "inspect/nodes.h"
#include "inspect/usage.h"
#include "inspect/view.h"

static int by_name(const struct snap_node *a, const struct snap_node *b)
{
    return strverscmp(a->name, b->name);
}

/* ---- nodes ---- */

static void check_plugin(struct doctor *doctor)
{
    struct doctor_names silent = {0}, empty = {0}, unlabelled = {0}, divided = {0},
                        unbelieved = {0}, unread = {0};
    const char *labels = doctor->labels[0] ? doctor->labels : "as the DaemonSet selects";
    uint32_t good = 0;
    EACH_NODE (node, &doctor->snapshot) {
        bool advertises = node->allocatable_units > 0;
        if (node->inventory_error[0])
            doctor_add_name(&unbelieved, node->name);
        if (node->moved_unread)
            doctor_add_name(&unread, node->name);
        if (advertises && !node->inventory)
            doctor_add_name(&divided, node->name);
        if (advertises && !node->labelled)
            doctor_add_name(&unlabelled, node->name);
        if (!advertises && (node->inventory || node->capacity_count || node->capacity_units))
            doctor_add_name(&empty, node->name);
        else if (!advertises && node->labelled)
            doctor_add_name(&silent, node->name);
        good += advertises;
    }
    doctor_say_list(doctor, FINDING_FAIL, "device plugin", &silent,
                    "labelled %s, but advertises no GPU memory; check that the device plugin's pod "
                    "runs there (kubectl get pods -o wide) and that the NVIDIA driver is loaded",
                    labels);
    doctor_say_list(
        doctor, FINDING_FAIL, "device plugin", &empty,
        "had a device plugin, but advertises no GPU memory now; see the device plugin's log there");
    doctor_say_list(doctor, FINDING_FAIL, "inventory", &unbelieved,
                    "the inventory annotation is invalid; restart the device plugin there");
    doctor_say_list(doctor, FINDING_FAIL, "inventory", &unread,
                    "the annotation gpu-reassigned is invalid, so pods count on the GPUs that they "
                    "were bound to; restart the device plugin there");
    doctor_say_list(doctor, FINDING_WARN, "inventory", &divided,
                    "no inventory (the original's device plugin): all GPUs count as equally large, "
                    "and their health is unknown");
    doctor_say_list(doctor, FINDING_WARN, "device plugin", &unlabelled,
                    "advertises GPU memory, but is not labelled %s, so the DaemonSet does not run "
                    "the device plugin there%s%s",
                    labels, doctor->labels[0] ? "; run kubectl label node NAME " : "",
                    doctor->labels);
    if (good)
        doctor_say(doctor, FINDING_OK, "device plugin", "%" PRIu32 " %s %s", good,
                   good == 1 ? "node advertises" : "nodes advertise", doctor->common.names.gpu_mem);
    else
        doctor_say(doctor, FINDING_FAIL, "device plugin",
                   "no node advertises %s; label GPU nodes %s and apply "
                   "manifests/base/device-plugin",
                   doctor->common.names.gpu_mem, labels);
}

static void check_units(struct doctor *doctor)
{
    uint32_t nodes[GS_UNIT_GIB + 1] = {0}, kinds = 0;
    char words[256] = "";
    EACH_NODE (node, &doctor->snapshot)
        nodes[node->unit]++;
    for (int unit = GS_UNIT_MIB; unit <= GS_UNIT_GIB; unit++) {
        size_t len = strlen(words);
        if (!nodes[unit])
            continue;
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

/* The inventory is the plugin's word, capacity the kubelet's. */
static void check_capacity(struct doctor *doctor)
{
    struct doctor_names differ = {0};
    EACH_NODE (node, &doctor->snapshot) {
        const struct gs_node_view *view = snapshot_view(&doctor->snapshot, node);
        if (!node->inventory || !node->capacity_units || !view)
            continue;
        if (view->sum_total_units != node->capacity_units ||
            node->capacity_count > view->gpu_count) /* less: some are gone */
            doctor_add_name(&differ, node->name);
    }
    doctor_say_list(
        doctor, FINDING_FAIL, "capacity", &differ,
        "the inventory annotation and the capacity differ; restart the device plugin there");
    if (!differ.count)
        doctor_say(doctor, FINDING_OK, "capacity", "inventories and capacities match");
}

static void check_ready(struct doctor *doctor)
{
    struct doctor_names away = {0};
    EACH_NODE (node, &doctor->snapshot) {
        if (!node->ready && (node->labelled || node->inventory))
            doctor_add_name(&away, node->name);
    }
    doctor_say_list(doctor, FINDING_WARN, "nodes", &away,
                    "has GPUs and is not ready; see kubectl describe node NAME");
}

static bool is_ours(const struct snap_node *node)
{
    return node && (node->labelled || node->inventory);
}

/* Two owners of one GPU do not know of each other's pods. */
static void check_owners(struct doctor *doctor)
{
    struct list_watch slices = {.ask = doctor->common.source.ask, .ctx = doctor->common.source.ctx};
    struct doctor_names whole = {0}, sliced = {0};
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    struct gs_sliced_gpu *gpus = NULL;
    struct gs_error err = {0};
    uint32_t count = 0;
    EACH_NODE (node, &doctor->snapshot) {
        if (is_ours(node) && node->whole_gpus)
            doctor_add_name(&whole, node->name);
    }
    if (gpu_slices_next(&slices, NULL, &arena, &gpus, &count, &err) < 0)
        doctor_say(doctor, FINDING_SKIP, "other drivers", "cannot list ResourceSlices: %s",
                   err.msg);
    for (uint32_t i = 0; i < count; i++) {
        bool again = i && strcmp(gpus[i].node, gpus[i - 1].node) == 0;
        if (!again && is_ours(snapshot_node(&doctor->snapshot, gpus[i].node)))
            doctor_add_name(&sliced, gpus[i].node);
    }
    doctor_say_list(
        doctor, FINDING_FAIL, "other drivers", &whole,
        "nvidia.com/gpu, mig- or vgpu is in the node's capacity: NVIDIA's device "
        "plugin allocates the same GPUs; run only one of the two there (gpushare's shares none "
        "meanwhile, unless started with --allow-shared-devices)");
    doctor_say_list(doctor, FINDING_WARN, "other drivers", &sliced,
                    "ResourceSlices of gpu.nvidia.com have GPUs of the node: the device plugin "
                    "does not share them, unless started with --allow-shared-devices");
}

void doctor_check_nodes(struct doctor *doctor)
{
    HASH_SORT(doctor->snapshot.nodes, by_name);
    if (doctor->broken)
        doctor_say(doctor, FINDING_WARN, "objects",
                   "%" PRIu64 " nodes or pods are invalid and ignored", doctor->broken);
    check_plugin(doctor);
    check_owners(doctor);
    check_ready(doctor);
    check_units(doctor);
    check_capacity(doctor);
}

/* ---- GPUs ---- */

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

void doctor_check_gpus(struct doctor *doctor)
{
    struct doctor_names full = {0}, sick = {0}, cordoned = {0}, nonsense = {0};
    uint32_t count = 0;
    EACH_NODE (node, &doctor->snapshot) {
        const struct gs_node_view *view = snapshot_view(&doctor->snapshot, node);
        if (node->cordon_unknown && view && view->gpu_count)
            doctor_add_name(&nonsense, node->name);
        for (uint32_t i = 0; view && i < view->gpu_count; i++) {
            const struct gs_gpu *gpu = &view->inventory[i];
            char name[256];
            snprintf(name, sizeof(name), "%.200s GPU%u", node->name, gpu->idx);
            count++;
            if (gpu_overfull(&view->gpus[i]))
                doctor_add_name(&full, name);
            if (!gpu->healthy)
                doctor_add_name(&sick, name);
            else if (!gpu->schedulable)
                doctor_add_name(&cordoned, name);
        }
    }
    doctor_say_list(doctor, FINDING_FAIL, "gpus", &full,
                    "overcommitted; delete a pod there (a pod without a GPU index counts on every "
                    "GPU that fits it, see below)");
    doctor_say_list(doctor, FINDING_WARN, "gpus", &sick,
                    "unhealthy, so it accepts no new pods; see dmesg for Xid messages");
    doctor_say_list(doctor, FINDING_WARN, "gpus", &cordoned,
                    "cordoned; to uncordon it, remove it from the node's annotation gpu-cordon");
    doctor_say_list(doctor, FINDING_WARN, "gpus", &nonsense,
                    "the annotation gpu-cordon has values that are not the index or UUID of a GPU "
                    "of the node, and are ignored; correct them");
    if (count && !full.count && !sick.count)
        doctor_say(doctor, FINDING_OK, "gpus", "%" PRIu32 " GPU%s, none overcommitted, all healthy",
                   count, count == 1 ? "" : "s");
    check_stranded(doctor);
}

/* ---- limits ---- */

/* What limits pods, as the device plugins read it back on their hosts
 * (docs/limits.md). */

struct tally {
    uint32_t gpus[GS_ENFORCED_COUNT];
    uint32_t told; /* GPUs whose plugin says something */
    uint32_t forged;
    const char *forged_example;
};

static void add_node(struct tally *tally, const struct snap_node *node,
                     const struct gs_node_view *view)
{
    bool all = view->gpu_count > 0;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        enum gs_enforced enforced = view->inventory[i].enforced;
        tally->gpus[enforced]++;
        tally->told += enforced != GS_ENFORCED_UNKNOWN;
        all = all && enforced == GS_ENFORCED_DMEM;
    }
    if (!node->says_enforced || all)
        return;
    tally->forged++;
    tally->forged_example = node->name;
}

/* One line for each way of limiting, then one per reason: some are mended on the host, one with an
 * option. */
static void say_gpus(struct doctor *doctor, const struct tally *tally)
{
    for (enum gs_enforced i = 0; i < GS_ENFORCED_COUNT; i++) {
        if (tally->gpus[i] && gs_enforced_holds(i))
            doctor_say(doctor, FINDING_OK, "limits", "%" PRIu32 " GPUs: %s", tally->gpus[i],
                       view_limits(i));
        else if (tally->gpus[i] && gs_enforced_lacks(i))
            doctor_say(doctor, FINDING_WARN, "limits",
                       "pods are not limited on %" PRIu32 " GPUs: %s", tally->gpus[i],
                       gs_enforced_reason(i));
    }
}

void doctor_check_limits(struct doctor *doctor)
{
    struct tally tally = {0};
    EACH_NODE (node, &doctor->snapshot) {
        const struct gs_node_view *view = snapshot_view(&doctor->snapshot, node);
        if (view)
            add_node(&tally, node, view);
    }
    if (tally.forged)
        doctor_say(doctor, FINDING_WARN, "limits",
                   "label %s is dmem on %" PRIu32
                   " nodes (%s), but their inventory is not: the device plugin did not set it, or "
                   "was removed; run kubectl label node NAME %s-",
                   doctor->common.names.enforced, tally.forged, tally.forged_example,
                   doctor->common.names.enforced);
    if (tally.told)
        say_gpus(doctor, &tally);
}

/* Where plugins name pods, these are named; elsewhere they are counted. Nothing is said where
 * nobody answers: usage says why. */
void doctor_check_use(struct doctor *doctor)
{
    const struct usage_query query = common_usage(&doctor->common, NULL);
    struct doctor_names names = {0};
    struct usage usage;
    uint64_t over = 0;
    char name[600];
    usage_fetch(&query, &usage);
    for (const struct usage_node *node = usage.nodes; node; node = node->hh.next)
        over += node->over_pods;
    for (const struct usage_pod *pod = usage.pods; pod; pod = pod->hh.next) {
        if (!limits_over(pod, pod->used_bytes))
            continue;
        snprintf(name, sizeof(name), "%s/%s", pod->ns, pod->name);
        doctor_add_name(&names, name);
    }
    if (names.count)
        doctor_say_list(doctor, FINDING_WARN, "usage", &names,
                        "uses more of a GPU's memory than it requested; see kubectl inspect "
                        "gpushare pods --over-request");
    else if (over)
        doctor_say(doctor, FINDING_WARN, "usage",
                   "%" PRIu64
                   " pods use more of a GPU's memory than they requested; with --pod-usage=on, "
                   "kubectl inspect gpushare pods --over-request lists them",
                   over);
    usage_release(&usage);
}
