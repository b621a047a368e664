/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/model/kv.h"

/*
 * What is written to a cluster, as plain data: service fills it, codec turns it into a request
 * body, the cluster port (port/kube.h) sends it. All pointers are *borrowed* for the call.
 */

/* POST pods/NAME/binding; the API server copies the annotations to the pod in the same
 * transaction (pkg/registry/core/pod/storage: BindingREST.assignPod). *ret_answered becomes true
 * when the API server itself said that it failed (5xx with a Status, other than 504): it works on
 * the request no more. NULL: nobody asks. */
struct gs_binding {
    const char *ns;
    const char *name;
    const char *uid;
    const char *node;
    const struct gs_kv *annotations;
    size_t annotation_count;
    int64_t deadline_ns; /* monotonic: nothing is sent later; 0: the port's own */
    bool *ret_answered;
};

/* A JSON merge patch of metadata, and of a pod's nomination. uid and resource_version, when not
 * NULL or "", are preconditions: GS_ECONFLICT when the object has others. */
struct gs_meta_patch {
    const char *ns; /* NULL for a node */
    const char *name;
    const char *uid;
    const char *resource_version;
    const struct gs_kv *annotations;
    size_t annotation_count;
    const struct gs_kv *labels;
    size_t label_count;
    /* status.nominatedNodeName of a pod, "": none any more; the patch is then one of pods/status,
     * which takes annotations as well. NULL: it stays. */
    const char *nominated_node;
    int64_t deadline_ns; /* monotonic: nothing is sent later; 0: the port's own */
};

/* Merge patch of a node's status: extended resources go into capacity and allocatable. */
struct gs_node_status_patch {
    const char *node;
    const struct gs_kv *capacity; /* value: a quantity; NULL removes */
    size_t capacity_count;
};

/* core/v1 Event about a pod or a node. */
struct gs_event {
    const char *api;  /* of the object, "apps/v1"; NULL: "v1" */
    const char *kind; /* "Pod" */
    const char *ns;   /* the object's; NULL for a node: the event goes to "default" */
    const char *name;
    const char *uid;
    bool warning;       /* type Warning, else Normal */
    const char *reason; /* UpperCamelCase */
    const char *message;
    const char *component; /* source.component: the program's name */
};

/* coordination.k8s.io/v1 Lease. Times are wall-clock nanoseconds, stored with microseconds. */
struct gs_lease {
    const char *ns;
    const char *name;
    char holder[256]; /* "" for nobody */
    char resource_version[64];
    int32_t duration_s;
    int32_t transitions;
    int64_t acquire_ns;
    int64_t renew_ns;
};
