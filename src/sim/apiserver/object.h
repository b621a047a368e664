/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/slice.h"

/*
 * The kinds of objects the embedded cluster holds, and one version of one object: immutable JSON
 * text and the few fields that selectors ask for. Hundreds of thousands of them are alive at once,
 * so a version is a single allocation of about 100 bytes more than its text.
 */
/* Kinds of one group stand together. */
enum gs_sim_kind {
    GS_SIM_NODES,
    GS_SIM_PODS,
    GS_SIM_EVENTS,
    GS_SIM_LEASES,
    GS_SIM_KINDS,
};

/* What is known of a kind; api_discovery.c has the rest. */
struct gs_sim_resource {
    const char *api; /* apiVersion: "v1", "coordination.k8s.io/v1" */
    const char *plural;
    const char *group_resource; /* schema.GroupResource.String(): "leases.coordination.k8s.io" */
    const char *kind;
    bool namespaced;
    bool has_status;    /* a /status subresource; a write to the object leaves status alone */
    bool needs_version; /* PUT without metadata.resourceVersion is refused */
};

/* Static. */
const struct gs_sim_resource *gs_sim_resource(enum gs_sim_kind kind);

/* The kind with that apiVersion and plural name, or kind; GS_SIM_KINDS when not served. */
enum gs_sim_kind gs_sim_kind_of_plural(struct gs_slice api, struct gs_slice plural);
enum gs_sim_kind gs_sim_kind_of_type(const char *api, const char *kind);

/* Everything but refs is constant from the moment others see it. */
struct gs_sim_object {
    atomic_uint refs;
    uint8_t kind;     /* enum gs_sim_kind */
    uint8_t deleting; /* metadata.deletionTimestamp is set */
    uint16_t version_len;
    uint32_t version_at; /* where in json the digits of metadata.resourceVersion stand */
    uint32_t json_len;
    uint64_t version;
    const char *ns; /* "" for a cluster-wide kind; strings lie in the same allocation */
    const char *name;
    const char *uid;
    const char *node;  /* pods: spec.nodeName, "" while unbound */
    const char *phase; /* pods: status.phase */
    const char *json; /* {"metadata":{…},…}: compact, without kind and apiVersion, as the items of
                         a list are in Kubernetes; NUL-terminated */
};

static inline struct gs_sim_object *gs_sim_object_ref(struct gs_sim_object *object)
{
    atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
    return object;
}

/* The last one frees. NULL is fine. */
void gs_sim_object_unref(struct gs_sim_object *object);
GS_DEFINE_CLEANUP(struct gs_sim_object *, gs_sim_object_unref)

/* Appends the object as it stands alone: with kind and apiVersion. */
void gs_sim_object_put(const struct gs_sim_object *object, struct gs_buf *out);
