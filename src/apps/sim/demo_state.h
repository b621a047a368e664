/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_SIM_DEMO_STATE_H
#define GPUSHARE_APPS_SIM_DEMO_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/arena.h"
#include "gpushare/base/error.h"
#include "gpushare/model/gpu.h"

/* What `gpushare-sim demo` draws: the cluster as its API shows it, worked out anew from each pod's
 * spec and recorded GPUs, without the extender's ledger. Strings lie in the arena. */
struct demo_node {
    const char *name;
    const char *unit;
    const struct gs_gpu *gpus;
    uint32_t gpu_count;
    uint64_t used[GS_GPUS_MAX];         /* by position in gpus */
    uint64_t inspect_used[GS_GPUS_MAX]; /* what the extender says */
    bool misplaced;                     /* a pod names a GPU that is not there */
};

struct demo_pod {
    const char *name;
    const char *asks;             /* in words */
    const struct demo_node *node; /* NULL: waiting */
    gs_gpu_mask gpus;
    uint32_t units; /* on each of its GPUs */
    uint32_t gpu_count;
    const char *idx;
    const char *message; /* of the condition PodScheduled */
    const char *expect;
    const char *expect_reason;
    char letter;
};

struct demo_state {
    struct demo_node *nodes;
    size_t node_count;
    struct demo_pod *pods; /* in the order of their creation */
    size_t pod_count;
    size_t bound;
    size_t waiting;
    bool inspected;
    struct gs_arena arena;
};

/* One of api and kubeconfig; extender may be NULL. *ret must be zeroed; release it in any case. */
int demo_state_read(const char *api, const char *kubeconfig, const char *extender,
                    const char *domain, struct demo_state *ret, struct gs_error *err);
void demo_state_release(struct demo_state *state);

#endif
