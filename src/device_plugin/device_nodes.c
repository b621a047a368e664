/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/device_nodes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 512, SHARED_MAX = 8 };

/* "/" and "" are the same. */
static void below(const char *dev_root, const char *path, char out[PATH_BYTES])
{
    size_t len = strlen(dev_root);
    while (len && dev_root[len - 1] == '/')
        len--;
    snprintf(out, PATH_BYTES, "%.*s%s", (int)(len < 400 ? len : 400), dev_root, path);
}

/* The root may be the host's alone: then those that this container was given tell. */
static bool is_there(const char *dev_root, const char *path)
{
    char full[PATH_BYTES];
    below(dev_root, path, full);
    return access(full, F_OK) == 0 || access(path, F_OK) == 0;
}

void device_node_of(const char *dev_root, uint32_t vendor, const struct gs_gpu *gpu,
                    char out[DEVICE_NODE_BYTES])
{
    out[0] = '\0';
    if (!gpu->node || gs_gpu_is_instance(gpu))
        return;
    snprintf(out, DEVICE_NODE_BYTES, "%s%u", gs_vendors[vendor].node, gpu->node - 1u);
    if (!is_there(dev_root, out))
        out[0] = '\0';
}

static int add(const char *dev_root, const char *path, struct gs_arena *arena,
               struct gs_dp_path *to)
{
    char full[PATH_BYTES];
    below(dev_root, path, full);
    to->host = gs_arena_strdup(arena, full);
    to->container = gs_arena_strdup(arena, path);
    return to->host && to->container ? 0 : -1;
}

int device_nodes_add(const char *dev_root, const struct gs_gpu_set *set, gs_gpu_mask given,
                     struct gs_arena *arena, struct gs_dp_container *ret)
{
    const char *const *shared = gs_vendors[set->vendor].shared;
    struct gs_dp_path *nodes = gs_arena_calloc(arena, GS_GPUS_MAX + SHARED_MAX, sizeof(*nodes));
    size_t at = 0;
    uint32_t idx;
    if (!nodes)
        return -1;
    GS_FOR_EACH_GPU (idx, given) {
        const struct gs_gpu *gpu = gs_gpu_find(set->gpus, set->count, idx);
        char path[DEVICE_NODE_BYTES] = "";
        if (gpu)
            device_node_of(dev_root, set->vendor, gpu, path);
        if (path[0] && add(dev_root, path, arena, &nodes[at++]) < 0)
            return -1;
    }
    for (size_t i = 0; at && shared[i] && i < SHARED_MAX; i++) {
        if (is_there(dev_root, shared[i]) && add(dev_root, shared[i], arena, &nodes[at++]) < 0)
            return -1;
    }
    ret->devices = nodes;
    ret->device_count = at;
    return 0;
}
