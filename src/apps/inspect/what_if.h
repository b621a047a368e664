/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_WHAT_IF_H
#define GPUSHARE_APPS_INSPECT_WHAT_IF_H

#include "inspect/common.h"
#include "inspect/verdict.h"

/* What is to be placed, one kind of pod after the other, and where it went. */
struct place {
    const char *node; /* the snapshot's */
    gs_gpu_mask gpus;
    uint32_t replicas;
};

struct order {
    char title[300];   /* "" for a size of the command line */
    struct gs_pod pod; /* from a manifest or a node that is left out; else zeroed */
    struct gs_ask ask; /* the pod's; broken: it can be placed nowhere */
    uint32_t replicas, placed;
    struct place *places;
    uint32_t place_count;
    struct verdict verdict; /* what is in the way of those that were not placed */
};

struct orders {
    struct order *all;
    size_t count;
};

enum { ORDERS_MAX = 10000, REPLICAS_MAX = 100000 };

void orders_release(struct orders *orders);

/* "6", "24x3,6x10": sizes with how many, else replicas. GS_EINVAL. */
int orders_of_sizes(struct orders *orders, const char *text, const struct gs_ask *ask,
                    uint32_t replicas, struct gs_error *err);

/* Pods, and the pods of Deployments, StatefulSets, ReplicaSets, Jobs and CronJobs, of a file as
 * kubectl apply -f takes it; other objects are passed over. GS_EINVAL: none asks for GPU memory. */
int orders_of_manifest(struct orders *orders, const struct gs_names *names, const char *path,
                       struct gs_error *err);

/* A pod that has to go somewhere else. */
int orders_of_pod(struct orders *orders, const struct gs_pod *pod, struct gs_error *err);

/* -1: out of memory, or the output cannot be written. */
int orders_print(const struct orders *orders, const char *unit, enum gs_placement policy);
int orders_document(const struct orders *orders, const char *unit, enum gs_placement policy,
                    bool yaml);

#endif
