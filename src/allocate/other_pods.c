/* SPDX-License-Identifier: Apache-2.0 */
/* The pods of this node that have no claim, by the hashes of their names. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static struct other_pod *find(const struct gs_allocator *alloc, const char *uid)
{
    uint64_t hash = gs_hash_text(uid);
    for (size_t i = 0; i < alloc->other_pod_count; i++) {
        if (alloc->other_pods[i].uid_hash == hash)
            return &alloc->other_pods[i];
    }
    return NULL;
}

int gs_other_pod_set(struct gs_allocator *alloc, const struct gs_pod *pod, struct gs_error *err)
{
    struct other_pod *other = find(alloc, pod->uid);
    if (!other && alloc->other_pod_count == alloc->other_pod_cap) {
        size_t cap = alloc->other_pod_cap ? 2 * alloc->other_pod_cap : 32;
        struct other_pod *wider = reallocarray(alloc->other_pods, cap, sizeof(*wider));
        if (!wider)
            return gs_fail_nomem(err);
        alloc->other_pods = wider;
        alloc->other_pod_cap = cap;
    }
    bool stale = other && other->stale && !alloc->in_quick;
    if (!other)
        other = &alloc->other_pods[alloc->other_pod_count++];
    *other = (struct other_pod){
        .uid_hash = gs_hash_text(pod->uid),
        .name_hash = gs_pod_name_hash(pod->ns, pod->name),
        .seen = true,
        .stale = stale,
    };
    return 0;
}

void gs_other_pod_drop(struct gs_allocator *alloc, const char *uid)
{
    struct other_pod *other = find(alloc, uid);
    if (other)
        *other = alloc->other_pods[--alloc->other_pod_count];
}

bool gs_other_pod_named(const struct gs_allocator *alloc, uint64_t name_hash)
{
    for (size_t i = 0; i < alloc->other_pod_count; i++) {
        if (alloc->other_pods[i].name_hash == name_hash)
            return true;
    }
    return false;
}

void gs_other_pods_sweep(struct gs_allocator *alloc, bool stale)
{
    size_t kept = 0;
    for (size_t i = 0; i < alloc->other_pod_count; i++) {
        struct other_pod *at = &alloc->other_pods[i];
        if (stale ? !at->stale : at->seen)
            alloc->other_pods[kept++] = *at;
    }
    alloc->other_pod_count = kept;
}
