/* SPDX-License-Identifier: Apache-2.0 */
#include "classes.h"

#include "gpushare/base/array.h"

void gs_classes_release(struct gs_classes *classes)
{
    for (uint32_t i = 0; i < classes->count; i++)
        free((void *)classes->all[i].model);
    free(classes->all);
    gs_index_release(&classes->by_hash);
    *classes = (struct gs_classes){0};
}

static void halve(struct gs_classes *classes)
{
    for (uint32_t i = 0; i < classes->count; i++)
        gs_index_remove(&classes->by_hash, classes->all[i].hash, i);
    uint32_t kept = 0;
    classes->pods = 0;
    classes->gpu_pods = 0;
    for (uint32_t i = 0; i < classes->count; i++) {
        struct gs_class class = classes->all[i];
        class.count /= 2;
        if (!class.count) {
            free((void *)class.model);
            continue;
        }
        classes->all[kept] = class;
        gs_index_insert(&classes->by_hash, class.hash, kept++); /* there was room for all */
        classes->pods += class.count;
        classes->gpu_pods += class.units ? class.count : 0;
    }
    classes->count = kept;
}

static struct gs_class *append_class(struct gs_classes *classes, const struct gs_ask *ask,
                                     uint64_t hash)
{
    while (classes->count == GS_CLASSES_MAX)
        halve(classes);
    if (!gs_array_reach(&classes->all, &classes->cap, classes->count, sizeof(*classes->all)))
        return NULL;
    char *text = calloc(1, ask->model.len + ask->model_deny.len + 2);
    if (!text || gs_index_reserve(&classes->by_hash) < 0) {
        free(text);
        return NULL;
    }
    char *deny = text + ask->model.len + 1;
    if (ask->model.len)
        memcpy(text, ask->model.at, ask->model.len);
    if (ask->model_deny.len)
        memcpy(deny, ask->model_deny.at, ask->model_deny.len);
    gs_index_insert(&classes->by_hash, hash, classes->count);
    struct gs_class *class = &classes->all[classes->count++];
    *class =
        (struct gs_class){0, ask->units, ask->gpu_count, (int32_t)ask->cpu_milli, text, deny, hash};
    return class;
}

void gs_classes_add(struct gs_classes *classes, const struct gs_ask *ask)
{
    struct gs_ask counted = {.cpu_milli = gs_class_cpu(ask->cpu_milli), .gpu_count = 1};
    if (ask->units) {
        counted.units = ask->units;
        counted.gpu_count = ask->gpu_count;
        counted.model = ask->model;
        counted.model_deny = ask->model_deny;
    }
    if (classes->pods >= GS_CLASSES_HALVE)
        halve(classes);
    const uint64_t hash = gs_ask_hash(&counted);
    const uint32_t slot = classes->count
                              ? gs_index_find_hash(&classes->by_hash, &classes->all->hash,
                                                   sizeof(*classes->all), hash)
                              : GS_INDEX_NONE;
    struct gs_class *class =
        slot != GS_INDEX_NONE ? &classes->all[slot] : append_class(classes, &counted, hash);
    if (!class)
        return;
    class->count++;
    classes->pods++;
    classes->gpu_pods += ask->units ? 1 : 0;
}

struct gs_class *gs_classes_copy(const struct gs_classes *classes, struct gs_arena *arena)
{
    struct gs_class *all = gs_arena_extend(arena, classes->all, classes->count, 1, sizeof(*all));
    for (uint32_t i = 0; all && i < classes->count; i++) {
        all[i].model = gs_arena_strdup(arena, all[i].model);
        all[i].model_deny = gs_arena_strdup(arena, all[i].model_deny);
        if (!all[i].model || !all[i].model_deny)
            return NULL;
    }
    return all;
}
