/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/ids_in_use.h"

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
    return strcmp(((const struct ids_in_use_id *)a)->id, ((const struct ids_in_use_id *)b)->id);
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

static int add(struct ids_in_use *in_use, const struct ids_in_use_id *from)
{
    struct ids_in_use_id copy = *from;
    copy.id = gs_arena_strndup(&in_use->arena, from->id, strlen(from->id));
    if (!copy.id)
        return -1;
    in_use->ids[in_use->count++] = copy;
    return 0;
}

static int take_devices(struct ids_in_use *in_use, const struct gs_podres_devices *devices,
                        struct ids_in_use_id holder)
{
    for (size_t i = 0; i < devices->id_count; i++) {
        holder.id = devices->ids[i];
        if (!is_listable(holder.id))
            in_use->unlistable++;
        else if (add(in_use, &holder) < 0)
            return -1;
    }
    return 0;
}

static int take_pod(struct ids_in_use *in_use, const struct gs_podres_pod *pod,
                    const char *resource, const struct gs_allocator *alloc)
{
    struct ids_in_use_id holder = {0};
    size_t before = in_use->count;
    holder.who = gs_allocator_who(alloc, pod->ns, pod->name);
    for (size_t c = 0; c < pod->container_count; c++) {
        const struct gs_podres_container *container = &pod->containers[c];
        for (size_t d = 0; d < container->device_count; d++) {
            const struct gs_podres_devices *devices = &container->devices[d];
            if (strcmp(devices->resource_name, resource) == 0 &&
                take_devices(in_use, devices, holder) < 0)
                return -1;
        }
    }
    in_use->named += holder.who && in_use->count > before;
    return 0;
}

static const struct ids_in_use_id *find(const struct ids_in_use_id *ids, size_t count,
                                        const char *id)
{
    const struct ids_in_use_id key = {.id = id};
    return count ? bsearch(&key, ids, count, sizeof(key), compare) : NULL;
}

/* Of what was in use before, that of pods that live. The listed ones are sorted. */
static int keep_living(struct ids_in_use *next, const struct ids_in_use *before,
                       const struct gs_allocator *alloc)
{
    size_t listed = next->count;
    uint64_t asked = 0;
    bool lives = false;
    for (size_t i = 0; i < before->count; i++) {
        const struct ids_in_use_id *id = &before->ids[i];
        if (id->who != asked)
            lives = gs_allocator_lives(alloc, id->who);
        asked = id->who;
        if (id->who && lives && !find(next->ids, listed, id->id) && add(next, id) < 0)
            return -1;
    }
    return 0;
}

static void sort_out(struct ids_in_use *in_use)
{
    size_t kept = 0;
    qsort(in_use->ids, in_use->count, sizeof(*in_use->ids), compare);
    for (size_t i = 0; i < in_use->count; i++) {
        if (!kept || strcmp(in_use->ids[kept - 1].id, in_use->ids[i].id) != 0)
            in_use->ids[kept++] = in_use->ids[i];
    }
    in_use->count = kept;
}

int ids_in_use_update(struct ids_in_use *in_use, const struct gs_podres_list *list,
                      const char *resource, const struct gs_allocator *alloc)
{
    struct ids_in_use next = {0};
    next.ids = gs_arena_calloc(&next.arena, count_ids(list) + in_use->count + 1, sizeof(*next.ids));
    bool good = next.ids != NULL;
    for (size_t p = 0; good && p < list->pod_count; p++)
        good = take_pod(&next, &list->pods[p], resource, alloc) == 0;
    if (good)
        sort_out(&next);
    if (!good || keep_living(&next, in_use, alloc) < 0) {
        ids_in_use_release(&next);
        return -1;
    }
    sort_out(&next);
    ids_in_use_release(in_use);
    *in_use = next;
    return 0;
}

void ids_in_use_release(struct ids_in_use *in_use)
{
    gs_arena_release(&in_use->arena);
    *in_use = (struct ids_in_use){0};
}

ptrdiff_t ids_in_use_find(const struct ids_in_use *in_use, const char *id)
{
    const struct ids_in_use_id *found = find(in_use->ids, in_use->count, id);
    return found ? found - in_use->ids : -1;
}
