/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_DEVICE_PLUGIN_PODRES_VIEW_H
#define GPUSHARE_APPS_DEVICE_PLUGIN_PODRES_VIEW_H

#include "gpushare/allocate/allocator.h"
#include "gpushare/base/arena.h"
#include "gpushare/grpc/pod_resources.h"

/* A PodResources list as the allocator wants it: pods, and what they hold of one resource. Zeroed:
 * there is none. */
struct podres_view {
    struct gs_arena arena;
    struct gs_observed_pod *pods; /* NULL: the kubelet did not answer */
    size_t count;
};

/* Copies what matters. -1: out of memory, *view is empty. */
int podres_view_build(struct podres_view *view, const struct gs_podres_list *list,
                      const char *resource);
void podres_view_release(struct podres_view *view);

#endif
