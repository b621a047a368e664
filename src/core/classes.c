/* SPDX-License-Identifier: Apache-2.0 */
#include "classes.h"

#include <stdlib.h>
#include <string.h>

#include "gpushare/base/array.h"
#include "gpushare/base/cleanup.h"

void gs_classes_release(struct gs_classes *classes)
{
    for (uint32_t i = 0; i < classes->count; i++)
        free(classes->all[i].texts);
    free(classes->all);
    gs_index_release(&classes->by_kind);
    *classes = (struct gs_classes){0};
}

struct kind {
    uint32_t units, gpu_count;
    int32_t cpu_milli;
    struct gs_slice model, model_deny;
};

struct kind_key {
    const struct gs_class *all;
    const struct kind *kind;
};

static bool same_kind(const void *ctx, uint32_t slot)
{
    const struct kind_key *key = ctx;
    const struct gs_class *class = &key->all[slot];
    return class->units == key->kind->units && class->gpu_count == key->kind->gpu_count &&
           class->cpu_milli == key->kind->cpu_milli &&
           gs_slice_eq(gs_slice_of(class->model), key->kind->model) &&
           gs_slice_eq(gs_slice_of(class->model_deny), key->kind->model_deny);
}

static uint64_t hash_kind(const struct kind *kind)
{
    uint64_t words[] = {
        kind->units,
        kind->gpu_count,
        (uint64_t)kind->cpu_milli,
        kind->model.len ? gs_hash_bytes(kind->model.at, kind->model.len) : 0,
        kind->model_deny.len ? gs_hash_bytes(kind->model_deny.at, kind->model_deny.len) : 0,
    };
    return gs_hash_bytes(words, sizeof(words));
}

static struct kind kind_of_ask(const struct gs_ask *ask)
{
    struct kind kind = {.cpu_milli = gs_class_cpu(ask->cpu_milli), .gpu_count = 1};
    if (!ask->units)
        return kind;
    kind.units = ask->units;
    kind.gpu_count = ask->gpu_count;
    kind.model = ask->model;
    kind.model_deny = ask->model_deny;
    return kind;
}

static struct kind kind_of_class(const struct gs_class *class)
{
    return (struct kind){class->units, class->gpu_count, class->cpu_milli,
                         gs_slice_of(class->model), gs_slice_of(class->model_deny)};
}

static void halve(struct gs_classes *classes)
{
    for (uint32_t i = 0; i < classes->count; i++) {
        struct kind kind = kind_of_class(&classes->all[i]);
        gs_index_remove(&classes->by_kind, hash_kind(&kind), i);
    }
    uint32_t kept = 0;
    classes->pods = 0;
    classes->gpu_pods = 0;
    for (uint32_t i = 0; i < classes->count; i++) {
        struct gs_class class = classes->all[i];
        class.count /= 2;
        if (!class.count) {
            free(class.texts);
            continue;
        }
        classes->all[kept] = class;
        struct kind kind = kind_of_class(&class);
        gs_index_insert(&classes->by_kind, hash_kind(&kind), kept++); /* there was room for all */
        classes->pods += class.count;
        classes->gpu_pods += class.units ? class.count : 0;
    }
    classes->count = kept;
}

static struct gs_class *append(struct gs_classes *classes, const struct kind *kind)
{
    while (classes->count == GS_CLASSES_MAX)
        halve(classes);
    if (!gs_array_reach(&classes->all, &classes->cap, classes->count, sizeof(*classes->all)))
        return NULL;
    char *text = calloc(1, kind->model.len + kind->model_deny.len + 2);
    if (!text || gs_index_reserve(&classes->by_kind) < 0) {
        free(text);
        return NULL;
    }
    char *deny = text + kind->model.len + 1;
    if (kind->model.len)
        memcpy(text, kind->model.at, kind->model.len);
    if (kind->model_deny.len)
        memcpy(deny, kind->model_deny.at, kind->model_deny.len);
    gs_index_insert(&classes->by_kind, hash_kind(kind), classes->count);
    struct gs_class *class = &classes->all[classes->count++];
    *class = (struct gs_class){0, kind->units, kind->gpu_count, kind->cpu_milli, text, deny, text};
    return class;
}

void gs_classes_add(struct gs_classes *classes, const struct gs_ask *ask)
{
    if (classes->pods >= GS_CLASSES_HALVE)
        halve(classes);
    struct kind kind = kind_of_ask(ask);
    struct kind_key key = {classes->all, &kind};
    uint32_t slot = gs_index_find(&classes->by_kind, hash_kind(&kind), same_kind, &key);
    struct gs_class *class = slot != GS_INDEX_NONE ? &classes->all[slot] : append(classes, &kind);
    if (!class)
        return;
    class->count++;
    classes->pods++;
    classes->gpu_pods += kind.units ? 1 : 0;
}

static size_t text_bytes(const struct gs_class *class)
{
    return strlen(class->model) + strlen(class->model_deny) + 2;
}

int gs_classes_copy(const struct gs_classes *classes, struct gs_class_list *ret)
{
    size_t bytes = 1;
    for (uint32_t i = 0; i < classes->count; i++)
        bytes += text_bytes(&classes->all[i]);
    _cleanup_free_ struct gs_class *all = calloc(classes->count + 1u, sizeof(*all));
    _cleanup_free_ char *texts = malloc(bytes);
    if (!all || !texts)
        return -1;
    char *at = texts;
    for (uint32_t i = 0; i < classes->count; i++) {
        all[i] = classes->all[i];
        memcpy(at, all[i].model, text_bytes(&all[i]));
        all[i].model_deny = at + (all[i].model_deny - all[i].model);
        all[i].model = at;
        all[i].texts = NULL;
        at += text_bytes(&all[i]);
    }
    *ret = (struct gs_class_list){gs_steal(&all), gs_steal(&texts), classes->count};
    return 0;
}
