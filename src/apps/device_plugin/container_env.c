/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/container_env.h"

#include <stdio.h>
#include <string.h>

enum { ENVS = 5, NAME_BYTES = GS_UUID_BYTES + 16 };

/* A UUID means the same card after a reboot; where there is none, the index has to do: the one that
 * the driver counts by, which need not be ours. */
static void gpu_name(const struct plugin *plugin, uint32_t idx, char out[NAME_BYTES])
{
    const struct gs_gpu *gpu = gs_gpu_find(plugin->set.gpus, plugin->set.count, idx);
    bool by_uuid = plugin->settings.visible_devices == VISIBLE_UUID;
    if (gpu && gpu->uuid[0] && (by_uuid || gs_gpu_is_instance(gpu)))
        snprintf(out, NAME_BYTES, "%s", gpu->uuid);
    else
        snprintf(out, NAME_BYTES, "%u", gpu ? plugin->set.source_idx[idx] : idx);
}

static const char *number(struct gs_arena *arena, uint32_t value)
{
    char text[16];
    int len = snprintf(text, sizeof(text), "%u", value);
    return gs_arena_strndup(arena, text, (size_t)len);
}

static const char *visible_devices(const struct plugin *plugin, gs_gpu_mask gpus,
                                   struct gs_arena *arena)
{
    struct gs_buf text = GS_BUF(GS_GPUS_MAX * NAME_BYTES);
    char name[NAME_BYTES];
    uint32_t idx;
    GS_FOR_EACH_GPU (idx, gpus) {
        gpu_name(plugin, idx, name);
        gs_buf_printf(&text, "%s%s", text.len ? "," : "", name);
    }
    char *copy = gs_buf_failed(&text) ? NULL : gs_arena_strndup(arena, text.data, text.len);
    gs_buf_release(&text);
    return copy;
}

static int add_cdi(const struct plugin *plugin, gs_gpu_mask gpus, struct gs_arena *arena,
                   struct gs_dp_container *ret)
{
    const char **names = gs_arena_calloc(arena, GS_GPUS_MAX, sizeof(*names));
    char name[NAME_BYTES], full[NAME_BYTES + 300];
    uint32_t idx;
    if (!names)
        return -1;
    GS_FOR_EACH_GPU (idx, gpus) {
        gpu_name(plugin, idx, name);
        snprintf(full, sizeof(full), "%.255s=%s", plugin->settings.cdi_kind, name);
        names[ret->cdi_device_count] = gs_arena_strndup(arena, full, strlen(full));
        if (!names[ret->cdi_device_count++])
            return -1;
    }
    ret->cdi_devices = names;
    return 0;
}

int container_env_build(const struct plugin *plugin, const struct gs_allocate_answer *answer,
                        struct gs_arena *arena, struct gs_dp_container *ret)
{
    const struct gs_names *names = &plugin->names;
    const struct gs_dp_pair envs[ENVS] = {
        {"NVIDIA_VISIBLE_DEVICES", visible_devices(plugin, answer->gpus, arena)},
        {names->idx, gs_arena_strndup(arena, answer->idx, strlen(answer->idx))},
        {names->pod, number(arena, answer->pod_units)},
        {names->container, number(arena, answer->units)},
        {names->dev, number(arena, answer->dev_units)},
    };
    struct gs_dp_pair *copy = gs_arena_calloc(arena, ENVS, sizeof(*copy));
    *ret = (struct gs_dp_container){.envs = copy, .env_count = ENVS};
    for (int i = 0; i < ENVS; i++) {
        if (!copy || !envs[i].value)
            return -1;
        copy[i] = envs[i];
    }
    return plugin->settings.cdi_kind ? add_cdi(plugin, answer->gpus, arena, ret) : 0;
}
