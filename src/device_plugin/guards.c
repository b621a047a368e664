/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/guards.h"

#include "device_plugin/plugin.h"
#include "gpushare/base/log.h"

/* The hardware limits a pod to its instance; nothing separates two pods in one. */
static enum gs_enforced mig_word(const struct plugin *plugin, const struct gs_gpu *gpu,
                                 uint32_t pods)
{
    return gs_gpu_is_instance(gpu) && pods <= 1 ? GS_ENFORCED_MIG : GS_ENFORCED_UNKNOWN;
}

static const struct guard {
    /* What it does for a GPU with so many pods; GS_ENFORCED_UNKNOWN: the next row says it. */
    enum gs_enforced (*word)(const struct plugin *plugin, const struct gs_gpu *gpu, uint32_t pods);
    /* NULL: it holds no start back, or adds nothing to a container. */
    bool (*may_start)(struct plugin *plugin, const struct gs_start_request *request,
                      const struct gs_placed *pod, struct gs_error *err);
    int (*add)(const struct plugin *plugin, const struct gs_allocate_answer *answer,
               const struct gs_dp_ids *ids, struct gs_arena *arena,
               struct gs_dp_container *container, struct gs_error *err);
} guards[] = {
    {mps_word, mps_may_start, mps_add},
    {mig_word, NULL, NULL},
    {hook_word, hook_may_start, hook_add},
    {enforce_word, enforce_may_start, NULL},
};
enum { GUARDS = sizeof(guards) / sizeof(guards[0]) };

int guards_add(const struct plugin *plugin, const struct gs_allocate_answer *answer,
               const struct gs_dp_ids *ids, struct gs_arena *arena,
               struct gs_dp_container *container, struct gs_error *err)
{
    for (size_t i = 0; i < GUARDS; i++) {
        if (guards[i].add && guards[i].add(plugin, answer, ids, arena, container, err) < 0)
            return -1;
    }
    return 0;
}

bool guards_may_start(struct plugin *plugin, const struct gs_start_request *request,
                      struct gs_error *err)
{
    struct gs_placed pod;
    size_t number = 0;
    gs_allocator_starting(plugin->alloc, request, number, &pod);
    do {
        for (size_t i = 0; i < GUARDS; i++) {
            if (guards[i].may_start && !guards[i].may_start(plugin, request, &pod, err))
                return false;
        }
    } while (gs_allocator_starting(plugin->alloc, request, ++number, &pod));
    return true;
}

static enum gs_enforced word_of(const struct plugin *plugin, const struct gs_gpu *gpu,
                                uint32_t pods)
{
    enum gs_enforced word = GS_ENFORCED_UNKNOWN;
    for (size_t i = 0; i < GUARDS && word == GS_ENFORCED_UNKNOWN; i++)
        word = guards[i].word(plugin, gpu, pods);
    return word;
}

static void log_word(const struct gs_gpu *gpu)
{
    gs_log(GS_LOG_INFO, "GPU memory limit", GS_INT("gpu", gpu->idx),
           GS_STR("enforced", gs_enforced_name(gpu->enforced)),
           GS_STR("reason", gs_enforced_reason(gpu->enforced)));
}

static void count_pod(void *ctx, const struct gs_placed *pod)
{
    uint32_t *pods_on = ctx, gpu;
    GS_FOR_EACH_GPU (gpu, pod->gpus)
        pods_on[gpu]++;
}

/* What is true of each GPU goes to the node's object at once: pods choose by it. */
void guards_round(struct plugin *plugin)
{
    uint32_t pods_on[GS_GPUS_MAX] = {0};
    if (!plugin_knows(plugin))
        return;
    gs_allocator_each_placed(plugin->alloc, count_pod, pods_on);
    for (uint32_t i = 0; i < plugin->devices.set.count; i++) {
        struct gs_gpu *gpu = &plugin->devices.set.gpus[i];
        enum gs_enforced enforced = word_of(plugin, gpu, pods_on[gpu->idx]);
        gpu->enforced = enforced; /* a set is read each minute */
        if (plugin->guards.words[gpu->idx] == enforced)
            continue;
        plugin->guards.words[gpu->idx] = enforced;
        plugin->node.due = true;
        log_word(gpu);
    }
}
