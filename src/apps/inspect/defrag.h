/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_DEFRAG_H
#define GPUSHARE_APPS_INSPECT_DEFRAG_H

#include "gpushare/core/defrag.h"
#include "inspect/common.h"
#include "inspect/snapshot.h"

/* kubectl inspect gpushare defrag: the cluster as the planner wants it, and what is planned. */

/* A plan and whom it is for; waiting NULL: it frees a node. */
struct defrag_entry {
    const struct snap_waiting *waiting;
    enum gs_defrag_result result;
    struct gs_defrag_plan plan;
};

struct defrag_run {
    struct common common;
    const char *free_node; /* NULL: room for those that wait */
    uint32_t max_moves;
    enum gs_placement policy;
    struct snapshot snapshot;

    /* bound pods with GPU memory */
    struct gs_arena texts;
    struct gs_defrag_pod *pods;
    const char **nodes; /* where each is */
    gs_gpu_mask *gpus;
    uint32_t pod_count, pod_cap;

    struct defrag_entry *entries;
    uint32_t entry_count;
    uint32_t left_out;          /* pods that wait and were not looked at */
    struct gs_defrag_pod *stay; /* of a node that is freed: who cannot go; borrowed texts */
    uint32_t stay_count;
    bool old_eviction; /* the API server is older than 1.22 */
};

/* defrag_tell.c: all of it, on standard output. -1: it cannot be written. */
int defrag_tell(const struct defrag_run *run);

#endif
