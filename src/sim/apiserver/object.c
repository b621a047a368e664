/* SPDX-License-Identifier: Apache-2.0 */
#include "object.h"

#include <stdlib.h>
#include <string.h>

static const struct gs_sim_resource resources[GS_SIM_KINDS] = {
    [GS_SIM_NODES] = {.api = "v1",
                      .plural = "nodes",
                      .group_resource = "nodes",
                      .kind = "Node",
                      .has_status = true},
    [GS_SIM_PODS] = {.api = "v1",
                     .plural = "pods",
                     .group_resource = "pods",
                     .kind = "Pod",
                     .namespaced = true,
                     .has_status = true},
    [GS_SIM_EVENTS] = {.api = "v1",
                       .plural = "events",
                       .group_resource = "events",
                       .kind = "Event",
                       .namespaced = true},
    [GS_SIM_LEASES] = {.api = "coordination.k8s.io/v1",
                       .plural = "leases",
                       .group_resource = "leases.coordination.k8s.io",
                       .kind = "Lease",
                       .namespaced = true,
                       .needs_version = true},
};

const struct gs_sim_resource *gs_sim_resource(enum gs_sim_kind kind)
{
    return &resources[kind];
}

enum gs_sim_kind gs_sim_kind_of_plural(struct gs_slice api, struct gs_slice plural)
{
    int kind = 0;
    while (kind < GS_SIM_KINDS && !(gs_slice_eq(gs_slice_of(resources[kind].api), api) &&
                                    gs_slice_eq(gs_slice_of(resources[kind].plural), plural)))
        kind++;
    return (enum gs_sim_kind)kind;
}

enum gs_sim_kind gs_sim_kind_of_type(const char *api, const char *kind)
{
    int at = 0;
    while (at < GS_SIM_KINDS &&
           (strcmp(resources[at].api, api) != 0 || strcmp(resources[at].kind, kind) != 0))
        at++;
    return (enum gs_sim_kind)at;
}

void gs_sim_object_unref(struct gs_sim_object *object)
{
    if (object && atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1)
        free(object);
}

void gs_sim_object_put(const struct gs_sim_object *object, struct gs_buf *out)
{
    const struct gs_sim_resource *resource = &resources[object->kind];
    gs_buf_printf(out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",", resource->kind, resource->api);
    gs_buf_append(out, object->json + 1, object->json_len - 1);
}
