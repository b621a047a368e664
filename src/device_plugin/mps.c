/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/mps.h"

#include <stdio.h>
#include <string.h>

#include "common/mps_state.h"
#include "device_plugin/answer.h"
#include "device_plugin/plugin.h"
#include "gpushare/base/log.h"

#define LOOK_NS (2 * GS_NS_PER_S)
/* Of an MPS server on Volta or newer, where the driver does not say. */
enum { CLIENTS = 48 };
/* What CUDA looks for unless told otherwise, and told all the same: the image may say otherwise. */
#define PIPE_IN_CONTAINER "/tmp/nvidia-mps"

static struct mps_state state_of(const struct plugin *plugin, const struct gs_gpu *gpu)
{
    struct mps_state state;
    mps_state_read(plugin->settings.mps_root, gpu->uuid, gs_clock_now_ns(gs_clock_system()),
                   &state);
    return state;
}

int mps_choose(struct plugin *plugin, struct gs_error *err)
{
    struct settings *settings = &plugin->settings;
    struct gs_node node = {0};
    if (!settings->mps_by_label)
        return 0;
    struct gs_error why = {0};
    bool read = plugin->kube.ops->get_node(plugin->kube.ctx, settings->node_name, &node, &why) == 0;
    bool away = why.code == GS_EIO || why.code == GS_ETIMEOUT || why.code == GS_EBUSY;
    if (!read && !(away && plugin->devices.record.on_host)) {
        gs_fail(err, why.code, "%s", why.msg);
        return gs_error_prefix(err, "--mps-by-label");
    }
    if (!read) {
        gs_log(GS_LOG_WARN,
               "--mps-by-label: cannot read the Node, so the record on the host decides",
               GS_STR("error", why.msg));
        node.mps = plugin->devices.record.now.mps;
    }
    if (node.mps)
        settings->enforce = GS_ENFORCE_OFF;
    else
        settings->mps_root = NULL;
    gs_log(GS_LOG_INFO, node.mps ? "MPS is enabled on this node" : "MPS is disabled on this node",
           GS_STR("label", plugin->names.mps));
    gs_node_release(&node);
    return 0;
}

/* ---- the daemons ---- */

static void look(struct plugin *plugin, const struct gs_gpu *gpu)
{
    struct mps *mps = &plugin->mps;
    const gs_gpu_mask bit = GS_GPU_BIT(gpu->idx);
    const struct mps_state state = state_of(plugin, gpu);
    if ((mps->looked & bit) && !(mps->ready & bit) == !state.ready)
        return;
    mps->looked |= bit;
    mps->ready = state.ready ? mps->ready | bit : mps->ready & ~bit;
    plugin->devices.due = plugin->node.due = true;
    gs_log(state.ready ? GS_LOG_INFO : GS_LOG_WARN,
           state.ready ? "MPS daemon ready" : "MPS daemon not ready", GS_STR("uuid", gpu->uuid),
           GS_STR("reason", state.why));
}

void mps_round(struct plugin *plugin)
{
    struct mps *mps = &plugin->mps;
    const struct gs_gpu_set *found = &plugin->devices.found;
    int64_t now_ns = plugin_now_ns(plugin);
    if (!plugin->settings.mps_root)
        return;
    if (now_ns >= mps->look_ns) {
        for (uint32_t i = 0; i < found->count; i++)
            look(plugin, &found->gpus[i]);
        mps->look_ns = now_ns + LOOK_NS;
    }
    plugin_wake_at(plugin, mps->look_ns);
}

void mps_mark(const struct plugin *plugin, struct gs_gpu_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        struct gs_gpu *gpu = &set->gpus[i];
        if (!plugin->settings.mps_root) {
            gpu->max_pods = 0;
            continue;
        }
        gpu->max_pods = gpu->max_pods ? gpu->max_pods : CLIENTS;
        gpu->healthy &= state_of(plugin, gpu).ready;
    }
}

