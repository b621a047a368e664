/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/container_env.h"

#include <stdio.h>
#include <string.h>

#include "device_plugin/answer.h"
#include "device_plugin/device_nodes.h"

enum { NAME_BYTES = GS_UUID_BYTES + 16 };

/* Prefix by the CDI specification, then who asks and for what. */
#define CDI_ANNOTATION "cdi.k8s.io/gpushare_gpu"

bool device_lists_parse(const char *text, unsigned *ret)
{
    static const char *const words[] = {"envvar", "volume-mounts", "cdi-annotations", "cdi-cri",
                                        NULL};
    struct gs_slice rest = gs_slice_of(text);
    unsigned lists = 0;
    do {
        const struct gs_slice word = gs_slice_cut(&rest, ',');
        unsigned i = 0;
        while (words[i] && !gs_slice_eq(gs_slice_of(words[i]), word))
            i++;
        if (!words[i])
            return false;
        lists |= 1U << i;
    } while (rest.at);
    *ret = lists;
    return true;
}

static const struct gs_vendor *vendor_of(const struct plugin *plugin)
{
    return &gs_vendors[plugin->devices.set.vendor];
}

/* A UUID means the same card after a reboot; where there is none, the index has to do: the one that
 * the driver counts by, which need not be ours. */
static void gpu_name(const struct plugin *plugin, uint32_t idx, char out[NAME_BYTES])
{
    const struct gs_gpu *gpu =
        gs_gpu_find(plugin->devices.set.gpus, plugin->devices.set.count, idx);
    if (gpu && gpu->uuid[0])
        snprintf(out, NAME_BYTES, "%s", gpu->uuid);
    else
        snprintf(out, NAME_BYTES, "%u", gpu ? plugin->devices.set.source_idx[idx] : idx);
}

/* Every name, behind "KIND=" if there is a kind, as one comma list. */
static const char *names_of(const struct plugin *plugin, gs_gpu_mask gpus, const char *kind,
                            struct gs_arena *arena)
{
    struct gs_buf text = GS_BUF(64 << 10);
    char name[NAME_BYTES];
    uint32_t idx;
    GS_FOR_EACH_GPU (idx, gpus) {
        gpu_name(plugin, idx, name);
        gs_buf_printf(&text, "%s%s%s%s", text.len ? "," : "", kind, kind[0] ? "=" : "", name);
    }
    char *copy = gs_buf_failed(&text) ? NULL : gs_arena_strndup(arena, text.data, text.len);
    gs_buf_release(&text);
    return copy;
}

/* ---- environment ---- */

static const char *visible_devices(const struct plugin *plugin, const char *gpus)
{
    unsigned lists = plugin->settings.device_lists;
    if (lists & DEVICE_LIST_VOLUME_MOUNTS)
        return vendor_of(plugin)->mounts_root;
    return lists & DEVICE_LIST_ENVVAR ? gpus : vendor_of(plugin)->no_devices;
}

/* The last names the GPUs where the first does not: the next plugin finds them in the kubelet's
 * checkpoint whatever the container runtime was told. */
static bool add_envs(const struct plugin *plugin, const struct gs_allocate_answer *answer,
                     struct gs_arena *arena, struct gs_dp_container *ret)
{
    const struct gs_names *names = &plugin->names;
    const char *gpus = names_of(plugin, answer->gpus, "", arena);
    const char *visible = visible_devices(plugin, gpus);
    return answer_add_env(ret, arena, vendor_of(plugin)->visible_devices, visible) &&
           answer_add_env(ret, arena, names->idx, gs_arena_strdup(arena, answer->idx)) &&
           answer_add_env(ret, arena, names->pod,
                          gs_arena_printf(arena, "%u", answer->pod_units)) &&
           answer_add_env(ret, arena, names->container,
                          gs_arena_printf(arena, "%u", answer->units)) &&
           answer_add_env(ret, arena, names->dev,
                          gs_arena_printf(arena, "%u", answer->dev_units)) &&
           (visible == gpus || answer_add_env(ret, arena, names->gpus, gpus));
}

/* ---- other lists ---- */

static bool add_mounts(const struct plugin *plugin, gs_gpu_mask gpus, struct gs_arena *arena,
                       struct gs_dp_container *ret)
{
    char name[NAME_BYTES];
    uint32_t idx;
    bool whole = true;
    GS_FOR_EACH_GPU (idx, gpus) {
        gpu_name(plugin, idx, name);
        whole &= answer_add_mount(
            ret, arena,
            (struct gs_dp_path){
                "/dev/null",
                gs_arena_printf(arena, "%s/%s", vendor_of(plugin)->mounts_root, name)});
    }
    return whole;
}

static int add_cdi_devices(const struct plugin *plugin, gs_gpu_mask gpus, struct gs_arena *arena,
                           struct gs_dp_container *ret)
{
    const char **devices = gs_arena_calloc(arena, GS_GPUS_MAX, sizeof(*devices));
    uint32_t idx;
    if (!devices)
        return -1;
    GS_FOR_EACH_GPU (idx, gpus) {
        devices[ret->cdi_device_count] =
            names_of(plugin, GS_GPU_BIT(idx), vendor_of(plugin)->cdi_kind, arena);
        if (!devices[ret->cdi_device_count++])
            return -1;
    }
    ret->cdi_devices = devices;
    return 0;
}

static int add_cdi_annotation(const struct plugin *plugin, gs_gpu_mask gpus, struct gs_arena *arena,
                              struct gs_dp_container *ret)
{
    struct gs_dp_pair *annotation = gs_arena_calloc(arena, 1, sizeof(*annotation));
    if (!annotation)
        return -1;
    annotation->key = CDI_ANNOTATION;
    annotation->value = names_of(plugin, gpus, vendor_of(plugin)->cdi_kind, arena);
    ret->annotations = annotation;
    ret->annotation_count = 1;
    return annotation->value ? 0 : -1;
}

/* With CDI alone the container runtime has the nodes of the device's specification. */
static bool passes_nodes(const struct plugin *plugin)
{
    return plugin->settings.pass_device_specs &&
           (plugin->settings.device_lists & ~(unsigned)DEVICE_LIST_CDI);
}

int container_env_build(const struct plugin *plugin, const struct gs_allocate_answer *answer,
                        struct gs_arena *arena, struct gs_dp_container *ret)
{
    unsigned lists = plugin->settings.device_lists;
    *ret = (struct gs_dp_container){0};
    if (!add_envs(plugin, answer, arena, ret))
        return -1;
    if (lists & DEVICE_LIST_VOLUME_MOUNTS && !add_mounts(plugin, answer->gpus, arena, ret))
        return -1;
    if (lists & DEVICE_LIST_CDI_CRI && add_cdi_devices(plugin, answer->gpus, arena, ret) < 0)
        return -1;
    if (lists & DEVICE_LIST_CDI_ANNOTATIONS &&
        add_cdi_annotation(plugin, answer->gpus, arena, ret) < 0)
        return -1;
    return passes_nodes(plugin) ? device_nodes_add(plugin->settings.nvidia_dev_root,
                                                   &plugin->devices.set, answer->gpus, arena, ret)
                                : 0;
}
