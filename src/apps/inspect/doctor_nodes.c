/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/gpu_slices.h"
#include "inspect/doctor.h"

/* Many nodes may have the same trouble: the first ones are named. */
enum { NAMED = 5 };

struct names_list {
    char text[1024];
    uint32_t count;
};

static void add_name(struct names_list *list, const char *name)
{
    size_t len = strlen(list->text);
    if (list->count++ < NAMED)
        snprintf(list->text + len, sizeof(list->text) - len, "%s%.150s", len ? ", " : "", name);
    else if (list->count == NAMED + 1)
        snprintf(list->text + len, sizeof(list->text) - len, ", …");
}

static const struct gs_node_view *view_of(const struct doctor *doctor, const struct snap_node *node)
{
    return gs_ledger_view(doctor->snapshot.ledger, gs_slice_of(node->name));
}

#define EACH_NODE(doctor, node)                                                                    \
    for (struct snap_node *node = (doctor)->snapshot.nodes; node; node = node->hh.next)

static int by_name(const struct snap_node *a, const struct snap_node *b)
{
    return strverscmp(a->name, b->name);
}

/* ---- nodes ---- */

static void say_list(struct doctor *doctor, enum finding finding, const char *topic,
                     const struct names_list *list, const char *what)
{
    if (list->count > NAMED)
        doctor_say(doctor, finding, topic, "%s (%" PRIu32 " in all): %s", list->text, list->count,
                   what);
    else if (list->count)
        doctor_say(doctor, finding, topic, "%s: %s", list->text, what);
}

static void check_plugin(struct doctor *doctor)
{
    struct names_list silent = {0}, empty = {0}, unlabelled = {0}, divided = {0}, unbelieved = {0},
                      unread = {0};
    uint32_t good = 0;
    EACH_NODE(doctor, node)
    {
        bool advertises = node->allocatable_units > 0;
        if (node->inventory_error[0])
            add_name(&unbelieved, node->name);
        if (node->moved_unread)
            add_name(&unread, node->name);
        if (advertises && !node->inventory)
            add_name(&divided, node->name);
        if (advertises && !node->labelled)
            add_name(&unlabelled, node->name);
        if (!advertises && (node->inventory || node->capacity_count || node->capacity_units))
            add_name(&empty, node->name);
        else if (!advertises && node->labelled)
            add_name(&silent, node->name);
        good += advertises;
    }
    say_list(
        doctor, FINDING_FAIL, "device plugin", &silent,
        "labelled gpushare=true, but advertises no GPU memory; does the plugin run there (kubectl "
        "get pods -o wide), is the driver loaded?");
    say_list(doctor, FINDING_FAIL, "device plugin", &empty,
             "had a plugin, but advertises no GPU memory now; see the plugin's log there");
    say_list(doctor, FINDING_FAIL, "inventory", &unbelieved,
             "the inventory annotation cannot be read; restart the plugin there");
    say_list(
        doctor, FINDING_FAIL, "inventory", &unread,
        "the annotation gpu-moved cannot be read, so pods count where they were bound; restart "
        "the plugin there");
    say_list(
        doctor, FINDING_WARN, "inventory", &divided,
        "no inventory (the original's plugin): every GPU counts as equally large, health is not "
        "known");
    say_list(
        doctor, FINDING_WARN, "device plugin", &unlabelled,
        "advertises GPU memory without the label gpushare=true: the DaemonSet does not keep its "
        "plugin there; kubectl label node NAME gpushare=true");
    if (good)
        doctor_say(doctor, FINDING_OK, "device plugin", "%" PRIu32 " nodes advertise %s", good,
                   doctor->common.names.gpu_mem);
    else
        doctor_say(doctor, FINDING_FAIL, "device plugin",
                   "no node advertises %s; label GPU nodes gpushare=true and apply "
                   "manifests/base/device-plugin",
                   doctor->common.names.gpu_mem);
}

static void check_units(struct doctor *doctor)
{
    uint32_t nodes[GS_UNIT_GIB + 1] = {0}, kinds = 0;
    char words[256] = "";
    EACH_NODE(doctor, node)
    nodes[node->unit]++;
    for (int unit = GS_UNIT_MIB; unit <= GS_UNIT_GIB; unit++) {
        size_t len = strlen(words);
        if (!nodes[unit])
            continue;
        snprintf(words + len, sizeof(words) - len, "%s%s on %" PRIu32 " nodes", kinds++ ? ", " : "",
                 gs_unit_name((enum gs_unit)unit), nodes[unit]);
    }
    if (kinds > 1)
        doctor_say(doctor, FINDING_FAIL, "unit",
                   "nodes count in different units (%s): a pod's request means something else on "
                   "each; start every plugin with the same --memory-unit",
                   words);
    else if (kinds == 1)
        doctor_say(doctor, FINDING_OK, "unit", "%s", words);
}

/* The inventory is the plugin's word, capacity the kubelet's. */
static void check_capacity(struct doctor *doctor)
{
    struct names_list differ = {0};
    EACH_NODE(doctor, node)
    {
        const struct gs_node_view *view = view_of(doctor, node);
        if (!node->inventory || !node->capacity_units || !view)
            continue;
        if (view->sum_total_units != node->capacity_units ||
            node->capacity_count > view->gpu_count) /* less: some are gone */
            add_name(&differ, node->name);
    }
    say_list(doctor, FINDING_FAIL, "capacity", &differ,
             "inventory annotation and capacity disagree; restart the plugin there");
    if (!differ.count)
        doctor_say(doctor, FINDING_OK, "capacity", "inventories and capacities agree");
}

