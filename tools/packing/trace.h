/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "gpushare/base/arena.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"

/*
 * Cluster traces as CSV, in the shape of Alibaba's cluster-trace-gpu-v2023 ("openb";
 * https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2023/README.md):
 *
 *   nodes   sn,cpu_milli,memory_mib,gpu,model
 *   pods    name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec,...]
 *           [,creation_time,deletion_time[,scheduled_time]]
 *
 * Columns are found by the header's names, in any order; others are ignored. Numbers may carry a
 * fraction, which is dropped. Cells have no quotes. A pod's gpu_spec is "A|B|C": models it may run
 * on; empty or no such column: any. Of the times (seconds) only how long a pod ran is kept: from
 * scheduled_time (creation_time without such a column) to deletion_time; of one that never started
 * or has not ended it is not known. A trace here is a set of pods, and a sequence (below) or a
 * drawn workload (timed.h) says when they arrive.
 *
 *   struct gs_trace trace = {0};
 *   if (gs_trace_read_nodes(&trace, text, err) < 0 || gs_trace_read_pods(&trace, text, err) < 0)
 *       ...
 *   gs_trace_release(&trace);
 */
enum {
    GS_TRACE_CARD_MILLI = 1000, /* gpu_milli of a whole GPU */
    GS_TRACE_NODES_MAX = 100000,
    GS_TRACE_PODS_MAX = 4000000,
};

struct gs_trace_node {
    const char *name;
    int64_t cpu_milli;
    int64_t memory_mib;
    uint32_t gpus; /* at most GS_GPUS_MAX */
    const char *model;
};

struct gs_trace_pod {
    const char *name;
    int64_t cpu_milli;
    int64_t memory_mib;
    uint32_t gpus;      /* 0: no GPU; at most GS_GPUS_MAX */
    uint32_t gpu_milli; /* of each; 1000 for gpus > 1, 0 for gpus 0 */
    const char *models; /* "A|B", "" for any; always "" for gpus 0 */
};

struct gs_trace {
    struct gs_trace_node *nodes; /* in the file's order; texts borrowed from the arena */
    struct gs_trace_pod *pods;
    int64_t *lasts_s; /* of the pods, in their order: at least 1; 0: not known */
    uint32_t node_count, pod_count;
    struct gs_arena arena;
};

/* Each fills its half of *trace (zeroed before) and leaves it alone on failure. GS_EPROTO with the
 * line number, GS_ETOOBIG above the ceilings, GS_ENOMEM. */
int gs_trace_read_nodes(struct gs_trace *trace, struct gs_slice csv, struct gs_error *err);
int gs_trace_read_pods(struct gs_trace *trace, struct gs_slice csv, struct gs_error *err);

void gs_trace_release(struct gs_trace *trace);

/*
 * In which order pods arrive and which node comes first among equals. As text three lines of
 * numbers with single blanks: `nodes arrivals`; the rank of every node (a permutation of 0 ..
 * nodes-1); the pod (row of the pod file, from 0) of every arrival.
 */
struct gs_trace_sequence {
    uint32_t *rank;
    uint32_t *pods;
    uint32_t node_count, arrivals;
};

/* Checked against the trace it is for. Failures as above, GS_EINVAL when it is for another one. */
int gs_trace_read_sequence(struct gs_trace_sequence *ret, const struct gs_trace *trace,
                           struct gs_slice text, struct gs_error *err);
void gs_trace_sequence_release(struct gs_trace_sequence *sequence);
