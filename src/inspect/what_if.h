/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/common.h"
#include "inspect/verdict.h"

/* What is to be placed, one kind of pod after the other, and where it went. */
struct place {
    const char *node; /* the snapshot's */
    gs_gpu_mask gpus;
    uint64_t replicas;
};

/* Of equal priority these come first. */
enum order_kind {
    ORDER_WAITS, /* a pod that has no node yet */
    ORDER_MOVES, /* a pod of a node that is left out */
    ORDER_ASKED, /* of the command line, or a manifest */
};
enum { ORDER_KINDS = 3 };

struct order {
    enum order_kind kind;
    uint32_t turn;
    char title[300];   /* of ORDER_ASKED; "" for a size of the command line */
    struct gs_pod pod; /* zeroed for a size of the command line */
    struct gs_ask ask; /* the pod's; broken: it can be placed nowhere */
    uint32_t replicas, placed;
    struct place *places;
    uint32_t place_count;
    struct verdict verdict; /* what is in the way of those that were not placed */
};

struct orders {
    struct order *all;
    uint32_t count, cap;
    char unread[512]; /* objects of a manifest that request GPU memory and are not counted */
};

enum { ORDERS_MAX = 100000, REPLICAS_MAX = 100000, NODES_ADDED_MAX = 10000 };

void orders_release(struct orders *orders);

/* "6", "24x3,6x10": sizes with how many, else replicas. GS_EINVAL. */
int orders_of_sizes(struct orders *orders, const char *text, const struct gs_ask *ask,
                    uint32_t replicas, struct gs_error *err);

/* Pods, and the pods of Deployments, StatefulSets, ReplicaSets, Jobs and CronJobs, of a file as
 * kubectl apply -f takes it; other objects are passed over. GS_EINVAL: none asks for GPU memory. */
int orders_of_manifest(struct orders *orders, const struct gs_names *names, const char *path,
                       struct gs_error *err);

/* A pod that waits or has to go somewhere else. */
int orders_of_pod(struct orders *orders, enum order_kind kind, const struct gs_pod *pod,
                  struct gs_error *err);

/* Puts them in the order in which kube-scheduler takes them up: priority, kind, as they came. Once
 * all are there: before it asks' rules may be where the list was before it grew. */
void orders_sort(struct orders *orders);

/* Pods of that kind, and how many of them were placed. */
struct tally {
    uint64_t pods, placed;
};
struct tally orders_tally(const struct orders *orders, enum order_kind kind);

/* ---- placing (what_if_place.c) ---- */

/* More nodes like one of them; count of them at most are in the snapshot. */
struct added {
    const char *like; /* NULL: none are asked for */
    struct gs_node node;
    uint32_t count;
    uint64_t hopeless; /* pods that no number of them helps */
};

struct placing {
    struct snapshot snapshot;
    struct orders orders;
    enum gs_placement policy;
    struct added added;
};

/* Places all orders on the snapshot with added.count more nodes; until_fit: finds the smallest
 * added.count with which none waits that such a node helps. */
int placing_run(struct placing *placing, bool until_fit, struct gs_error *err);

/* ---- the command: its options, and what came of them (print_what_if.c) ---- */

struct what_if {
    struct common common;
    const char *model; /* --gpu-model */
    struct gs_ask ask;
    const char *sizes;    /* --gpu-mem */
    const char *manifest; /* -f */
    const char *add;      /* --add-node */
    const char *without;  /* --without-node, a comma list */
    uint32_t replicas;
    enum gs_placement policy; /* GS_PLACEMENT_DEFAULT: the running extender's */
    enum output_format format;
    bool waiting, ignore_waiting, until_fit;
    struct placing on;
    const char *policy_source; /* "option", "extender", "default" */
    uint32_t end_there;        /* pods of DaemonSets on --without-node, which do not move */
    uint32_t gated, elsewhere; /* pods that wait and are not placed (queue.h) */
};

/* -1: out of memory, or the output cannot be written. */
int what_if_print(const struct what_if *run);
int what_if_document(const struct what_if *run);
