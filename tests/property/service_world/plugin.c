/* SPDX-License-Identifier: Apache-2.0 */
/* What the device plugins of the nodes do, and what is true on them. */
#include "service_world.h"

#include <string.h>

#include "gpushare/codec/annotation.h"

static unsigned used_truly(int n, unsigned g)
{
    unsigned used = 0;
    for (int p = 0; p < SW_PODS; p++) {
        const struct sw_pod *pod = &sw.pods[p];
        if (sw_runs(pod) && pod->node == n && pod->runs_on >> g & 1)
            used += sw_share(pod);
    }
    return used;
}

static bool says_the_truth(const struct sw_pod *pod)
{
    char right[32];
    sw_format_gpus(pod->runs_on, right);
    return strcmp(pod->record, right) == 0;
}

/* First on the node, then the pods' own records. The label is the owner's, and says nothing. */
static void look(int n)
{
    bool news = false, wrong[SW_PODS] = {false};
    for (int p = 0; p < SW_PODS; p++) {
        struct sw_pod *pod = &sw.pods[p];
        wrong[p] = sw_runs(pod) && pod->node == n && pod->runs_on && !says_the_truth(pod);
        news |= wrong[p] && pod->listed != pod->runs_on;
        if (wrong[p])
            pod->listed = pod->runs_on;
    }
    if (news)
        sw_tell_node(n, false);
    for (int p = 0; p < SW_PODS; p++) {
        char right[32];
        sw_format_gpus(sw.pods[p].runs_on, right);
        if (!wrong[p] || strcmp(sw.pods[p].record, right) == 0)
            continue;
        memcpy(sw.pods[p].record, right, sizeof(right));
        sw_tell_pod(p, false);
    }
}

void sw_plugins_look(void)
{
    for (int n = 0; n < SW_NODES; n++) {
        if (sw.nodes[n].exists && sw.nodes[n].speaks)
            look(n);
    }
}

bool sw_has_room(int n, gs_gpu_mask gpus, unsigned units)
{
    uint32_t idx;
    GS_FOR_EACH_GPU (idx, gpus) {
        if (idx >= SW_GPUS || used_truly(n, idx) + units > sw.nodes[n].size[idx])
            return false;
    }
    return true;
}

/* What its record says, if that can be; else any that have the room. Or it fails. */
static void allocate(int p)
{
    struct sw_pod *pod = &sw.pods[p];
    const int n = pod->node;
    const unsigned asked = sw_share_of(pod, pod->label) ? pod->label : 1;
    gs_gpu_mask said = 0;
    if (gs_codec_idx_parse(gs_slice_of(pod->record), &said) && said < 1u << SW_GPUS &&
        sw_share_of(pod, gs_gpu_mask_count(said)))
        pod->runs_on = sw_has_room(n, said, sw_share_of(pod, gs_gpu_mask_count(said))) ? said : 0;
    else
        for (gs_gpu_mask gpus = 1; !pod->runs_on && gpus < 1u << SW_GPUS; gpus++) {
            if (gs_gpu_mask_count(gpus) == asked && sw_has_room(n, gpus, sw_share_of(pod, asked)))
                pod->runs_on = gpus;
        }
    pod->ended = !pod->runs_on;
    pod->listed = pod->runs_on;
    if (pod->runs_on)
        sw_tell_node(n, false);
    sw_format_gpus(pod->runs_on, pod->record);
    sw_tell_pod(p, false);
}

void sw_plugins_allocate(void)
{
    for (int p = 0; p < SW_PODS; p++) {
        const struct sw_pod *pod = &sw.pods[p];
        if (sw_runs(pod) && !pod->runs_on && sw.nodes[pod->node].inventory)
            allocate(p);
    }
    for (int r = 0; r < sw.replica_count; r++)
        sw_deliver_nodes(&sw.replicas[r]);
}

static bool may_exchange(int i, int k)
{
    const struct sw_pod *a = &sw.pods[i], *b = &sw.pods[k];
    return i != k && sw_runs(a) && sw_runs(b) && a->node == b->node && a->total == b->total &&
           sw_share(a) == sw_share(b) && a->runs_on && b->runs_on && a->runs_on != b->runs_on &&
           sw.nodes[a->node].inventory && sw.nodes[a->node].speaks;
}

/* The kubelet gave two equal pods each other's GPUs; their records follow with the next look. */
void sw_exchange(void)
{
    const int i = (int)sw_random(SW_PODS), k = (int)sw_random(SW_PODS);
    struct sw_pod *a = &sw.pods[i], *b = &sw.pods[k];
    if (!may_exchange(i, k))
        return;
    sw.counts.exchanges++;
    const gs_gpu_mask was = a->runs_on;
    a->runs_on = b->runs_on;
    b->runs_on = was;
    a->listed = a->runs_on;
    b->listed = b->runs_on;
    sw_tell_node(a->node, false);
}

/* A plugin that writes the list takes the place of one that does not. */
void sw_upgrade(int n)
{
    if (!sw.nodes[n].exists || sw.nodes[n].speaks)
        return;
    sw.nodes[n].speaks = true;
    sw_tell_node(n, false);
}
