/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/pod.h"

#include <string.h>

#include "gpushare/base/index.h"
#include "gpushare/base/num.h"

static const char *const placements[] = {
    [GS_PLACEMENT_DEFAULT] = "",        [GS_PLACEMENT_BINPACK] = "binpack",
    [GS_PLACEMENT_SPREAD] = "spread",   [GS_PLACEMENT_FGD] = "fgd",
    [GS_PLACEMENT_ROLLOUT] = "rollout", [GS_PLACEMENT_BROKEN] = "",
};

const char *gs_placement_name(enum gs_placement placement)
{
    return placements[placement];
}

bool gs_placement_parse(const char *text, size_t len, enum gs_placement *ret)
{
    for (int i = GS_PLACEMENT_BINPACK; i < GS_PLACEMENT_BROKEN; i++) {
        if (strlen(placements[i]) == len && memcmp(placements[i], text, len) == 0) {
            *ret = (enum gs_placement)i;
            return true;
        }
    }
    return false;
}

uint64_t gs_pod_name_hash(const char *ns, const char *name)
{
    uint64_t hash = gs_hash_bytes(ns, strlen(ns) + 1); /* the NUL parts the two */
    return hash * 31 + gs_hash_text(name);
}

void gs_pod_reset(struct gs_pod *pod)
{
    gs_arena_reset(&pod->arena);
    *pod = (struct gs_pod){
        .uid = "",
        .ns = "",
        .name = "",
        .resource_version = "",
        .node_name = "",
        .scheduler_name = "",
        .group = "",
        .labels = "",
        .nominated_node = "",
        .owner_uid = "",
        .owner = "",
        .owner_api = "",
        .owner_kind = "",
        .owner_name = "",
        .static_uid = "",
        .term = "",
        .qos = GS_QOS_BEST_EFFORT,
        .gpu_model = "",
        .gpu_model_deny = "",
        .gpu_uuid = "",
        .gpu_uuid_deny = "",
        .offer = "",
        .arena = pod->arena,
    };
}

void gs_pod_release(struct gs_pod *pod)
{
    gs_arena_release(&pod->arena);
    *pod = (struct gs_pod){0};
}

int gs_pod_copy(struct gs_pod *to, const struct gs_pod *from)
{
    gs_pod_reset(to);
    struct gs_pod copy = *from;
    copy.arena = to->arena;
    const char **strings[] = {
        &copy.uid,
        &copy.ns,
        &copy.name,
        &copy.resource_version,
        &copy.node_name,
        &copy.owner_uid,
        &copy.owner,
        &copy.owner_api,
        &copy.owner_kind,
        &copy.owner_name,
        &copy.static_uid,
        &copy.term,
        &copy.nominated_node,
        &copy.gpu_model,
        &copy.gpu_uuid,
        &copy.gpu_model_deny,
        &copy.gpu_uuid_deny,
        &copy.scheduler_name,
        &copy.group,
        &copy.labels,
        &copy.offer,
    };
    copy.containers =
        gs_arena_calloc(&copy.arena, from->container_count, sizeof(*from->containers));
    bool whole = copy.containers != NULL;
    for (size_t i = 0; whole && i < sizeof(strings) / sizeof(strings[0]); i++) {
        *strings[i] = gs_arena_strndup(&copy.arena, *strings[i], strlen(*strings[i]));
        whole = *strings[i] != NULL;
    }
    for (uint32_t i = 0; whole && i < from->container_count; i++) {
        const char *name = from->containers[i].name;
        copy.containers[i] = from->containers[i];
        copy.containers[i].name = gs_arena_strndup(&copy.arena, name, strlen(name));
        whole = copy.containers[i].name != NULL;
    }
    whole = whole && gs_pod_rules_copy(&copy.arena, &copy.rules, &from->rules) == 0;
    to->arena = copy.arena;
    if (!whole) {
        gs_pod_reset(to);
        return -1;
    }
    *to = copy;
    return 0;
}

uint64_t gs_pod_revision(const struct gs_pod *pod)
{
    uint64_t revision = 0;
    gs_parse_u64(pod->resource_version, strlen(pod->resource_version), &revision);
    return revision;
}

bool gs_pod_wants_gpu(const struct gs_pod *pod)
{
    for (uint32_t i = 0; i < pod->container_count; i++) {
        if (pod->containers[i].gpu_units)
            return true;
    }
    return pod->gpu_units_overflow;
}
