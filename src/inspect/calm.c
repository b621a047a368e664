/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/calm.h"

#include <ctype.h>
#include <string.h>

#include "gpushare/base/utf8.h"

static bool is_of_names(char byte)
{
    return isascii(byte) && (isalnum((unsigned char)byte) || strchr("-._:", byte));
}

/* Of what is gone not everything is known; "" without memory. */
static const char *calm_name(struct gs_arena *arena, const char *name)
{
    char *copy = name ? gs_arena_strdup(arena, name) : NULL;
    for (char *byte = copy; byte && *byte; byte++)
        *byte = is_of_names(*byte) ? *byte : '?';
    return copy || !name ? copy : "";
}

static const char *calm_text(struct gs_arena *arena, const char *text)
{
    char *copy = text ? gs_arena_strdup(arena, text) : NULL;
    if (copy)
        gs_utf8_calm(copy);
    return copy || !text ? copy : "";
}

void calm_pod(struct gs_arena *arena, struct gs_pod *pod)
{
    pod->uid = calm_name(arena, pod->uid);
    pod->ns = calm_name(arena, pod->ns);
    pod->name = calm_name(arena, pod->name);
    pod->node_name = calm_name(arena, pod->node_name);
    pod->nominated_node = calm_name(arena, pod->nominated_node);
    pod->scheduler_name = calm_text(arena, pod->scheduler_name);
    pod->owner = calm_text(arena, pod->owner);
    pod->said = calm_text(arena, pod->said);
}

static void calm_gpus(struct gs_arena *arena, struct gs_node *node)
{
    struct gs_gpu *gpus = gs_arena_calloc(arena, node->gpu_count, sizeof(*gpus));
    if (!gpus)
        node->gpu_count = 0;
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        gpus[i] = node->gpus[i];
        gs_utf8_calm(gpus[i].uuid);
        gs_utf8_calm(gpus[i].model);
    }
    node->gpus = gpus;
}

void calm_node(struct gs_arena *arena, struct gs_node *node)
{
    node->name = calm_name(arena, node->name);
    node->address = calm_text(arena, node->address);
    node->inventory_error = calm_text(arena, node->inventory_error);
    calm_gpus(arena, node);
}