enum gs_enforced mps_word(const struct plugin *plugin, const struct gs_gpu *gpu, uint32_t pods)
{
    if (!plugin->settings.mps_root)
        return GS_ENFORCED_UNKNOWN;
    return state_of(plugin, gpu).ready ? GS_ENFORCED_MPS : GS_ENFORCED_MPS_AWAY;
}

/* ---- a container ---- */

static const char *host_path(const struct plugin *plugin, const char *uuid, const char *leaf,
                             struct gs_arena *arena)
{
    char path[MPS_PATH_BYTES];
    return mps_path(plugin->settings.mps_root, uuid, leaf, path) ? gs_arena_strdup(arena, path)
                                                                 : NULL;
}

/* The first GPU of the container is number 0 to it, whatever it is on the node: one entry that
 * names a GPU it does not see would drop the whole list. */
int mps_add(const struct plugin *plugin, const struct gs_allocate_answer *answer,
            const struct gs_dp_ids *ids, struct gs_arena *arena, struct gs_dp_container *container,
            struct gs_error *err)
{
    if (!plugin->settings.mps_root)
        return 0;
    if (gs_gpu_mask_count(answer->gpus) != 1)
        return gs_fail(err, GS_EINVAL,
                       "a container with several GPUs cannot use MPS: remove gpu-count from the "
                       "pod, or schedule it to a node without MPS");
    const struct gs_gpu *gpu = gs_gpu_find(plugin->devices.set.gpus, plugin->devices.set.count,
                                           (uint32_t)__builtin_ctzll(answer->gpus));
    uint64_t mib = (uint64_t)answer->units * gs_unit_mib(plugin->devices.unit);
    /* A ceiling: the part of the GPU's multiprocessors that its kernels run on, rounded down. Of
     * who asks for none the daemon's own default, which is all of them. */
    bool whole =
        gpu && answer_add_env(container, arena, "CUDA_MPS_PIPE_DIRECTORY", PIPE_IN_CONTAINER) &&
        answer_add_env(container, arena, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                       gs_arena_printf(arena, "0=%lluM", (unsigned long long)mib)) &&
        (!answer->cores_pct || answer_add_env(container, arena, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                                              gs_arena_printf(arena, "%u", answer->cores_pct))) &&
        answer_add_mount(container, arena,
                         (struct gs_dp_path){host_path(plugin, gpu->uuid, "pipe", arena),
                                             PIPE_IN_CONTAINER, true}) &&
        (answer->own_shm ||
         answer_add_mount(
             container, arena,
             (struct gs_dp_path){host_path(plugin, NULL, "shm", arena), "/dev/shm", false}));
    return whole ? 0 : gs_fail_nomem(err);
}

/* ---- a start ---- */

/* Of an unknown pod's GPUs: any. */
static bool all_ready(const struct plugin *plugin, gs_gpu_mask gpus, struct gs_error *err)
{
    for (uint32_t i = 0; i < plugin->devices.set.count; i++) {
        const struct gs_gpu *gpu = &plugin->devices.set.gpus[i];
        const struct mps_state state = state_of(plugin, gpu);
        if (!(gpus & GS_GPU_BIT(gpu->idx)) || state.ready)
            continue;
        gs_fail(err, GS_EBUSY, "start blocked until the MPS daemon of GPU %u is ready: %s",
                gpu->idx, state.why);
        return false;
    }
    return true;
}

bool mps_may_start(struct plugin *plugin, const struct gs_start_request *request,
                   const struct gs_placed *pod, struct gs_error *err)
{
    if (!plugin->settings.mps_root)
        return true;
    if (pod->enforce_required) {
        gs_fail(err, GS_EBUSY,
                "start blocked: the pod requires enforcement (gpu-enforce: required), and limits "
                "by MPS are cooperative; schedule it to a node without MPS");
        return false;
    }
    return all_ready(plugin, pod->uid ? pod->gpus : ~(gs_gpu_mask)0, err);
}
