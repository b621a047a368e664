/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_PREFERENCES_H
#define GPUSHARE_SERVICE_PREFERENCES_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/index.h"
#include "gpushare/model/node.h"
#include "gpushare/model/pod.h"

/*
 * What was said about nodes that is not weighed here but in kube-scheduler's own scores: taints
 * with PreferNoSchedule, and the affinity of pods to pods that come later (plugins TaintToleration
 * and InterPodAffinity). Where it concerns a pod, filter leaves no node out (--candidates). Also
 * the zone of each node. A zeroed struct is a valid empty one. Guarded by the store's lock.
 */
struct gs_preferences {
    struct gs_node_said {
        uint32_t zone; /* a hash of the zone's name; 0: none */
        bool avoided;  /* PreferNoSchedule */
    } * nodes;         /* by slot of the ledger */
    uint32_t node_cap;
    uint32_t avoided; /* how many nodes are */

    struct gs_pod_said {
        uint64_t uid;   /* hash */
        uint32_t space; /* index of namespaces[]; of a free entry the next free one, + 1 */
        bool used;
        bool seen; /* since the list began */
    } * pods;      /* that have such terms, on a node or not */
    uint32_t pod_count, pod_cap, first_free;
    struct gs_index by_uid;

    struct gs_namespace_said {
        uint64_t name; /* hash */
        uint32_t pods; /* whose terms count there */
    } * namespaces;    /* from 1 on; [0] stands for all of them */
    uint32_t namespace_count, namespace_cap;
    struct gs_index by_namespace;
};

void gs_preferences_release(struct gs_preferences *said);

/* A node with GPUs as it was shown, or that it is gone (NULL). Without memory for it nothing is
 * known about the node. */
void gs_preferences_node(struct gs_preferences *said, uint32_t slot, const struct gs_node *node);

/* A pod that has not ended. -1: out of memory. */
int gs_preferences_pod(struct gs_preferences *said, const struct gs_pod *pod);
void gs_preferences_pod_gone(struct gs_preferences *said, const char *uid);

/* Those that are not shown between the two are gone. */
void gs_preferences_begin_pods(struct gs_preferences *said);
void gs_preferences_sweep_pods(struct gs_preferences *said);

/* Something of it, or what the pod says itself, makes nodes differ for this pod. */
bool gs_preferences_concern(const struct gs_preferences *said, const struct gs_pod *pod);

/* Of a node; 0: none is known. */
uint32_t gs_preferences_zone(const struct gs_preferences *said, uint32_t slot);

#endif
