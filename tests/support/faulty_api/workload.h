/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "gpushare/model/names.h"
#include "sim/apiserver/cluster.h"

/*
 * A large cluster out of thin air, the same for the same numbers: for benchmarks and limits.
 *
 *   gs_sim_workload_parse(GS_SLICE("nodes=5000,gpus=8,mem=80,pods=100000,other=400000"), &w, &err);
 *   gs_sim_workload_load(cluster, &names, &w, &err);
 */
struct gs_sim_workload {
    uint32_t nodes;   /* node-00000 … */
    uint32_t gpus;    /* per node, 1 to 64 */
    uint32_t mem;     /* units (GiB) per GPU */
    uint32_t pods;    /* Running, bound, with GPU memory: spread evenly, never over a GPU's size */
    uint32_t pod_mem; /* units per pod; 0: as large as fits, at most 4 */
    uint32_t pending; /* GPU pods that wait for a scheduler, of pod_mem units */
    uint32_t other;   /* Running pods without GPU memory */
};

/* "name=number,…" with the names above; what is not named is 0,
 * gpus 8 and mem 80. GS_EINVAL: an unknown or repeated name, a bad number, pods that do not fit. */
int gs_sim_workload_parse(struct gs_slice text, struct gs_sim_workload *ret, struct gs_error *err);

/* Fills an empty cluster. GS_ENOMEM, GS_ETOOBIG (over its objects_max). */
int gs_sim_workload_load(struct gs_sim_cluster *cluster, const struct gs_names *names,
                         const struct gs_sim_workload *workload, struct gs_error *err);
