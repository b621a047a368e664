/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_DEVICE_PLUGIN_IDS_IN_USE_H
#define GPUSHARE_APPS_DEVICE_PLUGIN_IDS_IN_USE_H

#include "gpushare/allocate/allocator.h"
#include "gpushare/base/arena.h"
#include "gpushare/grpc/pod_resources.h"

/*
 * The device ids that pods hold, as the kubelet listed them. They stay listed whatever plugin gave
 * them out, since newer kubelets fail a running pod whose ids left the list
 * (pkg/kubelet/cm/devicemanager/manager.go, devicesToAllocate: "previously allocated devices are no
 * longer healthy"). Zeroed: none is in use.
 */
struct ids_in_use_id {
    const char *id;
    uint64_t who; /* the pod that holds it, as gs_allocator_who() */
};

struct ids_in_use {
    struct gs_arena arena;
    struct ids_in_use_id *ids; /* ascending, none twice */
    size_t count;
    size_t unlistable; /* left out: an id that no list may carry (over 63 bytes, not UTF-8) */
    size_t above; /* units that pods hold beyond what their GPUs offer now: they take no place of
                     others; the caller's */
    size_t named; /* pods known to the allocator that the kubelet named with some */
};

/*
 * Copies what pods hold of the resource. What *in_use had before stays when its pod still lives: a
 * pod gives no id back before it ends, but a kubelet that starts names its pods one after the
 * other, and would fail those whose ids left the list meanwhile. -1: out of memory, *in_use is as
 * it was.
 */
int ids_in_use_update(struct ids_in_use *in_use, const struct gs_podres_list *list,
                      const char *resource, const struct gs_allocator *alloc);
void ids_in_use_release(struct ids_in_use *in_use);

/* Where the id is in in_use->ids, or -1. */
ptrdiff_t ids_in_use_find(const struct ids_in_use *in_use, const char *id);

#endif
