/* SPDX-License-Identifier: Apache-2.0 */
/* The pods of this node that have no claim, by the hashes of their names. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static struct other *find(const struct gs_allocator *alloc, const char *uid)
{
    uint64_t hash = gs_hash_text(uid);
    for (size_t i = 0; i < alloc->other_count; i++) {
        if (alloc->others[i].uid_hash == hash)
            return &alloc->others[i];
    }
    return NULL;
}

int gs_other_set(struct gs_allocator *alloc, const struct gs_pod *pod, struct gs_error *err)
{
    struct other *other = find(alloc, pod->uid);
    if (!other && alloc->other_count == alloc->other_cap) {
        size_t cap = alloc->other_cap ? 2 * alloc->other_cap : 32;
        struct other *wider = reallocarray(alloc->others, cap, sizeof(*wider));
        if (!wider)
            return gs_fail_nomem(err);
        alloc->others = wider;
        alloc->other_cap = cap;
    }
    bool doubted = other && other->doubted && !alloc->in_quick;
    if (!other)
        other = &alloc->others[alloc->other_count++];
    *other = (struct other){
        .uid_hash = gs_hash_text(pod->uid),
        .name_hash = gs_pod_name_hash(pod->ns, pod->name),
        .seen = true,
        .doubted = doubted,
    };
    return 0;
}

void gs_other_drop(struct gs_allocator *alloc, const char *uid)
{
    struct other *other = find(alloc, uid);
    if (other)
        *other = alloc->others[--alloc->other_count];
}

bool gs_other_named(const struct gs_allocator *alloc, uint64_t name_hash)
{
    for (size_t i = 0; i < alloc->other_count; i++) {
        if (alloc->others[i].name_hash == name_hash)
            return true;
    }
    return false;
}

void gs_others_sweep(struct gs_allocator *alloc, bool doubted)
{
    size_t kept = 0;
    for (size_t i = 0; i < alloc->other_count; i++) {
        struct other *at = &alloc->others[i];
        if (doubted ? !at->doubted : at->seen)
            alloc->others[kept++] = *at;
    }
    alloc->other_count = kept;
}
