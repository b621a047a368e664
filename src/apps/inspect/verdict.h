/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_VERDICT_H
#define GPUSHARE_APPS_INSPECT_VERDICT_H

#include "gpushare/core/placement.h"
#include "inspect/snapshot.h"

/*
 * Why nodes cannot take a pod, in groups: one line per reason with how many nodes, and the node
 * that comes nearest to it. The reasons are those of kube-scheduler's messages; a node that the
 * shipped placement code accepts may still be cordoned, not ready or out of CPU.
 */
enum obstacle {
    OBSTACLE_GPU, /* see the reason */
    OBSTACLE_NOT_READY,
    OBSTACLE_CORDONED,
    OBSTACLE_NO_PLUGIN, /* an inventory, but nothing advertised */
    OBSTACLE_CPU,
    OBSTACLE_TAINT, /* these two whatever the GPUs: model/eligible.h */
    OBSTACLE_AFFINITY,
    OBSTACLE_NONE, /* fits */
    OBSTACLES,
};

struct verdict_group {
    uint32_t nodes;
    /* the nearest miss; NULL when the GPUs tell nothing */
    const char *nearest;
    uint32_t nearest_gpu;
    uint32_t nearest_free_units;
};

/* "the node is cordoned …"; "" for OBSTACLE_GPU and OBSTACLE_NONE. Static. */
const char *obstacle_text(enum obstacle obstacle);

struct verdict {
    struct verdict_group gpu[GS_REASONS];
    struct verdict_group other[OBSTACLES];
    uint32_t nodes;
};

/* rules: which nodes the pod may use; NULL: nothing is known of it. */
void verdict_of(const struct snapshot *snapshot, const struct gs_ask *ask,
                const struct gs_pod_rules *rules, struct verdict *ret);

/* What stands in the way of one node, and, when OBSTACLE_GPU, why. */
enum obstacle verdict_of_node(const struct snapshot *snapshot, const struct snap_node *node,
                              const struct gs_ask *ask, const struct gs_pod_rules *rules,
                              enum gs_reason *ret_reason);

/* Prints the groups, one line each, those of most nodes first; nothing for nodes that fit. */
void verdict_print(const struct verdict *verdict, const struct gs_ask *ask, const char *unit);

/* "GiB", or "units" when no inventory tells or nodes differ. */
const char *verdict_unit(const struct snapshot *snapshot);

#endif