static void check_ready(struct doctor *doctor)
{
    struct names_list away = {0};
    EACH_NODE(doctor, node)
    {
        if (!node->ready && (node->labelled || node->inventory))
            add_name(&away, node->name);
    }
    say_list(doctor, FINDING_WARN, "nodes", &away,
             "has GPUs and is not ready; kubectl describe node NAME");
}

static bool is_ours(const struct snap_node *node)
{
    return node && (node->labelled || node->inventory);
}

/* Two owners of one GPU do not know of each other's pods. */
static void check_owners(struct doctor *doctor)
{
    const struct gpu_slices_api api = {doctor->source.ask, doctor->source.ctx};
    struct names_list whole = {0}, sliced = {0};
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    struct gs_sliced_gpu *gpus = NULL;
    struct gs_error err = {0};
    uint32_t count = 0;
    EACH_NODE(doctor, node)
    {
        if (is_ours(node) && node->whole_gpus)
            add_name(&whole, node->name);
    }
    if (gpu_slices_fetch(&api, NULL, &arena, &gpus, &count, &err) < 0)
        doctor_say(doctor, FINDING_SKIP, "owners", "ResourceSlices cannot be read: %s", err.msg);
    for (uint32_t i = 0; i < count; i++) {
        bool again = i && strcmp(gpus[i].node, gpus[i - 1].node) == 0;
        if (!again && is_ours(snapshot_node(&doctor->snapshot, gpus[i].node)))
            add_name(&sliced, gpus[i].node);
    }
    say_list(doctor, FINDING_FAIL, "owners", &whole,
             "nvidia.com/gpu is in its capacity: NVIDIA's device plugin gives the same GPUs out "
             "whole; run one of the two there (the plugin shares none meanwhile, unless started "
             "with --share-with-others)");
    say_list(doctor, FINDING_WARN, "owners", &sliced,
             "ResourceSlices of gpu.nvidia.com name GPUs of it: the plugin does not share those, "
             "unless started with --share-with-others");
}

void doctor_check_nodes(struct doctor *doctor)
{
    HASH_SORT(doctor->snapshot.nodes, by_name);
    if (doctor->broken)
        doctor_say(doctor, FINDING_WARN, "objects",
                   "%" PRIu64 " nodes or pods cannot be read and are left out", doctor->broken);
    check_plugin(doctor);
    check_owners(doctor);
    check_ready(doctor);
    check_units(doctor);
    check_capacity(doctor);
}

/* ---- GPUs ---- */

void doctor_check_gpus(struct doctor *doctor)
{
    struct names_list full = {0}, sick = {0}, cordoned = {0};
    uint32_t count = 0;
    EACH_NODE(doctor, node)
    {
        const struct gs_node_view *view = view_of(doctor, node);
        for (uint32_t i = 0; view && i < view->gpu_count; i++) {
            const struct gs_gpu *gpu = &view->inventory[i];
            char name[256];
            snprintf(name, sizeof(name), "%.200s GPU%u", node->name, gpu->idx);
            count++;
            if (view->gpus[i].used_units > view->gpus[i].total_units)
                add_name(&full, name);
            if (!gpu->healthy)
                add_name(&sick, name);
            else if (!gpu->schedulable)
                add_name(&cordoned, name);
        }
    }
    say_list(
        doctor, FINDING_FAIL, "gpus", &full,
        "holds more than it has; a pod without a recorded GPU counts on each that could hold it "
        "(see below), otherwise delete a pod there");
    say_list(doctor, FINDING_WARN, "gpus", &sick,
             "unhealthy, nothing new is placed there; see dmesg for Xid messages");
    say_list(doctor, FINDING_WARN, "gpus", &cordoned,
             "cordoned; to use it again, take it out of the node's gpu-cordon annotation");
    if (count && !full.count && !sick.count)
        doctor_say(doctor, FINDING_OK, "gpus", "%" PRIu32 " GPUs, none overfull, all healthy",
                   count);
}

/* ---- pods ---- */

static bool note_unrecorded(void *ctx, const struct gs_claim *claim)
{
    char name[400];
    if (!claim_recorded(claim)) {
        snprintf(name, sizeof(name), "%.63s/%.253s", claim->ns, claim->name);
        add_name(ctx, name);
    }
    return true;
}

void doctor_check_pods(struct doctor *doctor)
{
    struct names_list unrecorded = {0};
    gs_ledger_each(doctor->snapshot.ledger, note_unrecorded, &unrecorded);
    say_list(
        doctor, FINDING_FAIL, "pods", &unrecorded,
        "bound, but names no GPU of its node that could hold it (bound without the extender, or "
        "the annotation was changed): charged to every GPU that could; delete it, so that it is "
        "scheduled properly");
    if (doctor->snapshot.overriding)
        doctor_say(doctor, FINDING_WARN, "pods",
                   "%" PRIu64 " pods set NVIDIA_VISIBLE_DEVICES themselves and so may run on "
                   "another GPU than the one they are charged to (%s); remove it from their env",
                   doctor->snapshot.overriding, doctor->snapshot.overriding_example);
    if (!unrecorded.count)
        doctor_say(doctor, FINDING_OK, "pods", "every bound pod with GPU memory names its GPU");
}
