/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/pages.h"
#include "device_plugin/worker.h"
#include "gpushare/grpc/device_plugin.h"

struct plugin;
struct pending_call;
struct pod_batch;

/*
 * The kubelet's Allocate and PreStartContainer, from the call to its answer: first the kubelet's
 * checkpoint is read, then, only if the allocator does not know the pod, the API is asked for this
 * node's pods. That has a short limit; without an answer the call goes on.
 */
struct kubelet_calls {
    struct pending_call *pending;
    struct pages_calls stats;
    struct worker lister;
    uint64_t list_round; /* of the list of pods that runs, or ran last */
    bool listing;        /* these two are the thread's then */
    struct pod_batch *list;
    struct gs_error list_error;
    bool list_failed;      /* that one */
    int64_t list_again_ns; /* after that: no list before then */
    bool skips_running;    /* gs_allocate_request */
    bool observed;         /* a start of this round read the kubelet's checkpoint */
};

extern const struct gs_dp_ops kubelet_calls_ops; /* ctx: struct plugin */

/* Goes on with every call for which what it waits for has come: pods
 * (from a list or the watch), the node's object, or the end of its patience. */
void kubelet_calls_round(struct plugin *plugin);

/* Nobody waits for these any more: the program ends. */
void kubelet_calls_free(struct plugin *plugin);
