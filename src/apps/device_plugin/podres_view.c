/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/podres_view.h"

#include <string.h>

/* The ids of one container, of which newer kubelets make several entries. *ret_ids lies in the
 * arena. */
static int gather(struct gs_arena *arena, const struct gs_podres_container *container,
                  const char *resource, const char *const **ret_ids, size_t *ret_count)
{
    size_t count = 0, at = 0;
    for (size_t d = 0; d < container->device_count; d++) {
        if (strcmp(container->devices[d].resource_name, resource) == 0)
            count += container->devices[d].id_count;
    }
    const char **ids = gs_arena_calloc(arena, count + 1, sizeof(*ids));
    if (!ids)
        return -1;
    for (size_t d = 0; d < container->device_count; d++) {
        const struct gs_podres_devices *devices = &container->devices[d];
        if (strcmp(devices->resource_name, resource) != 0)
            continue;
        for (size_t i = 0; i < devices->id_count; i++)
            ids[at++] = devices->ids[i];
    }
    *ret_ids = ids;
    *ret_count = count;
    return 0;
}

static int copy_pod(struct podres_view *view, const struct gs_podres_pod *pod, const char *resource)
{
    struct gs_observed_pod *to = &view->pods[view->count];
    uint64_t *keys = gs_arena_calloc(&view->arena, pod->container_count + 1, sizeof(*keys));
    to->ns = gs_arena_strndup(&view->arena, pod->ns, strlen(pod->ns));
    to->name = gs_arena_strndup(&view->arena, pod->name, strlen(pod->name));
    if (!keys || !to->ns || !to->name)
        return -1;
    to->keys = keys;
    for (size_t c = 0; c < pod->container_count; c++) {
        struct gs_arena scratch = {0};
        const char *const *ids;
        size_t count;
        int result = gather(&scratch, &pod->containers[c], resource, &ids, &count);
        if (result == 0 && count) {
            keys[to->key_count++] = gs_allocate_key(ids, count);
            to->units += (uint32_t)count;
        }
        gs_arena_release(&scratch);
        if (result < 0)
            return -1;
    }
    view->count++;
    return 0;
}

int podres_view_build(struct podres_view *view, const struct gs_podres_list *list,
                      const char *resource)
{
    podres_view_release(view);
    view->pods = gs_arena_calloc(&view->arena, list->pod_count + 1, sizeof(*view->pods));
    bool good = view->pods != NULL;
    for (size_t i = 0; good && i < list->pod_count; i++)
        good = copy_pod(view, &list->pods[i], resource) == 0;
    if (!good)
        podres_view_release(view);
    return good ? 0 : -1;
}

void podres_view_release(struct podres_view *view)
{
    gs_arena_release(&view->arena);
    *view = (struct podres_view){0};
}
