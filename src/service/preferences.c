/* SPDX-License-Identifier: Apache-2.0 */
#include "preferences.h"

#include <stdlib.h>

void gs_preferences_release(struct gs_preferences *said)
{
    free(said->nodes);
    free(said->pods);
    free(said->namespaces);
    gs_index_release(&said->by_uid);
    gs_index_release(&said->by_namespace);
    *said = (struct gs_preferences){0};
}

/* Room for entry `at`, new ones zeroed. */
static bool grow(void **items, uint32_t *cap, uint32_t at, size_t size)
{
    if (at < *cap)
        return true;
    uint32_t wider = at + at / 2 + 16;
    char *grown = reallocarray(*items, wider, size);
    if (!grown)
        return false;
    memset(grown + *cap * size, 0, (wider - *cap) * size);
    *items = grown;
    *cap = wider;
    return true;
}

void gs_preferences_node(struct gs_preferences *said, uint32_t slot, const struct gs_node *node)
{
    struct gs_node_said now = {0};
    if (node && node->zone[0])
        now.zone = (uint32_t)gs_hash_text(node->zone) | 1;
    now.avoided = node && node->gpu_count && node->prefer_no_schedule;
    if (!grow((void **)&said->nodes, &said->node_cap, slot, sizeof(*said->nodes)))
        return;
    said->avoided += (uint32_t)now.avoided - (uint32_t)said->nodes[slot].avoided;
    said->nodes[slot] = now;
}

uint32_t gs_preferences_zone(const struct gs_preferences *said, uint32_t slot)
{
    return slot < said->node_cap ? said->nodes[slot].zone : 0;
}

/* What is kept of a text, and what an index wants to know of that. */
struct key {
    const struct gs_preferences *said;
    uint64_t kept, hash;
};

static struct key key_of_kept(const struct gs_preferences *said, uint64_t kept)
{
    return (struct key){said, kept, gs_hash_bytes(&kept, sizeof(kept))};
}

static struct key key_of(const struct gs_preferences *said, const char *text)
{
    return key_of_kept(said, gs_hash_lasting(text, strlen(text)));
}

static bool same_namespace(const void *ctx, uint32_t slot)
{
    const struct key *key = ctx;
    return key->said->namespaces[slot].name == key->kept;
}

static bool same_pod(const void *ctx, uint32_t slot)
{
    const struct key *key = ctx;
    return key->said->pods[slot].uid == key->kept;
}

static uint32_t find_namespace(const struct key *key)
{
    return gs_index_find(&key->said->by_namespace, key->hash, same_namespace, key);
}

static uint32_t find_pod(const struct key *key)
{
    return gs_index_find(&key->said->by_uid, key->hash, same_pod, key);
}

/* GS_INDEX_NONE: out of memory. */
static uint32_t take_namespace(struct gs_preferences *said, const struct gs_pod *pod)
{
    if (!grow((void **)&said->namespaces, &said->namespace_cap, said->namespace_count + 1,
              sizeof(*said->namespaces)))
        return GS_INDEX_NONE;
    if (pod->affinity_reach == GS_AFFINITY_ANY_NAMESPACE)
        return 0;
    const struct key key = key_of(said, pod->ns);
    uint32_t at = find_namespace(&key);
    if (at != GS_INDEX_NONE)
        return at;
    if (gs_index_reserve(&said->by_namespace) < 0)
        return GS_INDEX_NONE;
    at = ++said->namespace_count;
    said->namespaces[at].name = key.kept;
    gs_index_insert(&said->by_namespace, key.hash, at);
    return at;
}

static uint32_t take_pod(struct gs_preferences *said)
{
    if (!said->first_free)
        return said->pod_count++;
    const uint32_t at = said->first_free - 1;
    said->first_free = said->pods[at].space;
    return at;
}

int gs_preferences_pod(struct gs_preferences *said, const struct gs_pod *pod)
{
    if (pod->affinity_reach == GS_AFFINITY_NONE)
        return 0; /* a pod's affinity never changes */
    const struct key key = key_of(said, pod->uid);
    uint32_t at = find_pod(&key);
    if (at != GS_INDEX_NONE) {
        said->pods[at].seen = true;
        return 0;
    }
    const uint32_t ns = take_namespace(said, pod);
    if (ns == GS_INDEX_NONE || gs_index_reserve(&said->by_uid) < 0 ||
        !grow((void **)&said->pods, &said->pod_cap, said->pod_count, sizeof(*said->pods)))
        return -1;
    at = take_pod(said);
    said->pods[at] = (struct gs_pod_said){key.kept, ns, .used = true, .seen = true};
    said->namespaces[ns].pods++;
    gs_index_insert(&said->by_uid, key.hash, at);
    return 0;
}

static void drop_pod(struct gs_preferences *said, uint32_t at)
{
    struct gs_pod_said *pod = &said->pods[at];
    gs_index_remove(&said->by_uid, key_of_kept(said, pod->uid).hash, at);
    said->namespaces[pod->space].pods--;
    *pod = (struct gs_pod_said){.space = said->first_free};
    said->first_free = at + 1;
}

void gs_preferences_pod_gone(struct gs_preferences *said, const char *uid)
{
    if (!said->by_uid.count)
        return; /* as always without --candidates: nothing is worked out for each pod that ends */
    const struct key key = key_of(said, uid);
    const uint32_t at = find_pod(&key);
    if (at != GS_INDEX_NONE)
        drop_pod(said, at);
}

void gs_preferences_begin_pods(struct gs_preferences *said)
{
    for (uint32_t i = 0; i < said->pod_count; i++)
        said->pods[i].seen = false;
}

void gs_preferences_sweep_pods(struct gs_preferences *said)
{
    for (uint32_t i = 0; i < said->pod_count; i++) {
        if (said->pods[i].used && !said->pods[i].seen)
            drop_pod(said, i);
    }
}

bool gs_preferences_concern(const struct gs_preferences *said, const struct gs_pod *pod)
{
    if (pod->prefers_nodes || said->avoided)
        return true;
    if (!said->namespace_cap)
        return false;
    const struct key key = key_of(said, pod->ns);
    const uint32_t ns = find_namespace(&key);
    return said->namespaces[0].pods || (ns != GS_INDEX_NONE && said->namespaces[ns].pods);
}
