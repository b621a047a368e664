/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/held.h"

#include <stdlib.h>
#include <string.h>

#include "gpushare/base/utf8.h"

enum { ID_BYTES_MAX = 63 }; /* api.proto, message Device */

static bool is_listable(const char *id)
{
    size_t len = strlen(id);
    if (len == 0 || len > ID_BYTES_MAX)
        return false;
    for (size_t at = 0, width; at < len; at += width) {
        width = gs_utf8_width(id + at, len - at);
        if (!width)
            return false;
    }
    return true;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct held_id *)a)->id, ((const struct held_id *)b)->id);
}

static size_t count_ids(const struct gs_podres_list *list)
{
    size_t sum = 0;
    for (size_t p = 0; p < list->pod_count; p++) {
        const struct gs_podres_pod *pod = &list->pods[p];
        for (size_t c = 0; c < pod->container_count; c++) {
            const struct gs_podres_container *container = &pod->containers[c];
            for (size_t d = 0; d < container->device_count; d++)
                sum += container->devices[d].id_count;
        }
    }
    return sum;
}

static int take_devices(struct held *held, const struct gs_podres_devices *devices,
                        gs_gpu_mask gpus)
{
    for (size_t i = 0; i < devices->id_count; i++) {
        const char *id = devices->ids[i];
        if (!is_listable(id)) {
            held->unlistable++;
            continue;
        }
        const char *copy = gs_arena_strndup(&held->arena, id, strlen(id));
        if (!copy)
            return -1;
        held->ids[held->count++] = (struct held_id){copy, gpus};
    }
    return 0;
}

static int take_pod(struct held *held, const struct gs_podres_pod *pod, const char *resource,
                    const struct gs_allocator *alloc)
{
    gs_gpu_mask gpus = gs_allocator_place(alloc, pod->ns, pod->name);
    for (size_t c = 0; c < pod->container_count; c++) {
        const struct gs_podres_container *container = &pod->containers[c];
        for (size_t d = 0; d < container->device_count; d++) {
            const struct gs_podres_devices *devices = &container->devices[d];
            if (strcmp(devices->resource_name, resource) == 0 &&
                take_devices(held, devices, gpus) < 0)
                return -1;
        }
    }
    return 0;
}

static void sort_out(struct held *held)
{
    size_t kept = 0;
    qsort(held->ids, held->count, sizeof(*held->ids), compare);
    for (size_t i = 0; i < held->count; i++) {
        if (!kept || strcmp(held->ids[kept - 1].id, held->ids[i].id) != 0)
            held->ids[kept++] = held->ids[i];
    }
    held->count = kept;
}

int held_build(struct held *held, const struct gs_podres_list *list, const char *resource,
               const struct gs_allocator *alloc)
{
    struct held next = {0};
    next.ids = gs_arena_calloc(&next.arena, count_ids(list) + 1, sizeof(*next.ids));
    bool good = next.ids != NULL;
    for (size_t p = 0; good && p < list->pod_count; p++)
        good = take_pod(&next, &list->pods[p], resource, alloc) == 0;
    if (!good) {
        held_release(&next);
        return -1;
    }
    sort_out(&next);
    held_release(held);
    *held = next;
    return 0;
}

void held_release(struct held *held)
{
    gs_arena_release(&held->arena);
    *held = (struct held){0};
}

ptrdiff_t held_find(const struct held *held, const char *id)
{
    const struct held_id key = {.id = id};
    const struct held_id *found =
        held->count ? bsearch(&key, held->ids, held->count, sizeof(key), compare) : NULL;
    return found ? found - held->ids : -1;
}
