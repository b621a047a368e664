/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/pod.h"

#include "gpushare/base/index.h"
#include "gpushare/base/num.h"

static const char *const placements[] = {
    [GS_PLACEMENT_DEFAULT] = "",      [GS_PLACEMENT_BINPACK] = "binpack",
    [GS_PLACEMENT_SPREAD] = "spread", [GS_PLACEMENT_ROLLOUT] = "rollout",
    [GS_PLACEMENT_BROKEN] = "",
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

enum { TEXTS = 21 };

static void find_texts(struct gs_pod *pod, const char **ret[TEXTS])
{
    const char **const all[TEXTS] = {
        &pod->uid,
        &pod->ns,
        &pod->name,
        &pod->resource_version,
        &pod->node_name,
        &pod->scheduler_name,
        &pod->said,
        &pod->group,
        &pod->nominated_node,
        &pod->owner_uid,
        &pod->owner,
        &pod->owner_api,
        &pod->owner_kind,
        &pod->owner_name,
        &pod->static_uid,
        &pod->term,
        &pod->gpu_model,
        &pod->gpu_model_deny,
        &pod->gpu_uuid,
        &pod->gpu_uuid_deny,
        &pod->offer,
    };
    memcpy(ret, all, sizeof(all));
}

void gs_pod_reset(struct gs_pod *pod)
{
    const char **texts[TEXTS];
    gs_arena_reset(&pod->arena);
    *pod = (struct gs_pod){.qos = GS_QOS_BEST_EFFORT, .arena = pod->arena};
    find_texts(pod, texts);
    for (int i = 0; i < TEXTS; i++)
        *texts[i] = "";
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
    copy.labels = NULL;
    const char **texts[TEXTS];
    find_texts(&copy, texts);
    copy.containers =
        gs_arena_calloc(&copy.arena, from->container_count, sizeof(*from->containers));
    bool whole = copy.containers != NULL;
    for (int i = 0; whole && i < TEXTS; i++) {
        *texts[i] = gs_arena_strdup(&copy.arena, *texts[i]);
        whole = *texts[i] != NULL;
    }
    if (whole && from->container_count)
        memcpy(copy.containers, from->containers,
               from->container_count * sizeof(*from->containers));
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
