/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "gpushare/model/node.h"
#include "gpushare/model/pod.h"
#include "sim/rest.h"

/* All nodes and pods as the API lists them at one moment. */
struct world {
    json_t *pod_objects; /* array; the pod of the same index */
    struct gs_node *nodes;
    size_t node_count;
    struct gs_pod *pods;
    size_t pod_count;
};

/* *ret: release it, also on failure. */
int world_read(struct gs_kube_client *api, const struct gs_names *names, struct world *ret,
               struct gs_error *err);
void world_release(struct world *world);

/* The index of a node, or node_count. */
size_t world_find_node(const struct world *world, const char *name);
