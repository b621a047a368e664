/* SPDX-License-Identifier: Apache-2.0 */
#include "object.h"

#include <stdlib.h>
#include <string.h>

static const struct gs_sim_resource resources[GS_SIM_KINDS] = {
    [GS_SIM_NODES] = {.group = "",
                      .version = "v1",
                      .plural = "nodes",
                      .kind = "Node",
                      .has_status = true,
                      .type_json = "\"kind\":\"Node\",\"apiVersion\":\"v1\""},
    [GS_SIM_PODS] = {.group = "",
                     .version = "v1",
                     .plural = "pods",
                     .kind = "Pod",
                     .namespaced = true,
                     .has_status = true,
                     .type_json = "\"kind\":\"Pod\",\"apiVersion\":\"v1\""},
    [GS_SIM_EVENTS] = {.group = "",
                       .version = "v1",
                       .plural = "events",
                       .kind = "Event",
                       .namespaced = true,
                       .create_on_update = true,
                       .type_json = "\"kind\":\"Event\",\"apiVersion\":\"v1\""},
    [GS_SIM_LEASES] = {.group = "coordination.k8s.io",
                       .version = "v1",
                       .plural = "leases",
                       .kind = "Lease",
                       .namespaced = true,
                       .needs_version = true,
                       .type_json = "\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\""},
};

const struct gs_sim_resource *gs_sim_resource(enum gs_sim_kind kind)
{
    return &resources[kind];
}

enum gs_sim_kind gs_sim_kind_of_plural(struct gs_slice group, struct gs_slice version,
                                       struct gs_slice plural)
{
    for (int kind = 0; kind < GS_SIM_KINDS; kind++) {
        const struct gs_sim_resource *res = &resources[kind];
        if (gs_slice_eq(gs_slice_of(res->group), group) &&
            gs_slice_eq(gs_slice_of(res->version), version) &&
            gs_slice_eq(gs_slice_of(res->plural), plural))
            return (enum gs_sim_kind)kind;
    }
    return GS_SIM_KINDS;
}

enum gs_sim_kind gs_sim_kind_of_type(const char *api_version, const char *kind)
{
    const char *slash = strchr(api_version, '/');
    struct gs_slice group = {api_version, slash ? (size_t)(slash - api_version) : 0};
    struct gs_slice version = gs_slice_of(slash ? slash + 1 : api_version);
    for (int at = 0; at < GS_SIM_KINDS; at++) {
        const struct gs_sim_resource *res = &resources[at];
        if (strcmp(res->kind, kind) == 0 && gs_slice_eq(gs_slice_of(res->group), group) &&
            gs_slice_eq(gs_slice_of(res->version), version))
            return (enum gs_sim_kind)at;
    }
    return GS_SIM_KINDS;
}

void gs_sim_object_unref(struct gs_sim_object *object)
{
    if (object && atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1)
        free(object);
}

void gs_sim_object_put(const struct gs_sim_object *object, struct gs_buf *out)
{
    gs_buf_putc(out, '{');
    gs_buf_puts(out, resources[object->kind].type_json);
    gs_buf_putc(out, ',');
    gs_buf_append(out, object->json + 1, object->json_len - 1);
}
